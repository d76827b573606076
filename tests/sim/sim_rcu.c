/* SPDX-License-Identifier: MIT */
/* sim_rcu.c - the real library on the simulated machine; the scenarios are in rcu_wait.c and rcu_callbacks.c. */
#include "rcu_world.h"

#define MAX_SCENARIOS 64

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = { rcu_wait_scenarios, rcu_callback_scenarios };
	int n = 0;

	for (int i = 0; i < 2; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
