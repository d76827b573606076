/* SPDX-License-Identifier: MIT */
/* lfqueue.c - Michael and Scott's queue, whose nodes are the users' and whose dummy is a word of the queue.
 *
 * Idea.  Head and tail lead to nodes of a chain that is never empty: who takes the last node puts the dummy behind it first.
 *
 *	head -> a -> b -> c <- tail             h -> dummy -> a: nothing but a is in it
 *
 * In a section a node's address stands for one life of it, as it comes back only after a grace period.  The dummy comes
 * back at any time; so what stands for it is a number, a new one for each use, and so is what says that nothing follows it.
 *
 * I1. A link leads from its end (0, or the dummy's number) to one follower and stays there for the rest of this life or use.
 * I2. The tail leads to the last node or, between the two steps of an enqueue, to the one before.
 * I3. The head does not pass a node before the tail has: whoever reads either finds what is in the queue at this moment.
 *     So it stays there as memory for the rest of the reader's section.
 * I4. The head does not pass the follower of the dummy before the dummy has another number.  So if head is a node and the last one,
 *     the dummy is out of the queue, and its word is the number that it will have there.
 *
 *   node filled in, then linked          link followed, then its node       LQ1
 *   linked, then the tail                tail read, then the link there     LQ2
 *   tail and dummy passed, then the head head read, then the link there     LQ3
 *
 * M. M. Michael, M. L. Scott: Simple, fast, and practical non-blocking and blocking concurrent queue algorithms.  PODC 1996.
 */
#include "platform/platform.h"

#include <quiesce/ds/lfqueue.h>

#include <errno.h>

/* What follows @word, or its end. */
static uintptr_t follow(struct lfq_queue *q, uintptr_t word)
{
	/* LQ1: acquire, pairs with LQ1 in quiesce__lfq_enqueue(), try_enqueue(), put_dummy() and renew_dummy() */
	return quiesce_load_acquire(LQ1, quiesce__lfq_link(q, word));
}

/* @next follows @last, of which it may be the dummy's second follower: then the tail is not there any more. */
static void pass_tail(struct lfq_queue *q, uintptr_t last, uintptr_t next)
{
	/* LQ2: release, pairs with LQ2 in quiesce__lfq_enqueue() and try_enqueue() */
	(void)quiesce_cmpxchg(LQ2, &q->tail, &last, next);
}

static bool try_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	/* LQ2: acquire, pairs with LQ2 in quiesce__lfq_enqueue() and pass_tail() */
	uintptr_t last = quiesce_load_acquire(LQ2, &q->tail), next = follow(q, last);

	if (next == quiesce__lfq_end(last)) {
		/* LQ1: release, pairs with LQ1 in follow() */
		if (!quiesce_cmpxchg(LQ1, quiesce__lfq_link(q, last), &next, (uintptr_t)node))
			return false;
		pass_tail(q, last, (uintptr_t)node);
		return true;
	}
	if (!(quiesce__lfq_is_dummy(last) && quiesce__lfq_is_dummy(next))) /* else it is in another use by now */
		pass_tail(q, last, next);
	return false;
}

void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	quiesce_store_relaxed(&node->next, (uintptr_t)0); /* Relaxed: LQ1 follows. */
	while (!try_enqueue(q, node))
		;
}

/* The dummy was passed, and the node behind it is about to be: give it another number.  It is out of the queue. */
static void renew_dummy(struct lfq_queue *q, uintptr_t follower)
{
	uintptr_t number = quiesce_fetch_add_relaxed(&q->next_number, (uintptr_t)2); /* Relaxed: only that no other one has it. */

	if (QUIESCE_MUTANT(lfq_number_again))
		number = 1;
	/* LQ1: release, pairs with LQ1 in follow() */
	(void)quiesce_cmpxchg(LQ1, &q->dummy, &follower, number);
}

/* @head is the last: put the dummy behind it.  What follows it then; 0: it is not the head any more. */
static uintptr_t put_dummy(struct lfq_queue *q, uintptr_t head)
{
	/* Relaxed: it is compared only; who passes @head has come there later than the follower of the dummy's last use. */
	uintptr_t number = quiesce_load_relaxed(&q->dummy), end = 0;

	if (!quiesce__lfq_is_dummy(number))
		return 0;
	/* LQ1: release, pairs with LQ1 in follow() */
	return quiesce_cmpxchg(LQ1, quiesce__lfq_link(q, head), &end, number) ? number : 0;
}

/* Has the tail passed @head, which @next follows?  Where something follows that it has, so only few look at the tail. */
static void let_tail_pass(struct lfq_queue *q, uintptr_t head, uintptr_t next)
{
	if (follow(q, next) != quiesce__lfq_end(next) || QUIESCE_MUTANT(lfq_tail_left))
		return;
	if (quiesce_load_relaxed(&q->tail) == head) /* Relaxed: who linked @next has read @head there, so no older one is read. */
		pass_tail(q, head, next);
}

/* False: begin again. */
static bool try_dequeue(struct lfq_queue *q, uintptr_t *ret_word)
{
	/* LQ3: acquire, pairs with LQ3 in try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head), next = follow(q, head), old = head;

	*ret_word = head;
	if (quiesce__lfq_is_dummy(head)) {
		if (next == head) {
			*ret_word = 0;
			return true;
		}
		if (quiesce__lfq_is_dummy(next))
			return false;
	} else {
		/* Relaxed: it is compared only; who led the head here had seen it. */
		if (quiesce_load_relaxed(&q->dummy) == head && !QUIESCE_MUTANT(lfq_renews_late))
			renew_dummy(q, head);
		if (!next)
			next = put_dummy(q, head);
		if (!next)
			return false;
	}
	let_tail_pass(q, head, next);
	/* LQ3: full, pairs with LQ3 in try_dequeue() and quiesce__lfq_empty() */
	if (!quiesce_cmpxchg(LQ3, &q->head, &old, next))
		return false;
	if (QUIESCE_MUTANT(lfq_renews_late) && !quiesce__lfq_is_dummy(head))
		renew_dummy(q, head);
	return true;
}

struct lfq_node *quiesce_lfq_dequeue(struct lfq_queue *q)
{
	uintptr_t word;

	do
		while (!try_dequeue(q, &word))
			;
	while (quiesce__lfq_is_dummy(word));
	return (struct lfq_node *)word;
}

int quiesce_lfq_destroy(struct lfq_queue *q)
{
	return lfq_empty(q) ? 0 : -EPERM;
}
