/* SPDX-License-Identifier: MIT */
/* jobs.c - the list of jobs that are due, and one step of a job.
 *
 * I1. A job is listed, or in a step, or both, or neither.  A caller that starts it during a step lists it
 *     again, so no start is lost.  It stays listed while no thread can be created.
 * I2. Steps of one job are taken one at a time; steps of several jobs may be taken concurrently.
 * I3. Everything here is under the lock, except the steps.
 * I4. A child that was forked without handlers may inherit lists and jobs in the middle of a change: all
 *     stores before some point, in program order.  A job in a list is listed, whatever its flag says; a job
 *     in no list is @moving, or the job of a runner.
 * I5. The lock is held for a few instructions, except for a walk of the jobs that are not due yet, of which
 *     there is one for all jobs that come due in the same GRAIN_NS.
 */
#include "jobs.h"

#include "gate.h"
#include "run.h"

#define GRAIN_NS 262144u /* granularity of due times; a power of two */

static struct quiesce__helper *const h = &quiesce__helper;

/* ---- the list; under the lock ---- */

static void count_listed(uint32_t change)
{
	quiesce_store_relaxed(&h->nr_listed, h->nr_listed + change); /* Relaxed: under the lock; a hint elsewhere. */
}

static void unlist_job(struct quiesce__job *job)
{
	if (!job->listed)
		return;
	job->listed = false;
	quiesce_fence_compiler(); /* I4 */
	*job->at = job->next;
	if (job->next)
		job->next->at = job->at;
	else if (h->ready_end == &job->next)
		h->ready_end = job->at;
	count_listed((uint32_t)-1);
	quiesce_fence_compiler(); /* I4 */
}

/* Insert @job at @at, the end of a list or a link in it. */
static void link_job(struct quiesce__job *job, struct quiesce__job **at)
{
	job->next = *at;
	if (job->next)
		job->next->at = &job->next;
	job->at = at;
	quiesce_fence_compiler(); /* I4 */
	*at = job;
	job->listed = true;
	count_listed(1);
}

/* List @job for @due, 0: now.  A job that is ready already keeps its place. */
static void list_job(struct quiesce__job *job, uint64_t due)
{
	if (job->listed && !job->due)
		return;
	h->moving = job;
	quiesce_fence_compiler(); /* I4 */
	unlist_job(job);
	job->due = due;
	if (due) {
		link_job(job, &h->timed);
		if (due < h->next_due)
			h->next_due = due;
	} else {
		link_job(job, h->ready_end);
		h->ready_end = &job->next;
	}
	quiesce_fence_compiler(); /* I4 */
	h->moving = NULL;
}

void quiesce__jobs_make_ready(uint64_t now, bool all)
{
	struct quiesce__job *next;

	h->next_due = PLATFORM_FOREVER;
	for (struct quiesce__job *job = h->timed; job; job = next) {
		next = job->next;
		if (job->due <= now || (all && !job->deferred))
			list_job(job, 0);
		else if (job->due < h->next_due)
			h->next_due = job->due;
	}
}

/* At most one job per thread, in a step, stands before the one that is returned. */
struct quiesce__job *quiesce__jobs_next(void)
{
	struct quiesce__job *job = h->ready;

	while (job && job->in_step && !QUIESCE_MUTANT(helper_step_twice))
		job = job->next;
	return job;
}

bool quiesce__jobs_any_waiting(void)
{
	uint32_t nr = h->nr_listed;

	for (uint32_t i = 0; i <= QUIESCE_NR_RUNNERS; i++)
		nr -= h->runner[i].job && h->runner[i].job->listed;
	return nr != 0;
}

/* ---- a step ---- */

static uint64_t due_after(uint64_t ns)
{
	return ns == QUIESCE_JOB_AT_ONCE ? 0 : ((platform_now_ns() + ns) | (GRAIN_NS - 1)) + 1;
}

static void wake_waiters(void)
{
	if (!h->waiting)
		return;
	h->waiting = 0;
	quiesce_store_relaxed(&h->steps, h->steps + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&h->steps, INT32_MAX);
}

struct step {
	struct quiesce__run run;
	struct quiesce__runner *me;
	struct quiesce__job *job;
	uint64_t ns; /* return value of the step */
};

/* Take the step, without the lock. */
static void take_step(struct quiesce__run *run)
{
	struct step *s = (struct step *)run;

	if (!s->job->own_gate)
		quiesce__gate_enter(&s->me->in_gate);
	s->ns = s->job->step(s->job);
	if (!s->job->own_gate)
		quiesce__gate_leave(&s->me->in_gate);
}

static void end_step(struct step *s)
{
	s->job->in_step = false;
	s->me->job = NULL;
	s->me->callbacks_since = 0;
}

/* A callback has ended the thread: list the job again, for a step in another thread. */
static void step_ended(struct quiesce__run *run)
{
	struct step *s = (struct step *)run;

	if (!s->job->own_gate)
		quiesce__gate_leave(&s->me->in_gate);
	quiesce__lock(&h->lock);
	if (!QUIESCE_MUTANT(helper_ended_unlisted))
		list_job(s->job, 0);
	end_step(s);
	quiesce__helper_wake_locked();
	wake_waiters();
	quiesce__unlock(&h->lock);
}

void quiesce__job_take_step(struct quiesce__runner *me, struct quiesce__job *job)
{
	struct step s = { .me = me, .job = job };
	uint64_t ns;

	me->job = job;
	job->in_step = true;
	quiesce_fence_compiler(); /* I4 */
	unlist_job(job);
	quiesce__unlock(&h->lock);
	quiesce__run(&s.run, take_step, step_ended);
	quiesce__lock(&h->lock);
	ns = s.ns;
	if (QUIESCE_MUTANT(helper_start_lost))
		unlist_job(job);
	if (ns != QUIESCE_JOB_DONE && ns != PLATFORM_FOREVER && !job->listed) {
		job->optional = (ns & QUIESCE_JOB_OPTIONAL) != 0;
		list_job(job, due_after(ns & ~QUIESCE_JOB_OPTIONAL));
	}
	end_step(&s); /* last: I4 */
	/* A new dispatcher may sleep past this job: it was not listed when that one checked, or is due
	 * earlier. */
	if (job->listed && h->dispatcher != me && !QUIESCE_MUTANT(helper_back_unwoken))
		quiesce__helper_wake_locked();
	wake_waiters();
}

/* Called with the lock held; releases it during the sleep. */
static void wait_for_step(const struct quiesce__job *job)
{
	while (job->in_step) {
		uint32_t steps = h->steps;

		h->waiting = 1;
		quiesce__unlock(&h->lock);
		platform_futex_wait(&h->steps, steps, PLATFORM_FOREVER);
		quiesce__lock(&h->lock);
	}
}

/* ---- callers ---- */

bool quiesce__job_start(struct quiesce__job *job)
{
	bool there;

	quiesce__init();
	quiesce__lock(&h->lock);
	job->optional = false;
	list_job(job, 0);
	there = quiesce__helper_ensure_locked();
	if (!there && QUIESCE_MUTANT(helper_job_dropped))
		unlist_job(job);
	quiesce__helper_wake_locked();
	if (!QUIESCE_MUTANT(helper_start_unwatched))
		quiesce__helper_ensure_watcher();
	quiesce__unlock(&h->lock);
	return there;
}

bool quiesce__job_start_after(struct quiesce__job *job, uint64_t ns)
{
	bool there;

	quiesce__lock(&h->lock);
	/* A thread that is being started may fail to start. */
	there = quiesce__helper_ensure_locked() && h->state == QUIESCE_HELPER_RUNNING;
	if (there && !job->listed)
		list_job(job, platform_now_ns() + ns);
	quiesce__helper_wake_locked();
	quiesce__helper_ensure_watcher();
	quiesce__unlock(&h->lock);
	return there;
}

void quiesce__job_cancel(struct quiesce__job *job)
{
	quiesce__lock(&h->lock);
	unlist_job(job);
	while (job->in_step) {
		wait_for_step(job);
		unlist_job(job);
	}
	quiesce__unlock(&h->lock);
}

void quiesce__job_await_step(struct quiesce__job *job)
{
	quiesce__lock(&h->lock);
	wait_for_step(job);
	quiesce__unlock(&h->lock);
}

void quiesce__helper_await_step(uint64_t ns)
{
	uint32_t steps;

	quiesce__lock(&h->lock);
	steps = h->steps;
	h->waiting = 1;
	quiesce__unlock(&h->lock);
	platform_futex_wait(&h->steps, steps, ns);
}

uint64_t quiesce__jobs_sum_locked(uint64_t (*of)(struct quiesce__job *job))
{
	struct quiesce__job *const lists[] = { h->ready, h->timed };
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++)
		for (struct quiesce__job *job = lists[i]; job; job = job->next)
			sum += of(job);
	for (uint32_t i = 0; i <= QUIESCE_NR_RUNNERS; i++)
		if (h->runner[i].job && !h->runner[i].job->listed)
			sum += of(h->runner[i].job);
	return sum;
}

uint64_t quiesce__jobs_sum(uint64_t (*of)(struct quiesce__job *job))
{
	uint64_t sum;

	quiesce__lock(&h->lock);
	sum = quiesce__jobs_sum_locked(of);
	quiesce__unlock(&h->lock);
	return sum;
}

/* ---- a caller takes steps ---- */

/* Take one step of each listed job.  A job that is started meanwhile is left to the next caller. */
static void step_all(struct quiesce__run *run)
{
	struct quiesce__runner *me = &h->runner[QUIESCE_NR_RUNNERS];
	struct quiesce__job *job;

	(void)run;
	quiesce__self()->state |= QUIESCE_TLS_HELPER;
	quiesce__lock(&h->lock);
	quiesce__jobs_make_ready(0, true);
	for (uint32_t nr = h->nr_listed; nr && h->state == QUIESCE_HELPER_NONE && (job = quiesce__jobs_next()); nr--)
		quiesce__job_take_step(me, job);
	quiesce__unlock(&h->lock);
	quiesce__self()->state &= ~QUIESCE_TLS_HELPER;
}

static void end_steps(struct quiesce__run *run)
{
	(void)run;
	quiesce__lock(&h->lock);
	quiesce_store_relaxed(&h->runner[QUIESCE_NR_RUNNERS].by, NULL); /* Relaxed: other threads only compare it with themselves. */
	quiesce__unlock(&h->lock);
}

bool quiesce__jobs_need_caller(void)
{
	return !quiesce__helper_running() && quiesce_load_relaxed(&h->nr_listed); /* Relaxed: a hint. */
}

bool quiesce__in_helper_thread(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	/* Relaxed: the thread's own store, or another thread. */
	return (self->state & QUIESCE_TLS_HELPER) && quiesce_load_relaxed(&h->runner[QUIESCE_NR_RUNNERS].by) != self;
}

void quiesce__jobs_take_steps(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__run run = { .func = 0 };
	bool mine;

	quiesce__init();
	/* A caller that has listed a job sees its own count. */
	if (!quiesce__jobs_need_caller() || (self->state & QUIESCE_TLS_CALLBACKS))
		return;
	quiesce__lock(&h->lock);
	mine = h->state == QUIESCE_HELPER_NONE && !h->runner[QUIESCE_NR_RUNNERS].by;
	if (mine)
		quiesce_store_relaxed(&h->runner[QUIESCE_NR_RUNNERS].by, self); /* Relaxed: the thread itself loads it without the lock. */
	quiesce__unlock(&h->lock);
	if (!mine)
		return;
	quiesce__run(&run, step_all, end_steps);
	end_steps(&run);
}

/* ---- in a forked child ---- */

/* Restore the links and flags of a list that a thread of the parent may have been changing; returns its end. */
static struct quiesce__job **relink(struct quiesce__job **at)
{
	for (; *at; at = &(*at)->next) {
		(*at)->at = at;
		(*at)->listed = true;
		count_listed(1);
	}
	return at;
}

/* I4: rebuild the lists in a child that was forked without handlers. */
static void relink_all(void)
{
	h->nr_listed = 0;
	h->ready_end = relink(&h->ready);
	relink(&h->timed);
	h->next_due = 0; /* the dispatcher scans them all */
	if (h->moving)
		list_job(h->moving, 0);
}

/* A step in progress in a thread that the child does not have is taken again. */
void quiesce__jobs_fork_child(void)
{
	h->waiting = 0;
	relink_all();
	for (uint32_t i = 0; i <= QUIESCE_NR_RUNNERS; i++) {
		struct quiesce__runner *runner = &h->runner[i];
		struct quiesce__job *job = runner->job;

		runner->in_gate = 0;
		if (runner->by && runner->by == quiesce__fork_survivor)
			continue;
		*runner = (struct quiesce__runner){ .callbacks_since = QUIESCE_MUTANT(helper_child_blocked) ? runner->callbacks_since : 0 };
		if (!job)
			continue;
		job->in_step = false;
		list_job(job, 0);
	}
}

void quiesce__job_forget(struct quiesce__job *job)
{
	unlist_job(job);
}
