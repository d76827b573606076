/* SPDX-License-Identifier: MIT */
/* reclaim.c - deferred callbacks, the callers' side: queueing, and the owner's share of freeing.
 *
 *   call_rcu(), kfree_rcu():  append to the own queue -> if it is not listed, list it, and wake the worker if it sleeps
 *                             -> every 16th small object: report the garbage
 *                             -> free one object whose grace period is over, if there is any
 *
 * I1. No caller waits here for a reader, a callback, the worker, or another thread's use of a queue, and no callback runs
 *     here: callers hold locks that readers and callbacks take.  Only the setting of quiesce_set_throttle() makes
 *     call_rcu() wait.
 * I2. Without memory for a segment an object is linked through its rcu_head, in its thread's queue; a thread that cannot
 *     have a queue pushes to the list of a shard.  So no object is lost when memory is short.  kfree_rcu_mightsleep() has no
 *     rcu_head, but may sleep.
 * I3. Garbage is bounded by calls of rcu_throttle(), which wait while the process has more than the ceiling.  For that each thread
 *     reports its bytes to the process-wide sum, in quanta that together are at most a quarter of the ceiling.
 * I4. A queue that is listed is not listed again until a pass takes it, so its owner would start no worker by listing it.  Therefore, while
 *     no worker is seen to run, each call of the owner reaches check(), which tries to start one, at intervals.
 * I5. An owner for which many objects for free() wait does not depend on the worker: it notes how many it has queued, then a cookie, and
 *     when the grace period of that is over, it frees so many.  It takes part in the grace period itself if that is late, as a
 *     poller, which waits for no reader and for no other poller; until the kernel refuses its thread a membarrier, as sandboxes do.
 *
 * The barrier ledger of both sides is in pass.c.
 *
 * CB3  see pass.c
 * CB9  see worker.c
 */
#include "reclaim.h"
#include "queue.h"
#include "rcu.h"
#include "runtime/object.h"
#include "runtime/pace.h"
#include "runtime/readers.h"

#include <errno.h>

#if defined(QUIESCE_SIM)
#define CHECK_BYTES 8192
#define LATE 12u
#else
#define CHECK_BYTES 65536 /* bytes that an owner queues from one check of its queue to the next */
#define LATE QUIESCE_WELL_FILLED /* objects of one thread for which a pass is late */
#endif
#define POLL_READERS 1000u /* most threads whose words an owner loads for that: the others are more than a call should take */
#define POLL_NS 50000u  /* time from one poll of a thread with so many objects to that of another one */
#define CHECK_OBJECT 4096 /* bytes added to the size of each object there, so that 16 small objects are enough */
#define FILLED (4 * QUIESCE_WELL_FILLED) /* objects for which an owner wakes the worker from batching, whose time adapts to fewer */

/* Late owners load it often, and one writes it in POLL_NS: it is alone on its cache line. */
static struct {
	uint64_t next; /* time from which an owner may take part in a grace period */
} polls __attribute__((aligned(QUIESCE_CACHELINE)));

/* Have the worker expedite the next grace period, because garbage is above the ceiling. */
static void expedite(void)
{
	quiesce_store_relaxed(&quiesce__worker.urgent, 1); /* Relaxed: a best-effort hint. */
	if (quiesce__worker_ensure())
		quiesce__worker_wake();
	else
		quiesce__report_no_worker();
}

/* Report the bytes that this thread has queued to the process-wide sum, if they are a quantum. */
static void report(struct quiesce_tls_v1 *self, struct quiesce__queue *queue)
{
	/* Relaxed: a policy. */
	if (quiesce__queue_bytes(queue) - queue->reported < quiesce_load_relaxed(&quiesce__queues.report_bytes))
		return;
	quiesce__queue_report_own(queue);
	if (!quiesce__garbage_above_ceiling())
		return;
	expedite();
	if (quiesce_load_relaxed(&quiesce__settings.throttle) && quiesce__may_sleep(self)) /* Relaxed: a setting. */
		quiesce__throttle("call_rcu", PLATFORM_FOREVER, false);
}

/* End the pacing or batching of the worker if the queue is worth a pass. */
static void wake_if_filled(struct quiesce__queue *queue)
{
	uint64_t nr = queue->callbacks.queued + queue->frees.queued;

	if (nr + FILLED - QUIESCE_PACED < queue->full_at) /* fewer than QUIESCE_PACED were queued since the queue was listed */
		return;
	if (!QUIESCE_MUTANT(cb_pace_kept))
		quiesce__worker_prompt();
	if (quiesce_likely(nr < queue->full_at))
		return;
	queue->full_at = nr + FILLED;
	quiesce_store_relaxed(&quiesce__worker.filled, 1); /* Relaxed: a hint. */
	if (quiesce_load_relaxed(&quiesce__worker.sleep) == QUIESCE_BATCHING) /* Relaxed: a hint. */
		quiesce__worker_wake();
}

/* True if the grace period that the owner polls is over; if that is overdue, the owner takes part in it. */
static bool polled_is_over(struct quiesce__queue *queue)
{
	int err;

	if (quiesce__rcu_cookie_done(queue->cookie))
		return true;
	if (QUIESCE_MUTANT(cb_polled_early))
		return true;
	if (queue->refused && !QUIESCE_MUTANT(cb_refused_polls))
		return false;
	if (rcu_read_lock_held() || quiesce__readers_nr() > POLL_READERS || !quiesce__pace_claim(&polls.next, POLL_NS))
		return false;
	err = quiesce__rcu_help_gp(queue->cookie);
	queue->refused = err && err != -ENOMEM;
	return quiesce__rcu_cookie_done(queue->cookie);
}

/* Where the worker is late, because it has no CPU, the owner of a long queue polls grace periods for itself. */
static void poll(struct quiesce__queue *queue)
{
	if (queue->cookie) {
		if (!polled_is_over(queue))
			return;
		quiesce__know(queue, queue->polled);
		queue->cookie = 0;
		queue->full_at = queue->callbacks.queued + queue->frees.queued + FILLED;
	}
	if (queue->frees.queued - queue->known.nr < LATE)
		return;
	queue->polled = (struct quiesce__snapshot){ queue->frees.queued, queue->frees.bytes };
	queue->cookie = quiesce__rcu_cookie();
}

/* Try to start a worker, and have the next call of the owner try again (I4). */
static QUIESCE_COLD void try_worker(struct quiesce__queue *queue)
{
	if (QUIESCE_MUTANT(cb_worker_tried_once))
		return;
	queue->until_check = 0;
	quiesce__worker_ensure();
}

/* Wake the worker, and report the calling owner's garbage, each if it is due; called once in CHECK_BYTES. */
static QUIESCE_COLD void check(struct quiesce_tls_v1 *self, struct quiesce__queue *queue)
{
	queue->until_check = CHECK_BYTES - CHECK_OBJECT;
	quiesce__know(queue, quiesce__queue_ready(queue));
	if (!(self->state & QUIESCE_TLS_IN_HEAP)) /* else the allocator makes this call, and may hold its locks */
		poll(queue);
	wake_if_filled(queue);
	report(self, queue);
	if (quiesce_unlikely(!quiesce__worker_runs()))
		try_worker(queue);
}

/* Wake the worker if it sleeps, or start one: the caller has listed a queue or spilled an object, which needs a pass. */
static void wake_if_asleep(void)
{
	uint32_t sleep;

	/* CB9: full, pairs with CB9 in worker_sleep() */
	quiesce_fence_full(CB9);
	sleep = quiesce_load_relaxed(&quiesce__worker.sleep); /* Relaxed: CB9 orders it. */
	if (quiesce_likely(sleep == QUIESCE_AWAKE && quiesce__reclaim_has_worker()))
		return;
	if (quiesce__worker_ensure() && sleep == QUIESCE_ASLEEP)
		quiesce__worker_wake();
}

/* List the queue, or record that the listed queue has a callback, too. */
static QUIESCE_COLD void list(struct quiesce__queue *queue, bool callback)
{
	/* Only objects that are queued from now on make the queue worth a pass at once. */
	queue->full_at = queue->callbacks.queued + queue->frees.queued + FILLED;
	if (quiesce__queue_list(queue, callback))
		wake_if_asleep();
	else if (QUIESCE_MUTANT(cb_calm_kept))
		return;
	if (callback)
		quiesce__worker_prompt();
	if (quiesce_unlikely(!quiesce__worker_runs()))
		queue->until_check = -1; /* check the queue in this call (I4) */
}

/* True if the queue must be listed, or be listed as one that has a callback. */
static inline bool must_list(const struct quiesce__queue *queue, bool callback)
{
	/* Relaxed: CB3 orders it. */
	return quiesce_load_relaxed(&queue->listed) < (callback ? QUIESCE_LISTED : QUIESCE_LISTED_FREES);
}

static inline void free_if_ready(struct quiesce_tls_v1 *self, struct quiesce__queue *queue)
{
	if (quiesce__may_free(queue))
		quiesce__free_paced(self, queue);
}

static QUIESCE_COLD void finish_slowly(struct quiesce_tls_v1 *self, struct quiesce__queue *queue, bool callback)
{
	if (must_list(queue, callback))
		list(queue, callback);
	if (queue->until_check < 0)
		check(self, queue);
	free_if_ready(self, queue);
}

/* The calls here come last, so that the callers need no frame. */
static inline void finish_append(struct quiesce_tls_v1 *self, struct quiesce__queue *queue, bool callback, size_t bytes)
{
	int64_t left;

	/* If the load of @listed misses that a pass has unlisted the queue, the pass sees what was appended; if the pass misses that, the
	 * load sees that the queue is unlisted. */
	/* CB3: pairs with CB3 in take_queue() */
	quiesce_fence_mode(CB3);
	left = queue->until_check - (int64_t)(bytes + CHECK_OBJECT);
	queue->until_check = left;
	if (quiesce_unlikely(must_list(queue, callback) || left < 0))
		finish_slowly(self, queue, callback);
	else
		free_if_ready(self, queue);
}

/* ---- without memory ---- */

static QUIESCE_COLD void spill(struct quiesce_tls_v1 *self, struct quiesce__queue *queue, struct rcu_head *head, size_t bytes)
{
	/* The object is counted before it can run, so that the number queued is never less than the number run.
	 * Relaxed throughout: the exchange follows. */
	quiesce_store_relaxed(&queue->spilled, queue->spilled + 1);
	quiesce_store_relaxed(&queue->callbacks.bytes, queue->callbacks.bytes + bytes);
	quiesce__spill_push(&queue->spill, head);
	finish_append(self, queue, true, bytes);
}

/* Queue an object of a thread that exits, or that cannot have a queue. */
static QUIESCE_COLD void spill_to_shard(const struct quiesce_tls_v1 *self, struct rcu_head *head, size_t bytes)
{
	struct quiesce__shard *shard = &quiesce__queues.shard[(uintptr_t)self / 4096 % QUIESCE_NR_SHARDS];

	/* Relaxed throughout: the exchange follows. */
	quiesce_fetch_add_relaxed(&shard->spilled, (uint64_t)1);
	quiesce_fetch_add_relaxed(&shard->bytes, (uint64_t)bytes);
	quiesce__garbage_add((int64_t)bytes);
	quiesce__spill_push(&shard->spill, head);
	wake_if_asleep();
	quiesce__worker_prompt();
	if (quiesce__garbage_above_ceiling())
		expedite();
}

/* ---- calls ---- */

static inline struct quiesce__queue *own_queue(struct quiesce_tls_v1 *self)
{
	return quiesce_likely(self->queue != NULL) ? self->queue : quiesce__queue_new(self);
}

/* Append the object of @head to that sequence of addresses of @queue which its function belongs to; the address fits. */
static inline void append(struct quiesce_tls_v1 *self, struct quiesce__queue *queue, struct rcu_head *head, uintptr_t func, size_t bytes)
{
	if (func <= QUIESCE_KFREE_OFFSET_MAX) {
		quiesce__append_item(&queue->frees, (uintptr_t)head - (func - 1), bytes);
		finish_append(self, queue, false, bytes);
	} else {
		head->func = (void (*)(struct rcu_head *))func;
		quiesce__append_item(&queue->callbacks, (uintptr_t)head, bytes);
		finish_append(self, queue, true, bytes);
	}
}

static inline struct quiesce__append *append_to(struct quiesce__queue *queue, uintptr_t func)
{
	return func <= QUIESCE_KFREE_OFFSET_MAX ? &queue->frees : &queue->callbacks;
}

static inline bool ensure_room(struct quiesce__append *to)
{
	return quiesce__append_fits(to) || quiesce__append_segment(to);
}

static QUIESCE_COLD void call_slowly(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__queue *queue;

	if (quiesce_unlikely(!head || !func)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_rcu() with a NULL %s", head ? "function" : "rcu_head");
		return;
	}
	quiesce__init();
	head->func = func;
	queue = own_queue(self);
	if (quiesce_unlikely(!queue)) {
		spill_to_shard(self, head, bytes);
	} else if (quiesce_likely(ensure_room(append_to(queue, (uintptr_t)func)))) {
		append(self, queue, head, (uintptr_t)func, bytes);
	} else {
		spill(self, queue, head, bytes);
	}
}

void quiesce_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__queue *queue = self->queue;

	if (quiesce_unlikely(!head || !func || !quiesce__is_intact() || !queue ||
			     !quiesce__append_fits(append_to(queue, (uintptr_t)func)))) {
		call_slowly(head, func, bytes);
		return;
	}
	append(self, queue, head, (uintptr_t)func, bytes);
}

void quiesce_kfree_rcu_mightsleep(void *object, size_t bytes)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__queue *queue;

	if (!object)
		return;
	if (quiesce_unlikely(quiesce__rcu_wait_is_misuse("kfree_rcu_mightsleep()", quiesce__caller())))
		return;
	quiesce__init();
	queue = own_queue(self);
	if (quiesce_likely(queue && ensure_room(&queue->frees))) {
		quiesce__append_item(&queue->frees, (uintptr_t)object, bytes);
		finish_append(self, queue, false, bytes);
		if (quiesce_unlikely(quiesce__garbage_above_ceiling()) && quiesce__may_sleep(self))
			quiesce__throttle("kfree_rcu_mightsleep", PLATFORM_FOREVER, false);
		return;
	}
	quiesce__init();
	quiesce__rcu_wait(QUIESCE_EXPEDITED, "kfree_rcu_mightsleep");
	quiesce__object_free_in_heap(object);
}

void quiesce__reclaim_thread_exit(struct quiesce_tls_v1 *self)
{
	struct quiesce__queue *queue = self->queue;

	if (!queue)
		return;
	self->queue = NULL;
	quiesce__end_free(queue);
	quiesce__queue_report_own(queue);
	if (quiesce__queue_end(queue))
		wake_if_asleep();
}
