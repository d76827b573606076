/* SPDX-License-Identifier: MIT */
/* helper.c - the helper: a thread that takes steps of jobs, and further threads while a callback blocks it.
 *
 *   dispatcher:  takes the next job's step; sleeps while there is none
 *   watcher:     sleeps; becomes the dispatcher once the present one has been running callbacks for BLOCKED_NS
 *   neither:     in a step that blocks; afterwards it watches, or ends
 *
 * I1. One thread dispatches, or no thread exists, or the first is being started; or the dispatcher has ended in a
 *     callback, and threads that callbacks block are left: the first to return dispatches, and until then the state is
 *     as if there were no thread, and a new one may be started.  Only the dispatcher takes jobs, and sleeps on @asleep.
 *     It sets @asleep, and a caller that lists a job clears it, under the lock.  Only quiesce__helper_wake() clears it
 *     without the lock, because it may run in a signal handler.
 * I2. If the dispatcher runs callbacks of the program and a job waits, then a thread watches, or one is about to,
 *     or the number of threads is at its limit, or no thread can be created.  Three places ensure that: where
 *     callbacks begin, where a job is listed, and where a thread returns from a step during which another
 *     thread became the dispatcher.
 * I3. No caller waits for a thread that another caller starts: a job is listed first, and a new thread checks
 *     the list first.
 * I4. The dispatcher ends as the last thread, and only while no thread is being started.
 * I5. If a callback ends the dispatcher's thread, the watcher takes over, or else a new thread does if a job
 *     is listed.
 *
 * HL1  asleep set, then wake_wanted read | wake_wanted set, then asleep taken
 * FK1  see gate.c
 */
#include "jobs.h"
#include "delayed_call.h"
#include "gate.h"
#include "thread.h"

#define STOP_POLL_NS 1000000u
#define BLOCKED_NS 10000000u
#if defined(QUIESCE_SIM)
#define WATCH_NS (2 * BLOCKED_NS)
#else
#define WATCH_NS (100ull * BLOCKED_NS) /* a watcher that is not needed stays for this long */
#endif

struct quiesce__helper quiesce__helper = { .ready_end = &quiesce__helper.ready, .next_due = PLATFORM_FOREVER };
static struct quiesce__helper *const h = &quiesce__helper;

static void change_state(uint32_t state)
{
	quiesce_store_relaxed(&h->state, state); /* Relaxed: under the lock. */
	platform_futex_wake(&h->state, INT32_MAX);
}

static void set_stop_requested(bool stop)
{
	quiesce_store_relaxed(&h->stop, stop); /* Relaxed: under the lock; a waiter checks it again. */
}

/* Under the lock: a waker that took the request without it, and was preempted, would leave the helper asleep. */
void quiesce__helper_wake_locked(void)
{
	if (!quiesce_load_relaxed(&h->asleep)) /* Relaxed: a wake-up too many does no harm. */
		return;
	quiesce_store_relaxed(&h->asleep, 0); /* Relaxed: under the lock. */
	platform_futex_wake(&h->asleep, 1);
}

/* ---- the dispatcher ---- */

/* Called with the lock held; releases it during the sleep. */
static void sleep_until(uint64_t due, uint64_t now)
{
	/* HL1: full, pairs with HL1 in quiesce__helper_wake() */
	quiesce_xchg(HL1, &h->asleep, 1u);
	quiesce__unlock(&h->lock);
	if (!quiesce_load_relaxed(&h->wake_wanted) || QUIESCE_MUTANT(helper_sleep_unchecked)) /* Relaxed: HL1. */
		platform_futex_wait(&h->asleep, 1, due == PLATFORM_FOREVER ? due : due - now);
	quiesce__lock(&h->lock);
	quiesce_store_relaxed(&h->asleep, 0); /* Relaxed: under the lock. */
}

static void take_wake_request(void)
{
	if (!quiesce_load_relaxed(&h->wake_wanted)) /* Relaxed: HL1, or checked again. */
		return;
	/* HL1: full, pairs with HL1 in quiesce__helper_wake() */
	quiesce_xchg(HL1, &h->wake_wanted, 0u);
	quiesce__jobs_make_ready(0, true);
}

/* True if the dispatcher may end: no job is ready.  Deferred jobs are always done soon, so the dispatcher
 * waits for them; any other job that needs a thread withdraws the request to stop. */
static bool stop_or_withdraw(void)
{
	bool deferred = false;

	if (!quiesce_load_relaxed(&h->stop)) /* Relaxed: under the lock. */
		return false;
	for (struct quiesce__job *job = h->timed; job; job = job->next) {
		deferred |= job->deferred;
		if (!job->optional && !job->deferred) {
			set_stop_requested(false);
			return false;
		}
	}
	return !deferred && ((h->nr == 1 && !h->starting) || QUIESCE_MUTANT(helper_stops_first));
}

/* Take steps until another thread is the dispatcher; false if there is nothing to do and @me ends. */
static bool dispatch(struct quiesce__runner *me)
{
	while (h->dispatcher == me) {
		struct quiesce__job *job;
		uint64_t now;

		take_wake_request();
		now = platform_now_ns();
		if (now >= h->next_due)
			quiesce__jobs_make_ready(now, false);
		job = quiesce__jobs_next();
		if (job)
			quiesce__job_take_step(me, job);
		else if (stop_or_withdraw())
			return false;
		else
			sleep_until(h->next_due, now);
	}
	return true;
}

/* ---- the watcher ---- */

/* True if a watcher is needed (I2). */
static bool needs_watcher(void)
{
	return h->dispatcher && h->dispatcher->callbacks_since && quiesce__jobs_any_waiting();
}

static void sleep_as_watcher(void)
{
	uint32_t watch = h->watch;

	quiesce__unlock(&h->lock);
	platform_futex_wait(&h->watch, watch, BLOCKED_NS);
	quiesce__lock(&h->lock);
}

/* Watch; true if @me is the dispatcher from now on, false if no watcher is needed. */
static bool watch(struct quiesce__runner *me)
{
	uint64_t now = platform_now_ns(), until = now + WATCH_NS;

	h->watcher = me;
	for (; h->dispatcher && h->dispatcher != me; now = platform_now_ns()) {
		if (needs_watcher()) {
			until = now + WATCH_NS;
			if (now - h->dispatcher->callbacks_since >= BLOCKED_NS) {
				h->dispatcher = me;
				break;
			}
		} else if (quiesce_load_relaxed(&h->stop) || now >= until) { /* Relaxed: under the lock. */
			break;
		}
		sleep_as_watcher();
	}
	h->watcher = NULL;
	return h->dispatcher == me;
}

/* ---- threads ---- */

static struct quiesce__runner *add_runner(const struct quiesce_tls_v1 *self)
{
	h->starting--;
	for (uint32_t i = 0; i < QUIESCE_NR_RUNNERS; i++)
		if (!h->runner[i].by) {
			h->runner[i].by = self;
			h->nr++;
			return &h->runner[i];
		}
	return NULL;
}

static bool become_dispatcher_if_vacant(struct quiesce__runner *me)
{
	if (!h->dispatcher) {
		h->dispatcher = me;
		change_state(QUIESCE_HELPER_RUNNING);
	}
	return h->dispatcher == me;
}

static void wake_watcher(void)
{
	quiesce_store_relaxed(&h->watch, h->watch + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&h->watch, 1);
}

static void leave(struct quiesce__runner *me)
{
	me->by = NULL;
	h->nr--;
	if (h->dispatcher != me)
		return;
	h->dispatcher = h->watcher;
	if (h->dispatcher)
		wake_watcher();
	else
		change_state(QUIESCE_HELPER_NONE);
}

/* Dispatch if no thread does, else watch, else end. */
static void serve(struct quiesce__runner *me)
{
	for (;;) {
		if (become_dispatcher_if_vacant(me) ? !dispatch(me) : h->watcher || !watch(me))
			break;
		if (h->dispatcher != me && QUIESCE_MUTANT(helper_back_unwatched))
			break;
	}
	leave(me);
}

static void helper_main(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__runner *me;

	self->state |= QUIESCE_TLS_HELPER;
	quiesce__lock(&h->lock);
	me = add_runner(self);
	if (me)
		serve(me);
	quiesce__helper_wake_locked(); /* I4 */
	quiesce__unlock(&h->lock);
}

static struct quiesce__runner *find_runner(const struct quiesce_tls_v1 *self)
{
	for (uint32_t i = 0; i < QUIESCE_NR_RUNNERS; i++)
		if (h->runner[i].by == self)
			return &h->runner[i];
	return NULL;
}

/* I5: a callback has ended the thread of a helper. */
static void helper_exit(void)
{
	struct quiesce__runner *me;

	quiesce__lock(&h->lock);
	me = find_runner(quiesce__self());
	if (me && !QUIESCE_MUTANT(helper_ended_dispatches)) {
		leave(me);
		if (h->nr_listed)
			quiesce__helper_ensure_locked();
		quiesce__helper_wake_locked();
		quiesce__helper_ensure_watcher();
	}
	quiesce__unlock(&h->lock);
}

/* Called with the lock held; releases it while the thread starts. */
static bool start_thread(void)
{
	bool started;

	h->starting++;
	quiesce__unlock(&h->lock);
	started = quiesce__thread_start(QUIESCE_THREAD_HELPER, helper_main, helper_exit);
	quiesce__lock(&h->lock);
	if (started)
		return true;
	h->starting--;
	quiesce__helper_wake_locked(); /* I4 */
	return false;
}

/* Start the first thread unless one is there; true if one is there or is being started.  Called with the lock
 * held; releases it while the thread starts. */
static bool start_first(void)
{
	while (h->state == QUIESCE_HELPER_NONE) {
		bool started;

		set_stop_requested(false);
		h->starter = quiesce__self();
		change_state(QUIESCE_HELPER_STARTING);
		started = start_thread();
		/* Otherwise the thread has already changed the state itself, and may even have ended. */
		if (h->state == QUIESCE_HELPER_STARTING && h->starter == quiesce__self())
			change_state(started ? QUIESCE_HELPER_RUNNING : QUIESCE_HELPER_NONE);
		if (!started)
			break;
	}
	return h->state != QUIESCE_HELPER_NONE;
}

bool quiesce__helper_ensure_locked(void)
{
	set_stop_requested(false);
	return h->state != QUIESCE_HELPER_NONE || (quiesce__thread_claim_start(QUIESCE_THREAD_HELPER) && start_first());
}

void quiesce__helper_ensure_watcher(void)
{
	if (!needs_watcher() || h->watcher || h->starting || h->nr == QUIESCE_NR_RUNNERS)
		return;
	if (quiesce__thread_claim_start(QUIESCE_THREAD_HELPER))
		start_thread();
}

void quiesce__helper_begin_callbacks(void)
{
	if (!quiesce__in_helper())
		return;
	quiesce__lock(&h->lock);
	if (h->dispatcher && h->dispatcher->by == quiesce__self()) {
		h->dispatcher->callbacks_since = platform_now_ns();
		if (!QUIESCE_MUTANT(helper_blocks_unwatched))
			quiesce__helper_ensure_watcher();
	}
	quiesce__unlock(&h->lock);
}

void quiesce__helper_wake(void)
{
	/* HL1: full, pairs with HL1 in take_wake_request() */
	quiesce_xchg(HL1, &h->wake_wanted, 1u);
	/* HL1: full, pairs with HL1 in sleep_until() */
	if (quiesce_xchg(HL1, &h->asleep, 0u))
		platform_futex_wake(&h->asleep, 1);
}

bool quiesce__in_helper(void)
{
	return (quiesce__self()->state & QUIESCE_TLS_HELPER) != 0;
}

bool quiesce__helper_running(void)
{
	return quiesce_load_relaxed(&h->state) != QUIESCE_HELPER_NONE; /* Relaxed: a hint; jobs are listed under the lock. */
}

bool quiesce__helper_ensure(void)
{
	bool there;

	quiesce__init();
	if (quiesce__helper_running())
		return true;
	if (!quiesce__thread_claim_start(QUIESCE_THREAD_HELPER))
		return false;
	quiesce__lock(&h->lock);
	there = start_first();
	quiesce__unlock(&h->lock);
	return there;
}

static void request_stop(void)
{
	quiesce__lock(&h->lock);
	set_stop_requested(true);
	quiesce__jobs_make_ready(0, true); /* jobs that can end early do so */
	quiesce__helper_wake_locked();
	wake_watcher();
	quiesce__unlock(&h->lock);
}

/* True if no thread is left, or is being started.  The state alone does not show it: I1. */
static bool all_ended(void)
{
	bool ended;

	if (QUIESCE_MUTANT(helper_stop_trusts_state))
		return !quiesce__helper_running();
	quiesce__lock(&h->lock);
	ended = !h->nr && !h->starting;
	quiesce__unlock(&h->lock);
	return ended;
}

bool quiesce__helper_stop(uint64_t deadline)
{
	uint32_t state;

	if (all_ended())
		return true;
	request_stop();
	/* Relaxed: a sleep that begins too late is short. */
	while ((state = quiesce_load_relaxed(&h->state)), !all_ended()) {
		if (!quiesce_load_relaxed(&h->stop)) /* Relaxed: read again soon. */
			return false; /* a job needs the thread: leave it running */
		if (deadline && platform_now_ns() >= deadline)
			break;
		platform_futex_wait(&h->state, state, STOP_POLL_NS);
	}
	return true;
}

/* ---- fork ---- */

bool quiesce__helper_paused(void)
{
	for (uint32_t i = 0; i <= QUIESCE_NR_RUNNERS; i++)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		if (quiesce_load_acquire(FK1, &h->runner[i].in_gate))
			return false;
	return true;
}

void quiesce__helper_fork_prepare(void)
{
	quiesce__lock(&h->lock);
}

void quiesce__helper_fork_parent(void)
{
	quiesce__unlock(&h->lock);
}

void quiesce__helper_fork_child(void)
{
	struct quiesce__runner *mine = NULL;

	quiesce__lock_reset(&h->lock, false);
	quiesce__jobs_fork_child();
	/* quiesce__jobs_fork_child() has emptied the entries of all threads but the one that forked, so an entry in use is that
	 * thread's. */
	for (uint32_t i = 0; i < QUIESCE_NR_RUNNERS && !mine; i++)
		mine = h->runner[i].by ? &h->runner[i] : NULL;
	/* A thread that forks in a step continues the step, then dispatches. */
	h->dispatcher = mine;
	h->watcher = NULL;
	h->nr = mine != NULL;
	h->state = mine ? QUIESCE_HELPER_RUNNING : QUIESCE_HELPER_NONE;
	h->asleep = h->wake_wanted = h->starting = 0;
}
