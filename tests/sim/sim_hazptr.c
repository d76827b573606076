/* SPDX-License-Identifier: MIT */
/* sim_hazptr.c - general hazard pointers on the simulated machine; the scenarios are in hazptr_*.c. */
#include "hazptr_world.h"

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		hazptr_slot_scenarios, hazptr_owner_scenarios, hazptr_retire_scenarios, hazptr_wait_scenarios,
		hazptr_end_scenarios, hazptr_handed_scenarios, hazptr_exit_scenarios, hazptr_fork_scenarios, NULL,
	};

	return driver_main(argc, argv, tables);
}
