/* SPDX-License-Identifier: MIT */
/* quiesce/detail/lfstack.h - private: the steps of a lock-free stack.
 *
 * ds/lfstack.h is the manual: it has the table of concurrent calls, and says why a pop needs a
 * section.
 *
 * LS1  object and link written, then pushed | found on top, or all taken, then link and object read
 */
#ifndef QUIESCE_DETAIL_LFSTACK_H
#define QUIESCE_DETAIL_LFSTACK_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* A node, which is a member of the caller's object. */
struct lfs_node {
	struct lfs_node *next; /* written by the push; read by pops, even late ones */
};

/* The result of lfs_pop_all(): the newest node, with which an iteration begins. */
struct lfs_head {
	struct lfs_node node;
};

/* All-zero memory is an empty stack. */
struct lfs_stack {
	struct lfs_head *head; /* private; written and read by all threads */
};

QUIESCE_FAST void quiesce__lfs_init(struct lfs_stack *s)
{
	/* Relaxed: no other thread has it. */
	quiesce_store_relaxed(&s->head, (struct lfs_head *)NULL);
}

QUIESCE_FAST bool quiesce__lfs_empty(const struct lfs_stack *s)
{
	return !quiesce_load_relaxed(&s->head); /* Relaxed: no order promised. */
}

QUIESCE_FAST bool quiesce__lfs_push(struct lfs_stack *s, struct lfs_node *node)
{
	/* A guess.  To load the head first would fetch its line once for reading, and then again
	 * for writing. */
	struct lfs_head *head = NULL;

	do
		/* Relaxed: the exchange publishes it. */
		quiesce_store_relaxed(&node->next, (struct lfs_node *)head);
		/* LS1: full, pairs with LS1 in quiesce__lfs_pop() and quiesce__lfs_pop_all() */
	while (!quiesce_cmpxchg(LS1, &s->head, &head, (struct lfs_head *)node));
	return head != NULL;
}

QUIESCE_FAST struct lfs_node *quiesce__lfs_pop(struct lfs_stack *s)
{
	struct lfs_head *head;
	struct lfs_node *next;

	do {
		head = quiesce_load_acquire(LS1, &s->head); /* LS1: acquire, pairs with LS1 in quiesce__lfs_push() */
		if (!head)
			return NULL;
		next = quiesce_load_relaxed(&head->node.next); /* Relaxed: not used if the node is no longer on top. */
		/* LS1: full, pairs with LS1 in quiesce__lfs_push() */
	} while (!quiesce_cmpxchg(LS1, &s->head, &head, (struct lfs_head *)next));
	return &head->node;
}

QUIESCE_FAST struct lfs_head *quiesce__lfs_pop_all(struct lfs_stack *s)
{
	/* LS1: full, pairs with LS1 in quiesce__lfs_push() */
	return quiesce_xchg(LS1, &s->head, (struct lfs_head *)NULL);
}

QUIESCE_FAST struct lfs_node *quiesce__lfs_first(struct lfs_head *head) { return (struct lfs_node *)head; }

/* The node below @node, which the caller has popped together with it. */
QUIESCE_FAST struct lfs_node *quiesce__lfs_below(const struct lfs_node *node)
{
	/* Relaxed: the caller owns it; late pops only read it. */
	return quiesce_load_relaxed(&node->next);
}

QUIESCE_END_DECLS

#endif
