/* SPDX-License-Identifier: MIT */
/* rwsem_rcu_sync_pool.c - scenarios: callbacks that block the helper, and the threads that replace it. */
#include "rwsem_world.h"

#include "runtime/jobs.h"

enum { A, B, C, NR };

struct work {
	struct quiesce__job job;
	uint32_t nr_steps, in_step;
	uint32_t inside; /* number of steps that block */
	uint32_t over;   /* number of steps that have ended */
};

static struct work works[NR], *const work[NR] = { &works[A], &works[B], &works[C] };
static uint32_t goes, *const go = &goes;

static uint32_t begin_step(struct work *w)
{
	sim_assert(quiesce__in_helper());
	if (w->in_step++)
		sim_fail("two threads take a step of one job");
	return ++w->nr_steps;
}

static uint64_t end_step(struct work *w, uint64_t ns)
{
	w->in_step--;
	sim_assert(quiesce__helper_running()); /* I4: no dispatcher has ended before the thread of this step */
	world_add(&w->over);
	return ns;
}

static void block(struct work *w, uint32_t *on)
{
	quiesce__helper_begin_callbacks();
	world_add(&w->inside);
	world_await(on, 1);
}

static uint64_t blocks(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	begin_step(w);
	block(w, go);
	return end_step(w, QUIESCE_JOB_DONE);
}

static uint64_t does_not_block(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	begin_step(w);
	return end_step(w, QUIESCE_JOB_DONE);
}

/* Let the other steps go on once all of them block. */
static uint64_t lets_go(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	begin_step(w);
	if (quiesce_load_relaxed(&work[A]->inside) < 1 || quiesce_load_relaxed(&work[B]->inside) < 1)
		return end_step(w, 1000000);
	world_set(go, 1);
	return end_step(w, QUIESCE_JOB_DONE);
}

static void begin(uint64_t (*a)(struct quiesce__job *job), uint64_t (*b)(struct quiesce__job *job), uint64_t (*c)(struct quiesce__job *job))
{
	uint64_t (*const step[NR])(struct quiesce__job *job) = { a, b, c };

	world_begin(ANY);
	sim_config()->thread_start_failures = 0;
	for (int i = 0; i < NR; i++)
		work[i]->job.step = step[i];
}

static void stop(void)
{
	do
		quiesce__helper_stop(0);
	while (quiesce__helper_running());
	sim_assert(!quiesce__helper.nr && !quiesce__helper.starting);
}

static void await_at_least(uint32_t *word, uint32_t value)
{
	uint32_t found;

	while ((found = quiesce_load_acquire(RU3, word)) < value)
		platform_futex_wait(word, found, PLATFORM_FOREVER);
}

/* ---- the greatest number of steps blocks, and the last one lets them go on ---- */

static void starts(void *mine)
{
	struct work *w = mine;

	world_stay(40);
	quiesce__job_start(&w->job);
	world_await(go, 1);
	await_at_least(&w->over, 1);
	stop();
}

static void setup_blocked(void)
{
	begin(blocks, blocks, lets_go);
	for (int i = 0; i < NR; i++)
		sim_spawn(starts, work[i], "starter");
}

/* All jobs are listed before the first thread starts. */
static void starts_all(void *unused)
{
	(void)unused;
	for (int i = 0; i < NR; i++)
		quiesce__job_start(&work[i]->job);
	for (int i = 0; i < NR; i++)
		await_at_least(&work[i]->over, 1);
	stop();
}

static void setup_blocked_listed(void)
{
	begin(blocks, blocks, lets_go);
	sim_spawn(starts_all, NULL, "starter");
}

/* ---- a job is started again while its step blocks, and another thread leads ---- */

static void starts_again(void *unused)
{
	uint64_t before;

	(void)unused;
	quiesce__job_start(&work[A]->job);
	await_at_least(&work[A]->inside, 1);
	quiesce__job_start(&work[B]->job);
	await_at_least(&work[B]->over, 1);
	quiesce__job_start(&work[A]->job);
	world_stay(60);
	before = platform_now_ns();
	world_set(go, 1);
	await_at_least(&work[A]->over, 2);
	if (platform_now_ns() - before > 15000000)
		sim_fail("the step that was asked for meanwhile came when a thread ended by chance");
	stop();
}

static void setup_blocked_again(void)
{
	begin(blocks, does_not_block, does_not_block);
	sim_spawn(starts_again, NULL, "starter");
}

/* ---- a callback waits for the return of a step ---- */

static uint64_t comes_back(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	if (begin_step(w) == 1) {
		block(w, &work[B]->inside);
		return end_step(w, QUIESCE_JOB_AT_ONCE);
	}
	world_set(go, 1);
	return end_step(w, QUIESCE_JOB_DONE);
}

static void starts_two(void *unused)
{
	(void)unused;
	quiesce__job_start(&work[A]->job);
	world_stay(40);
	quiesce__job_start(&work[B]->job);
	await_at_least(&work[A]->over, 2);
	await_at_least(&work[B]->over, 1);
	stop();
}

static void setup_comes_back(void)
{
	begin(comes_back, blocks, does_not_block);
	sim_spawn(starts_two, NULL, "starter");
}

/* ---- a child ---- */

static void forks(void *unused)
{
	(void)unused;
	quiesce__job_start(&work[A]->job);
	await_at_least(&work[A]->inside, 1);
	if (sim_random(2)) {
		quiesce__job_start(&work[C]->job);
		await_at_least(&work[C]->over, 1);
	}
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	work[A]->in_step = work[C]->in_step = 0; /* steps of threads that do not exist in the child */
	/* A new helper in their places that sleeps must not be taken for one whose callback blocks. */
	for (uint32_t i = 0; i <= QUIESCE_NR_RUNNERS; i++)
		sim_assert(!quiesce__helper.runner[i].by && !quiesce__helper.runner[i].callbacks_since);
	quiesce__job_start(&work[B]->job);
	await_at_least(&work[A]->inside, 2);
	await_at_least(&work[B]->over, 1);
	world_set(go, 1);
	await_at_least(&work[A]->over, 1);
	stop();
}

static void setup_blocked_fork(void)
{
	begin(blocks, does_not_block, does_not_block);
	sim_config()->max_steps = 200000; /* fork() waits long for a callback that blocks */
	sim_spawn(forks, NULL, "forker");
}

/* The callback itself forks; the child has its thread only. */
static uint64_t forks_inside(struct quiesce__job *job)
{
	struct work *w = (struct work *)job;

	if (begin_step(w) > 1)
		return end_step(w, QUIESCE_JOB_DONE);
	quiesce__helper_begin_callbacks();
	world_stay(40);
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	work[B]->in_step = 0;
	quiesce__job_start(&work[B]->job);
	quiesce__job_start(job);
	await_at_least(&work[B]->over, work[B]->nr_steps + 1);
	return end_step(w, QUIESCE_JOB_DONE);
}

static void starts_and_goes(void *unused)
{
	(void)unused;
	quiesce__job_start(&work[B]->job);
	quiesce__job_start(&work[A]->job);
}

static void finish_forks_inside(void)
{
	sim_assert(work[A]->over == 2);
}

static void setup_fork_inside(void)
{
	begin(forks_inside, does_not_block, does_not_block);
	sim_spawn(starts_and_goes, NULL, "starter");
}

#define BLOCKED(label, text) { .name = #label, .what = text, .setup = setup_##label }

const struct sim_scenario pool_scenarios[] = {
	BLOCKED(blocked, "helper: callbacks block until a job that comes after them lets them go"),
	BLOCKED(blocked_listed, "... all listed before the first thread comes"),
	BLOCKED(blocked_again, "... and a job that blocks is started again"),
	BLOCKED(comes_back, "... and wait for what was a blocked job itself"),
	BLOCKED(blocked_fork, "... in a child, once more"),
	{ .name = "fork_inside", .what = "a callback forks, and waits for another job in the child", .setup = setup_fork_inside,
	  .finish = finish_forks_inside },
	{ .name = NULL },
};
