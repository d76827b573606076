/* SPDX-License-Identifier: MIT */
/* rwsem_rcu_sync_helper.c - scenarios: the helper thread, its jobs, and delayed calls. */
#include "rwsem_world.h"

#include "runtime/delayed_call.h"
#include "runtime/helper.h"

#include <quiesce/shazptr.h>

#define NR_JOBS 2

struct work {
	struct quiesce__job job;
	uint64_t wanted;    /* pieces of work that are to be done */
	uint64_t done;      /* pieces of work that steps have done */
	uint32_t in_step;
	uint32_t flag;      /* the job waits for this */
	uint32_t over;      /* the job has seen the flag */
	uint32_t cancelled;
};

static struct work *work[NR_JOBS];
static int nr_steps;

/* A step does all requested work; only one thread at a time may take a step. */
static void do_all(struct work *w)
{
	if (w->in_step++)
		sim_fail("two threads take a step of one job");
	sim_assert(!w->cancelled);
	nr_steps++;
	quiesce_store_relaxed(&w->done, quiesce_load_relaxed(&w->wanted));
	sim_point("in a step");
	w->in_step--;
}

static uint64_t take_all(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	do_all(w);
	return sim_random(2) ? QUIESCE_JOB_DONE : PLATFORM_FOREVER;
}

/* The step waits as waiters for readers do: it asks to be called again after some time, or when it is woken. */
static uint64_t find_flag(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	sim_assert(quiesce__in_helper());
	nr_steps++;
	if (!quiesce_load_acquire(RU3, &w->flag))
		return 8000000;
	world_set(&w->over, 1);
	return QUIESCE_JOB_DONE;
}

static void begin(uint64_t (*step)(struct quiesce__job *job), int start_failures)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = start_failures;
	for (int i = 0; i < NR_JOBS; i++) {
		work[i] = world_page();
		work[i]->job.step = step;
	}
}

/* ---- a start is never lost ---- */

static void starts(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct work *w = work[sim_random(NR_JOBS)];

		quiesce_fetch_add(RU3, &w->wanted, (uint64_t)1);
		quiesce__job_start(&w->job);
		world_stay(10);
	}
}

static void setup_jobs(void)
{
	begin(take_all, 0);
	world_no_idling();
	spawn_each(2, starts, "starter");
}

static void finish_jobs(void)
{
	for (int i = 0; i < NR_JOBS; i++)
		if (work[i]->done != work[i]->wanted)
			sim_fail("%d of %d pieces of work are done", (int)work[i]->done, (int)work[i]->wanted);
	sim_assert(!quiesce__helper_running() || !*(volatile uint32_t *)&work[0]->in_step); /* raw: no step of the machine */
}

/* No thread can be started, or the first starts fail: listed jobs stay listed, and callers that may take steps do so. */
static void starts_or_works(void *mine)
{
	struct work *w = mine;

	for (int i = 0; i < 3; i++) {
		quiesce_fetch_add(RU3, &w->wanted, (uint64_t)1);
		if (!quiesce__job_start(&w->job))
			sim_saw();
		world_stay(10);
		if (sim_random(2))
			quiesce__jobs_take_steps();
	}
	while (quiesce_load_relaxed(&w->done) != quiesce_load_relaxed(&w->wanted)) {
		quiesce__jobs_take_steps(); /* has no effect while another thread takes the steps */
		platform_yield();
	}
}

static void setup_jobs_failing(void)
{
	begin(take_all, sim_random(3) ? 1 + (int)sim_random(3) : -1);
	for (int i = 0; i < NR_JOBS; i++)
		sim_spawn(starts_or_works, work[i], "starter");
}

/* A job that is to run again at once, and one that its own step starts, too, do not prevent the end of a round. */
static uint64_t never_done(struct quiesce__job *job)
{
	sim_assert(quiesce__in_helper());
	nr_steps++;
	quiesce__jobs_take_steps(); /* no step may be taken inside a step */
	if (sim_random(2))
		quiesce__job_start(job);
	return QUIESCE_JOB_AT_ONCE;
}

static void takes_rounds(void *unused)
{
	(void)unused;
	for (int i = 0; i < NR_JOBS; i++)
		sim_assert(!quiesce__job_start(&work[i]->job));
	for (int i = 1; i < 4; i++) {
		quiesce__jobs_take_steps();
		sim_assert(nr_steps == NR_JOBS * i && !quiesce__in_helper());
	}
	for (int i = 0; i < NR_JOBS; i++)
		quiesce__job_cancel(&work[i]->job);
	quiesce__jobs_take_steps();
	sim_assert(nr_steps == NR_JOBS * 3);
}

static void setup_jobs_no_thread(void)
{
	begin(never_done, -1);
	sim_spawn(takes_rounds, NULL, "starter");
}

/* One delayed call keeps the thread alive, and the other does not. */
static uint64_t waits_for_flag(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	nr_steps++;
	if (quiesce_load_acquire(RU3, &w->flag))
		return QUIESCE_JOB_DONE;
	return w == work[0] ? 8000000 | QUIESCE_JOB_OPTIONAL : 8000000;
}

static void stops_beside_jobs(void *unused)
{
	(void)unused;
	quiesce__job_start(&work[0]->job);
	quiesce__helper_stop(0);
	sim_assert(!quiesce__helper_running() && nr_steps);
	quiesce__job_start(&work[1]->job);
	quiesce__helper_stop(0);
	sim_assert(quiesce__helper_running());
	quiesce_store_release(RU3, &work[0]->flag, 1);
	quiesce_store_release(RU3, &work[1]->flag, 1);
	quiesce__helper_stop(0);
	sim_assert(!quiesce__helper_running());
}

static void setup_stopped_listed(void)
{
	begin(waits_for_flag, 0);
	sim_spawn(stops_beside_jobs, NULL, "stops");
}

/* ---- cancelled, and freed ---- */

static void cancels(void *mine)
{
	struct work *w = mine;

	for (uint32_t i = 1 + sim_random(2); i; i--) {
		quiesce__job_start(&w->job);
		world_stay(30);
	}
	quiesce__job_cancel(&w->job);
	w->cancelled = 1;
	world_page_gone(w);
}

static void setup_jobs_cancelled(void)
{
	begin(take_all, 0);
	for (int i = 0; i < NR_JOBS; i++)
		sim_spawn(cancels, work[i], "owner");
}

/* ---- woken ---- */

static uint32_t nr_started;

static void waits(void *mine)
{
	struct work *w = mine;

	quiesce__job_start(&w->job);
	world_add(&nr_started);
	world_await(&w->over, 1);
}

static void wake_helper(struct work *w)
{
	quiesce_store_release(RU3, &w->flag, 1);
	quiesce__helper_wake();
}

static void wakes_helper(void *mine)
{
	world_await(&nr_started, 2);
	world_stay(40);
	wake_helper(mine);
}

static void setup_woken(void)
{
	begin(find_flag, 0);
	world_no_idling();
	for (int i = 0; i < NR_JOBS; i++) {
		sim_spawn(waits, work[i], "waiter");
		sim_spawn(wakes_helper, work[i], "waker");
	}
}

/* A signal handler wakes the helper for jobs, at any place. */
static int nr_woken;

static void poking_handler(void)
{
	if (nr_woken < NR_JOBS)
		wake_helper(work[nr_woken++]);
}

static void interrupted(void *unused)
{
	sim_set_signal(poking_handler, NR_JOBS);
	for (int i = 0; i < NR_JOBS; i++)
		quiesce__job_start(&work[i]->job);
	(void)unused;
	while (nr_woken < NR_JOBS)
		sim_point("until interrupted");
	for (int i = 0; i < NR_JOBS; i++)
		world_await(&work[i]->over, 1);
}

static void setup_woken_by_signal(void)
{
	begin(find_flag, 0);
	world_no_idling();
	sim_spawn(interrupted, NULL, "interrupted");
}

/* ---- later ---- */

#define NR_HEADS 6

struct late {
	struct rcu_head head;
	int called, calling;
};

static struct late late[NR_HEADS];

static void late_func(struct rcu_head *head)
{
	struct late *l = (struct late *)head;

	l->calling++;
	sim_point("called later");
	if (l->called++)
		sim_fail("called twice");
	sim_point("called later");
	l->calling--;
}

static void queues(void *from)
{
	for (intptr_t i = (intptr_t)from; i < (intptr_t)from + 3; i++) {
		struct late *l = &late[i];
		bool soon = sim_random(3) == 0;

		quiesce__delayed_call(&l->head, late_func);
		world_rest();
		if (!soon)
			continue;
		quiesce__delayed_call_now(&l->head);
		if (l->called != 1 || l->calling)
			sim_fail("quiesce__delayed_call_now() returned before its function did");
		world_rest();
	}
}

static void queue_later(int start_failures)
{
	begin(take_all, start_failures);
	world_rests = true;
	sim_spawn(queues, (void *)0, "queues");
	sim_spawn(queues, (void *)3, "queues");
}

static void setup_later(void) { queue_later(0); }
static void setup_later_no_helper(void) { queue_later(-1); }
static void setup_later_failing(void) { queue_later(1 + (int)sim_random(3)); }

/* Delayed calls come together with jobs. */
static void setup_later_jobs(void)
{
	queue_later(0);
	sim_spawn(starts, NULL, "starter");
}

static void finish_later(void)
{
	for (int i = 0; i < NR_HEADS; i++)
		if (late[i].called != 1)
			sim_fail("head %d was called %d times", i, late[i].called);
	finish_jobs();
}

/* ---- the end of the helper, and the start of another ---- */

static void stops(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		world_stay(60);
		quiesce__helper_stop(0);
		sim_saw();
	}
}

static void setup_stopped(void)
{
	begin(take_all, 0);
	spawn_each(2, starts, "starter");
	sim_spawn(stops, NULL, "stops");
}

static void setup_stopped_later(void)
{
	queue_later(0);
	sim_spawn(stops, NULL, "stops");
}

static void setup_stopped_two(void)
{
	begin(take_all, 0);
	sim_spawn(starts, NULL, "starter");
	spawn_each(2, stops, "stops");
}

/* Shut down as programs do. */
static void shuts_down(void *unused)
{
	(void)unused;
	world_stay(100);
	sim_assert(quiesce_shutdown(0) == 0);
}

static void setup_shutdown(void)
{
	world_begin(ANY);
	world_rests = sim_random(2);
	sim_spawn(world_writer, NULL, "writer");
	sim_spawn(world_reader, NULL, "reader");
	sim_spawn(shuts_down, NULL, "shutter");
}

/* When no other thread uses the library any more, no thread of the library is left. */
static uint32_t nr_ended;

static void user(void *body)
{
	((void (*)(void *))(uintptr_t)body)(NULL);
	world_add(&nr_ended);
}

static struct rcu_head retired;

static void run(struct rcu_head *head)
{
	sim_assert(head == &retired);
}

static void uses_all_threads(void *unused)
{
	static char object;

	world_writer(unused);
	call_rcu(&retired, run);
	quiesce_set_skip_self_scan(1);
	synchronize_shazptr(&object);
	world_writer(unused);
}

static void shuts_down_last(void *unused)
{
	(void)unused;
	world_await(&nr_ended, 3);
	if (sim_nr_helpers())
		sim_saw();
	sim_assert(quiesce_shutdown(0) == 0);
	if (sim_nr_helpers())
		sim_fail("%d threads are left", sim_nr_helpers());
}

static void setup_shutdown_last(void)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = 0;
	world_rests = sim_random(2);
	sim_spawn(user, (void *)(uintptr_t)world_writer, "writer");
	sim_spawn(user, (void *)(uintptr_t)uses_all_threads, "all");
	sim_spawn(user, (void *)(uintptr_t)world_reader, "reader");
	sim_spawn(shuts_down_last, NULL, "shutter");
}

#define JOBS(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_jobs }
#define LATER(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_later }

const struct sim_scenario helper_scenarios[] = {
	JOBS(jobs, "helper: jobs are started while they are taken"),
	{ .name = "jobs_failing", .what = "... and the first threads cannot be had", .setup = setup_jobs_failing,
	  .finish = finish_jobs, .must_see = "a start that failed" },
	{ .name = "jobs_no_thread", .what = "... and none can be had", .setup = setup_jobs_no_thread },
	{ .name = "stopped_listed", .what = "the helper is stopped beside jobs that need no thread", .setup = setup_stopped_listed },
	{ .name = "jobs_cancelled", .what = "... and cancelled, and freed", .setup = setup_jobs_cancelled },
	JOBS(woken, "a wake_helper wakes the helper"),
	JOBS(woken_by_signal, "... by a signal handler"),
	LATER(later, "called later, or now"),
	LATER(later_no_helper, "... without a helper"),
	LATER(later_failing, "... and the first threads cannot be had"),
	LATER(later_jobs, "... beside jobs"),
	JOBS(stopped, "the helper is stopped and started"),
	LATER(stopped_later, "... with something to call later"),
	JOBS(stopped_two, "... by two at once"),
	SCENARIO(shutdown, "the library ends while a lock is used"),
	{ .name = "shutdown_last", .what = "... after all else: no thread is left", .setup = setup_shutdown_last, .finish = world_finish,
	  .must_see = "a thread that was there" },
	{ .name = NULL },
};
