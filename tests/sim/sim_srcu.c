/* SPDX-License-Identifier: MIT */
/* sim_srcu.c - SRCU on the simulated machine; the scenarios are in sim_srcu_*.c. */
#include "sim_srcu.h"

#define MAX_SCENARIOS 128

static struct sim_scenario all[MAX_SCENARIOS + 1] SIM_KEEP;

int main(int argc, char **argv)
{
	static const struct sim_scenario *const table[] = { srcu_wait_scenarios, srcu_callback_scenarios, srcu_poll_scenarios,
							   srcu_end_scenarios, srcu_stop_scenarios };
	int n = 0;

	for (unsigned int i = 0; i < sizeof table / sizeof *table; i++)
		for (const struct sim_scenario *s = table[i]; s->name && n < MAX_SCENARIOS; s++)
			all[n++] = *s;
	return driver_main(argc, argv, all);
}
