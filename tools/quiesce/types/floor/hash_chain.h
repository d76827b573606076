/* SPDX-License-Identifier: MIT */
/* hash_chain.h - tables of buckets with a lock each, and a chain of nodes
 * from malloc(): the common part of these types. */
#ifndef QUIESCE_TOOL_HASH_CHAIN_H
#define QUIESCE_TOOL_HASH_CHAIN_H

#include <stddef.h>

#include "types/hash.h"
#include "types/hash_array.h"
#include "types/hash_lock.h"
#include "types/registry.h"

/* The nodes of all these types begin with this member. */
struct chain_node {
	struct chain_node *next;
	uint64_t key, value;
};

/* Four buckets fill a cache line. */
struct chain_bucket {
	struct chain_node *head;
	union {
		uint32_t spin;
		struct hash_rwlock rw;
		struct {
			uint32_t lock, sequence;
		};
	};
};

struct chain_table {
	struct chain_bucket *bucket;
	uint64_t mask;
};

/* Makes at least as many buckets as there will be elements. */
void *chain_create(uint64_t nr_keys);
/* Frees every node that is still linked with free(). */
void chain_destroy(void *table);
uint64_t chain_mapped(const void *table);

static inline struct chain_bucket *chain_bucket(const struct chain_table *t, uint64_t key)
{
	return &t->bucket[hash_mix(key) & t->mask];
}

/* The node of @key; the caller holds the lock. */
static inline struct chain_node *chain_find(const struct chain_bucket *b, uint64_t key)
{
	struct chain_node *n = b->head;

	while (n && quiesce_unlikely(n->key != key))
		n = n->next;
	return n;
}

/* The pointer to the node of @key; if there is none, the pointer that is NULL. */
static inline struct chain_node **chain_place(struct chain_bucket *b, uint64_t key)
{
	struct chain_node **at = &b->head;

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

#endif
