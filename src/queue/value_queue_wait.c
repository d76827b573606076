/* SPDX-License-Identifier: MIT */
/* value_queue_wait.c - the sleep of takers of an empty queue of values, and of pushers to a full one.
 *
 * Idea.  A sleeper announces itself in the word that the thread for which it waits is to exchange next: a taker in the tail,
 * a pusher in the head.  So a push or pop has neither a fence nor a load for it.  The claim that finds VQ_WAITERS clears it,
 * and wakes one sleeper once its cell is published.  As long as elements come faster than sleepers wake, that is one system
 * call.
 *
 *	sleeper                                     claimer
 *	event loaded                                tail exchanged: it had the flag, and has it no more
 *	tail exchanged: empty, sets the flag        cell published
 *	futex wait while event is unchanged         event changed, futex wake
 *
 * I1. A thread that is woken, or has not slept because event changed, sets the flag again if further threads sleep, and
 *     wakes the next one if it then finds more than one element: each element that came without a wake is found there.
 * I2. The thread that clears the flag, by a claim or by closing the ring, wakes a sleeper.
 * I3. nr counts a thread before it sets the flag, and until it is awake.  So a thread that finds no further one counted
 *     comes before that one's flag.
 * I4. A sleeper loads event before it exchanges the tail.  If it loads the new event, its exchange finds the new tail.
 * I5. A cell that is claimed and not yet published is waited for by pauses (wait_link.h), never by this sleep: no thread
 *     is woken for an element behind it and sleeps again.
 *
 * VQ3  see value_queue.c
 * VQ5  see value_queue.c
 * VQ4  tail exchanged, then event changed, then nr loaded | event loaded, and nr changed, then the tail exchanged
 */
#include "queue/value_queue.h"

/* Announce the caller; returns the event to sleep on. */
static uint32_t announce(struct quiesce__vq_sleepers *sleepers)
{
	/* VQ4: full, pairs with VQ4 in quiesce__vq_wake() and awake() */
	quiesce_fetch_add(VQ4, &sleepers->nr, 1);
	/* VQ4: acquire, pairs with VQ4 in quiesce__vq_wake() */
	return quiesce_load_acquire(VQ4, &sleepers->event);
}

/* The caller sleeps no more; true if other threads do. */
static bool awake(struct quiesce__vq_sleepers *sleepers)
{
	/* VQ4: full, pairs with VQ4 in announce() */
	return quiesce_fetch_add(VQ4, &sleepers->nr, (uint32_t)-1) != 1 && !QUIESCE_MUTANT(vq_passes_no_wake);
}

void quiesce__vq_wake(struct quiesce__vq_sleepers *sleepers, uint32_t nr)
{
	/* VQ4: full, pairs with VQ4 in announce() */
	quiesce_fetch_add(VQ4, &sleepers->event, 1);
	/* Relaxed: the full fence above follows the exchange that found the flag. */
	if (quiesce_load_relaxed(&sleepers->nr))
		platform_futex_wake(&sleepers->event, nr);
}

/* Set the flag in @word, whose value was @value, if that has not changed. */
static bool set_flag(uint64_t *word, uint64_t *value)
{
	/* VQ4: full, pairs with VQ4 in quiesce__vq_wake() */
	return quiesce_cmpxchg(VQ4, word, value, *value | VQ_WAITERS);
}

/* Set the flag in the tail, if the queue is empty and will have further elements here. */
static bool set_if_empty(struct value_queue *q)
{
	struct quiesce__vq_ring *ring = vq_pop_ring(q);
	uint64_t tail = quiesce_load_relaxed(&ring->tail); /* Relaxed: the exchange decides. */

	/* Relaxed: the head is not behind what is loaded, nor beyond the tail. */
	while (!(tail & VQ_CLOSED) && !vq_between(quiesce_load_relaxed(&ring->head), tail))
		if (set_flag(&ring->tail, &tail))
			return true;
	return false;
}

/* Set the flag in the head, if the queue is full and not closed. */
static bool set_if_full(struct value_queue *q)
{
	struct quiesce__vq_ring *ring = q->push_ring; /* constant: the queue is bounded */
	uint64_t head = quiesce_load_relaxed(&ring->head), tail; /* Relaxed: the exchange decides. */

	for (;;) {
		tail = quiesce_load_relaxed(&ring->tail); /* Relaxed: event was loaded before (VQ4). */
		if (tail & VQ_CLOSED || vq_between(head, tail) != vq_capacity(ring))
			return false;
		if (set_flag(&ring->head, &head))
			return true;
	}
}

/* I1, for takers: the flag is set again in the tail of the last ring. */
static void pass_on_empty(struct value_queue *q)
{
	struct quiesce__vq_ring *ring = vq_push_ring(q);
	uint64_t tail;

	do {
		/* VQ5: acquire, pairs with VQ5 in close_ring() */
		while ((tail = quiesce_load_acquire(VQ5, &ring->tail)) & VQ_CLOSED) {
			/* VQ3: acquire, pairs with VQ3 in link_next() */
			ring = quiesce_load_acquire(VQ3, &ring->next);
			if (ring == VQ_ENDED)
				return;
		}
	} while (!set_flag(&ring->tail, &tail));
	/* Relaxed: older values only wake a thread needlessly. */
	if (ring != quiesce_load_relaxed(&q->pop_ring) || vq_between(quiesce_load_relaxed(&ring->head), tail) > VQ_UNIT)
		quiesce__vq_wake(&q->takers, 1);
}

/* I1, for pushers: the flag is set again in the head. */
static void pass_on_full(struct value_queue *q)
{
	struct quiesce__vq_ring *ring = q->push_ring; /* constant: the queue is bounded */
	uint64_t head = quiesce_load_relaxed(&ring->head); /* Relaxed: the exchange decides. */

	while (!set_flag(&ring->head, &head))
		;
	/* Relaxed: an older value only wakes a thread needlessly. */
	if (vq_between(head, quiesce_load_relaxed(&ring->tail)) + VQ_UNIT < vq_capacity(ring))
		quiesce__vq_wake(&q->pushers, 1);
}

void quiesce__vq_sleep_empty(struct value_queue *q, uint64_t ns)
{
	uint32_t event = announce(&q->takers);
	bool sleeps, others;

	vq_enter(q);
	sleeps = set_if_empty(q);
	vq_leave(q);
	if (sleeps)
		platform_futex_wait(&q->takers.event, event, ns);
	others = awake(&q->takers);
	if (!sleeps || !others)
		return;
	vq_enter(q);
	pass_on_empty(q);
	vq_leave(q);
}

void quiesce__vq_sleep_full(struct value_queue *q, uint64_t ns)
{
	uint32_t event = announce(&q->pushers);
	bool sleeps = set_if_full(q);

	if (sleeps)
		platform_futex_wait(&q->pushers.event, event, ns);
	if (awake(&q->pushers) && sleeps)
		pass_on_full(q);
}
