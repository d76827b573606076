/* SPDX-License-Identifier: MIT */
/* rculist_world.h - shared by the scenarios of lists: entries that are in a list of each kind, or in one of them. */
#ifndef QUIESCE_TESTS_SIM_RCULIST_WORLD_H
#define QUIESCE_TESTS_SIM_RCULIST_WORLD_H

#include "driver.h"
#include "nulls_lookup.h"
#include "runtime/lock.h"
#include "platform/platform.h"

#include <quiesce/ds/rculist.h>

#define NR_ENTRIES 32

struct entry {
	struct rcu_head rcu;
	struct list_head node;
	struct hlist_node hnode;
	struct nulls_entry nulls; /* for entries that are used again */
	uint64_t generation;      /* lists are spliced as a whole: the same in all entries of one */
	int id;
};

extern struct entry world_entry[NR_ENTRIES];

/* Return a new, initialised, unpublished entry. */
struct entry *world_new(void);
/* Read an entry as a reader does; false, and the run has failed, if it is none. */
bool world_visit(const struct entry *entry);
/* Free an entry after a grace period. */
void world_free(struct entry *entry);
void world_free_head(struct rcu_head *rcu); /* a callback */
/* Run @body in as many threads as there are readers, twice in each. */
void world_readers(void (*body)(void));

extern const struct sim_scenario rculist_scenarios[], rculist_nulls_scenarios[];

#endif
