/* SPDX-License-Identifier: MIT */
/* sim_stack.h - what the scenarios on stacks share: things that know whether they are in the stack.
 *
 * A thing that comes out must have been in: so none is found twice.  In the end those that are out, and those that are found
 * still in, are all: none is lost.  A stack's own words are judged too: it becomes non-empty as often as it becomes empty,
 * once more if it is not empty in the end.
 */
#ifndef QUIESCE_TESTS_SIM_STACK_H
#define QUIESCE_TESTS_SIM_STACK_H

#include "driver.h"
#include "runtime/lock.h"
#include "platform/platform.h"

#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>

#define NR_THINGS 24
#define WORLD_HANDLER 3 /* the pusher of what handlers push */

struct thing {
	struct rcu_head rcu;
	struct wfs_node wfs;
	struct lfs_node lfs;
	int id, pusher, number;
	bool in;
};

/* So often a push said that the stack was empty, and a pop that it left it empty. */
extern int world_filled, world_emptied;

/* A thing of this pusher that is about to be pushed for the first time. */
struct thing *world_new(int pusher);
/* The caller pushes it now. */
void world_in(struct thing *thing);
/* It has been popped: is it whole? */
void world_out(struct thing *thing);
void world_free(struct thing *thing);
void world_free_rcu(struct rcu_head *rcu);
/* What was taken at once, newest first: call this for each.  Of each pusher the numbers go down. */
struct world_order { int last[8]; };
void world_ordered(struct world_order *order, const struct thing *thing);
/* All are out. */
void world_end(void);

extern const struct sim_scenario wfstack_scenarios[], lfstack_scenarios[];

#endif
