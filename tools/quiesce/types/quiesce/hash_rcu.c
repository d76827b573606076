/* SPDX-License-Identifier: MIT */
/* hash_rcu.c - chains whose readers are in sections of RCU of quiesce; updates lock the bucket. */
#include <quiesce/rcu.h>

#include "ours.h"
#include "types/floor/hash_chain.h"

struct rcu_node {
	struct chain_node chain;
	struct rcu_head rcu;
};

static inline uint64_t rcu_lookup(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	const struct chain_node *n;
	uint64_t value;

	rcu_read_lock();
	for (n = rcu_dereference(b->head); n; n = rcu_dereference(n->next))
		if (quiesce_likely(n->key == key))
			break;
	value = n ? n->value : 0;
	rcu_read_unlock();
	return value;
}

static bool rcu_insert(struct chain_table *t, uint64_t key, uint64_t value)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct rcu_node *n = malloc(sizeof(*n));
	bool there;

	if (!n)
		return false;
	hash_spin_lock(&b->spin);
	there = chain_find(b, key) != NULL;
	n->chain = (struct chain_node){ b->head, key, value };
	if (!there)
		rcu_assign_pointer(b->head, &n->chain);
	hash_spin_unlock(&b->spin);
	if (there)
		free(n);
	return !there;
}

static struct rcu_node *unlink_node(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct chain_node **at;
	struct rcu_node *n;

	hash_spin_lock(&b->spin);
	at = chain_place(b, key);
	n = (struct rcu_node *)*at;
	if (n)
		rcu_assign_pointer(*at, n->chain.next);
	hash_spin_unlock(&b->spin);
	return n;
}

static bool rcu_remove(struct chain_table *t, uint64_t key)
{
	struct rcu_node *n = unlink_node(t, key);

	if (n)
		kfree_rcu(n, rcu);
	return n != NULL;
}

OP_FUNCTION(barrier, rcu_barrier())

HASH_RUN(rcu, struct chain_table)

static const struct hash_op rcu_hash = {
	.create = chain_create, .destroy = chain_destroy, .run = rcu_run, .barrier = barrier, .mapped = chain_mapped,
};
TYPE(rcu, .rank = 400, .groups = RUN_TABLE | REPORT,
	.what = "chains, RCU of quiesce; a spinlock in each bucket for updates, kfree_rcu()",
	OURS, .hash = &rcu_hash, .thread_enter = rcu_first_section);

/* ---- chains without a grace period ---- */

#define DEAD ((uint64_t)0xdeadbeef)

#define busted_rcu_lookup rcu_lookup
#define busted_rcu_insert rcu_insert

/* The memory is kept, so a reader that comes too late finds the dead value, reports it and goes on. */
static bool busted_rcu_remove(struct chain_table *t, uint64_t key)
{
	struct rcu_node *n = unlink_node(t, key);

	if (n)
		quiesce_store_relaxed(&n->chain.value, DEAD); /* Relaxed: the store is wrong in any order. */
	return n != NULL;
}

HASH_RUN(busted_rcu, struct chain_table)

static const struct hash_op busted_rcu_hash = {
	.create = chain_create, .destroy = chain_destroy, .run = busted_rcu_run, .barrier = barrier, .mapped = chain_mapped,
};
TYPE(busted_rcu, .rank = 130,
	.what = "rcu, but what is removed is dead at once: has to be BROKEN with updates (a test of this tool)",
	.broken = true, .hash = &busted_rcu_hash, .init = op_rcu_init, .thread_enter = rcu_first_section);
