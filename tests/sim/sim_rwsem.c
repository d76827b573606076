/* SPDX-License-Identifier: MIT */
/* sim_rwsem.c - percpu_rwsem, rcu_sync and the helper thread on the simulated machine; the scenarios are in sim_rwsem_*.c
 * and sim_rcu_sync*.c. */
#include "sim_rwsem.h"

#define MAX_SCENARIOS 120

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = {
		rwsem_lock_scenarios, rwsem_queue_scenarios, rwsem_end_scenarios, rcu_sync_scenarios, helper_scenarios,
	};
	int n = 0;

	for (unsigned int i = 0; i < sizeof table / sizeof *table; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
