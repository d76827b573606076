/* SPDX-License-Identifier: MIT */
/* sim_shazptr.c - hazard pointers on the simulated machine; the scenarios are in shazptr_*.c. */
#include "shazptr_world.h"

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		shazptr_claim_scenarios, shazptr_guard_scenarios, shazptr_wait_scenarios, shazptr_stop_scenarios,
		shazptr_fork_scenarios, NULL,
	};

	return driver_main(argc, argv, tables);
}
