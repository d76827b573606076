/* SPDX-License-Identifier: MIT */
/* sim_queue.c - queues on the simulated machine. */
#include "queue_world.h"

#define NR_TAKERS 3

static int nr_taken;
static int newest[NR_TAKERS][NR_PRODUCERS]; /* newest item of each producer that a taker has had, as 1 + its number */

void world_fill(int id)
{
	sim_obj_init(id);
	sim_data_write(id, 100 + (uint64_t)id);
}

void world_taken(int id, int by)
{
	int producer = (id - 1) / NR_EACH, nr = (id - 1) % NR_EACH;

	sim_assert(id >= 1 && producer < NR_PRODUCERS);
	if (by != ANY_ORDER && newest[by][producer] > nr)
		sim_fail("item %d of producer %d after item %d", nr, producer, newest[by][producer] - 1);
	if (by != ANY_ORDER)
		newest[by][producer] = nr + 1;
	sim_obj_read(id);
	sim_assert(sim_data_read(id) == 100 + (uint64_t)id);
	sim_obj_free(id); /* the machine fails a run that frees it twice */
	quiesce_fetch_add_relaxed(&nr_taken, 1);
}

int world_nr_taken(void)
{
	return quiesce_load_relaxed(&nr_taken);
}

int main(int argc, char **argv)
{
	return driver_main(argc, argv, (const struct sim_scenario *const[]){ wfcq_scenarios, lfq_scenarios, value_queue_scenarios,
									     value_queue_stop_scenarios, NULL });
}
