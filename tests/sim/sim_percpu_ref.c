/* SPDX-License-Identifier: MIT */
/* sim_percpu_ref.c - references per CPU on the simulated machine; the scenarios are in percpu_ref_*.c. */
#include "percpu_ref_world.h"

#define MAX_SCENARIOS 40

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = { percpu_ref_users, percpu_ref_changes };
	int n = 0;

	for (unsigned int i = 0; i < sizeof table / sizeof *table; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
