/* SPDX-License-Identifier: MIT */
/* quiesce/detail/lfqueue.h - private: the steps of Michael and Scott's queue.
 *
 * ds/lfqueue.h is the manual; src/ds/lfqueue.c has the theory, and what is not in line.
 */
#ifndef QUIESCE_DETAIL_LFQUEUE_H
#define QUIESCE_DETAIL_LFQUEUE_H

#include <quiesce/atomic.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* In the caller's object. */
struct lfq_node {
	uintptr_t next; /* what follows: an address, a number of the dummy, or 0; written once by who puts it there */
};

/* Private.  A word that leads to a node is its address; one that leads to the dummy is odd, the number of this use of it.
 * Head and tail are in different lines wherever it lies: it needs no alignment, so malloc() will do. */
struct lfq_queue {
	uintptr_t head; /* the oldest; written by who takes */
	uintptr_t dummy; /* what follows the dummy: an address; its own number: nothing, or it is not in the queue */
	uintptr_t next_number; /* that no use of the dummy has had yet */
	char apart[QUIESCE_CACHELINE - 3 * sizeof(uintptr_t)];
	uintptr_t tail; /* the newest, or the one before; written by who puts in */
	char end[QUIESCE_CACHELINE - sizeof(uintptr_t)];
};
#define LFQ_INIT { 1, 1, 3, { 0 }, 1, { 0 } }

QUIESCE_API void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node);
QUIESCE_API struct lfq_node *quiesce_lfq_dequeue(struct lfq_queue *q);
QUIESCE_API int quiesce_lfq_destroy(struct lfq_queue *q);

QUIESCE_FAST void quiesce__lfq_init(struct lfq_queue *q)
{
	const struct lfq_queue fresh = LFQ_INIT;

	*q = fresh;
}

/* Does this word lead to the dummy? */
#define quiesce__lfq_is_dummy(word) (((word) & 1) != 0)

/* Where is written what follows, and what is there if nothing does. */
QUIESCE_FAST uintptr_t *quiesce__lfq_link(struct lfq_queue *q, uintptr_t word)
{
	return quiesce__lfq_is_dummy(word) ? &q->dummy : &((struct lfq_node *)word)->next;
}

QUIESCE_FAST uintptr_t quiesce__lfq_end(uintptr_t word) { return quiesce__lfq_is_dummy(word) ? word : 0; }

QUIESCE_FAST bool quiesce__lfq_empty(const struct lfq_queue *q)
{
	/* LQ3: acquire, pairs with LQ3 in try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head);

	return quiesce__lfq_is_dummy(head) && quiesce_load_relaxed(&q->dummy) == head; /* Relaxed: a number does not come back. */
}

QUIESCE_FAST void quiesce__lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	/* LQ2: acquire, pairs with LQ2 in quiesce__lfq_enqueue() and pass_tail() */
	uintptr_t last = quiesce_load_acquire(LQ2, &q->tail), end = quiesce__lfq_end(last);

	quiesce_store_relaxed(&node->next, (uintptr_t)0); /* Relaxed: LQ1 follows. */
	/* LQ1: release, pairs with LQ1 in follow() */
	if (quiesce_likely(quiesce_cmpxchg(LQ1, quiesce__lfq_link(q, last), &end, (uintptr_t)node)))
		/* LQ2: release, pairs with LQ2 in quiesce__lfq_enqueue() and try_enqueue() */
		(void)quiesce_cmpxchg(LQ2, &q->tail, &last, (uintptr_t)node); /* or another thread has */
	else
		quiesce_lfq_enqueue(q, node);
}

QUIESCE_END_DECLS

#endif
