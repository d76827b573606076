/* SPDX-License-Identifier: MIT */
/* value_queue_wait.c - the sleep of takers of an empty queue of values, and of pushers to a full one.
 *
 * Idea.  A sleeper announces itself in the word that the thread for which it waits is to exchange next: a taker in the tail,
 * a pusher in the head.  So a push or pop has neither a fence nor a load for it.  The claim that finds VQ_WAITERS clears it,
 * and wakes one sleeper for each of its cells once they are published.  As long as elements come faster than sleepers wake,
 * that is one system call.  If more threads sleep, it sets VQ_AGAIN.  Claims leave that as it is, but for one of as many as
 * take VQ_AGAIN_CELLS: if that finds that the woken thread has not run for a while, it wakes the next one.
 *
 *	sleeper                                     claimer
 *	event loaded                                tail exchanged: it had the flag, and has it no more
 *	tail exchanged: empty, sets the flag        cell published
 *	futex wait while event is unchanged         event changed, futex wake
 *
 * I1. A thread that is woken, or has not slept because event changed, sets the flag again if further threads sleep, and
 *     wakes the next two if it then finds more than one element: each element that came without a wake is found there.
 * I2. The thread that clears the flag, by a claim or by closing the ring, wakes a sleeper.
 *     A thread that slept and whose time ends before it can take what it was woken for wakes another (wait_after()).
 * I3. nr counts a thread before it sets the flag, and until it is awake.  So a thread that finds no further one counted
 *     comes before that one's flag.
 * I4. A sleeper loads event before it exchanges the tail.  If it loads the new event, its exchange finds the new tail.
 * I5. A cell that is claimed and not yet published is waited for by pauses (wait_link.h), never by this sleep: no thread
 *     is woken for an element behind it and sleeps again.
 * I6. VQ_AGAIN only adds wakes to these.  since is the time of the last wake until a woken thread has made its
 *     claim, or sleeps again.
 * I7. No claim finds VQ_AGAIN once a queue is full, or empty.  So a thread that is about to sleep does not leave all of the
 *     other side asleep behind one that does not run: from 1 ms after that one's wake on it wakes them.  A further wake, too.
 *
 * VQ3  see value_queue.c
 * VQ5  see value_queue.c
 * VQ4  tail exchanged, then event changed, then nr loaded | event loaded, and nr changed, then the tail exchanged
 */
#include "queue/value_queue.h"

#if defined(QUIESCE_SIM)
#define AGAIN_NS 0u
#else
#define AGAIN_NS 1000000u /* less, and streams of elements wake threads that find none */
#endif

/* Announce the caller; returns the event to sleep on. */
static uint32_t announce(struct quiesce__vq_sleepers *sleepers)
{
	/* VQ4: full, pairs with VQ4 in wake_some() and awake() */
	quiesce_fetch_add(VQ4, &sleepers->nr, 1);
	/* VQ4: acquire, pairs with VQ4 in wake_some() */
	return quiesce_load_acquire(VQ4, &sleepers->event);
}

/* The caller sleeps no more; true if other threads do. */
static bool awake(struct quiesce__vq_sleepers *sleepers)
{
	/* VQ4: full, pairs with VQ4 in announce() */
	return quiesce_fetch_add(VQ4, &sleepers->nr, (uint32_t)-1) != 1 && !QUIESCE_MUTANT(vq_passes_no_wake);
}

/* Wake up to @nr sleepers; true if as many were woken, and further ones may sleep. */
static bool wake_some(struct quiesce__vq_sleepers *sleepers, uint32_t nr)
{
	uint32_t counted;

	/* VQ4: full, pairs with VQ4 in announce() */
	quiesce_fetch_add(VQ4, &sleepers->event, 1);
	/* Relaxed: the full fence above follows the exchange that found the flag. */
	counted = quiesce_load_relaxed(&sleepers->nr);
	return counted && platform_futex_wake(&sleepers->event, nr) == nr && counted > nr;
}

void quiesce__vq_wake(struct quiesce__vq_sleepers *sleepers, uint32_t nr)
{
	(void)wake_some(sleepers, nr);
}

/* A claim found VQ_AGAIN alone: return whether it is to wake a thread, and the flag stays if it is too early for that. */
static bool wakes_again(struct quiesce__vq_sleepers *sleepers, bool *ret_stays)
{
	uint64_t since = quiesce_load_relaxed(&sleepers->since); /* Relaxed: it only decides about a further wake. */

	if (!since || !quiesce_load_relaxed(&sleepers->nr)) /* Relaxed: the same. */
		return false;
	*ret_stays = platform_now_ns() < since + AGAIN_NS;
	return !*ret_stays;
}

/* Wake sleepers for @nr cells of a claim that found @flags; true if it is to set VQ_AGAIN. */
static bool wake_for(struct quiesce__vq_sleepers *sleepers, uint64_t flags, uint64_t nr)
{
	bool stays = false;

	if (!(flags & VQ_WAITERS) && !wakes_again(sleepers, &stays))
		return stays;
	if (quiesce_load_relaxed(&sleepers->nr) > nr) /* Relaxed: as in wakes_again(). */
		quiesce_store_relaxed(&sleepers->since, platform_now_ns()); /* Relaxed: before the wake, which is a full fence. */
	return wake_some(sleepers, nr < INT32_MAX ? (uint32_t)nr : INT32_MAX) && !QUIESCE_MUTANT(vq_wakes_once);
}

/* The caller is about to sleep for @ns until one of @others has run.  Wake them if the one that was woken does not run (I7);
 * returns how long to sleep until it is time to do so.
 */
static uint64_t not_behind(struct quiesce__vq_sleepers *others, uint64_t ns)
{
	uint64_t since = quiesce_load_relaxed(&others->since), now; /* Relaxed: it only decides about a further wake. */

	if (quiesce_likely(!since || !quiesce_load_relaxed(&others->nr) || QUIESCE_MUTANT(vq_sleeps_behind))) /* Relaxed: the same. */
		return ns;
	now = platform_now_ns();
	if (now < since + AGAIN_NS)
		return ns < since + AGAIN_NS - now ? ns : since + AGAIN_NS - now;
	vq_runs(others);
	(void)wake_some(others, INT32_MAX);
	return ns;
}

/* Set @flag in @word, whose value was @value, if that has not changed. */
static bool set_flag(uint64_t *word, uint64_t *value, uint64_t flag)
{
	/* VQ4: full, pairs with VQ4 in wake_some() */
	return quiesce_cmpxchg(VQ4, word, value, *value | flag);
}

/* Set the flag in the tail, if the queue is empty and will have further elements here. */
static bool set_if_empty(struct value_queue *q)
{
	struct quiesce__vq_ring *ring = vq_pop_ring(q);
	uint64_t tail = quiesce_load_relaxed(&ring->tail); /* Relaxed: the exchange decides. */

	/* Relaxed: the head is not behind what is loaded, nor beyond the tail. */
	while (!(tail & VQ_CLOSED) && !vq_between(quiesce_load_relaxed(&ring->head), tail))
		if (set_flag(&ring->tail, &tail, VQ_WAITERS))
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
		if (set_flag(&ring->head, &head, VQ_WAITERS))
			return true;
	}
}

/* Set @flag in the tail of the last ring; returns that ring, and the tail, or NULL if the queue is closed. */
static struct quiesce__vq_ring *flag_last(struct value_queue *q, uint64_t flag, uint64_t *ret_tail)
{
	struct quiesce__vq_ring *ring = vq_push_ring(q);
	uint64_t tail;

	do {
		/* VQ5: acquire, pairs with VQ5 in close_ring() */
		while ((tail = quiesce_load_acquire(VQ5, &ring->tail)) & VQ_CLOSED) {
			/* VQ3: acquire, pairs with VQ3 in link_next() */
			ring = quiesce_load_acquire(VQ3, &ring->next);
			if (ring == VQ_ENDED)
				return NULL;
		}
	} while (!set_flag(&ring->tail, &tail, flag));
	*ret_tail = tail;
	return ring;
}

/* Set @flag in the head of a bounded queue; returns the head. */
static uint64_t flag_head(struct value_queue *q, uint64_t flag)
{
	struct quiesce__vq_ring *ring = q->push_ring; /* constant: the queue is bounded */
	uint64_t head = quiesce_load_relaxed(&ring->head); /* Relaxed: the exchange decides. */

	while (!set_flag(&ring->head, &head, flag))
		;
	return head;
}

/* I1, for takers. */
static void pass_on_empty(struct value_queue *q)
{
	uint64_t tail;
	struct quiesce__vq_ring *ring = flag_last(q, VQ_WAITERS, &tail);

	/* Relaxed: older values only wake a thread needlessly. */
	if (ring && (ring != quiesce_load_relaxed(&q->pop_ring) || vq_between(quiesce_load_relaxed(&ring->head), tail) > VQ_UNIT))
		quiesce__vq_wake(&q->takers, 2);
}

/* I1, for pushers. */
static void pass_on_full(struct value_queue *q)
{
	uint64_t head = flag_head(q, VQ_WAITERS);

	/* Relaxed: an older value only wakes a thread needlessly. */
	if (vq_between(head, quiesce_load_relaxed(&q->push_ring->tail)) + VQ_UNIT < vq_capacity(q->push_ring))
		quiesce__vq_wake(&q->pushers, 2);
}

QUIESCE_COLD void quiesce__vq_wake_takers(struct value_queue *q, uint64_t flags, uint64_t nr)
{
	uint64_t tail;

	if (!wake_for(&q->takers, flags, nr))
		return;
	vq_enter(q);
	(void)flag_last(q, VQ_AGAIN, &tail);
	vq_leave(q);
}

QUIESCE_COLD void quiesce__vq_wake_pushers(struct value_queue *q, uint64_t flags, uint64_t nr)
{
	if (wake_for(&q->pushers, flags, nr))
		(void)flag_head(q, VQ_AGAIN);
}

void quiesce__vq_sleep_empty(struct value_queue *q, uint64_t ns)
{
	uint32_t event = announce(&q->takers);
	bool sleeps, others;

	vq_enter(q);
	sleeps = set_if_empty(q);
	vq_leave(q);
	if (sleeps)
		platform_futex_wait(&q->takers.event, event, not_behind(&q->pushers, ns));
	others = awake(&q->takers);
	if (sleeps && others) {
		vq_enter(q);
		pass_on_empty(q);
		vq_leave(q);
	}
}

void quiesce__vq_sleep_full(struct value_queue *q, uint64_t ns)
{
	uint32_t event = announce(&q->pushers);
	bool sleeps = set_if_full(q), others;

	if (sleeps)
		platform_futex_wait(&q->pushers.event, event, not_behind(&q->takers, ns));
	others = awake(&q->pushers);
	if (sleeps && others)
		pass_on_full(q);
}
