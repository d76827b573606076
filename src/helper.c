/* SPDX-License-Identifier: MIT */
/* helper.c - the helper thread: jobs that are due, one step at a time.
 *
 * I1. A job is listed, or being stepped, or neither; whoever starts it while it is being stepped
 *     lists it again, so no start is lost.  It stays listed while no thread can be had.
 * I2. Everything here is under the lock, except the steps.  The helper sleeps only on @asleep, which it
 *     sets, and whoever lists a job clears, under the lock.
 *     Only quiesce__helper_poke() does it without, because it may run in a signal handler.
 * I3. A head of quiesce__later() is in a list, or has been called, or is being called.
 * I4. One takes steps at a time: the thread, or, where there is none, a caller (@stepper), until whose step is
 *     over a thread that has been started meanwhile sleeps.
 * I5. Nobody waits for a thread that another one starts: jobs are listed before, and the thread looks at the list first.
 * I6. The lock is held for a few steps of the machine, except for a walk of the jobs whose time has not come, which
 *     is made once for all that come due in the same GRAIN_NS.
 *
 * HL1  asleep set, then poked read | poked set, then asleep taken
 */
#include "helper.h"

#include "reclaim.h"
#include "thread.h"

#define LATER_NS 5000000u /* a round: heads wait one to two of them */
#define STOP_STEP_NS 1000000u
#define GRAIN_NS 262144u /* jobs come due in multiples of it; a power of two */

enum { NONE, STARTING, RUNNING }; /* a thread */

static uint64_t later_step(struct quiesce__job *job);

static struct {
	struct quiesce__lock lock;
	uint32_t asleep;  /* 1: the helper sleeps, or is about to */
	uint32_t poked;   /* 1: take a step of every job */
	const void *starter; /* the thread that is STARTING the helper */
	uint32_t stop;    /* a wish; whoever lists a job takes it back */
	uint32_t in_step; /* for the fork gate */
	uint32_t steps;   /* counts steps that are over, while somebody waits for one */
	uint32_t waiting; /* for that */
	uint32_t nr_listed;
	struct quiesce__job *ready, **ready_end; /* to be taken, the first one first; their @due is 0 */
	struct quiesce__job *timed; /* the others, in no order */
	uint64_t next_due;          /* of those, or earlier */
	struct quiesce__job *current;
	const struct quiesce_tls_v1 *stepper; /* I4; NULL: no caller */
	struct rcu_head *fresh, *aging, *calling;
	struct quiesce__job later;
	/* Callers look at these all the time; they change only when a thread comes, goes, or cannot be had. */
	uint32_t started __attribute__((aligned(QUIESCE_CACHELINE))); /* NONE, STARTING, RUNNING */
} helper = { .ready_end = &helper.ready, .next_due = PLATFORM_FOREVER, .later = { .step = later_step } };

/* ---- the list; under the lock ---- */

static void count_listed(uint32_t change)
{
	quiesce_store_relaxed(&helper.nr_listed, helper.nr_listed + change); /* Relaxed: under the lock; a hint elsewhere. */
}

static void unlist_job(struct quiesce__job *job)
{
	if (!job->listed)
		return;
	*job->at = job->next;
	if (job->next)
		job->next->at = job->at;
	else if (helper.ready_end == &job->next)
		helper.ready_end = job->at;
	job->listed = false;
	count_listed((uint32_t)-1);
}

/* @at: the end of a list, or a place in one. */
static void link_job(struct quiesce__job *job, struct quiesce__job **at)
{
	job->next = *at;
	if (job->next)
		job->next->at = &job->next;
	job->at = at;
	*at = job;
	job->listed = true;
	count_listed(1);
}

/* @due: 0 now; a job that has its turn already keeps it. */
static void list_job(struct quiesce__job *job, uint64_t due)
{
	if (job->listed && !job->due)
		return;
	unlist_job(job);
	job->due = due;
	if (due) {
		link_job(job, &helper.timed);
		if (due < helper.next_due)
			helper.next_due = due;
		return;
	}
	link_job(job, helper.ready_end);
	helper.ready_end = &job->next;
}

/* Those whose time has come, and all if @all but what is to be called later. */
static void make_ready(uint64_t now, bool all)
{
	struct quiesce__job *next;

	helper.next_due = PLATFORM_FOREVER;
	for (struct quiesce__job *job = helper.timed; job; job = next) {
		next = job->next;
		if (job->due <= now || (all && job != &helper.later))
			list_job(job, 0);
		else if (job->due < helper.next_due)
			helper.next_due = job->due;
	}
}

/* ---- the thread ---- */

static uint64_t due_after(uint64_t ns)
{
	return ns == QUIESCE_JOB_AT_ONCE ? 0 : ((platform_now_ns() + ns) | (GRAIN_NS - 1)) + 1;
}

/* Holds the lock, and lets go of it meanwhile. */
static void take_step(struct quiesce__job *job)
{
	uint64_t ns;

	unlist_job(job);
	helper.current = job;
	quiesce__unlock(&helper.lock);
	if (!job->own_gate)
		quiesce__gate_enter(&helper.in_step);
	ns = job->step(job);
	if (!job->own_gate)
		quiesce__gate_leave(&helper.in_step);
	quiesce__lock(&helper.lock);
	helper.current = NULL;
	if (QUIESCE_MUTANT(helper_start_lost))
		unlist_job(job);
	if (ns != QUIESCE_JOB_DONE && ns != PLATFORM_FOREVER && !job->listed) {
		job->optional = (ns & QUIESCE_JOB_OPTIONAL) != 0;
		list_job(job, due_after(ns & ~QUIESCE_JOB_OPTIONAL));
	}
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
	make_ready(0, true);
}

static void wish_to_stop(bool stop)
{
	quiesce_store_relaxed(&helper.stop, stop); /* Relaxed: under the lock; who waits for it looks again. */
}

/* Nothing is ready.  What is called later is always over soon; if something else needs a thread, it is this one. */
static bool may_stop(void)
{
	if (!quiesce_load_relaxed(&helper.stop)) /* Relaxed: under the lock. */
		return false;
	for (struct quiesce__job *job = helper.timed; job; job = job->next)
		if (!job->optional && job != &helper.later) {
			wish_to_stop(false);
			return false;
		}
	return !helper.later.listed;
}

static void helper_main(void *unused)
{
	(void)unused;
	quiesce__self()->state |= QUIESCE_TLS_HELPER;
	quiesce__lock(&helper.lock);
	for (;;) {
		uint64_t now;

		look_if_poked();
		now = platform_now_ns();
		if (now >= helper.next_due)
			make_ready(now, false);
		if (helper.stepper && !QUIESCE_MUTANT(helper_two_steppers))
			sleep_until(PLATFORM_FOREVER, now);
		else if (helper.ready)
			take_step(helper.ready);
		else if (may_stop())
			break;
		else
			sleep_until(helper.next_due, now);
	}
	change_started(NONE);
	quiesce__unlock(&helper.lock);
}

/* Holds the lock, and lets go of it meanwhile.  True: there is a thread, or somebody starts one. */
static bool start_thread(void)
{
	while (helper.started == NONE) {
		bool failed;

		wish_to_stop(false);
		helper.starter = quiesce__self();
		change_started(STARTING);
		quiesce__unlock(&helper.lock);
		failed = !quiesce__thread_start(QUIESCE_THREAD_HELPER, helper_main);
		quiesce__lock(&helper.lock);
		if (helper.started == STARTING && helper.starter == quiesce__self()) /* else it has come and gone */
			change_started(failed ? NONE : RUNNING);
		if (failed)
			break;
	}
	return helper.started != NONE;
}

/* The same, unless the last start has failed a short while ago. */
static bool ensure_thread(void)
{
	wish_to_stop(false);
	return helper.started != NONE || (quiesce__thread_may_start(QUIESCE_THREAD_HELPER) && start_thread());
}

/* Under the lock: who has taken the request to wake, and does not run, would keep the helper asleep. */
static void rouse(void)
{
	if (!quiesce_load_relaxed(&helper.asleep)) /* Relaxed: a wake-up too many does no harm. */
		return;
	quiesce_store_relaxed(&helper.asleep, 0); /* Relaxed: under the lock. */
	platform_futex_wake(&helper.asleep, 1);
}

bool quiesce__job_start(struct quiesce__job *job)
{
	bool there;

	quiesce__fork_check();
	quiesce__lock(&helper.lock);
	job->optional = false;
	list_job(job, 0);
	there = ensure_thread();
	if (!there && QUIESCE_MUTANT(helper_job_dropped))
		unlist_job(job);
	rouse();
	quiesce__unlock(&helper.lock);
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
	return quiesce_load_relaxed(&helper.started) != NONE; /* Relaxed: a hint; who lists a job looks under the lock. */
}

bool quiesce__helper_ensure(void)
{
	bool there;

	quiesce__fork_check();
	if (quiesce__helper_running())
		return true;
	if (!quiesce__thread_may_start(QUIESCE_THREAD_HELPER))
		return false;
	quiesce__lock(&helper.lock);
	there = start_thread();
	quiesce__unlock(&helper.lock);
	return there;
}

/* Holds the lock, and lets go of it meanwhile.  What is started meanwhile is left to the next one. */
static void step_all(struct quiesce_tls_v1 *self)
{
	helper.stepper = self;
	self->state |= QUIESCE_TLS_HELPER;
	make_ready(0, true);
	for (uint32_t nr = helper.nr_listed; nr && helper.ready && helper.started == NONE; nr--)
		take_step(helper.ready);
	self->state &= ~QUIESCE_TLS_HELPER;
	helper.stepper = NULL;
}

bool quiesce__jobs_need_caller(void)
{
	return !quiesce__helper_running() && quiesce_load_relaxed(&helper.nr_listed); /* Relaxed: a hint. */
}

void quiesce__jobs_take_steps(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__fork_check();
	/* Who has listed a job sees it. */
	if (!quiesce__jobs_need_caller() || (self->state & QUIESCE_TLS_CALLBACKS))
		return;
	quiesce__lock(&helper.lock);
	if (helper.started == NONE && !helper.stepper)
		step_all(self);
	rouse(); /* a thread that has come waits for us */
	quiesce__unlock(&helper.lock);
}

uint64_t quiesce__jobs_sum_locked(uint64_t (*of)(struct quiesce__job *job))
{
	struct quiesce__job *const lists[] = { helper.ready, helper.timed };
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++)
		for (struct quiesce__job *job = lists[i]; job; job = job->next)
			sum += of(job);
	return sum + (helper.current && !helper.current->listed ? of(helper.current) : 0);
}

uint64_t quiesce__jobs_sum(uint64_t (*of)(struct quiesce__job *job))
{
	uint64_t sum;

	quiesce__lock(&helper.lock);
	sum = quiesce__jobs_sum_locked(of);
	quiesce__unlock(&helper.lock);
	return sum;
}

static void ask_to_stop(void)
{

	quiesce__lock(&helper.lock);
	wish_to_stop(true);
	make_ready(0, true); /* what can be over soon, shall be */
	rouse();
	quiesce__unlock(&helper.lock);
}

/* If the wish is taken back somebody needs the thread: leave it to them. */
void quiesce__helper_stop(uint64_t deadline)
{
	uint32_t state;

	if (!quiesce__helper_running())
		return;
	ask_to_stop();
	/* Relaxed: looked at again. */
	while ((state = quiesce_load_relaxed(&helper.started)) != NONE && quiesce_load_relaxed(&helper.stop) &&
	       (!deadline || platform_now_ns() < deadline))
		platform_futex_wait(&helper.started, state, STOP_STEP_NS);
}

void quiesce__helper_await_step(uint64_t ns)
{
	uint32_t steps;

	quiesce__lock(&helper.lock);
	steps = helper.steps;
	helper.waiting = 1;
	quiesce__unlock(&helper.lock);
	platform_futex_wait(&helper.steps, steps, ns);
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
	bool there;

	quiesce__init();
	quiesce__fork_check();
	head->func = func;
	quiesce__lock(&helper.lock);
	there = ensure_thread() && helper.started == RUNNING; /* else it may fail to start */
	if (there) {
		head->next = helper.fresh;
		helper.fresh = head;
		if (!helper.later.listed)
			list_job(&helper.later, platform_now_ns() + LATER_NS);
	}
	rouse();
	quiesce__unlock(&helper.lock);
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

/* Of a list that somebody may have been about to change: where each job is. */
static struct quiesce__job **relink(struct quiesce__job **at)
{
	for (; *at; at = &(*at)->next)
		(*at)->at = at;
	return at;
}

/* A step that was being taken by a thread that the child does not have is to be taken again. */
void quiesce__helper_fork_child(void)
{
	const struct quiesce_tls_v1 *self = quiesce__self();
	bool stepping = quiesce__in_helper(); /* and goes on with its step */

	quiesce__lock_reset(&helper.lock, false);
	helper.asleep = helper.poked = helper.in_step = helper.waiting = 0;
	if (helper.stepper != self)
		helper.stepper = NULL;
	helper.started = stepping && !helper.stepper ? RUNNING : NONE;
	helper.ready_end = relink(&helper.ready);
	relink(&helper.timed);
	/* Of locks that nobody may use any more in the child, or that are about to be initialised anew. */
	settle_all(&helper.calling);
	settle_all(&helper.aging);
	settle_all(&helper.fresh);
	unlist_job(&helper.later);
	if (stepping)
		return;
	if (helper.current && helper.current != &helper.later)
		list_job(helper.current, 0);
	helper.current = NULL;
}
