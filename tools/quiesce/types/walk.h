/* SPDX-License-Identifier: MIT */
/* walk.h - structures whose readers protect the nodes that they walk through, under every scheme: the types of walkscale.
 *
 * They are hash_op types (hash.h), measured and checked as those of hashscale are.  A scheme is a file walk_X.c: it defines
 *
 *	WALK_SCHEME		its name, as in X_list
 *	WALK_WHAT		a few words for a report
 *	WALK_RANK		the rank of X_list; the others follow
 *	WALK_FENCES		true: measured once with light and once with full fences
 *	WALK_CHECKS		1: slots protect single nodes; 0: all nodes found since walk_begin() are protected
 *	struct walk_slots	the protections of an operation
 *	walk_begin(), walk_end()
 *	walk_protect(slots, i, where)	loads the word at @where with acquire; slot @i protects its address, without bit 0, from then on
 *	walk_retire(node)	frees the node when no reader can use it any more
 *
 *	walk_init(fence), walk_thread_enter(), walk_thread_exit(), walk_barrier(), walk_stats
 *	walk_waiting()		the number of nodes that are retired and not freed
 *
 * and then includes walk_types.h, which makes its types X_list, X_map, X_tree and X_skip.
 */
#ifndef QUIESCE_TOOL_WALK_H
#define QUIESCE_TOOL_WALK_H

#include <stdlib.h>
#include <string.h>

#if !defined(WALK_FOREIGN_RCU) /* otherwise another library defines these names */
#include <quiesce/hazptr.h>
#include <quiesce/rcu.h>
#endif

#include "hash.h"
#include "hash_array.h"
#include "hash_lock.h"
#include "retire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WALK_SLOTS 3
#define WALK_MARK ((uintptr_t)1)

/* Each node begins with this member. */
union walk_head {
	void *scheme[3];
#if !defined(WALK_FOREIGN_RCU)
	struct rcu_head rcu;
	struct hazptr_head hazptr;
#endif
};

/* @next and @key, the fields that a walk reads, share a cache line wherever malloc() puts the node: otherwise chance
 * would decide in each process how many nodes need two lines. */
struct walk_node {
	union walk_head head;
	uint64_t value;
	uintptr_t next; /* marked: the node is to be unlinked */
	uint64_t key;
};

/* Inner nodes have two children, leaves none.  Keys to the left of an inner node are less than its key. */
struct walk_branch {
	union walk_head head;
	uint64_t value;
	uintptr_t child[2];
	uint64_t key;
	uint32_t lock;
	uint32_t removed;
};

#define WALK_LEVELS 12

/* A node of a skip list. */
struct walk_tower {
	union walk_head head;
	uint64_t value;
	uint64_t key;
	uint32_t removed, height;
	uintptr_t next[];
};

struct walk_table {
	uint64_t mask;     /* for lists: number of buckets less 1 */
	uintptr_t *bucket;
	struct walk_branch root; /* for trees */
	struct walk_tower *tower; /* for skip lists */
	uint32_t lock __attribute__((aligned(128)));
};

/* raw: the structures' own words: published by release stores and exchanges,
 * found by acquire loads; the same for every scheme. */
#define walk_load(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)
#define walk_store(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE) /* raw: a word of the structures. */

static inline bool walk_change(uintptr_t *word, uintptr_t old, uintptr_t fresh)
{
	/* raw: a word of the structures. */
	return __atomic_compare_exchange_n(word, &old, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* walk_create.c.  destroy() frees the nodes that are linked. */
void *walk_create_list(uint64_t nr_keys);
void *walk_create_map(uint64_t nr_keys);
void *walk_create_tree(uint64_t nr_keys);
void *walk_create_skip(uint64_t nr_keys);
void walk_destroy(void *table);
uint64_t walk_mapped(const void *table);

/* Frees a node and counts it. */
static inline void walk_free(void *node)
{
	free(node);
	retire_count();
}

#ifdef __cplusplus
}
#endif

#endif
