/* SPDX-License-Identifier: MIT */
/* quiesce/detail/lfqueue.h - private: the inline steps of a queue with several producers and
 * consumers.
 *
 * ds/lfqueue.h is the manual; src/queue/lfqueue.c has the theory, and the steps that are out of line.
 */
#ifndef QUIESCE_DETAIL_LFQUEUE_H
#define QUIESCE_DETAIL_LFQUEUE_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* A node, which is a member of the caller's object. */
struct lfq_node {
	uintptr_t next; /* an end mark, then once the successor: a node or a number */
};

/* Private.  A word is the address of a node; or a number (one more than a multiple of 4), which
 * means empty; or the end mark of number n, n + 1.  Head and tail are in different cache lines at
 * any alignment, so the memory of malloc() will do. */
struct lfq_queue {
	uintptr_t head; /* oldest node, or the number of an empty queue */
	char pad[QUIESCE_CACHELINE - sizeof(uintptr_t)];
	uintptr_t tail; /* newest node, the one before, or the head's last number */
	uintptr_t end;  /* hint: end mark of the newest node */
	char after[QUIESCE_CACHELINE - 2 * sizeof(uintptr_t)];
};
#define LFQ_INIT { 1, { 0 }, 1, 2, { 0 } }

QUIESCE_API void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node);
QUIESCE_API struct lfq_node *quiesce_lfq_dequeue(struct lfq_queue *q);
QUIESCE_API int quiesce_lfq_destroy(struct lfq_queue *q);

QUIESCE_FAST void quiesce__lfq_init(struct lfq_queue *q)
{
	const struct lfq_queue fresh = LFQ_INIT;

	*q = fresh;
}

QUIESCE_FAST bool quiesce__lfq_is_number(uintptr_t word) { return (word & 1) != 0; }

/* Return the link of a node. */
QUIESCE_FAST uintptr_t *quiesce__lfq_link(uintptr_t word) { return &((struct lfq_node *)word)->next; }

QUIESCE_FAST bool quiesce__lfq_empty(const struct lfq_queue *q)
{
	return quiesce__lfq_is_number(quiesce_load_relaxed(&q->head)); /* Relaxed: no order promised. */
}

/* Insert @node after @last, the value of the tail; false if that has a successor already. */
QUIESCE_FAST bool quiesce__lfq_put(struct lfq_queue *q, uintptr_t last, struct lfq_node *node)
{
	uintptr_t there = last;

	if (quiesce__lfq_is_number(last)) {
		quiesce_store_relaxed(&node->next, last + 1); /* Relaxed: LQ3 follows. */
		/* LQ3: full, pairs with LQ3 in try_dequeue() and try_first() */
		return quiesce_cmpxchg(LQ3, &q->head, &there, (uintptr_t)node);
	}
	there = quiesce_load_relaxed(&q->end); /* Relaxed: a hint. */
	quiesce_store_relaxed(&node->next, there); /* Relaxed: LQ1 follows. */
	/* LQ1: release, pairs with LQ1 in follow() */
	if (!quiesce_cmpxchg(LQ1, quiesce__lfq_link(last), &there, (uintptr_t)node))
		return false;
	/* LQ2: release, pairs with LQ2 in quiesce__lfq_enqueue() and try_enqueue() */
	/* if this fails, another thread has advanced the tail */
	(void)quiesce_cmpxchg(LQ2, &q->tail, &last, (uintptr_t)node);
	return true;
}

QUIESCE_FAST void quiesce__lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	/* LQ2: acquire, pairs with LQ2 in quiesce__lfq_put() and advance_tail() */
	uintptr_t last = quiesce_load_acquire(LQ2, &q->tail);

	if (quiesce_unlikely(!quiesce__lfq_put(q, last, node)))
		quiesce_lfq_enqueue(q, node);
}

QUIESCE_END_DECLS

#endif
