/* SPDX-License-Identifier: MIT */
/* helper.c - the helper thread: jobs that are due, one step at a time.
 *
 * I1. A job is listed, or being stepped, or neither; whoever starts it while it is being stepped
 *     lists it again, so no start is lost.
 * I2. Everything here is under the lock, except the steps.  The helper sleeps only on @asleep, which it
 *     sets, and whoever lists a job clears, under the lock.
 *     Only quiesce__helper_poke() does it without, because it may run in a signal handler.
 * I3. A head of quiesce__later() is in a list, or has been called, or is being called.
 *
 * HL1  asleep set, then poked read | poked set, then asleep taken
 */
#include "helper.h"

#include "reclaim.h"

#define LATER_NS 5000000u /* a round: heads wait one to two of them */
#define STOP_STEP_NS 1000000u

enum { NONE, STARTING, RUNNING }; /* a thread */

static uint64_t later_step(struct quiesce__job *job);

static struct {
	struct quiesce__lock lock;
	uint32_t asleep;  /* 1: the helper sleeps, or is about to */
	uint32_t poked;   /* 1: take a step of every job */
	uint32_t started; /* NONE, STARTING, RUNNING */
	const void *starter; /* the thread that is STARTING it */
	uint32_t stop;
	uint32_t in_step; /* for the fork gate */
	uint32_t steps;   /* counts steps that are over, while somebody waits for one */
	uint32_t waiting; /* for that */
	struct quiesce__job *jobs;
	struct quiesce__job *current;
	struct rcu_head *fresh, *aging, *calling;
	struct quiesce__job later;
} helper = { .later = { .step = later_step } };

/* ---- the list; under the lock ---- */

static void list_job(struct quiesce__job *job, uint64_t due)
{
	job->due = due;
	if (job->listed)
		return;
	job->listed = true;
	job->next = helper.jobs;
	helper.jobs = job;
}

static void unlist_job(struct quiesce__job *job)
{
	struct quiesce__job **at = &helper.jobs;

	if (!job->listed)
		return;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->listed = false;
}

static struct quiesce__job *first_due(void)
{
	struct quiesce__job *first = helper.jobs;

	for (struct quiesce__job *job = first; job; job = job->next)
		if (job->due < first->due)
			first = job;
	return first;
}

/* ---- the thread ---- */

/* Holds the lock, and lets go of it meanwhile. */
static void take_step(struct quiesce__job *job)
{
	uint64_t ns;

	unlist_job(job);
	helper.current = job;
	quiesce__unlock(&helper.lock);
	quiesce__gate_enter(&helper.in_step);
	ns = job->step(job);
	quiesce__gate_leave(&helper.in_step);
	quiesce__lock(&helper.lock);
	helper.current = NULL;
	if (QUIESCE_MUTANT(helper_start_lost))
		unlist_job(job);
	if (ns != QUIESCE_JOB_DONE && ns != PLATFORM_FOREVER && !job->listed)
		list_job(job, platform_now_ns() + ns);
	if (!helper.waiting)
		return;
	helper.waiting = 0;
	quiesce_store_relaxed(&helper.steps, helper.steps + 1); /* Relaxed: under the lock. */
	platform_futex_wake(&helper.steps, INT32_MAX);
}

/* Holds the lock, and lets go of it meanwhile. */
static void sleep_until(uint64_t due, uint64_t now)
{
	/* HL1: full, pairs with HL1 in quiesce__helper_poke() */
	quiesce_xchg(HL1, &helper.asleep, 1u);
	quiesce__unlock(&helper.lock);
	if (!quiesce_load_relaxed(&helper.poked) || QUIESCE_MUTANT(helper_sleep_unchecked)) /* Relaxed: HL1. */
		platform_futex_wait(&helper.asleep, 1, due == PLATFORM_FOREVER ? due : due - now);
	quiesce__lock(&helper.lock);
	quiesce_store_relaxed(&helper.asleep, 0); /* Relaxed: as above. */
}

static void change_started(uint32_t state)
{
	quiesce_store_relaxed(&helper.started, state); /* Relaxed: under the lock. */
	platform_futex_wake(&helper.started, INT32_MAX);
}

static void look_if_poked(void)
{
	if (!quiesce_load_relaxed(&helper.poked)) /* Relaxed: HL1, or looked at again. */
		return;
	/* HL1: full, pairs with HL1 in quiesce__helper_poke() */
	quiesce_xchg(HL1, &helper.poked, 0u);
	for (struct quiesce__job *job = helper.jobs; job; job = job->next)
		if (job != &helper.later)
			job->due = 0;
}

static void helper_main(void *unused)
{
	(void)unused;
	quiesce__self()->state |= QUIESCE_TLS_HELPER;
	quiesce__lock(&helper.lock);
	for (;;) {
		struct quiesce__job *job;
		uint64_t now;

		look_if_poked();
		job = first_due();
		now = platform_now_ns();
		if (job && job->due <= now)
			take_step(job);
		else if (!job && helper.stop)
			break;
		else
			sleep_until(job ? job->due : PLATFORM_FOREVER, now);
	}
	change_started(NONE);
	quiesce__unlock(&helper.lock);
}

/* Holds the lock, and lets go of it meanwhile.  True: there is a thread, and it stays while the lock is held. */
static bool ensure_thread(void)
{
	bool failed = false;

	for (;;) {
		helper.stop = 0;
		if (helper.started == RUNNING || failed)
			return helper.started == RUNNING;
		if (helper.started == STARTING) {
			quiesce__unlock(&helper.lock);
			platform_futex_wait(&helper.started, STARTING, PLATFORM_FOREVER);
			quiesce__lock(&helper.lock);
			continue;
		}
		helper.starter = quiesce__self();
		change_started(STARTING);
		quiesce__unlock(&helper.lock);
		failed = platform_thread_start(helper_main, NULL, "quiesce-helper", -1) != 0;
		quiesce__lock(&helper.lock);
		if (helper.started == STARTING && helper.starter == quiesce__self()) /* else it has come and gone */
			change_started(failed ? NONE : RUNNING);
	}
}

static bool rouse(void)
{
	bool asleep = quiesce_load_relaxed(&helper.asleep) != 0; /* Relaxed: a wake-up too many does no harm. */

	quiesce_store_relaxed(&helper.asleep, 0); /* Relaxed: under the lock. */
	return asleep;
}

bool quiesce__job_start(struct quiesce__job *job)
{
	bool there, asleep;

	quiesce__fork_check();
	quiesce__lock(&helper.lock);
	list_job(job, 0);
	there = ensure_thread();
	if (!there)
		unlist_job(job);
	asleep = rouse();
	quiesce__unlock(&helper.lock);
	if (asleep)
		platform_futex_wake(&helper.asleep, 1);
	return there;
}

/* If a step of @job is being taken, until it is over.  Holds the lock, and lets go of it meanwhile. */
static void wait_for_step(const struct quiesce__job *job)
{
	while (helper.current == job) {
		uint32_t steps = helper.steps;

		helper.waiting = 1;
		quiesce__unlock(&helper.lock);
		platform_futex_wait(&helper.steps, steps, PLATFORM_FOREVER);
		quiesce__lock(&helper.lock);
	}
}

void quiesce__job_cancel(struct quiesce__job *job)
{
	quiesce__lock(&helper.lock);
	unlist_job(job);
	while (helper.current == job) {
		wait_for_step(job);
		unlist_job(job);
	}
	quiesce__unlock(&helper.lock);
}

void quiesce__helper_poke(void)
{
	/* HL1: full, pairs with HL1 in look_if_poked() */
	quiesce_xchg(HL1, &helper.poked, 1u);
	/* HL1: full, pairs with HL1 in sleep_until() */
	if (quiesce_xchg(HL1, &helper.asleep, 0u))
		platform_futex_wake(&helper.asleep, 1);
}

bool quiesce__in_helper(void)
{
	return (quiesce__self()->state & QUIESCE_TLS_HELPER) != 0;
}

bool quiesce__helper_running(void)
{
	return quiesce_load_relaxed(&helper.started) != 0; /* Relaxed: a statistic. */
}

static void ask_to_stop(void)
{
	bool asleep;

	quiesce__lock(&helper.lock);
	helper.stop = 1;
	asleep = rouse();
	quiesce__unlock(&helper.lock);
	if (asleep)
		platform_futex_wake(&helper.asleep, 1);
}

/* Asked again and again: whoever needs the thread meanwhile takes the wish back. */
void quiesce__helper_stop(uint64_t deadline)
{
	while (quiesce__helper_running() && (!deadline || platform_now_ns() < deadline)) {
		ask_to_stop();
		platform_futex_wait(&helper.started, RUNNING, STOP_STEP_NS);
	}
}

/* ---- later ---- */

static struct rcu_head *pop(struct rcu_head **list)
{
	struct rcu_head *head;

	quiesce__lock(&helper.lock);
	head = *list;
	if (head)
		*list = head->next;
	quiesce__unlock(&helper.lock);
	return head;
}

static void call_all(struct rcu_head **list)
{
	struct rcu_head *head;

	while ((head = pop(list)))
		head->func(head);
}

static uint64_t later_step(struct quiesce__job *job)
{
	uint64_t ns;

	(void)job;
	call_all(&helper.calling); /* what a fork() left over */
	quiesce__lock(&helper.lock);
	helper.calling = helper.aging;
	helper.aging = helper.fresh;
	helper.fresh = NULL;
	quiesce__unlock(&helper.lock);
	call_all(&helper.calling);
	quiesce__lock(&helper.lock);
	ns = helper.aging || helper.fresh ? LATER_NS : QUIESCE_JOB_DONE;
	quiesce__unlock(&helper.lock);
	return ns;
}

void quiesce__later(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	bool there, asleep;

	quiesce__init();
	quiesce__fork_check();
	head->func = func;
	quiesce__lock(&helper.lock);
	there = ensure_thread();
	if (there) {
		head->next = helper.fresh;
		helper.fresh = head;
		if (!helper.later.listed)
			list_job(&helper.later, platform_now_ns() + LATER_NS);
	}
	asleep = rouse();
	quiesce__unlock(&helper.lock);
	if (asleep)
		platform_futex_wake(&helper.asleep, 1);
	if (!there)
		func(head);
}

/* Under the lock. */
static bool remove_head(struct rcu_head **list, const struct rcu_head *head)
{
	while (*list && *list != head)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = head->next;
	return true;
}

void quiesce__later_now(struct rcu_head *head)
{
	bool ours;

	quiesce__fork_check();
	quiesce__lock(&helper.lock);
	ours = remove_head(&helper.fresh, head) || remove_head(&helper.aging, head) || remove_head(&helper.calling, head);
	if (!ours && !QUIESCE_MUTANT(later_now_no_wait))
		wait_for_step(&helper.later);
	quiesce__unlock(&helper.lock);
	if (ours)
		head->func(head);
}

/* ---- fork ---- */

bool quiesce__helper_paused(void)
{
	/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
	return !quiesce_load_acquire(FK1, &helper.in_step);
}

void quiesce__helper_fork_prepare(void)
{
	quiesce__lock(&helper.lock);
}

void quiesce__helper_fork_parent(void)
{
	quiesce__unlock(&helper.lock);
}

static void settle_all(struct rcu_head **list)
{
	while (*list) {
		struct rcu_head *head = *list;

		*list = head->next;
		quiesce__later_fork_child(head);
	}
}

/* A step that was being taken by a thread that the child does not have is to be taken again. */
void quiesce__helper_fork_child(void)
{
	quiesce__lock_reset(&helper.lock);
	helper.asleep = helper.poked = helper.in_step = helper.waiting = 0;
	helper.started = quiesce__in_helper() ? RUNNING : NONE;
	/* Of locks that nobody may use any more in the child, or that are about to be initialised anew. */
	settle_all(&helper.calling);
	settle_all(&helper.aging);
	settle_all(&helper.fresh);
	unlist_job(&helper.later);
	if (helper.started)
		return; /* and goes on with its step */
	if (helper.current && helper.current != &helper.later)
		list_job(helper.current, 0);
	helper.current = NULL;
}
