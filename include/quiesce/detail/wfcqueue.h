/* SPDX-License-Identifier: MIT */
/* quiesce/detail/wfcqueue.h - private: the steps of a queue with several producers, and one
 * consumer at a time.
 *
 * ds/wfcqueue.h is the manual, with the table of concurrent calls; src/queue/wfcqueue.c has the
 * theory. */
#ifndef QUIESCE_DETAIL_WFCQUEUE_H
#define QUIESCE_DETAIL_WFCQUEUE_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* A node, which is a member of the caller's object. */
struct wfcq_node {
	struct wfcq_node *next; /* written by the producer of the next node; read by consumers */
};

/* The head; consumers write it, and so does the producer of a first node. */
struct wfcq_head {
	struct wfcq_node node; /* links to the first node */
};

/* The tail; all producers write it, and so does the consumer of the last node. */
struct wfcq_tail {
	struct wfcq_node *p; /* the last node; the head's node if the queue is empty */
};

/** WFCQ_WOULDBLOCK - returned by nonblocking calls if a node is not linked yet. */
#define WFCQ_WOULDBLOCK QUIESCE_AS_POINTER(struct wfcq_node *, QUIESCE_CAST(intptr_t, -1))

/* A splice returns one of these. */
enum wfcq_ret {
	WFCQ_RET_WOULDBLOCK = -1,    /* a node is not linked yet, and nothing was moved */
	WFCQ_RET_DEST_EMPTY = 0,     /* the nodes were moved to an empty queue */
	WFCQ_RET_DEST_NON_EMPTY = 1, /* the nodes were moved behind other nodes */
	WFCQ_RET_SRC_EMPTY = 2,      /* there was no node to move */
};

/* The state that a dequeue returns consists of these bits. */
enum wfcq_state {
	WFCQ_STATE_LAST = 1, /* the dequeue has left the queue empty */
};

QUIESCE_API struct wfcq_node *quiesce_wfcq_wait(const struct wfcq_tail *tail, const struct wfcq_node *node);
QUIESCE_API struct wfcq_node *quiesce_wfcq_dequeue_with_state_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state);
QUIESCE_API enum wfcq_ret quiesce_wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
						       struct wfcq_head *src_head, struct wfcq_tail *src_tail);

QUIESCE_FAST void quiesce__wfcq_init(struct wfcq_head *head, struct wfcq_tail *tail)
{
	quiesce_store_relaxed(&head->node.next, (struct wfcq_node *)NULL); /* Relaxed: no other thread has it. */
	quiesce_store_relaxed(&tail->p, &head->node); /* Relaxed: no other thread has it. */
}

/* True if @node is the last, or, if it is the head's, if the queue is empty.  The caller has
 * reached @node by WF1, that is after the exchange that enqueued it, so it does not load an older
 * tail. */
QUIESCE_FAST bool quiesce__wfcq_at_end(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	return quiesce_load_relaxed(&tail->p) == node; /* Relaxed: only compared; see above. */
}

/* The successor of @node; NULL: none, or it is not linked yet. */
QUIESCE_FAST struct wfcq_node *quiesce__wfcq_follow(const struct wfcq_node *node)
{
	/* WF1: acquire, pairs with WF1 in quiesce__wfcq_append() */
	return quiesce_load_acquire(WF1, &node->next);
}

/* Append the nodes from @first to @last, which has no successor. */
QUIESCE_FAST bool quiesce__wfcq_append(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *first, struct wfcq_node *last)
{
	/* WF2: full, pairs with WF2 in quiesce__wfcq_append(), quiesce__wfcq_dequeue() and quiesce__wfcq_splice() */
	struct wfcq_node *before = quiesce_xchg(WF2, &tail->p, last);

	/* WF1: release, pairs with WF1 in quiesce__wfcq_follow() and quiesce__wfcq_splice() */
	quiesce_store_release(WF1, &before->next, first);
	return before != &head->node;
}

QUIESCE_FAST bool quiesce__wfcq_empty(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return !quiesce_load_relaxed(&head->node.next) && quiesce__wfcq_at_end(tail, &head->node); /* Relaxed: no order promised. */
}

QUIESCE_FAST bool quiesce__wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node)
{
	quiesce_store_relaxed(&node->next, (struct wfcq_node *)NULL); /* Relaxed: WF2 follows. */
	return quiesce__wfcq_append(head, tail, node, node);
}

/* Never waits. */
QUIESCE_FAST struct wfcq_node *quiesce__wfcq_dequeue(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	struct wfcq_node *node = quiesce__wfcq_follow(&head->node), *next, *last = node;

	*ret_state = 0;
	if (!node)
		return quiesce__wfcq_at_end(tail, &head->node) ? NULL : WFCQ_WOULDBLOCK;
	next = quiesce__wfcq_follow(node);
	quiesce_store_relaxed(&head->node.next, next); /* Relaxed: for the next consumer; WF2 follows. */
	if (next)
		return node;
	/* WF2: full, pairs with WF2 in quiesce__wfcq_append() */
	if (quiesce_cmpxchg(WF2, &tail->p, &last, &head->node)) {
		*ret_state = WFCQ_STATE_LAST;
		return node;
	}
	quiesce_store_relaxed(&head->node.next, node); /* Relaxed: for the next consumer. */
	return WFCQ_WOULDBLOCK;
}

QUIESCE_FAST struct wfcq_node *quiesce__wfcq_dequeue_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	struct wfcq_node *node = quiesce__wfcq_dequeue(head, tail, ret_state);

	return quiesce_likely(node != WFCQ_WOULDBLOCK) ? node : quiesce_wfcq_dequeue_with_state_blocking(head, tail, ret_state);
}

/* Never waits. */
QUIESCE_FAST enum wfcq_ret quiesce__wfcq_splice(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
						struct wfcq_tail *src_tail)
{
	struct wfcq_node *first, *last;

	if (quiesce__wfcq_empty(src_head, src_tail))
		return WFCQ_RET_SRC_EMPTY;
	/* WF1: full, pairs with WF1 in quiesce__wfcq_append() */
	first = quiesce_xchg(WF1, &src_head->node.next, (struct wfcq_node *)NULL);
	if (!first)
		return WFCQ_RET_WOULDBLOCK;
	/* WF2: full, pairs with WF2 in quiesce__wfcq_append() */
	last = quiesce_xchg(WF2, &src_tail->p, &src_head->node);
	return quiesce__wfcq_append(dest_head, dest_tail, first, last) ? WFCQ_RET_DEST_NON_EMPTY : WFCQ_RET_DEST_EMPTY;
}

QUIESCE_FAST enum wfcq_ret quiesce__wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
							 struct wfcq_head *src_head, struct wfcq_tail *src_tail)
{
	enum wfcq_ret ret = quiesce__wfcq_splice(dest_head, dest_tail, src_head, src_tail);

	return quiesce_likely(ret != WFCQ_RET_WOULDBLOCK) ? ret : quiesce_wfcq_splice_blocking(dest_head, dest_tail, src_head, src_tail);
}

/* Never waits; the successor of the head's node is the first. */
QUIESCE_FAST struct wfcq_node *quiesce__wfcq_next(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	struct wfcq_node *next = quiesce__wfcq_follow(node);

	if (next)
		return next;
	return quiesce__wfcq_at_end(tail, node) ? NULL : WFCQ_WOULDBLOCK;
}

QUIESCE_FAST struct wfcq_node *quiesce__wfcq_next_blocking(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	struct wfcq_node *next = quiesce__wfcq_next(tail, node);

	return quiesce_likely(next != WFCQ_WOULDBLOCK) ? next : quiesce_wfcq_wait(tail, node);
}

QUIESCE_END_DECLS

#endif
