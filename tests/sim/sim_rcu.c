/* SPDX-License-Identifier: MIT */
/* sim_rcu.c - the real library on the simulated machine; the scenarios are in rcu_*.c. */
#include "rcu_world.h"

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		rcu_wait_scenarios, rcu_gp_scenarios, rcu_callback_scenarios, rcu_queue_scenarios, rcu_owner_scenarios, rcu_paced_scenarios,
		rcu_fork_scenarios, rcu_exit_scenarios, rcu_reclaimer_scenarios, rcu_allocator_scenarios, rcu_sum_scenarios,
		rcu_scan_scenarios, rcu_holdout_scenarios, first_call_scenarios, NULL,
	};

	return driver_main(argc, argv, tables);
}
