/* SPDX-License-Identifier: MIT */
/* hash_chain.h - tables of buckets with a lock each, and a chain of nodes
 * from malloc(): the common part of these types. */
#ifndef QUIESCE_TOOL_HASH_CHAIN_H
#define QUIESCE_TOOL_HASH_CHAIN_H

#include <stddef.h>
#include <stdlib.h>

#include "types/hash.h"
#include "types/hash_array.h"
#include "types/hash_lock.h"
#include "registry.h"

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

/* ---- updates, between the lock and the unlock of a writer ---- */

static inline struct chain_node *chain_node_new(size_t size, uint64_t key, uint64_t value)
{
	struct chain_node *n = malloc(size);

	if (n)
		*n = (struct chain_node){ NULL, key, value };
	return n;
}

/* @open: readers hold no lock. */
static inline void chain_store(struct chain_node **at, struct chain_node *n, bool open)
{
	if (open)
		__atomic_store_n(at, n, __ATOMIC_RELEASE); /* raw: release, with the loads of readers. */
	else
		*at = n;
}

static inline bool chain_link(struct chain_bucket *b, struct chain_node *n, bool open)
{
	if (chain_find(b, n->key))
		return false;
	n->next = b->head;
	chain_store(&b->head, n, open);
	return true;
}

static inline struct chain_node *chain_unlink(struct chain_bucket *b, uint64_t key, bool open)
{
	struct chain_node **at = chain_place(b, key), *n = *at;

	if (n)
		chain_store(at, n->next, open);
	return n;
}

/* Allocates before the lock is taken, and frees after it was released. */
#define CHAIN_UPDATES(name, NODE, WRITE_LOCK, WRITE_UNLOCK, FREE, OPEN)                          \
	static bool name##_insert(struct chain_table *t, uint64_t key, uint64_t value)           \
	{                                                                                        \
		struct chain_bucket *b = chain_bucket(t, key);                                   \
		struct chain_node *n = NODE(key, value);                                         \
		bool linked;                                                                     \
                                                                                                 \
		if (!n)                                                                          \
			return false;                                                            \
		WRITE_LOCK(b);                                                                   \
		linked = chain_link(b, n, OPEN);                                                 \
		WRITE_UNLOCK(b);                                                                 \
		if (!linked)                                                                     \
			free(n);                                                                 \
		return linked;                                                                   \
	}                                                                                        \
	static bool name##_remove(struct chain_table *t, uint64_t key)                           \
	{                                                                                        \
		struct chain_bucket *b = chain_bucket(t, key);                                   \
		struct chain_node *n;                                                            \
                                                                                                 \
		WRITE_LOCK(b);                                                                   \
		n = chain_unlink(b, key, OPEN);                                                  \
		WRITE_UNLOCK(b);                                                                 \
		if (n)                                                                           \
			FREE(n);                                                                 \
		return n != NULL;                                                                \
	}

#define CHAIN_NODE(key, value) chain_node_new(sizeof(struct chain_node), (key), (value))
#define CHAIN_LOCK(b) hash_spin_lock(&(b)->spin)
#define CHAIN_UNLOCK(b) hash_spin_unlock(&(b)->spin)
#define CHAIN_TABLE .create = chain_create, .destroy = chain_destroy, .mapped = chain_mapped

#endif
