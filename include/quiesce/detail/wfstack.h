/* SPDX-License-Identifier: MIT */
/* quiesce/detail/wfstack.h - private: the steps of a stack whose push is one exchange, and then a
 * link.
 *
 * ds/wfstack.h is the manual, with the table of concurrent calls; src/queue/wfstack.c has the theory.
 */
#ifndef QUIESCE_DETAIL_WFSTACK_H
#define QUIESCE_DETAIL_WFSTACK_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* A node, which is a member of the caller's object. */
struct wfs_node {
	struct wfs_node *next; /* written by the push; 1: on top, not linked yet */
};

/* The result of wfs_pop_all(): the newest node, with which an iteration begins. */
struct wfs_head {
	struct wfs_node node;
};

/* All-zero memory is an empty stack. */
struct wfs_stack {
	struct wfs_head *head; /* private; written and read by all threads */
};

/** WFS_WOULDBLOCK - returned by _nonblocking forms instead of waiting; not a node. */
#define WFS_WOULDBLOCK QUIESCE_AS_POINTER(struct wfs_node *, UINTPTR_MAX)

/** WFS_STATE_LAST - state bit: the pop has left the stack empty. */
#define WFS_STATE_LAST 1

#define QUIESCE_WFS_UNLINKED QUIESCE_AS_POINTER(struct wfs_node *, QUIESCE_CAST(uintptr_t, 1))

QUIESCE_API struct wfs_node *quiesce__wfs_wait_link(struct wfs_node *node);

QUIESCE_FAST void quiesce__wfs_init(struct wfs_stack *s)
{
	/* Relaxed: no other thread has it. */
	quiesce_store_relaxed(&s->head, (struct wfs_head *)NULL);
}

QUIESCE_FAST bool quiesce__wfs_empty(const struct wfs_stack *s)
{
	return !quiesce_load_relaxed(&s->head); /* Relaxed: no order promised. */
}

QUIESCE_FAST bool quiesce__wfs_push(struct wfs_stack *s, struct wfs_node *node)
{
	struct wfs_head *old;

	quiesce_store_relaxed(&node->next, QUIESCE_WFS_UNLINKED); /* Relaxed: the exchange publishes it. */
	/* WS1: full, pairs with WS1 in quiesce__wfs_pop_blocking(), quiesce__wfs_pop() and quiesce__wfs_pop_all() */
	old = quiesce_xchg(WS1, &s->head, (struct wfs_head *)node);
	/* WS2: release, pairs with WS2 in quiesce__wfs_next(), quiesce__wfs_next_blocking() and quiesce__wfs_wait_link() */
	quiesce_store_release(WS2, &node->next, (struct wfs_node *)old);
	return old != NULL;
}

QUIESCE_FAST struct wfs_node *quiesce__wfs_first(struct wfs_head *head) { return (struct wfs_node *)head; }

/* Never waits. */
QUIESCE_FAST struct wfs_node *quiesce__wfs_next(const struct wfs_node *node)
{
	/* WS2: acquire, pairs with WS2 in quiesce__wfs_push() */
	struct wfs_node *next = quiesce_load_acquire(WS2, &node->next);

	return quiesce_unlikely(next == QUIESCE_WFS_UNLINKED) ? WFS_WOULDBLOCK : next;
}

QUIESCE_FAST struct wfs_node *quiesce__wfs_next_blocking(struct wfs_node *node)
{
	/* WS2: acquire, pairs with WS2 in quiesce__wfs_push() */
	struct wfs_node *next = quiesce_load_acquire(WS2, &node->next);

	return quiesce_unlikely(next == QUIESCE_WFS_UNLINKED) ? quiesce__wfs_wait_link(node) : next;
}

QUIESCE_FAST struct wfs_node *quiesce__wfs_pop_blocking(struct wfs_stack *s, int *ret_state)
{
	struct wfs_head *head;
	struct wfs_node *next;

	*ret_state = 0;
	do {
		head = quiesce_load_acquire(WS1, &s->head); /* WS1: acquire, pairs with WS1 in quiesce__wfs_push() */
		if (!head)
			return NULL;
		next = quiesce__wfs_next_blocking(&head->node);
		/* WS1: full, pairs with WS1 in quiesce__wfs_push() */
	} while (!quiesce_cmpxchg(WS1, &s->head, &head, (struct wfs_head *)next));
	*ret_state = next ? 0 : WFS_STATE_LAST;
	return &head->node;
}

/* Make one attempt to pop; never waits. */
QUIESCE_FAST struct wfs_node *quiesce__wfs_pop(struct wfs_stack *s, int *ret_state)
{
	/* WS1: acquire, pairs with WS1 in quiesce__wfs_push() */
	struct wfs_head *head = quiesce_load_acquire(WS1, &s->head);
	struct wfs_node *next = head ? quiesce__wfs_next(&head->node) : NULL;

	*ret_state = 0;
	if (!head || next == WFS_WOULDBLOCK)
		return next;
	/* WS1: full, pairs with WS1 in quiesce__wfs_push() */
	if (!quiesce_cmpxchg(WS1, &s->head, &head, (struct wfs_head *)next))
		return WFS_WOULDBLOCK;
	*ret_state = next ? 0 : WFS_STATE_LAST;
	return &head->node;
}

QUIESCE_FAST struct wfs_head *quiesce__wfs_pop_all(struct wfs_stack *s)
{
	/* WS1: full, pairs with WS1 in quiesce__wfs_push() */
	return quiesce_xchg(WS1, &s->head, (struct wfs_head *)NULL);
}

QUIESCE_END_DECLS

#endif
