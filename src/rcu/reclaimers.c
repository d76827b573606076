/* SPDX-License-Identifier: MIT */
/* reclaimers.c - the reclaimers, which are threads that run the callbacks of a pass: its holder, and further ones beside the worker, if
 * the program asks for some.  The holder of a pass is the thread that makes it, and holds pass.lock.
 *
 *   worker    grace period -> publishes the queues of its pass -> runs queues -> none is left: waits for the others -> the rest of the pass
 *   further   asleep ------------------> runs queues ----------> none is left: sleeps, or ends
 *
 * I1. A reclaimer takes whole queues from the published list, under the lock and in the order of the list, and no two reclaimers have one
 *     queue at a time.  So the callbacks of one thread run one after the other, in the order in which they were queued.
 * I2. A further reclaimer runs callbacks and counts them.  The holder of the pass does all other work, before it publishes the queues and
 *     after the last of the others is done.  So only the holder accesses what else pass.lock guards, and when a pass ends its callbacks
 *     have run.
 * I3. If a callback ends the thread of a further reclaimer, the holder runs the other callbacks of that queue.  If a callback ends the
 *     holder's thread, the other reclaimers finish the queues that they have, and the holder lists all that is left again.
 * I4. A callback of a further reclaimer may fork.  In the child the reclaimer does not have the queue any more, as all queues are listed
 *     for the child's passes.  It holds pass.lock there, so that these begin only after the callback has returned.  Then the reclaimer,
 *     which finds another generation of forks, releases the lock, and does not access the queue, which may be freed.
 * I5. The holder waits for no reclaimer to wake or to start: it takes queues itself until none is left.
 * I6. Further reclaimers are woken, or started, if several queues have SHARE_NR callbacks together, or if these are expected to take
 *     SHARE_NS, judged by the callbacks of the last shared pass.
 * I7. The thread that has forked has two queues in the child, a new one and the parent's, and I1 orders the callbacks of each queue only.
 *     So passes that run callbacks of the parent's queues are not shared.  The first pass that begins in the child takes all of these
 *     queues, and if a callback ends its thread, the next pass takes what is left.
 *
 * CB4  see pass.c
 * FK1  see gate.c
 */
#include "queue.h"
#include "reclaim.h"
#include "runtime/run.h"
#include "runtime/thread.h"

#define CHUNK 16u /* callbacks that run between two checks of the fork gate */
#define PREFETCH 8u
#define STOP_POLL_NS 2000000u
#define EACH_MAX_NS 1000000000u /* largest value of callback_ns */
#if defined(QUIESCE_SIM)
#define SHARE_NR 1u
#define IDLE_NS 20000000u
#else
#define SHARE_NR 256u       /* callbacks that are worth waking reclaimers, as any of them may block */
#define IDLE_NS 1000000000u /* time without queues after which a reclaimer ends */
#endif
#define SHARE_NS 100000u /* expected time of fewer callbacks that is worth waking reclaimers, too */

struct quiesce__reclaimer quiesce__reclaimer[QUIESCE_RECLAIMERS_MAX];

static struct {
	struct quiesce__lock lock;
	struct quiesce__queue *next; /* first queue of the published list that no reclaimer has taken; NULL: none */
	uint32_t word;        /* futex of idle reclaimers; it changes when queues are published, and when a reclaimer may have to end */
	uint32_t active;      /* number of further reclaimers that run callbacks; futex of the holder */
	uint32_t nr;          /* number of further reclaimers that run or are being started; futex of the thread that stops them */
	uint32_t stop;        /* further reclaimers are to end */
	uint64_t callback_ns; /* mean time of a callback in the last shared pass; only the holder of the pass accesses it */
	uint64_t shared_out;  /* number of queues, ever, that further reclaimers took */
	uint64_t unshared;    /* number of the last pass that must not be shared (I7); only the holder of the pass accesses it */
} shared;

/* ---- running ---- */

/* True if @head, whose callback has returned, is what this thread has queued last.  It is only compared, since it may be freed. */
static bool is_last_queued(const struct rcu_head *head)
{
	const struct quiesce__queue *own = quiesce__self()->queue;

	return own && own->callbacks.at && own->callbacks.at[-1] == (uintptr_t)head;
}

/* True in the child of a callback of a further reclaimer that has forked (I4). */
static bool in_child(const struct quiesce__reclaimer *me)
{
	/* Relaxed: this thread has changed it, in the callback. */
	return me->generation != quiesce_load_relaxed(&quiesce__fork_generation) && !QUIESCE_MUTANT(cb_child_runs_on);
}

static void release_queue(struct quiesce__reclaimer *me)
{
	if (me->queue)
		sim__alone(&me->queue->running, false);
	me->queue = NULL;
}

/* Record that @me has no queue, and is in no callback. */
static void become_idle(struct quiesce__reclaimer *me)
{
	release_queue(me);
	quiesce_store_relaxed(&me->func, 0); /* Relaxed: for reports. */
}

/* Run the callbacks whose addresses are in @nr consecutive slots; false in a child, where a @further reclaimer does not have
 * @queue (I4). */
static inline __attribute__((always_inline)) bool run_row(struct quiesce__reclaimer *me, struct quiesce__queue *queue,
							  const uintptr_t *slot, uint32_t nr, bool further)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct rcu_head *head = (struct rcu_head *)quiesce_load_relaxed(&slot[i]); /* Relaxed: CB1 orders it. */

		if (i + PREFETCH < nr)
			__builtin_prefetch((void *)quiesce_load_relaxed(&slot[i + PREFETCH])); /* Relaxed: a hint. */
		quiesce_store_relaxed(&queue->running.taken, queue->running.taken + 1); /* Relaxed: no other reclaimer has the queue. */
		quiesce__pass_call(me, head);
		if (further && quiesce_unlikely(in_child(me)))
			return false;
		me->requeued |= is_last_queued(head);
		/* CB4: release, pairs with CB4 in add_queue() */
		quiesce_store_release(CB4, &queue->nr_run, queue->running.taken); /* a fork in the callback may have changed @nr_run */
	}
	return true;
}

static inline __attribute__((always_inline)) void run_callbacks(struct quiesce__reclaimer *me, struct quiesce__queue *queue, bool further)
{
	struct quiesce__consume *from = &queue->running;
	uint64_t end = queue->callbacks_snap.nr, bytes = queue->callbacks_snap.bytes - from->bytes_out;
	bool same_process = true;

	if (QUIESCE_MUTANT(cb_snapshot_after))
		end = quiesce_load_relaxed(&queue->callbacks.queued);
	sim__alone(&queue->running, true); /* I1 */
	me->queue = queue;
	while (same_process && from->taken != end) {
		uint32_t row;
		uintptr_t *slot = quiesce__consume_at(from, &queue->callbacks, end, &row);

		quiesce__gate_enter(&me->in_gate);
		same_process = run_row(me, queue, slot, row < CHUNK ? row : CHUNK, further);
		quiesce__gate_leave(&me->in_gate);
	}
	become_idle(me);
	if (!same_process || !bytes)
		return;
	quiesce_store_relaxed(&from->bytes_out, from->bytes_out + bytes); /* Relaxed: a sum. */
	quiesce__queue_report(queue);
}

void quiesce__run_callbacks(struct quiesce__queue *queue)
{
	run_callbacks(quiesce__pass_holder, queue, false);
}

/* Clean up after a callback that has ended the thread of @me: count it as run in @me->queue, if there is one, and leave the gate. */
static void clean_up(struct quiesce__reclaimer *me)
{
	struct quiesce__queue *queue = me->queue;

	become_idle(me);
	if (queue && !QUIESCE_MUTANT(cb_ended_uncounted))
		/* CB4: release, pairs with CB4 in add_queue() */
		quiesce_store_release(CB4, &queue->nr_run, queue->running.taken);
	quiesce__gate_leave(&me->in_gate);
}

/* ---- the published list; the caller holds the lock ---- */

static bool has_callbacks(const struct quiesce__queue *queue)
{
	return queue->running.taken != queue->callbacks_snap.nr;
}

/* Take the next queue that has callbacks; NULL: none is left. */
static struct quiesce__queue *take_queue(void)
{
	struct quiesce__queue *queue = shared.next;

	while (queue && !has_callbacks(queue))
		queue = queue->next_in_pass;
	if (!queue || !QUIESCE_MUTANT(cb_shared_twice))
		shared.next = queue ? queue->next_in_pass : NULL;
	return queue;
}

static void wake_idle(uint32_t nr)
{
	quiesce_store_relaxed(&shared.word, shared.word + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&shared.word, (int32_t)nr);
}

/* Wait until no further reclaimer runs callbacks.  The caller holds the lock, which is released during each sleep. */
static void wait_for_others(void)
{
	uint32_t active;

	while ((active = shared.active) && !QUIESCE_MUTANT(cb_others_unawaited)) {
		quiesce__unlock(&shared.lock);
		platform_futex_wait(&shared.active, active, PLATFORM_FOREVER);
		quiesce__lock(&shared.lock);
	}
}

/* ---- further reclaimers ---- */

struct queue_run {
	struct quiesce__run run;
	struct quiesce__reclaimer *me;
	struct quiesce__queue *queue;
};

/* Record that the reclaimer is done with its queue.  In a child, where it is not counted in @active, release pass.lock instead, and have a
 * worker make the pass that takes the queues (I4). */
static void end_queue(const struct quiesce__reclaimer *me)
{
	if (in_child(me)) {
		quiesce__unlock(&quiesce__pass.lock); /* I4 */
		if (quiesce__worker_ensure())
			quiesce__worker_wake();
		else
			quiesce__pass_make_here(true); /* this may be the child's only thread, so no other one makes the pass */
		return;
	}
	quiesce__lock(&shared.lock);
	quiesce_store_relaxed(&shared.active, shared.active - 1); /* Relaxed: under the lock. */
	if (!shared.active)
		platform_futex_wake(&shared.active, 1);
	quiesce__unlock(&shared.lock);
}

static void run_queue_callbacks(struct quiesce__run *run)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct queue_run *q = (struct queue_run *)run;

	self->state |= QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_RECLAIMER;
	run_callbacks(q->me, q->queue, true);
	self->state &= ~(QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_RECLAIMER);
}

static void queue_run_ended(struct quiesce__run *run)
{
	struct quiesce__reclaimer *me = ((struct queue_run *)run)->me;

	clean_up(me);
	end_queue(me);
}

/* Run the callbacks of @queue in the further reclaimer @me.  The caller holds the lock, which is released meanwhile. */
static void run_queue(struct quiesce__reclaimer *me, struct quiesce__queue *queue)
{
	struct queue_run q = { .run = { .call = "call_rcu()", .named = &me->func }, .me = me, .queue = queue };

	quiesce_store_relaxed(&shared.active, shared.active + 1); /* Relaxed: under the lock. */
	shared.shared_out++;
	me->generation = quiesce__generation();
	quiesce__unlock(&shared.lock);
	quiesce__run(&q.run, run_queue_callbacks, queue_run_ended);
	end_queue(me);
	quiesce__lock(&shared.lock);
}

/* True if the calling reclaimer is to end.  The setting counts the worker as a reclaimer.  Relaxed: a setting. */
static bool must_end(void)
{
	return shared.stop || shared.nr >= quiesce_load_relaxed(&quiesce__settings.reclaimers);
}

/* Sleep until queues are published; false if none were for a long time, so that the reclaimer ends, unless it is the thread that has
 * forked.  The caller holds the lock, which is released during the sleep. */
static bool sleep_until_published(void)
{
	uint32_t word = shared.word;

	quiesce__unlock(&shared.lock);
	platform_futex_wait(&shared.word, word, IDLE_NS);
	quiesce__lock(&shared.lock);
	return shared.word != word || quiesce_load_relaxed(&quiesce__fork_survivor) == quiesce__self(); /* Relaxed: compared. */
}

/* Return the entry of the reclaimer whose thread is @by; with NULL, a free entry. */
static struct quiesce__reclaimer *find_entry(const struct quiesce_tls_v1 *by)
{
	for (uint32_t i = 1; i < QUIESCE_RECLAIMERS_MAX; i++)
		if (quiesce__reclaimer[i].by == by)
			return &quiesce__reclaimer[i];
	return NULL;
}

static void reclaimer_main(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__reclaimer *me;

	quiesce__lock(&shared.lock);
	me = find_entry(NULL);
	me->by = self;
	quiesce_store_relaxed(&me->tid, quiesce__tid()); /* Relaxed: for reports. */
	while (!must_end()) {
		struct quiesce__queue *queue = take_queue();

		if (queue)
			run_queue(me, queue);
		else if (!sleep_until_published())
			break;
	}
	quiesce__unlock(&shared.lock);
}

/* Free the entry of a reclaimer that ends, because it was idle or one too many, or because a callback has ended its thread. */
static void reclaimer_exit(void)
{
	struct quiesce__reclaimer *me;

	quiesce__lock(&shared.lock);
	me = find_entry(quiesce__self());
	if (me) {
		me->by = NULL;
		quiesce_store_relaxed(&shared.nr, shared.nr - 1); /* Relaxed: under the lock. */
	}
	quiesce__unlock(&shared.lock);
	platform_futex_wake(&shared.nr, INT32_MAX);
}

/* ---- the worker ---- */

/* Start reclaimers until there are @nr further ones, if as many threads can be had.  The caller holds the lock, which is released during
 * each start. */
static void start_reclaimers(uint32_t nr)
{
	for (uint32_t i = shared.nr; i < nr && quiesce__thread_claim_start(QUIESCE_THREAD_RECLAIMER); i++) {
		bool started;

		quiesce_store_relaxed(&shared.nr, shared.nr + 1); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&shared.stop, 0); /* Relaxed: under the lock. */
		quiesce__unlock(&shared.lock);
		started = quiesce__thread_start(QUIESCE_THREAD_RECLAIMER, reclaimer_main, reclaimer_exit);
		quiesce__lock(&shared.lock);
		if (!started)
			quiesce_store_relaxed(&shared.nr, shared.nr - 1); /* Relaxed: under the lock. */
	}
}

/* Return how many of @queues have callbacks; *@ret_callbacks is the number of these callbacks. */
static uint32_t count_queues(const struct quiesce__queue *queues, uint64_t *ret_callbacks)
{
	uint32_t nr = 0;

	*ret_callbacks = 0;
	for (const struct quiesce__queue *queue = queues; queue; queue = queue->next_in_pass) {
		*ret_callbacks += queue->callbacks_snap.nr - queue->running.taken;
		nr += has_callbacks(queue);
	}
	return nr;
}

/* Publish @queues, run those that no other reclaimer takes, and wait until all are done; return how many callbacks ran in this thread. */
static uint64_t run_shared(struct quiesce__queue *queues, uint32_t further)
{
	struct quiesce__queue *queue;
	uint64_t ran = 0;

	quiesce__lock(&shared.lock);
	shared.next = queues;
	if (further) {
		wake_idle(further);
		start_reclaimers(further);
	}
	while ((queue = take_queue())) {
		quiesce__unlock(&shared.lock);
		ran += queue->callbacks_snap.nr - queue->running.taken;
		quiesce__run_callbacks(queue);
		quiesce__lock(&shared.lock);
	}
	wait_for_others();
	quiesce__unlock(&shared.lock);
	return ran;
}

void quiesce__share_callbacks(struct quiesce__queue *queues)
{
	uint32_t limit = quiesce_load_relaxed(&quiesce__settings.reclaimers), nr; /* Relaxed: a setting. */
	uint64_t callbacks, ran, ns;

	if (quiesce_likely(limit == 1) || !(quiesce__self()->state & QUIESCE_TLS_WORKER))
		return;
	if (quiesce__pass.begun <= shared.unshared && !QUIESCE_MUTANT(cb_inherited_shared)) /* I7 */
		return;
	nr = count_queues(queues, &callbacks);
	if (nr < 2)
		return;
	if (callbacks < SHARE_NR && callbacks * shared.callback_ns < SHARE_NS)
		limit = 1;
	nr = nr < limit ? nr : limit;
	ns = platform_now_ns();
	ran = run_shared(queues, nr - 1);
	ns = platform_now_ns() - ns;
	if (ran)
		shared.callback_ns = ns / ran < EACH_MAX_NS ? ns / ran : EACH_MAX_NS;
}

void quiesce__reclaimers_ended(void)
{
	clean_up(quiesce__pass_holder);
	if (quiesce__pass.begun <= shared.unshared)
		shared.unshared = quiesce__pass.begun + 1; /* the next pass takes what is left of the parent's queues (I7) */
	quiesce__lock(&shared.lock);
	shared.next = NULL;
	if (!QUIESCE_MUTANT(cb_ended_beside))
		wait_for_others();
	quiesce__unlock(&shared.lock);
}

/* ---- reports, settings, fork ---- */

bool quiesce__reclaimers_paused(void)
{
	for (uint32_t i = 0; i < QUIESCE_RECLAIMERS_MAX; i++)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		if (quiesce_load_acquire(FK1, &quiesce__reclaimer[i].in_gate))
			return false;
	return true;
}

const struct quiesce__reclaimer *quiesce__reclaimer_in_callback(uintptr_t *ret_func)
{
	for (uint32_t i = 0; i < QUIESCE_RECLAIMERS_MAX; i++) {
		*ret_func = quiesce_load_relaxed(&quiesce__reclaimer[i].func); /* Relaxed: a report. */
		if (*ret_func)
			return &quiesce__reclaimer[i];
	}
	return NULL;
}

void quiesce__reclaimers_stats(struct quiesce_stats *stats)
{
	quiesce__lock(&shared.lock);
	stats->reclaimers_running = shared.nr;
	stats->queues_helped = shared.shared_out;
	quiesce__unlock(&shared.lock);
}

static void wake_all(bool stop)
{
	quiesce__lock(&shared.lock);
	if (stop)
		quiesce_store_relaxed(&shared.stop, 1); /* Relaxed: under the lock. */
	if (shared.nr)
		wake_idle(INT32_MAX);
	quiesce__unlock(&shared.lock);
}

void quiesce__reclaimers_changed(void)
{
	wake_all(false);
}

bool quiesce__reclaimers_stop(uint64_t deadline)
{
	uint32_t nr;

	wake_all(true);
	while ((nr = quiesce_load_relaxed(&shared.nr))) { /* Relaxed: loaded again after each sleep. */
		if (!quiesce_load_relaxed(&shared.stop)) /* Relaxed: loaded again after each sleep. */
			return false;
		if (deadline && platform_now_ns() >= deadline)
			break;
		platform_futex_wait(&shared.nr, nr, STOP_POLL_NS);
	}
	return true;
}

void quiesce__reclaimers_fork_child(bool in_callback)
{
	const struct quiesce_tls_v1 *survivor = quiesce__fork_survivor;

	quiesce__lock_reset(&shared.lock, false);
	shared.active = shared.nr = shared.stop = 0;
	shared.unshared = quiesce__pass.begun + 1;
	if (!in_callback)
		shared.next = NULL;
	for (uint32_t i = 0; i < QUIESCE_RECLAIMERS_MAX; i++) {
		struct quiesce__reclaimer *each = &quiesce__reclaimer[i];

		each->in_gate = 0;
		if (each->by && each->by == survivor) {
			shared.nr++;
			release_queue(each); /* I4.  @func stays: it is the callback that has forked, and still runs */
		} else if (i || !in_callback) {
			*each = (struct quiesce__reclaimer){ .func = 0 };
		}
	}
}
