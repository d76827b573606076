/* SPDX-License-Identifier: MIT */
/* hazptr_world.h - shared by the scenarios of general hazard pointers: items that are found by a pointer, and retired. */
#ifndef QUIESCE_TESTS_SIM_HAZPTR_WORLD_H
#define QUIESCE_TESTS_SIM_HAZPTR_WORLD_H

#include "world.h"

#include <quiesce/hazptr.h>

#define NR_ITEMS 96
#define NR_POINTERS 6

struct item {
	struct hazptr_head head;
	uint64_t id;              /* id of the object that lives here now */
	uint64_t between;
	struct hazptr_head field; /* for readers that protect by this field */
	struct rcu_head rcu;
};

/* Pointers by which readers find items. */
extern struct item *world_pointer[NR_POINTERS];
/* Numbers of items that were retired, and of callbacks that have run. */
extern int world_nr_retired, world_nr_freed;

/* Slots may run out in this scenario; a reader without one reads nothing. */
extern bool world_short_of_slots;
/* True: the retirer runs callbacks.  False: that is left to chance for each object. */
extern bool world_inline;
/* True: only the helper runs callbacks. */
extern bool world_hands_over;

/* Begin with a computer of 2 CPUs, and an item at each pointer; every setup() calls this. */
void world_begin(void);
/* Return a new, initialised, unpublished object, in @item or in a fresh one. */
struct item *world_new(struct item *item);
/* Publish a new item, return the old one; updaters may run at once. */
struct item *world_replace(int index);
/* End an item; the second form is a callback. */
void world_free(struct item *item);
void world_free_head(struct hazptr_head *head);
void world_free_field(struct hazptr_head *field);
/* Write the word that a retirer writes last, and that the callback must find: world_free() checks it. */
void world_last_words(struct item *item);
/* Count the object, and retire it by call_hazptr() or call_hazptr_inline(). */
void world_retire(struct item *item, void (*callback)(struct hazptr_head *head));
void world_retire_large(struct item *item, void (*callback)(struct hazptr_head *head), size_t bytes);
/* Call world_replace() and world_retire(). */
void world_update(int index);
/* Read an item as its protector does. */
void world_check(const struct item *item);
/* Protect by @slot and read; the protection stays. */
struct item *world_protect(hazptr_t *slot, int index);
/* Allocate a slot, protect, read, clear, free the slot. */
void world_read(int index);

/* Threads of scenarios run these functions; a name in the plural spawns such threads. */
void world_reader(void *index);  /* a reader that reads twice */
void world_readers(int nr);      /* @nr readers of pointer 0 */
void world_updater(void *index); /* three updates */

/* Check that all retired items have been reclaimed, also by the library's statistics. */
void world_finish(void);

extern const struct sim_scenario hazptr_slot_scenarios[], hazptr_owner_scenarios[], hazptr_retire_scenarios[];
extern const struct sim_scenario hazptr_wait_scenarios[], hazptr_end_scenarios[], hazptr_handed_scenarios[], hazptr_exit_scenarios[];
extern const struct sim_scenario hazptr_fork_scenarios[];

#endif
