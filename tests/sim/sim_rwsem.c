/* SPDX-License-Identifier: MIT */
/* sim_rwsem.c - percpu_rwsem, rcu_sync and the helper thread on the simulated machine; the scenarios are in rwsem_*.c. */
#include "rwsem_world.h"

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		rwsem_lock_scenarios, rwsem_queue_scenarios, rwsem_end_scenarios, rcu_sync_scenarios, helper_scenarios,
		pool_scenarios,
		NULL,
	};

	return driver_main(argc, argv, tables);
}
