/* SPDX-License-Identifier: MIT */
/* lfqueue.c - a lock-free queue of intrusive nodes with any number of producers and consumers.
 *
 * Idea.  Michael and Scott's queue keeps a dummy node in its chain so that head and tail never meet.  This queue has none:
 * the head of an empty queue is a number, a new one each time, and the first node replaces it.  A consumer that takes the
 * last node closes it first, by storing the next number in its link, so that no node can be linked behind it.
 *
 *	head = 5, tail = 5                          the queue is empty; an exchange of the head inserts a
 *	head -> a(6), tail = 5                      a ends with 6: it came after 5
 *	head -> a -> b(6), tail -> b                b's producer found the tail at 5, advanced it to a, and linked b
 *	head -> b(9), tail -> b                     a was taken; now b is closed
 *	head = 9, tail -> b, then tail = 9          b is taken: head first, then the tail, then its consumer returns it
 *
 * In a section the address of a node stands for one life of it, as a node may be enqueued again only after a grace period.
 * Numbers are never used again.
 *
 * I1. A link is an end mark with the number after which its node came, and then, once, its successor: a node, or the next
 *     number.
 * I2. The tail leads to the last node or to the one before; or it is the number before the first node, or, if the first
 *     node was also the last and was closed, the number before that.
 * I3. The head does not pass a node to which the tail leads: a node that a reader loads from either is in the queue at that
 *     moment, or closed.  So it stays allocated for the rest of the reader's section.
 * I4. The tail becomes a number after the head has, and only then can a node follow that number.
 *
 * LQ1  node filled in, then linked                   | link followed, then its node
 * LQ2  node linked, then the tail advanced           | tail read, then the link there
 * LQ3  node filled in, or tail passed, then the head | head read, then the link there
 *
 * M. M. Michael, M. L. Scott: Simple, fast, and practical non-blocking and blocking concurrent queue algorithms.  PODC 1996.
 */
#include "platform/platform.h"

#include <quiesce/ds/lfqueue.h>

#include <errno.h>

#define NEXT_NUMBER 4u
#define FIRST_PAUSES 8u /* takes a fraction of a microsecond */
#define MAX_PAUSES 32u

static bool is_end(uintptr_t word) { return (word & 2) != 0; }

/* Returns the successor of the node @word. */
static uintptr_t follow(uintptr_t word)
{
	/* LQ1: acquire, pairs with LQ1 in quiesce__lfq_put() and take_last() */
	return quiesce_load_acquire(LQ1, quiesce__lfq_link(word));
}

/* Advance the tail from @last to @next; false if it was not at @last. */
static bool advance_tail(struct lfq_queue *q, uintptr_t *last, uintptr_t next)
{
	/* LQ2: release, pairs with LQ2 in quiesce__lfq_enqueue() and try_enqueue() */
	return quiesce_cmpxchg(LQ2, &q->tail, last, next);
}

/* Replace the node @head, which @number has closed, by that number. */
static void advance_head(struct lfq_queue *q, uintptr_t head, uintptr_t number)
{
	/* LQ3: full, pairs with LQ3 in try_dequeue() and try_first() */
	(void)quiesce_cmpxchg(LQ3, &q->head, &head, number);
}

/* Set the end mark that the next enqueued node gets. */
static void guess_end(struct lfq_queue *q, uintptr_t end)
{
	quiesce_store_relaxed(&q->end, end); /* Relaxed: a guess. */
}

/* A thread that lost a race pauses, so that the winner can go on while it has the cache lines.  Still lock-free:
 * the pause is bounded. */
static void back_off(unsigned int *pauses)
{
	for (unsigned int i = 0; i < *pauses; i++)
		quiesce_cpu_relax();
	if (*pauses < MAX_PAUSES)
		*pauses *= 2;
}

/* Link @node behind @last.  A thread pauses only if another one was faster: not before its first attempt, nor after it
 * has advanced the tail. */
static bool put(struct lfq_queue *q, uintptr_t last, struct lfq_node *node, unsigned int *pauses)
{
	if (quiesce__lfq_put(q, last, node))
		return true;
	back_off(pauses);
	return false;
}

/* The tail is @number: insert @node if the head is @number, too.  Else advance the tail to the value of the head. */
static bool try_first(struct lfq_queue *q, uintptr_t number, struct lfq_node *node, unsigned int *pauses)
{
	/* LQ3: acquire, pairs with LQ3 in quiesce__lfq_put(), advance_head() and try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head);

	if (head == number)
		return put(q, number, node, pauses);
	guess_end(q, number + 1);
	(void)advance_tail(q, &number, head);
	return false;
}

static bool try_enqueue(struct lfq_queue *q, struct lfq_node *node, unsigned int *pauses)
{
	/* LQ2: acquire, pairs with LQ2 in quiesce__lfq_put() and advance_tail() */
	uintptr_t last = quiesce_load_acquire(LQ2, &q->tail), next;

	if (quiesce__lfq_is_number(last))
		return try_first(q, last, node, pauses);
	next = follow(last);
	if (is_end(next)) {
		guess_end(q, next);
		return put(q, last, node, pauses);
	}
	if (quiesce__lfq_is_number(next))
		advance_head(q, last, next);
	(void)advance_tail(q, &last, next);
	return false;
}

void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	unsigned int pauses = FIRST_PAUSES;

	while (!try_enqueue(q, node, &pauses))
		;
}

/* Advance the tail past @head if it is there, before the head advances to @next.  If @next has a successor, the
 * tail has passed, so the tail is rarely loaded. */
static void advance_tail_past(struct lfq_queue *q, uintptr_t head, uintptr_t next)
{
	if (!is_end(follow(next)) || QUIESCE_MUTANT(lfq_tail_left))
		return;
	/* Relaxed: the thread that linked @next has read @head there, so no older value is read. */
	if (quiesce_load_relaxed(&q->tail) == head)
		(void)advance_tail(q, &head, next);
}

/* @head is the last node, and has the end mark @end: close it, so that it belongs to the caller. */
static bool take_last(struct lfq_queue *q, uintptr_t head, uintptr_t end)
{
	uintptr_t before = end - 1, number = before + (QUIESCE_MUTANT(lfq_number_again) ? 0 : NEXT_NUMBER);

	/* LQ1: release, pairs with LQ1 in follow() */
	if (!quiesce_cmpxchg(LQ1, quiesce__lfq_link(head), &end, number))
		return false;
	if (!QUIESCE_MUTANT(lfq_tail_first))
		advance_head(q, head, number);
	/* The tail may still be the number before @head: then it never comes to @head. */
	if (!QUIESCE_MUTANT(lfq_last_left) && !advance_tail(q, &before, number) && before == head)
		(void)advance_tail(q, &head, number);
	if (QUIESCE_MUTANT(lfq_tail_first))
		advance_head(q, head, number);
	return true;
}

/* Make one attempt to dequeue; false if it has to be repeated. */
static bool try_dequeue(struct lfq_queue *q, uintptr_t *ret_word)
{
	/* LQ3: acquire, pairs with LQ3 in quiesce__lfq_put(), advance_head() and try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head), next, old = head;

	*ret_word = 0;
	if (quiesce__lfq_is_number(head))
		return true;
	next = follow(head);
	if (quiesce__lfq_is_number(next)) {
		advance_head(q, head, next);
		return true;
	}
	*ret_word = head;
	if (is_end(next))
		return take_last(q, head, next);
	advance_tail_past(q, head, next);
	/* LQ3: full, pairs with LQ3 in try_dequeue() and try_first() */
	return quiesce_cmpxchg(LQ3, &q->head, &old, next);
}

struct lfq_node *quiesce_lfq_dequeue(struct lfq_queue *q)
{
	unsigned int pauses = FIRST_PAUSES;
	uintptr_t word;

	while (!try_dequeue(q, &word))
		back_off(&pauses);
	return (struct lfq_node *)word;
}

int quiesce_lfq_destroy(struct lfq_queue *q)
{
	return quiesce__lfq_empty(q) ? 0 : -EPERM;
}
