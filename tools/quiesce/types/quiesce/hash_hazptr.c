/* SPDX-License-Identifier: MIT */
/* hash_hazptr.c - chains whose readers protect each node that they visit with hazard pointers of quiesce.
 *
 * hazptr_protect() checks that the pointer that led to a node has not changed.  That is sufficient only as long as
 * the node that contains the pointer is in the chain.  So a remove makes the node point to itself, under the lock and
 * before the node is retired, and a reader that finds such a node starts again.
 */
#include <quiesce/hazptr.h>
#include <quiesce/rcu.h>

#include "ours.h"
#include "types/floor/hash_chain.h"

struct hazptr_node {
	struct hazptr_head head; /* the first member, because protections are of the node's address */
	struct hazptr_node *next;
	uint64_t key, value;
};

/* The chains of this table consist of struct hazptr_node. */
static struct hazptr_node **head_of(const struct chain_table *t, uint64_t key)
{
	return (struct hazptr_node **)(void *)&chain_bucket(t, key)->head;
}

/* The slots take turns: one protects the current node, the other one the node before it. */
static __thread hazptr_t *slot[2];

static void thread_enter(void)
{
	for (int i = 0; i < 2; i++) {
		slot[i] = hazptr_alloc(NULL);
		if (!slot[i])
			abort();
	}
}

static void thread_exit(void)
{
	for (int i = 0; i < 2; i++)
		hazptr_free(NULL, slot[i]);
}

/* Walks beyond the first node, whose key is another one; the protection is left in slot[0] or slot[1]. */
static __attribute__((noinline)) struct hazptr_node *walk(struct hazptr_node **head, uint64_t key)
{
	struct hazptr_node *n, *next;
	int mine;

again:
	mine = 0;
	n = hazptr_protect(slot[mine], head);
	while (n && n->key != key) {
		mine = !mine;
		next = hazptr_protect(slot[mine], &n->next);
		if (next == n)
			goto again;
		n = next;
	}
	return n;
}

HASH_LOOKUP hazptr_lookup(struct chain_table *t, uint64_t key)
{
	struct hazptr_node **head = head_of(t, key);
	struct hazptr_node *n = hazptr_protect(slot[0], head);
	uint64_t value;

	if (quiesce_unlikely(n && n->key != key)) {
		n = walk(head, key);
		value = n ? n->value : 0;
		hazptr_clear(slot[1]);
	} else {
		value = n ? n->value : 0;
	}
	hazptr_clear(slot[0]);
	return value;
}

/* The pointer to the node of @key; the caller holds the lock. */
static struct hazptr_node **place(struct hazptr_node **at, uint64_t key)
{
	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static bool hazptr_insert(struct chain_table *t, uint64_t key, uint64_t value)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct hazptr_node *n = malloc(sizeof(*n)), **head = head_of(t, key);
	bool there;

	if (!n)
		return false;
	hash_spin_lock(&b->spin);
	there = *place(head, key) != NULL;
	*n = (struct hazptr_node){ .next = *head, .key = key, .value = value };
	if (!there)
		rcu_assign_pointer(*head, n);
	hash_spin_unlock(&b->spin);
	if (there)
		free(n);
	return !there;
}

static bool hazptr_remove(struct chain_table *t, uint64_t key)
{
	struct chain_bucket *b = chain_bucket(t, key);
	struct hazptr_node **at, *n;

	hash_spin_lock(&b->spin);
	at = place(head_of(t, key), key);
	n = *at;
	if (n) {
		rcu_assign_pointer(*at, n->next);
		rcu_assign_pointer(n->next, n);
	}
	hash_spin_unlock(&b->spin);
	if (n)
		kfree_hazptr(n, head);
	return n != NULL;
}

OP_FUNCTION(barrier, hazptr_barrier())

static void hazptr_destroy(void *table)
{
	struct chain_table *t = table;

	for (uint64_t i = 0; i <= t->mask; i++)
		for (struct hazptr_node *n = (struct hazptr_node *)(void *)t->bucket[i].head, *next; n; n = next) {
			next = n->next;
			free(n);
		}
	hash_array_free(t->bucket, (t->mask + 1) * sizeof(*t->bucket));
	free(t);
}

HASH_RUN(hazptr, struct chain_table)

static const struct hash_op hazptr_hash = {
	.create = chain_create, .destroy = hazptr_destroy, .run = hazptr_run, .barrier = barrier, .mapped = chain_mapped,
	.waiting = op_hazptr_waiting,
};
TYPE(hazptr, .rank = 410, .groups = REPORT,
	.what = "chains, hazard pointers of quiesce: each node protected; a spinlock in each bucket for updates, kfree_hazptr()",
	OURS, .hash = &hazptr_hash, .thread_enter = thread_enter, .thread_exit = thread_exit);
