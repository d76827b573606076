/* SPDX-License-Identifier: MIT */
/* sim_idr.h - what the scenarios of idr share: owners of ids who write down what they do, and readers who compare.
 *
 * An id belongs to one owner, so its history is a list.  A find that begins when the owner has told of k operations, and
 * ends when he has begun K, must return what the id had after one of the operations k ... K; a reader who has seen
 * the effect of one does not see earlier states again.  That is what "linearizable" comes to, in any memory model, as the
 * owner tells by a release and the reader hears by an acquire.
 *
 * Nodes lie in pages of their own, which the processor refuses to touch once they have been freed.
 */
#ifndef QUIESCE_TESTS_SIM_IDR_H
#define QUIESCE_TESTS_SIM_IDR_H

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

/* A reader's view: of each owner so many operations at least. */
struct view_of_owners {
	int seen[NR_OWNERS];
};

extern struct idr world_idr;
extern int world_nr_nodes, world_nr_nodes_freed; /* allocated, freed */
extern int world_failures; /* so many of the next allocations fail */
extern bool world_may_fail;

void world_begin(void);
/* From setup() too: @id is @owner's, and readers ask for it. */
void world_watch(int owner, unsigned long id);

/* What an owner does with an id.  The object of a removed or replaced one is freed after a grace period. */
int world_alloc(int owner, unsigned long id);
void world_reserve(int owner, unsigned long id);
void world_replace(int owner, unsigned long id);
void world_remove(int owner, unsigned long id);
/* All ids; only while there is one owner. */
void world_destroy(int owner);

/* In a section: find, look, compare.  All ids that are watched; and visit them in order. */
void world_find(struct view_of_owners *view, unsigned long id);
void world_find_all(struct view_of_owners *view);
void world_iterate(struct view_of_owners *view);

/* Thread bodies. */
void world_reader(void *unused);   /* two sections, all ids in any order */
void world_iterator(void *unused); /* two walks */
void world_readers(void);

/* sim_xarray.c */
extern const struct sim_scenario xarray_scenarios[];

/* What is in the tree is what the owners have put there. */
void world_finish(void);

#endif
