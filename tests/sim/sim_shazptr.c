/* SPDX-License-Identifier: MIT */
/* sim_shazptr.c - hazard pointers on the simulated machine; the scenarios are in shazptr_*.c. */
#include "shazptr_world.h"

#define MAX_SCENARIOS 128

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = {
		shazptr_claim_scenarios, shazptr_guard_scenarios, shazptr_wait_scenarios, shazptr_stop_scenarios,
	};
	int n = 0;

	for (int i = 0; i < 4; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
