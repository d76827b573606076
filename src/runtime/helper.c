/* SPDX-License-Identifier: MIT */
/* helper.c - the helper: a thread that takes steps of jobs, and others while a callback blocks.
 *
 *   leads:    take the next job's step; sleep while there is none
 *   watches:  sleep; lead instead of who leads, if that has been running callbacks for FORCE_NORMAL_NS
 *   neither:  in a step that blocks; when it is over: watch, or end
 *
 * I1. One leads, or no thread is there, or the first is being started.  It alone takes jobs, and sleeps on @asleep, which it
 *     sets, and whoever lists a job clears, under the lock.
 *     Only quiesce__helper_wake() does it without, because it may run in a signal handler.
 * I2. If who leads runs callbacks of the program's, and a job waits, then somebody watches, or is coming to, or as many
 *     threads are there as may be, or none can be had.  Three see to that: who begins to run callbacks, who lists a job, and
 *     whoever comes back from a step that was left alone.
 * I3. Nobody waits for a thread that another one starts: jobs are listed before, and the thread looks at the list first.
 * I4. Who leads ends as the last of them, and only while nobody is coming.
 * I5. If a callback ends the leader's thread, the watcher leads, or else a new thread, if anything is listed.
 *
 * HL1  asleep set, then wake_wanted read | wake_wanted set, then asleep taken
 */
#include "jobs.h"
#include "later.h"
#include "gate.h"
#include "thread.h"

#define STOP_STEP_NS 1000000u
#define FORCE_NORMAL_NS 10000000u
#if defined(QUIESCE_SIM)
#define WATCH_NS (2 * FORCE_NORMAL_NS)
#else
#define WATCH_NS (100ull * FORCE_NORMAL_NS) /* so long it watches although there is no need to */
#endif

struct quiesce__helper quiesce__helper = { .ready_end = &quiesce__helper.ready, .next_due = PLATFORM_FOREVER };
static struct quiesce__helper *const h = &quiesce__helper;

static void change_started(uint32_t state)
{
	quiesce_store_relaxed(&h->started, state); /* Relaxed: under the lock. */
	platform_futex_wake(&h->started, INT32_MAX);
}

static void set_stop_requested(bool stop)
{
	quiesce_store_relaxed(&h->stop, stop); /* Relaxed: under the lock; who waits for it looks again. */
}

/* Under the lock: who has taken the request to wake, and does not run, would keep the helper asleep. */
void quiesce__helper_wake_locked(void)
{
	if (!quiesce_load_relaxed(&h->asleep)) /* Relaxed: a wake-up too many does no harm. */
		return;
	quiesce_store_relaxed(&h->asleep, 0); /* Relaxed: under the lock. */
	platform_futex_wake(&h->asleep, 1);
}

/* ---- who leads ---- */

/* Holds the lock, and lets go of it meanwhile. */
static void sleep_until(uint64_t due, uint64_t now)
{
	/* HL1: full, pairs with HL1 in quiesce__helper_wake() */
	quiesce_xchg(HL1, &h->asleep, 1u);
	quiesce__unlock(&h->lock);
	if (!quiesce_load_relaxed(&h->wake_wanted) || QUIESCE_MUTANT(helper_sleep_unchecked)) /* Relaxed: HL1. */
		platform_futex_wait(&h->asleep, 1, due == PLATFORM_FOREVER ? due : due - now);
	quiesce__lock(&h->lock);
	quiesce_store_relaxed(&h->asleep, 0); /* Relaxed: as above. */
}

static void take_wake_request(void)
{
	if (!quiesce_load_relaxed(&h->wake_wanted)) /* Relaxed: HL1, or looked at again. */
		return;
	/* HL1: full, pairs with HL1 in quiesce__helper_wake() */
	quiesce_xchg(HL1, &h->wake_wanted, 0u);
	quiesce__jobs_make_ready(0, true);
}

/* Nothing is ready.  What is deferred is always done soon; if something else needs a thread, it is this one. */
static bool may_stop(void)
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
	return !deferred && ((h->nr == 1 && !h->coming) || QUIESCE_MUTANT(helper_stops_first));
}

/* Until another one leads, or, then @me ends, there is nothing to do. */
static bool lead(struct quiesce__runner *me)
{
	while (h->leader == me) {
		struct quiesce__job *job;
		uint64_t now;

		take_wake_request();
		now = platform_now_ns();
		if (now >= h->next_due)
			quiesce__jobs_make_ready(now, false);
		job = quiesce__jobs_next();
		if (job)
			quiesce__job_take_step(me, job);
		else if (may_stop())
			return false;
		else
			sleep_until(h->next_due, now);
	}
	return true;
}

/* ---- who watches ---- */

/* I2. */
static bool watch_needed(void)
{
	return h->leader && h->leader->callbacks_since && quiesce__jobs_any_waiting();
}

static void sleep_as_watcher(void)
{
	uint32_t watch = h->watch;

	quiesce__unlock(&h->lock);
	platform_futex_wait(&h->watch, watch, FORCE_NORMAL_NS);
	quiesce__lock(&h->lock);
}

/* True: @me leads from now on.  False: it is not needed. */
static bool watch(struct quiesce__runner *me)
{
	uint64_t now = platform_now_ns(), until = now + WATCH_NS;

	h->watcher = me;
	for (; h->leader && h->leader != me; now = platform_now_ns()) {
		if (watch_needed()) {
			until = now + WATCH_NS;
			if (now - h->leader->callbacks_since >= FORCE_NORMAL_NS) {
				h->leader = me;
				break;
			}
		} else if (quiesce_load_relaxed(&h->stop) || now >= until) { /* Relaxed: under the lock. */
			break;
		}
		sleep_as_watcher();
	}
	h->watcher = NULL;
	return h->leader == me;
}

/* ---- threads ---- */

static struct quiesce__runner *arrive(const struct quiesce_tls_v1 *self)
{
	h->coming--;
	for (uint32_t i = 0; i < QUIESCE_NR_HELPERS; i++)
		if (!h->runner[i].by) {
			h->runner[i].by = self;
			h->nr++;
			return &h->runner[i];
		}
	return NULL;
}

static bool take_the_lead(struct quiesce__runner *me)
{
	if (!h->leader) {
		h->leader = me;
		change_started(QUIESCE_HELPER_RUNNING);
	}
	return h->leader == me;
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
	if (h->leader != me)
		return;
	h->leader = h->watcher;
	if (h->leader)
		wake_watcher();
	else
		change_started(QUIESCE_HELPER_NONE);
}

/* In this order: lead, watch, end. */
static void serve(struct quiesce__runner *me)
{
	for (;;) {
		if (take_the_lead(me) ? !lead(me) : h->watcher || !watch(me))
			break;
		if (h->leader != me && QUIESCE_MUTANT(helper_back_unwatched))
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
	me = arrive(self);
	if (me)
		serve(me);
	quiesce__helper_wake_locked(); /* I4 */
	quiesce__unlock(&h->lock);
}

static struct quiesce__runner *find_runner(const struct quiesce_tls_v1 *self)
{
	for (uint32_t i = 0; i < QUIESCE_NR_HELPERS; i++)
		if (h->runner[i].by == self)
			return &h->runner[i];
	return NULL;
}

/* I5. */
static void helper_over(void)
{
	struct quiesce__runner *me;

	quiesce__lock(&h->lock);
	me = find_runner(quiesce__self());
	if (me && !QUIESCE_MUTANT(helper_ended_leads)) {
		leave(me);
		if (h->nr_listed)
			quiesce__helper_ensure_locked();
		quiesce__helper_wake_locked();
		quiesce__helper_ensure_watcher();
	}
	quiesce__unlock(&h->lock);
}

/* Holds the lock, and lets go of it meanwhile. */
static bool start_thread(void)
{
	bool started;

	h->coming++;
	quiesce__unlock(&h->lock);
	started = quiesce__thread_start(QUIESCE_THREAD_HELPER, helper_main, helper_over);
	quiesce__lock(&h->lock);
	if (started)
		return true;
	h->coming--;
	quiesce__helper_wake_locked(); /* I4 */
	return false;
}

/* The same.  True: there is a thread, or somebody starts one. */
static bool start_first(void)
{
	while (h->started == QUIESCE_HELPER_NONE) {
		bool started;

		set_stop_requested(false);
		h->starter = quiesce__self();
		change_started(QUIESCE_HELPER_STARTING);
		started = start_thread();
		/* Else it has come, and gone perhaps. */
		if (h->started == QUIESCE_HELPER_STARTING && h->starter == quiesce__self())
			change_started(started ? QUIESCE_HELPER_RUNNING : QUIESCE_HELPER_NONE);
		if (!started)
			break;
	}
	return h->started != QUIESCE_HELPER_NONE;
}

bool quiesce__helper_ensure_locked(void)
{
	set_stop_requested(false);
	return h->started != QUIESCE_HELPER_NONE || (quiesce__thread_may_start(QUIESCE_THREAD_HELPER) && start_first());
}

void quiesce__helper_ensure_watcher(void)
{
	if (!watch_needed() || h->watcher || h->coming || h->nr == QUIESCE_NR_HELPERS)
		return;
	if (quiesce__thread_may_start(QUIESCE_THREAD_HELPER))
		start_thread();
}

void quiesce__helper_runs_callbacks(void)
{
	if (!quiesce__in_helper())
		return;
	quiesce__lock(&h->lock);
	if (h->leader && h->leader->by == quiesce__self()) {
		h->leader->callbacks_since = platform_now_ns();
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
	return quiesce_load_relaxed(&h->started) != QUIESCE_HELPER_NONE; /* Relaxed: a hint; who lists a job looks under the lock. */
}

bool quiesce__helper_ensure(void)
{
	bool there;

	quiesce__fork_check();
	if (quiesce__helper_running())
		return true;
	if (!quiesce__thread_may_start(QUIESCE_THREAD_HELPER))
		return false;
	quiesce__lock(&h->lock);
	there = start_first();
	quiesce__unlock(&h->lock);
	return there;
}

static void ask_to_stop(void)
{
	quiesce__lock(&h->lock);
	set_stop_requested(true);
	quiesce__jobs_make_ready(0, true); /* what can be over soon, shall be */
	quiesce__helper_wake_locked();
	wake_watcher();
	quiesce__unlock(&h->lock);
}

bool quiesce__helper_stop(uint64_t deadline)
{
	uint32_t state;

	if (!quiesce__helper_running())
		return true;
	ask_to_stop();
	/* Relaxed: looked at again. */
	while ((state = quiesce_load_relaxed(&h->started)) != QUIESCE_HELPER_NONE) {
		if (!quiesce_load_relaxed(&h->stop)) /* Relaxed: read again soon. */
			return false; /* somebody needs the thread: leave it to them */
		if (deadline && platform_now_ns() >= deadline)
			break;
		platform_futex_wait(&h->started, state, STOP_STEP_NS);
	}
	return true;
}

/* ---- fork ---- */

bool quiesce__helper_paused(void)
{
	for (uint32_t i = 0; i <= QUIESCE_NR_HELPERS; i++)
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
	for (uint32_t i = 0; i < QUIESCE_NR_HELPERS && !mine; i++)
		mine = h->runner[i].by ? &h->runner[i] : NULL;
	/* Who forks in a step goes on with it; then it leads. */
	h->leader = mine;
	h->watcher = NULL;
	h->nr = mine != NULL;
	h->started = mine ? QUIESCE_HELPER_RUNNING : QUIESCE_HELPER_NONE;
	h->asleep = h->wake_wanted = h->coming = 0;
}
