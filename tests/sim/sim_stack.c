/* SPDX-License-Identifier: MIT */
/* sim_stack.c - stacks on the simulated machine: what stack_wfstack.c and stack_lfstack.c share. */
#include "stack_world.h"

static struct thing things[NR_THINGS];
static int nr_things, nr_of[8];
int world_filled, world_emptied;

struct thing *world_new(int pusher)
{
	struct thing *thing = &things[nr_things];

	if (nr_things == NR_THINGS) {
		sim_fail("scenario: more than %d things", NR_THINGS);
		return NULL;
	}
	thing->id = nr_things++;
	thing->pusher = pusher;
	thing->number = nr_of[pusher]++;
	sim_obj_init(thing->id);
	sim_data_write(thing->id, 100 + (uint64_t)thing->id);
	return thing;
}

void world_in(struct thing *thing)
{
	sim_assert(!thing->in);
	thing->in = true;
}

void world_out(struct thing *thing)
{
	if (thing < things || thing >= things + NR_THINGS) {
		sim_fail("popped what was never pushed");
		return;
	}
	if (!thing->in)
		sim_fail("thing %d popped twice", thing->id);
	thing->in = false;
	sim_obj_read(thing->id);
	sim_assert(sim_data_read(thing->id) == 100 + (uint64_t)thing->id);
}

void world_free(struct thing *thing)
{
	sim_obj_free(thing->id);
}

void world_free_rcu(struct rcu_head *rcu)
{
	world_free((struct thing *)rcu);
}

void world_ordered(struct world_order *order, const struct thing *thing)
{
	int last = order->last[thing->pusher];

	if (thing->pusher == WORLD_HANDLER)
		return; /* two threads have handlers, and each may interrupt itself */
	sim_assert(!last || thing->number < last - 1);
	order->last[thing->pusher] = thing->number + 1;
}

void world_end(void)
{
	for (int i = 0; i < nr_things; i++)
		if (things[i].in)
			sim_fail("thing %d is lost", i);
}

int main(int argc, char **argv)
{
	return driver_main(argc, argv, (const struct sim_scenario *const[]){ wfstack_scenarios, lfstack_scenarios, NULL });
}
