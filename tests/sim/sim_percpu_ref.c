/* SPDX-License-Identifier: MIT */
/* sim_percpu_ref.c - references per CPU on the simulated machine; the scenarios are in percpu_ref_*.c. */
#include "percpu_ref_world.h"

int main(int argc, char **argv)
{
	return driver_main(argc, argv, (const struct sim_scenario *const[]){ percpu_ref_users, percpu_ref_changes, NULL });
}
