/* SPDX-License-Identifier: MIT */
/* idr_world.h - shared by the scenarios of idr: owners of ids record their operations, and readers compare.
 *
 * An id belongs to one owner, so its history is a list.  A find that begins when the owner has reported k operations, and
 * ends when it has begun K, must return the pointer of the id after one of the operations k ... K; a reader that has seen
 * the effect of one does not see earlier states again.  This is "linearizable" in any memory model, because the
 * owner reports by a release and the reader loads by an acquire.
 *
 * Nodes lie in pages of their own, which trap on access once they have been freed.
 */
#ifndef QUIESCE_TESTS_SIM_IDR_WORLD_H
#define QUIESCE_TESTS_SIM_IDR_WORLD_H

#include "driver.h"
#include "platform/platform.h"

#include <quiesce/ds/idr.h>

#define NR_OWNERS 3
#define NR_WATCHED 8 /* ids that readers ask for */

struct item {
	struct rcu_head rcu;
	int object;
	unsigned long id;
};

/* A reader's view: for each owner the least number of operations whose effects it must see. */
struct view_of_owners {
	int seen[NR_OWNERS];
};

extern struct idr world_idr;
extern int world_nr_nodes, world_nr_nodes_freed; /* numbers of nodes allocated, and freed */
extern int world_failures; /* number of next allocations that fail */
extern bool world_may_fail;

void world_begin(void);
/* Declare that @id belongs to @owner and readers look it up; may be called from setup(). */
void world_watch(int owner, unsigned long id);

/* Operations of an owner on an id.  The object of a removed or replaced id is freed after a grace period. */
int world_alloc(int owner, unsigned long id);
void world_reserve(int owner, unsigned long id);
void world_replace(int owner, unsigned long id);
void world_remove(int owner, unsigned long id);
/* Destroy all ids; only while there is one owner. */
void world_destroy(int owner);

/* In a section: find an id, read the object, compare; do so for all ids that are watched; visit them in order. */
void world_find(struct view_of_owners *view, unsigned long id);
void world_find_all(struct view_of_owners *view);
void world_iterate(struct view_of_owners *view);

/* Threads of scenarios run these functions. */
void world_reader(void *unused);   /* reads all ids in any order, in two sections */
void world_iterator(void *unused); /* walks twice */
void world_readers(void);

/* idr_xarray.c */
extern const struct sim_scenario xarray_scenarios[];

/* Check that the tree has the objects that the owners have put there, and no others. */
void world_finish(void);

#endif
