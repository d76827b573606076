/* SPDX-License-Identifier: MIT */
/* lfqueue.c - a queue of the users' nodes into which and out of which any thread may put and take.
 *
 * Idea.  Michael and Scott's queue keeps a dummy in its chain so that the two ends never meet.  Here there is none: an empty queue has
 * a number in its head, another one each time, and the first node is put in its place.  Who takes the last node closes it first,
 * by the next number in its link, so that nothing can be put behind it.
 *
 *	head = 5, tail = 5                          nothing is in the queue; a is put in by an exchange of the head
 *	head -> a(6), tail = 5                      a ends with 6: it came after 5
 *	head -> a -> b(6), tail -> b                b found the tail at 5, helped it over to a, and was linked
 *	head -> b(9), tail -> b                     a was taken; now b is closed
 *	head = 9, tail -> b, then tail = 9          b is out: head first, then the tail, then it is given to the caller
 *
 * In a section a node's address stands for one life of it, as it comes back only after a grace period.  Numbers do not come back.
 *
 * I1. A link is an end, of the number after which its node came, and then once what follows: a node, or the next number.
 * I2. The tail leads to the last node or to the one before; or it is the number before the first node, or the one before that
 *     if the first was the last, too, and was closed.
 * I3. The head does not pass a node that the tail leads to: whoever reads either finds what is in the queue at this moment, or is closed.
 *     So it stays there as memory for the rest of the reader's section.
 * I4. The tail becomes a number after the head has, and only then is there a node behind that number.
 *
 *   node filled in, then linked            link followed, then its node         LQ1
 *   linked, then the tail                  tail read, then the link there       LQ2
 *   node filled in, or tail passed,        head read, then the link there       LQ3
 *   then the head
 *
 * M. M. Michael, M. L. Scott: Simple, fast, and practical non-blocking and blocking concurrent queue algorithms.  PODC 1996.
 */
#include "platform/platform.h"

#include <quiesce/ds/lfqueue.h>

#include <errno.h>

#define NEXT_NUMBER 4u
#define FIRST_PAUSES 8u /* a fraction of a microsecond */
#define MOST_PAUSES 32u

static bool is_end(uintptr_t word) { return (word & 2) != 0; }

/* What follows @word, a node. */
static uintptr_t follow(uintptr_t word)
{
	/* LQ1: acquire, pairs with LQ1 in quiesce__lfq_put() and take_last() */
	return quiesce_load_acquire(LQ1, quiesce__lfq_link(word));
}

/* Of @last the tail has to go on to @next.  False: it was not there. */
static bool pass_tail(struct lfq_queue *q, uintptr_t *last, uintptr_t next)
{
	/* LQ2: release, pairs with LQ2 in quiesce__lfq_enqueue() and try_enqueue() */
	return quiesce_cmpxchg(LQ2, &q->tail, last, next);
}

/* @head is closed by @number. */
static void pass_head(struct lfq_queue *q, uintptr_t head, uintptr_t number)
{
	/* LQ3: full, pairs with LQ3 in try_dequeue() and try_first() */
	(void)quiesce_cmpxchg(LQ3, &q->head, &head, number);
}

/* What ends the newest from now on. */
static void guess_end(struct lfq_queue *q, uintptr_t end)
{
	quiesce_store_relaxed(&q->end, end); /* Relaxed: a guess. */
}

/* After a lost race: let the winner make some more calls while it has the cache lines.  The pause is bounded: the queue stays lock-free. */
static void back_off(unsigned int *pauses)
{
	for (unsigned int i = 0; i < *pauses; i++)
		quiesce_cpu_relax();
	if (*pauses < MOST_PAUSES)
		*pauses *= 2;
}

/* Link @node behind @last.  A thread pauses only if another one was faster: not before its first attempt, nor after it has moved the
 * tail on. */
static bool put(struct lfq_queue *q, uintptr_t last, struct lfq_node *node, unsigned int *pauses)
{
	if (quiesce__lfq_put(q, last, node))
		return true;
	back_off(pauses);
	return false;
}

/* The tail is @number: put @node in if so is the head.  Else the tail has to go on to where the head is. */
static bool try_first(struct lfq_queue *q, uintptr_t number, struct lfq_node *node, unsigned int *pauses)
{
	/* LQ3: acquire, pairs with LQ3 in quiesce__lfq_put(), pass_head() and try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head);

	if (head == number)
		return put(q, number, node, pauses);
	guess_end(q, number + 1);
	(void)pass_tail(q, &number, head);
	return false;
}

static bool try_enqueue(struct lfq_queue *q, struct lfq_node *node, unsigned int *pauses)
{
	/* LQ2: acquire, pairs with LQ2 in quiesce__lfq_put() and pass_tail() */
	uintptr_t last = quiesce_load_acquire(LQ2, &q->tail), next;

	if (quiesce__lfq_is_number(last))
		return try_first(q, last, node, pauses);
	next = follow(last);
	if (is_end(next)) {
		guess_end(q, next);
		return put(q, last, node, pauses);
	}
	if (quiesce__lfq_is_number(next))
		pass_head(q, last, next);
	(void)pass_tail(q, &last, next);
	return false;
}

void quiesce_lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	unsigned int pauses = FIRST_PAUSES;

	while (!try_enqueue(q, node, &pauses))
		;
}

/* Has the tail passed @head, which @next follows?  Where something follows that it has, so only few look at the tail. */
static void let_tail_pass(struct lfq_queue *q, uintptr_t head, uintptr_t next)
{
	if (!is_end(follow(next)) || QUIESCE_MUTANT(lfq_tail_left))
		return;
	if (quiesce_load_relaxed(&q->tail) == head) /* Relaxed: who linked @next has read @head there, so no older one is read. */
		(void)pass_tail(q, &head, next);
}

/* @head is the last one, and has @end: close it, so that it is the caller's. */
static bool take_last(struct lfq_queue *q, uintptr_t head, uintptr_t end)
{
	uintptr_t before = end - 1, number = before + (QUIESCE_MUTANT(lfq_number_again) ? 0 : NEXT_NUMBER);

	/* LQ1: release, pairs with LQ1 in follow() */
	if (!quiesce_cmpxchg(LQ1, quiesce__lfq_link(head), &end, number))
		return false;
	if (!QUIESCE_MUTANT(lfq_tail_first))
		pass_head(q, head, number);
	/* The tail may be the number before @head still; then it has not to come to it. */
	if (!QUIESCE_MUTANT(lfq_last_left) && !pass_tail(q, &before, number) && before == head)
		(void)pass_tail(q, &head, number);
	if (QUIESCE_MUTANT(lfq_tail_first))
		pass_head(q, head, number);
	return true;
}

/* False: begin again. */
static bool try_dequeue(struct lfq_queue *q, uintptr_t *ret_word)
{
	/* LQ3: acquire, pairs with LQ3 in quiesce__lfq_put(), pass_head() and try_dequeue() */
	uintptr_t head = quiesce_load_acquire(LQ3, &q->head), next, old = head;

	*ret_word = 0;
	if (quiesce__lfq_is_number(head))
		return true;
	next = follow(head);
	if (quiesce__lfq_is_number(next)) {
		pass_head(q, head, next);
		return true;
	}
	*ret_word = head;
	if (is_end(next))
		return take_last(q, head, next);
	let_tail_pass(q, head, next);
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
