/* SPDX-License-Identifier: MIT */
/* sim_hazptr.c - general hazard pointers on the simulated machine; the scenarios are in hazptr_*.c. */
#include "hazptr_world.h"

#define MAX_SCENARIOS 160

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = {
		hazptr_slot_scenarios, hazptr_owner_scenarios, hazptr_retire_scenarios, hazptr_wait_scenarios,
		hazptr_end_scenarios, hazptr_handed_scenarios,
	};
	int n = 0;

	for (unsigned int i = 0; i < sizeof table / sizeof *table; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
