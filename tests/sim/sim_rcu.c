/* SPDX-License-Identifier: MIT */
/* sim_rcu.c - the real library on the simulated machine; the scenarios are in rcu_*.c. */
#include "rcu_world.h"

#define MAX_SCENARIOS 96

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = { rcu_wait_scenarios, rcu_gp_scenarios, rcu_callback_scenarios,
							 rcu_queue_scenarios };
	int n = 0;

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
