/* SPDX-License-Identifier: MIT */
/* buckets_world.h - shared by the scenarios of tables: owners of keys record their operations, and readers compare.
 *
 * A key belongs to one owner, so its history is a list.  A lookup that begins when the owner has reported k operations, and
 * ends when it has begun K, must find the state of the key after one of the operations k ... K; a reader that has seen
 * the effect of one does not see earlier states again.  (Several updaters of one key: buckets_race.c.)
 *
 * The table, its arrays and lines lie in pages of their own, which trap on access once they have been freed; objects
 * are the machine's, which the table accesses by its type's functions.  The last thread waits for callbacks: then one array is left and
 * the table has the objects that the owners have put there; and after its destruction nothing is left.
 */
#ifndef QUIESCE_TESTS_SIM_BUCKETS_WORLD_H
#define QUIESCE_TESTS_SIM_BUCKETS_WORLD_H

#include "driver.h"
#include "platform/platform.h"

#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>

#define NR_OWNERS 3
#define NR_KEYS 48

/* HAZARD: a table whose objects are retired with call_hazptr() and found with hazard pointers. */
enum world_kind { TABLE, MAP, HAZARD };
extern enum world_kind world_kind;

struct item {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	int object;
	uint64_t key;
};

/* A reader's view: for each owner the least number of operations whose effects it must see. */
struct view_of_owners {
	int seen[NR_OWNERS];
};

/* The table lies in a page of its own. */
union table {
	struct hashtable ht;
	struct hashmap map;
	struct quiesce__table table;
};
extern union table *world_table;
#define WORLD_SEED 1 /* 0 stands for none */
extern const struct hashtable_type world_type;
extern int world_successes; /* number of next allocations that succeed in any case */
extern int world_failures;  /* number of allocations after these that fail */
extern bool world_may_fail; /* a failed allocation is expected */
extern int world_blocks;    /* number of blocks of memory in use */
extern uint64_t world_key_of[NR_KEYS];

void world_memory_begin(void);
/* Begin with an empty table with room for @nr, which it need not keep, of the scenario's kind. */
void world_begin(enum world_kind kind, size_t nr);
/* A key of @owner's, for the bucket with that number (of 16 or fewer), with the tag of @like if that is not negative, else one of its own.
 * Readers ask for it unless it is unwatched. */
int world_key(int owner, unsigned int bucket, int like);
int world_key_zero(int owner); /* 0 */
void world_unwatch(int key);
/* Declare a key without a history: @judge is called at the end, and returns how many items it has. */
void world_untracked(int key, int (*judge)(void));

/* Operations of an owner on a key.  The item of a removed or replaced key is freed after its readers have left. */
int world_insert(int key); /* 0 or -ENOMEM */
int world_set(int key);
void world_remove(int key);
void world_replace(int key);
int world_key_index(uint64_t value);
/* All keys are owner 0's: remove those that are @chosen, and of which one at most is watched, by @remove(), which retires
 * objects of tables. */
void world_removals(const bool *chosen, void (*remove)(void));
/* buckets_erase.c */
void world_clear(void); /* all keys are owner 0's, and one is watched */
void world_erase(void); /* all keys are owner 0's: remove some */

/* Look up a key, read the object that was found, compare; do so for all keys that are watched; iterate over the table. */
void world_find(struct view_of_owners *view, int key);
void world_find_all(struct view_of_owners *view);
void world_iterate(struct view_of_owners *view);
/* Visit all elements of the table, in a section of the caller's, or in several. */
typedef void visit_func(const struct item *found, const int *low, int *visits);
void world_walk(bool in_steps, visit_func *visit, const int *low, int *visits);
/* Destroy the table: lookups may find nothing from now on. */
void world_destroy(void);

/* Spawn a thread: the last to end runs the final checks, ordered after all others. */
void world_spawn(void (*fn)(void *), void *arg, const char *name);
void world_reader(void *unused);   /* two rounds, all keys in any order */
void world_iterator(void *unused); /* two walks */
void world_readers(void);
/* Wait until only the table's own array is left; false if others stay for ever. */
bool world_settle(void);

/* Items by themselves belong to keys without an owner's history. */
struct item *world_item_new(int key);
void world_item_retire(struct item *item);
void world_check(const struct item *item, int key);
/* Return the item with @key, after reading it, or NULL; to be called in a section. */
struct item *world_lookup(int key);

extern const struct sim_scenario buckets_race_scenarios[], buckets_lines_scenarios[], hashtable_scenarios[], hashmap_scenarios[];

#endif
