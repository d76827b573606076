/* SPDX-License-Identifier: MIT */
/* hash_seqlock.c - chains with a sequence lock in each bucket: readers write nothing, and may have to repeat.
 *
 * The lock does not protect memory.  So a removed node is reused by this table only, and freed with it: a reader on a
 * wrong path still finds nodes, and notices by the bucket's number at each step.
 * raw, whole file: the sequence lock's own order, explained at each access.
 */
#include "types/floor/hash_chain.h"

#define NR_POOLS 64

static struct {
	uint32_t lock;
	struct chain_node *head; /* removed nodes; guarded by the lock */
} pool[NR_POOLS] __attribute__((aligned(128)));

static uint32_t my_pool(void)
{
	return (uint32_t)hash_thread_number % NR_POOLS;
}

static struct chain_node *take_node(void)
{
	uint32_t i = my_pool();
	struct chain_node *n;

	hash_spin_lock(&pool[i].lock);
	n = pool[i].head;
	if (n)
		pool[i].head = n->next;
	hash_spin_unlock(&pool[i].lock);
	return n ? n : calloc(1, sizeof(*n));
}

static void give_node(struct chain_node *n)
{
	uint32_t i = my_pool();

	hash_spin_lock(&pool[i].lock);
	quiesce_store_relaxed(&n->next, pool[i].head);
	pool[i].head = n;
	hash_spin_unlock(&pool[i].lock);
}

static void seqlock_destroy(void *table)
{
	for (int i = 0; i < NR_POOLS; i++)
		for (struct chain_node *n; (n = pool[i].head) != NULL; free(n))
			pool[i].head = n->next;
	chain_destroy(table);
}

static inline uint32_t read_begin(const struct chain_bucket *b)
{
	uint32_t sequence;

	/* The acquire belongs to the release in write_end(). */
	for (uint32_t spins = 0; quiesce_unlikely((sequence = __atomic_load_n(&b->sequence, __ATOMIC_ACQUIRE)) & 1);)
		hash_lock_pause(&spins);
	return sequence;
}

static inline bool read_again(const struct chain_bucket *b, uint32_t sequence)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with the fence in write_begin() */
	return quiesce_unlikely(quiesce_load_relaxed(&b->sequence) != sequence);
}

static void write_begin(struct chain_bucket *b)
{
	hash_spin_lock(&b->lock);
	quiesce_store_relaxed(&b->sequence, b->sequence + 1);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* pairs with the fence in read_again() */
}

static void write_end(struct chain_bucket *b)
{
	__atomic_store_n(&b->sequence, b->sequence + 1, __ATOMIC_RELEASE);
	hash_spin_unlock(&b->lock);
}

HASH_LOOKUP seqlock_lookup(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	const struct chain_node *n;
	uint32_t sequence;
	uint64_t value;

again:
	sequence = read_begin(b);
	for (n = quiesce_load_relaxed(&b->head); n; n = quiesce_load_relaxed(&n->next)) {
		if (quiesce_likely(quiesce_load_relaxed(&n->key) == key))
			break;
		if (read_again(b, sequence))
			goto again;
	}
	value = n ? quiesce_load_relaxed(&n->value) : 0;
	if (read_again(b, sequence))
		goto again;
	return value;
}

static bool seqlock_insert(struct chain_table *t, uint64_t key, uint64_t value)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct chain_node *n = take_node();
	bool there;

	if (!n)
		return false;
	write_begin(b);
	there = chain_find(b, key) != NULL;
	if (!there) {
		quiesce_store_relaxed(&n->key, key);
		quiesce_store_relaxed(&n->value, value);
		quiesce_store_relaxed(&n->next, b->head);
		quiesce_store_relaxed(&b->head, n);
	}
	write_end(b);
	if (there)
		give_node(n);
	return !there;
}

static bool seqlock_remove(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct chain_node **at, *n;

	write_begin(b);
	at = chain_place(b, key);
	n = *at;
	if (n)
		quiesce_store_relaxed(at, n->next);
	write_end(b);
	if (n)
		give_node(n);
	return n != NULL;
}

HASH_RUN(seqlock, struct chain_table)

static const struct hash_op seqlock_hash = {
	.create = chain_create, .destroy = seqlock_destroy, .run = seqlock_run, .mapped = chain_mapped,
};
TYPE(seqlock, .rank = 500,
	.what = "chains, a sequence lock in each bucket; nodes are never freed but with the table",
	.hash = &seqlock_hash, .thread_enter = hash_thread_enter, .thread_exit = hash_thread_exit);
