/* SPDX-License-Identifier: MIT */
/* sim_srcu.c - SRCU on the simulated machine; the scenarios are in srcu_*.c. */
#include "srcu_world.h"

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		srcu_wait_scenarios, srcu_callback_scenarios, srcu_poll_scenarios, srcu_end_scenarios,
		srcu_stop_scenarios, srcu_exit_scenarios, srcu_fork_scenarios, NULL,
	};

	return driver_main(argc, argv, tables);
}
