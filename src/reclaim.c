/* SPDX-License-Identifier: MIT */
/* reclaim.c - deferred callbacks, the callers' side: queueing, back-pressure, barrier.
 *
 *   call_rcu():    push to own ring -> does the worker sleep? wake it
 *   worker (or, without one, the caller) makes a pass:
 *                  snapshot all rings -> one grace period -> run what the snapshot covers
 *   rcu_barrier(): wait for a pass that began after the call
 *
 * I1. Whoever may not sleep (in a section, in a callback) and finds its ring full, or
 *     has none, pushes to the overflow list, linked through the rcu_head: nothing is
 *     lost when memory is short.  kfree_rcu_mightsleep() has no rcu_head but may sleep.
 * I2. A thread that may sleep never has more than its ring's worth of garbage, and
 *     sleeps while the process has more than the ceiling.
 *
 * The barrier ledger of both sides is in worker.c.
 */
#include "reclaim.h"
#include "hazptr.h"
#include "rcu.h"
#include "ring.h"
#include "shazptr.h"

#include <errno.h>

#define TELL_BYTES 65536u /* a thread tells the process-wide sum in steps of this */
#define BACKPRESSURE_NS 2000000u
#define LOOK_AGAIN_NS 100000000u /* the worker that one waits for may have ended, or never begun */

int64_t quiesce__garbage;

static void push_overflow(struct rcu_head *head)
{
	struct quiesce__queues *q = &quiesce__queues;
	struct rcu_head *old = quiesce_load_relaxed(&q->overflow); /* Relaxed: the exchange decides. */

	/* Counted before it can run, so that pushed less run never misses another object.
	 * Relaxed: the exchange follows. */
	quiesce_fetch_add_relaxed(&q->overflow_pushed, (uint64_t)1);
	do
		head->next = old;
	/* CB5: full, pairs with CB5 in snapshot() */
	while (!quiesce_cmpxchg(CB5, &q->overflow, &old, head));
}

static struct quiesce__ring *ring_new(struct quiesce_tls_v1 *self)
{
	struct quiesce__ring *ring;

	if (!quiesce__may_have_queue(self))
		return NULL;
	ring = platform_pages_get(sizeof *ring);
	if (!ring)
		return NULL;
	quiesce__lock(&quiesce__queues.lock);
	ring->next = quiesce__queues.rings;
	quiesce__queues.rings = ring;
	quiesce__unlock(&quiesce__queues.lock);
	self->ring = ring;
	return ring;
}

/* Sleep until the worker has emptied some of @ring. */
static void wait_for_room(struct quiesce__ring *ring)
{
	quiesce__count(backpressure);
	while (quiesce__ring_full(ring)) {
		if (!quiesce__worker_ensure()) {
			uint32_t done = quiesce_load_relaxed(&quiesce__pass.done_word); /* Relaxed: timed. */

			quiesce__pass_yourself();
			if (quiesce__ring_full(ring)) /* somebody else makes the pass */
				platform_futex_wait(&quiesce__pass.done_word, done, BACKPRESSURE_NS);
			continue;
		}
		/* CB6: full, pairs with CB6 in unblock_owner() */
		quiesce_xchg(CB6, &ring->blocked, 1);
		if (!quiesce__ring_full(ring))
			break;
		quiesce_store_relaxed(&quiesce__worker.urgent, 1); /* Relaxed: a wish. */
		quiesce__worker_kick();
		platform_futex_wait(&ring->blocked, 1, LOOK_AGAIN_NS);
	}
	quiesce_store_relaxed(&ring->blocked, 0); /* Relaxed: nobody sleeps on it now. */
}

/* The process has too much garbage: hurry, and sleep if allowed until there is less. */
static void push_back(struct quiesce_tls_v1 *self)
{
	quiesce__count(backpressure);
	do {
		uint32_t done = quiesce_load_relaxed(&quiesce__pass.done_word); /* Relaxed: the sleep is timed. */

		quiesce_store_relaxed(&quiesce__worker.urgent, 1); /* Relaxed: a wish. */
		if (!quiesce__worker_ensure())
			return; /* rouse_worker() made a pass already */
		quiesce__worker_kick();
		if (!quiesce__may_sleep(self))
			return;
		platform_futex_wait(&quiesce__pass.done_word, done, BACKPRESSURE_NS);
	} while (quiesce__garbage_above_ceiling());
}

/* Tell the process-wide sum what this thread has queued. */
static void tell_bytes(struct quiesce_tls_v1 *self, struct quiesce__ring *ring)
{
	quiesce__ring_tell(ring);
	if (quiesce__garbage_above_ceiling())
		push_back(self);
}

/* Wake the worker if it sleeps; a nap is broken off only for a well-filled queue. */
static void rouse_worker(struct quiesce_tls_v1 *self, struct quiesce__ring *ring)
{
	uint32_t sleep;

	/* CB3: pairs with CB3 in worker_sleep() */
	quiesce_fence_mode(CB3);
	sleep = quiesce_load_relaxed(&quiesce__worker.sleep); /* Relaxed: CB3. */
	if (quiesce_likely(sleep == QUIESCE_AWAKE && quiesce__reclaim_has_worker()))
		return;
	if (!quiesce__worker_ensure()) {
		if (quiesce__may_sleep(self))
			quiesce__pass_yourself();
		return;
	}
	if (sleep >= QUIESCE_ASLEEP || !ring || quiesce__ring_well_filled(ring))
		quiesce__worker_kick();
}

void quiesce__reclaim_rouse(void)
{
	rouse_worker(quiesce__self(), quiesce__self()->ring);
}

static void queued(struct quiesce_tls_v1 *self, struct quiesce__ring *ring)
{
	rouse_worker(self, ring);
	if (ring && quiesce_unlikely(ring->bytes_in - ring->bytes_told >= TELL_BYTES))
		tell_bytes(self, ring);
}

/* The calling thread's ring with room for one more, or NULL. */
static struct quiesce__ring *ring_with_room(struct quiesce_tls_v1 *self)
{
	struct quiesce__ring *ring = self->ring;

	if (quiesce_unlikely(!ring))
		ring = ring_new(self);
	if (!ring || quiesce_likely(!quiesce__ring_full(ring)))
		return ring;
	if (!quiesce__may_sleep(self))
		return NULL;
	wait_for_room(ring);
	return ring;
}

void quiesce_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__ring *ring;

	if (quiesce_unlikely(!head || !func)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_rcu() with a NULL %s", head ? "function" : "rcu_head");
		return;
	}
	quiesce__fork_check();
	head->func = func;
	ring = ring_with_room(self);
	if (quiesce_likely(ring != NULL)) {
		quiesce__ring_push(ring, (uintptr_t)head, bytes);
	} else {
		push_overflow(head);
		quiesce_store_relaxed(&quiesce__worker.urgent, 1); /* Relaxed: a wish. */
		quiesce__scan_press(QUIESCE_PLAIN);
	}
	queued(self, ring);
}

void quiesce_kfree_rcu_mightsleep(void *object, size_t bytes)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__ring *ring;

	if (!object)
		return;
	if (quiesce_unlikely(rcu_read_lock_held())) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER, "kfree_rcu_mightsleep() inside an RCU read-side section");
		return;
	}
	quiesce__fork_check();
	ring = ring_with_room(self);
	if (quiesce_unlikely(!ring)) {
		quiesce__init();
		quiesce__rcu_wait(QUIESCE_EXPEDITED);
		platform_free(object);
		return;
	}
	quiesce__ring_push(ring, (uintptr_t)object | QUIESCE_SLOT_FREE, bytes);
	queued(self, ring);
}

void quiesce__reclaim_thread_exit(struct quiesce_tls_v1 *self)
{
	struct quiesce__ring *ring = self->ring;

	if (!ring)
		return;
	self->ring = NULL;
	/* What is not told now never will be, but is taken off when it is reclaimed.  Relaxed: a sum. */
	quiesce__ring_tell(ring);
	/* CB1: release, pairs with CB1 in free_rings() */
	quiesce_store_release(CB1, &ring->owner_gone, 1);
}

/* ---- waiting for callbacks ---- */

/* Has pass @number ended? */
static bool pass_done(uint64_t number)
{
	/* CB4: acquire, pairs with CB4 in pass_end() */
	return (int64_t)(quiesce_load_acquire(CB4, &quiesce__pass.done) - number) >= 0;
}

static bool wait_for_pass(uint64_t number, uint64_t deadline)
{
	while (!pass_done(number)) {
		/* CB4: acquire, pairs with CB4 in pass_end() */
		uint32_t word = quiesce_load_acquire(CB4, &quiesce__pass.done_word);
		uint64_t now = deadline ? platform_now_ns() : 0;

		if (deadline && now >= deadline)
			return false;
		if (!quiesce__worker_ensure()) {
			quiesce__pass_yourself();
			if (!pass_done(number))
				platform_futex_wait(&quiesce__pass.done_word, word, BACKPRESSURE_NS);
			continue;
		}
		quiesce__worker_kick();
		if (!pass_done(number))
			platform_futex_wait(&quiesce__pass.done_word, word,
					    deadline && deadline - now < LOOK_AGAIN_NS ? deadline - now : LOOK_AGAIN_NS);
	}
	return true;
}

bool quiesce__pass_wait(uint64_t deadline)
{
	uint64_t number;
	bool done;

	/* CB4: full, pairs with CB4 in pass_end() */
	quiesce_fetch_add(CB4, &quiesce__pass.waiting, 1u);
	/* CB7: full, pairs with CB7 in pass_begin() */
	quiesce_fence_full(CB7);
	number = quiesce_load_relaxed(&quiesce__pass.begun) + 1; /* Relaxed: CB7. */
	if (QUIESCE_MUTANT(cb_barrier_early))
		number--;
	done = wait_for_pass(number, deadline);
	quiesce_fetch_add_relaxed(&quiesce__pass.waiting, (uint32_t)-1); /* Relaxed: a wish withdrawn. */
	return done;
}

/* Has every callback that this thread can know of run? */
bool quiesce__nothing_queued(void)
{
	struct quiesce_stats stats = { .garbage_objects = 0 };

	quiesce__reclaim_stats(&stats);
	return stats.garbage_objects == 0;
}

bool quiesce__barrier_is_misuse(void)
{
	if (rcu_read_lock_held()) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_READER,
				"rcu_barrier() inside an RCU read-side section would wait for itself");
		return true;
	}
	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS) {
		quiesce__misuse(QUIESCE_MISUSE_WAIT_IN_CALLBACK,
				"rcu_barrier() inside a callback would wait for itself");
		return true;
	}
	return false;
}

void quiesce_rcu_barrier(void)
{
	quiesce__init();
	quiesce__fork_check();
	if (!quiesce__barrier_is_misuse() && !quiesce__nothing_queued())
		quiesce__pass_wait(0);
}

/* Relaxed throughout: statistics.  What has run is read before what was queued, so that
 * the difference never misses an object. */
static void add_ring(struct quiesce_stats *stats, const struct quiesce__ring *ring)
{
	uint64_t bytes_out = quiesce_load_relaxed(&ring->bytes_out); /* Relaxed: as above. */
	/* CB4: acquire, pairs with CB4 in run_chunk() */
	uint64_t run = quiesce_load_acquire(CB4, &ring->run);
	uint64_t queued = quiesce_load_relaxed(&ring->queued); /* Relaxed: as above. */

	stats->callbacks_run += run;
	stats->callbacks_queued += queued;
	stats->garbage_objects += queued - run;
	stats->garbage_bytes += quiesce_load_relaxed(&ring->bytes_in) - bytes_out; /* Relaxed: as above. */
}

static void add_overflow(struct quiesce_stats *stats, const struct quiesce__queues *q)
{
	/* CB4: acquire, pairs with CB4 in run_overflow() */
	uint64_t run = quiesce_load_acquire(CB4, &q->overflow_run);
	uint64_t pushed = quiesce_load_relaxed(&q->overflow_pushed); /* Relaxed: as above. */

	stats->callbacks_run += run;
	stats->callbacks_queued += pushed;
	stats->garbage_objects += pushed - run;
}

void quiesce__reclaim_stats(struct quiesce_stats *stats)
{
	struct quiesce__queues *q = &quiesce__queues;

	quiesce__lock(&q->lock);
	stats->callbacks_run = stats->callbacks_queued = q->freed_run;
	for (struct quiesce__ring *ring = q->rings; ring; ring = ring->next)
		add_ring(stats, ring);
	quiesce__unlock(&q->lock);
	add_overflow(stats, q);
	stats->worker_running = quiesce__reclaim_has_worker();
}
