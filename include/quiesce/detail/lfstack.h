/* SPDX-License-Identifier: MIT */
/* quiesce/detail/lfstack.h - private: the steps of a lock-free stack.
 *
 * ds/lfstack.h is the manual: it says who may call what beside whom, and why a pop needs a section.
 */
#ifndef QUIESCE_DETAIL_LFSTACK_H
#define QUIESCE_DETAIL_LFSTACK_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* In an object of yours. */
struct lfs_node {
	struct lfs_node *next; /* written by the push; read by pops, also by those that come too late */
};

/* What lfs_pop_all() returns: the newest node, by which an iteration begins. */
struct lfs_head {
	struct lfs_node node;
};

/* Zeroed memory is an empty stack. */
struct lfs_stack {
	struct lfs_head *head; /* private; written and read by everybody */
};

QUIESCE_FAST void quiesce__lfs_init(struct lfs_stack *s)
{
	quiesce_store_relaxed(&s->head, (struct lfs_head *)NULL); /* Relaxed: nobody else has it. */
}

QUIESCE_FAST bool quiesce__lfs_empty(const struct lfs_stack *s)
{
	return !quiesce_load_relaxed(&s->head); /* Relaxed: no order promised. */
}

QUIESCE_FAST bool quiesce__lfs_push(struct lfs_stack *s, struct lfs_node *node)
{
	/* A guess.  To look first would fetch the line to read it, and then once more to write it. */
	struct lfs_head *head = NULL;

	do
		quiesce_store_relaxed(&node->next, (struct lfs_node *)head); /* Relaxed: the exchange shows it. */
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
		next = quiesce_load_relaxed(&head->node.next); /* Relaxed: of a node that is on top no more it may be anything. */
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
	return quiesce_load_relaxed(&node->next); /* Relaxed: it is the caller's; pops that come too late only read it. */
}

QUIESCE_END_DECLS

#endif
