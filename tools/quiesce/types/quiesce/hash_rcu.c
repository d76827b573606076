/* SPDX-License-Identifier: MIT */
/* hash_rcu.c - chains whose readers are in sections of RCU of quiesce; updates lock the bucket. */
#include <quiesce/rcu.h>

#include "ours.h"
#include "types/floor/hash_chain.h"

struct rcu_node {
	struct chain_node chain;
	struct rcu_head rcu;
};

HASH_LOOKUP rcu_lookup(struct chain_table *t, uint64_t key)
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

#define NODE(key, value) chain_node_new(sizeof(struct rcu_node), (key), (value))
#define FREE(n) kfree_rcu((struct rcu_node *)(n), rcu)
CHAIN_UPDATES(rcu, NODE, CHAIN_LOCK, CHAIN_UNLOCK, FREE, true)

OP_FUNCTION(barrier, rcu_barrier())

HASH_RUN(rcu, struct chain_table)

TYPE(rcu, .rank = 400, .groups = RUN_TABLE | REPORT, .peers = PEER_TABLE,
	.what = "chains, RCU of quiesce; a spinlock in each bucket for updates, kfree_rcu()",
	OURS, .hash = &(const struct hash_op){ CHAIN_TABLE, .run = rcu_run, .barrier = barrier, .waiting = op_rcu_waiting },
	.thread_enter = rcu_first_section);

/* ---- chains without a grace period ---- */

#define DEAD ((uint64_t)0xdeadbeef)

#define busted_rcu_lookup rcu_lookup

/* The memory is kept, so a reader that comes too late finds the dead value, reports it and goes on.  Relaxed: the store is
 * wrong in any order. */
#define KILL(n) quiesce_store_relaxed(&(n)->value, DEAD)
CHAIN_UPDATES(busted_rcu, NODE, CHAIN_LOCK, CHAIN_UNLOCK, KILL, true)
HASH_RUN(busted_rcu, struct chain_table)

TYPE(busted_rcu, .rank = 130,
	.what = "rcu, but what is removed is dead at once: has to be BROKEN with updates (a test of this tool)",
	.broken = true, .hash = &(const struct hash_op){ CHAIN_TABLE, .run = busted_rcu_run, .barrier = barrier },
	.init = op_rcu_init, .thread_enter = rcu_first_section);
