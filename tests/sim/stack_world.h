/* SPDX-License-Identifier: MIT */
/* stack_world.h - shared by the scenarios of stacks: things that know whether they are in the stack.
 *
 * A thing that is popped must have been in the stack, so none is found twice.  In the end the things that were popped and those
 * that are still in the stack are all things, so none is lost.  The results of calls are checked, too: the stack becomes non-empty as
 * often as it becomes empty, once more if it is not empty in the end.
 */
#ifndef QUIESCE_TESTS_SIM_STACK_WORLD_H
#define QUIESCE_TESTS_SIM_STACK_WORLD_H

#include "driver.h"
#include "runtime/lock.h"
#include "platform/platform.h"

#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>

#define NR_THINGS 24
#define WORLD_HANDLER 3 /* the pusher number of things that handlers push */

struct thing {
	struct rcu_head rcu;
	struct wfs_node wfs;
	struct lfs_node lfs;
	int id, pusher, number;
	bool in;
};

/* These count pushes that reported an empty stack before, and pops that reported an empty stack after. */
extern int world_filled, world_emptied;

/* Return a thing of this pusher that is about to be pushed for the first time. */
struct thing *world_new(int pusher);
/* Record that the caller pushes the thing now. */
void world_in(struct thing *thing);
/* Check that a popped thing is whole. */
void world_out(struct thing *thing);
void world_free(struct thing *thing);
void world_free_rcu(struct rcu_head *rcu);
/* Check the order of a batch that was taken at once, by a call for each thing, newest first: the numbers of each pusher go down. */
struct world_order { int last[8]; };
void world_ordered(struct world_order *order, const struct thing *thing);
/* Check that all things have been popped. */
void world_end(void);

extern const struct sim_scenario wfstack_scenarios[], lfstack_scenarios[];

#endif
