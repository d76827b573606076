/* SPDX-License-Identifier: MIT */
/* reclaimers.c - the threads that run the callbacks of a pass: its maker, and helpers of the worker, if the program wants some.
 *
 *   worker    grace period -> publishes the queues of its pass -> runs queues -> none is left: waits for helpers -> the rest of the pass
 *   helper    asleep ------------------> runs queues ----------> none is left: asleep, or ends
 *
 * I1. A queue is taken from the published list whole, by one reclaimer, and is in one's hands at a time: so callbacks of one thread
 *     run in the order in which they were queued, one after the other.  The list is consumed in its order under the lock.
 * I2. Helpers run callbacks and count them.  All else is done by the maker of the pass, before it publishes and after all
 *     helpers are through: so all that is behind pass.lock is the maker's alone, and the end of the pass means that its callbacks have run.
 * I3. What is left of a queue when a callback has ended its helper's thread is run by the maker, as that of any other queue.  If a
 *     callback ends the maker's thread, helpers finish the queues that they have, and the maker gives back all that is left.
 * I4. In the child of a helper's callback that has forked the queue is not the helper's any more: all queues are listed for the
 *     child's passes.  These wait until the callback has returned, because the helper holds pass.lock in the child.  It finds another
 *     generation then, gives the lock back, and does not touch the queue: it may be gone.
 * I5. Nobody waits for a helper to come or to wake: the maker takes queues itself until none is left.
 * I6. Helpers are woken, or started, where several queues have SHARE_NR callbacks or those are expected to take SHARE_NS, by what
 *     those of the last pass took.
 * I7. The thread that forked has a queue of the parent's and a new one in the child, so the passes that run callbacks of the parent's
 *     queues are not shared: I1 is of queues.  The first pass that begins in the child takes all of them; what is left of one, if a
 *     callback ends its thread, is in the next one.
 */
#include "queue.h"
#include "reclaim.h"
#include "runtime/run.h"
#include "runtime/thread.h"

#define CHUNK 16u /* callbacks between two looks at the fork gate */
#define PREFETCH 8u
#define STOP_STEP_NS 2000000u
#define EACH_MAX_NS 1000000000u
#if defined(QUIESCE_SIM)
#define SHARE_NR 1u
#define IDLE_NS 20000000u
#else
#define SHARE_NR 256u      /* callbacks are worth a wake-up, as any of them may block; so are */
#define IDLE_NS 1000000000u /* a helper that nobody needs for so long ends */
#endif
#define SHARE_NS 100000u /* of fewer */

struct quiesce__reclaimer quiesce__reclaimer[QUIESCE_RECLAIMERS_MAX];

static struct {
	struct quiesce__lock lock;
	struct quiesce__queue *next; /* the first that nobody has taken; NULL: none */
	uint32_t word;   /* futex of idle helpers; it changes when queues are published, and when one may have to end */
	uint32_t active; /* helpers that run callbacks; futex of the maker */
	uint32_t nr;     /* helpers that are there or coming; futex of the thread that stops them */
	uint32_t stop;
	uint64_t callback_ns; /* a callback of the last pass took; the maker's */
	uint64_t helped;  /* queues, ever, that a helper took */
	uint64_t unshared; /* I7: passes up to this one are not shared; of the maker */
} shared;

/* ---- running ---- */

/* Is @head, whose callback has returned, the last that this thread has queued?  Only compared: it may be gone. */
static bool is_last_queued(const struct rcu_head *head)
{
	const struct quiesce__queue *own = quiesce__self()->queue;

	return own && own->callbacks.at && own->callbacks.at[-1] == (uintptr_t)head;
}

/* I4. */
static bool in_child(const struct quiesce__reclaimer *me)
{
	/* Relaxed: changed by this thread, in a callback. */
	return me->generation != quiesce_load_relaxed(&quiesce__fork_generation) && !QUIESCE_MUTANT(cb_child_helps);
}

static void release_queue(struct quiesce__reclaimer *me)
{
	if (me->queue)
		sim__alone(&me->queue->running, false);
	me->queue = NULL;
}

/* @me has no queue in hand, and is in no callback. */
static void become_idle(struct quiesce__reclaimer *me)
{
	release_queue(me);
	quiesce_store_relaxed(&me->func, 0); /* Relaxed: for reports. */
}

/* False: this is a child, which has @queue elsewhere. */
static inline __attribute__((always_inline)) bool run_row(struct quiesce__reclaimer *me, struct quiesce__queue *queue,
							  const uintptr_t *slot, uint32_t nr, bool helper)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct rcu_head *head = (struct rcu_head *)quiesce_load_relaxed(&slot[i]); /* Relaxed: CB1. */

		if (i + PREFETCH < nr)
			__builtin_prefetch((void *)quiesce_load_relaxed(&slot[i + PREFETCH])); /* Relaxed: a hint. */
		quiesce_store_relaxed(&queue->running.taken, queue->running.taken + 1); /* Relaxed: the reclaimer that has the queue. */
		quiesce__pass_call(me, head);
		if (helper && quiesce_unlikely(in_child(me)))
			return false;
		me->requeued |= is_last_queued(head);
		/* CB4: release, pairs with CB4 in add_queue() */
		quiesce_store_release(CB4, &queue->run, queue->running.taken); /* not one more: @head may have forked */
	}
	return true;
}

static inline __attribute__((always_inline)) void run_callbacks(struct quiesce__reclaimer *me, struct quiesce__queue *queue, bool helper)
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
		same_process = run_row(me, queue, slot, row < CHUNK ? row : CHUNK, helper);
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
	run_callbacks(quiesce__pass_maker, queue, false);
}

/* A callback has ended the thread of @me, which was to go on in @me->queue, if any. */
static void ended(struct quiesce__reclaimer *me)
{
	struct quiesce__queue *queue = me->queue;

	become_idle(me);
	if (queue && !QUIESCE_MUTANT(cb_ended_uncounted))
		/* CB4: release, pairs with CB4 in add_queue() */
		quiesce_store_release(CB4, &queue->run, queue->running.taken);
	quiesce__gate_leave(&me->in_gate);
}

/* ---- the published list; under the lock ---- */

static bool has_callbacks(const struct quiesce__queue *queue)
{
	return queue->running.taken != queue->callbacks_snap.nr;
}

/* I1. */
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

/* Holds the lock, and lets go of it meanwhile. */
static void wait_for_helpers(void)
{
	uint32_t active;

	while ((active = shared.active) && !QUIESCE_MUTANT(cb_helpers_unawaited)) {
		quiesce__unlock(&shared.lock);
		platform_futex_wait(&shared.active, active, PLATFORM_FOREVER);
		quiesce__lock(&shared.lock);
	}
}

/* ---- helpers ---- */

struct helping {
	struct quiesce__run run;
	struct quiesce__reclaimer *me;
	struct quiesce__queue *queue;
};

/* The helper is through with its queue; or this is a child, where it is not active any more, and where the rest waits for a worker. */
static void end_help(const struct quiesce__reclaimer *me)
{
	if (in_child(me)) {
		quiesce__unlock(&quiesce__pass.lock); /* I4 */
		if (quiesce__worker_ensure())
			quiesce__worker_wake();
		else
			quiesce__pass_yourself(true); /* this may be the child's only thread, and no caller comes again */
		return;
	}
	quiesce__lock(&shared.lock);
	quiesce_store_relaxed(&shared.active, shared.active - 1); /* Relaxed: under the lock. */
	if (!shared.active)
		platform_futex_wake(&shared.active, 1);
	quiesce__unlock(&shared.lock);
}

static void help_in_run(struct quiesce__run *run)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct helping *h = (struct helping *)run;

	self->state |= QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_RECLAIMER;
	run_callbacks(h->me, h->queue, true);
	self->state &= ~(QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_RECLAIMER);
}

static void help_ended(struct quiesce__run *run)
{
	struct quiesce__reclaimer *me = ((struct helping *)run)->me;

	ended(me);
	end_help(me);
}

/* Holds the lock, and lets go of it meanwhile. */
static void help(struct quiesce__reclaimer *me, struct quiesce__queue *queue)
{
	struct helping h = { .run = { .call = "call_rcu()", .named = &me->func }, .me = me, .queue = queue };

	quiesce_store_relaxed(&shared.active, shared.active + 1); /* Relaxed: under the lock. */
	shared.helped++;
	me->generation = quiesce__generation();
	quiesce__unlock(&shared.lock);
	quiesce__run(&h.run, help_in_run, help_ended);
	end_help(me);
	quiesce__lock(&shared.lock);
}

/* Relaxed: a setting.  The worker is one of them. */
static bool too_many(void)
{
	return shared.stop || shared.nr >= quiesce_load_relaxed(&quiesce__settings.reclaimers);
}

/* Holds the lock, and lets go of it meanwhile.  False: nobody has needed the helper for long.  The only thread of a child stays. */
static bool sleep_as_helper(void)
{
	uint32_t word = shared.word;

	quiesce__unlock(&shared.lock);
	platform_futex_wait(&shared.word, word, IDLE_NS);
	quiesce__lock(&shared.lock);
	return shared.word != word || quiesce_load_relaxed(&quiesce__fork_survivor) == quiesce__self(); /* Relaxed: compared. */
}

static struct quiesce__reclaimer *find_place(const struct quiesce_tls_v1 *by)
{
	for (uint32_t i = 1; i < QUIESCE_RECLAIMERS_MAX; i++)
		if (quiesce__reclaimer[i].by == by)
			return &quiesce__reclaimer[i];
	return NULL;
}

static void helper_main(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__reclaimer *me;

	quiesce__lock(&shared.lock);
	me = find_place(NULL);
	me->by = self;
	quiesce_store_relaxed(&me->tid, quiesce__tid()); /* Relaxed: for reports. */
	while (!too_many()) {
		struct quiesce__queue *queue = take_queue();

		if (queue)
			help(me, queue);
		else if (!sleep_as_helper())
			break;
	}
	quiesce__unlock(&shared.lock);
}

/* It was too many, or idle, or a callback has ended it. */
static void helper_over(void)
{
	struct quiesce__reclaimer *me;

	quiesce__lock(&shared.lock);
	me = find_place(quiesce__self());
	if (me) {
		me->by = NULL;
		quiesce_store_relaxed(&shared.nr, shared.nr - 1); /* Relaxed: under the lock. */
	}
	quiesce__unlock(&shared.lock);
	platform_futex_wake(&shared.nr, INT32_MAX);
}

/* ---- the worker ---- */

/* So that @nr are there, if none ends meanwhile because the setting has changed.  Holds the lock, and lets go of it meanwhile. */
static void start_helpers(uint32_t nr)
{
	for (uint32_t i = shared.nr; i < nr && quiesce__thread_may_start(QUIESCE_THREAD_RECLAIMER); i++) {
		bool started;

		quiesce_store_relaxed(&shared.nr, shared.nr + 1); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&shared.stop, 0); /* Relaxed: under the lock. */
		quiesce__unlock(&shared.lock);
		started = quiesce__thread_start(QUIESCE_THREAD_RECLAIMER, helper_main, helper_over);
		quiesce__lock(&shared.lock);
		if (!started)
			quiesce_store_relaxed(&shared.nr, shared.nr - 1); /* Relaxed: under the lock. */
	}
}

/* How many of @queues have callbacks, and how many all of them have. */
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

/* Until nobody has any of @queues.  Returns how many callbacks were run here. */
static uint64_t run_shared(struct quiesce__queue *queues, uint32_t helpers)
{
	struct quiesce__queue *queue;
	uint64_t ran = 0;

	quiesce__lock(&shared.lock);
	shared.next = queues;
	if (helpers) {
		wake_idle(helpers);
		start_helpers(helpers);
	}
	while ((queue = take_queue())) {
		quiesce__unlock(&shared.lock);
		ran += queue->callbacks_snap.nr - queue->running.taken;
		quiesce__run_callbacks(queue);
		quiesce__lock(&shared.lock);
	}
	wait_for_helpers();
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
	ended(quiesce__pass_maker);
	if (quiesce__pass.begun <= shared.unshared)
		shared.unshared = quiesce__pass.begun + 1; /* I7: what is left is in the next one */
	quiesce__lock(&shared.lock);
	shared.next = NULL;
	if (!QUIESCE_MUTANT(cb_ended_beside))
		wait_for_helpers();
	quiesce__unlock(&shared.lock);
}

/* ---- others ---- */

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
	stats->queues_helped = shared.helped;
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
	while ((nr = quiesce_load_relaxed(&shared.nr))) { /* Relaxed: looked at again. */
		if (!quiesce_load_relaxed(&shared.stop)) /* Relaxed: read again soon. */
			return false;
		if (deadline && platform_now_ns() >= deadline)
			break;
		platform_futex_wait(&shared.nr, nr, STOP_STEP_NS);
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
			release_queue(each); /* I4; @func stays, as it runs */
		} else if (i || !in_callback) {
			*each = (struct quiesce__reclaimer){ .func = 0 };
		}
	}
}
