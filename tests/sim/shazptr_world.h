/* SPDX-License-Identifier: MIT */
/* shazptr_world.h - shared by the scenarios of hazard pointers: items that are found by a pointer. */
#ifndef QUIESCE_TESTS_SIM_SHAZPTR_WORLD_H
#define QUIESCE_TESTS_SIM_SHAZPTR_WORLD_H

#include "world.h"

#include <quiesce/shazptr.h>

#define NR_ITEMS 64
#define NR_POINTERS 4

struct item {
	uint64_t id; /* id of the object that lives here now */
};

/* Pointers by which readers find items; updaters of different pointers do not meet. */
extern struct item *world_pointer[NR_POINTERS];

/* Begin with a computer of 2 CPUs with concurrency ids, and an item at each pointer; every setup() calls this. */
void world_begin(void);
/* Return a new, initialised, unpublished object, in @item or in a fresh one. */
struct item *world_new(struct item *item);
/* Publish a new item, return the old one; updaters may run at once. */
struct item *world_replace(int index);
void world_free(struct item *item);
/* Read an item as the holder of a guard does. */
void world_check(const struct item *item);
/* Protect, read, clear. */
void world_read(int index);
/* Acquire a guard of an address, load the pointer after that, read, clear; @wild: the guard is of every address. */
void world_read_known(int index, bool wild);

/* Threads of scenarios run these functions; a name in the plural spawns such threads. */
void world_reader(void *index);   /* a reader that reads twice */
void world_readers(int nr);       /* @nr readers of pointer 0 */
void world_reader_of_pointers(void *unused); /* one pointer after the other */
void world_updater(void *index);  /* twice: replace, synchronize_shazptr(), free */
void world_updaters(int nr);

/* Give up the CPU until @slot has a tag, or @done is set. */
void world_await_tag(const struct shazptr_guard *guard, const uint32_t *done);

extern const struct sim_scenario shazptr_claim_scenarios[], shazptr_guard_scenarios[], shazptr_wait_scenarios[], shazptr_stop_scenarios[],
	shazptr_fork_scenarios[];

#endif
