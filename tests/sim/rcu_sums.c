/* SPDX-License-Identifier: MIT */
/* rcu_sums.c - scenarios: sums of garbage are exact, and rcu_barrier() waits for objects that another thread is just freeing. */
#include "rcu_retired.h"

#define BIG 70000 /* bytes: an owner reports each such object to the sum at once */

static void sleep_some(int times)
{
	uint32_t never = 0;

	for (int i = 0; i < times; i++)
		platform_futex_wait(&never, 0, 3000000);
}

/* Wait until all callbacks have run, and the threads that ran them have added their counts. */
static void settle(void)
{
	while (world_nr_freed < nr_queued)
		sleep_some(1);
	sleep_some(12);
}

/* Retire an object of @bytes for free(). */
static void retire_free(struct item *old, size_t bytes)
{
	nr_queued++;
	in_call[sim_self()] = true;
	quiesce_call_rcu(&old->head, quiesce__kfree_func(old, head, struct rcu_head), bytes);
	in_call[sim_self()] = false;
}

static int freed_by_owner;

static void free_hook(void *object)
{
	freed_by_owner += in_call[sim_self()];
	world_free(object);
}

static void finish_freed_by_owner(void)
{
	if (freed_by_owner)
		sim_saw();
	finish_all_run();
}

/* ---- the sum, while owners live, and after they have gone ---- */

/* The last objects are callbacks, and in their calls the owner frees the others, so that nothing is left to the worker.
 * Before that the worker has known what waits beside the callbacks that it ran. */
static void free_then_queue(size_t bytes)
{
	for (int i = 0; i < 2; i++) {
		retire_free(world_replace(), bytes);
		retire(world_replace(), check_and_free);
		sleep_some(1);
	}
	for (int i = 0; i < 3; i++)
		retire(world_replace(), check_and_free);
}

static void frees_and_stays(void *bytes)
{
	free_then_queue((size_t)bytes);
	settle();
	world_check_sums();
}

static void frees_and_exits(void *bytes)
{
	free_then_queue((size_t)bytes);
}

static void setup_sum(void)
{
	sim_config()->free_hook = free_hook;
	world_begin();
	sim_spawn(frees_and_stays, (void *)(uintptr_t)(sim_random(2) ? 900 : BIG), "freer");
}

static void setup_sum_exits(void)
{
	setup_sum();
	sim_spawn(frees_and_exits, (void *)(uintptr_t)(sim_random(2) ? 900 : BIG), "freer");
}

/* An owner reports while the worker runs what it reports. */
static void queues_big_and_stays(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		retire_sized(world_replace(), check_and_free, BIG);
		for (uint32_t k = sim_random(30); k; k--)
			platform_yield();
	}
	settle();
	world_check_sums();
}

static void setup_sum_race(void)
{
	world_begin();
	spawn_each(2, queues_big_and_stays, "queuer");
}

static void setup_full_fence_sum_race(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_sum_race();
}

/* There are no memory, threads and callbacks: passes leave linked objects where they are counted. */
static void queues_and_synchronizes(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		retire_sized(world_replace(), check_and_free, BIG);
		synchronize_rcu();
	}
	rcu_barrier();
	world_check_sums();
}

static void setup_sum_no_memory(void)
{
	sim_config()->block_failures = -1;
	sim_config()->thread_start_failures = -1;
	world_begin();
	sim_spawn(queues_and_synchronizes, NULL, "queuer");
}

/* ---- statistics, read beside updates ---- */

static void reads_stats(void *unused)
{
	struct quiesce_stats stats;

	(void)unused;
	for (int i = 0; i < 12; i++) {
		quiesce_get_stats(&stats, sizeof stats);
		sim_assert(stats.garbage_objects <= NR_ITEMS);
		sim_assert(stats.garbage_bytes <= NR_ITEMS * BIG);
		for (uint32_t k = sim_random(20); k; k--)
			platform_yield();
	}
}

/* The sums are exact with a queue, and without one. */
static void setup_stats(void)
{
	sim_config()->lines_failures = -(int)sim_random(2);
	sim_config()->free_hook = free_hook;
	world_begin();
	sim_spawn(queues_big_and_stays, NULL, "queuer");
	sim_spawn(frees_and_exits, (void *)BIG, "freer");
	sim_spawn(reads_stats, NULL, "reader");
}

/* ---- in a child, with the other threads at any place ---- */

static void forks(void *unused)
{
	(void)unused;
	quiesce__init(); /* a fork must not come while another thread initialises the library */
	for (uint32_t k = sim_random(300); k; k--)
		platform_yield();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	retire_sized(world_replace(), check_and_free, BIG);
	rcu_barrier();
	sleep_some(12);
	world_check_sums();
	sim_saw();
}

static void setup_sum_fork(void)
{
	sim_config()->free_hook = free_hook;
	world_begin();
	sim_spawn(frees_and_exits, (void *)BIG, "freer");
	sim_spawn(queues_big_and_stays, NULL, "queuer");
	sim_spawn(forks, NULL, "forker");
}

/* ---- rcu_barrier() beside an owner that frees ---- */

static struct item *known[4];
static uint64_t nr_known;

/* An owner may take longer than the worker leaves its objects to it. */
static void free_slowly(void *object)
{
	if (in_call[sim_self()])
		sleep_some((int)sim_random(8));
	free_hook(object);
}

static void frees_known(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 4; i++) {
		known[i] = world_replace();
		retire_free(known[i], QUIESCE_OBJECT_BYTES);
		quiesce_store_release(RU3, &nr_known, i + 1);
		sleep_some(1);
		for (int k = 0; k < 2; k++)
			retire(world_replace(), check_and_free);
	}
}

static void waits_for_known(void *unused)
{
	(void)unused;
	for (int k = 0; k < 4; k++) {
		uint64_t nr;

		sleep_some((int)sim_random(8));
		nr = quiesce_load_acquire(RU3, &nr_known);
		rcu_barrier();
		for (uint64_t i = 0; i < nr; i++)
			sim_assert(sim_obj_is_free(known[i]->id));
	}
}

static void setup_barrier_own_frees(void)
{
	sim_config()->free_hook = free_slowly;
	world_begin();
	sim_spawn(frees_known, NULL, "freer");
	sim_spawn(waits_for_known, NULL, "waiter");
}

/* quiesce_shutdown() returns by the sums. */
static void shuts_down(void *unused)
{
	(void)unused;
	for (int k = 0; k < 4; k++) {
		uint64_t nr;

		sleep_some((int)sim_random(8));
		nr = quiesce_load_acquire(RU3, &nr_known);
		sim_assert(!quiesce_shutdown(0));
		for (uint64_t i = 0; i < nr; i++)
			sim_assert(sim_obj_is_free(known[i]->id));
	}
}

static void setup_shutdown_own_frees(void)
{
	sim_config()->free_hook = free_slowly;
	world_begin();
	sim_spawn(frees_known, NULL, "freer");
	sim_spawn(shuts_down, NULL, "shutter");
}

const struct sim_scenario rcu_sum_scenarios[] = {
	{ .name = "sum", .what = "the sum of garbage, and an owner that has freed all", .setup = setup_sum,
	  .finish = finish_freed_by_owner, .must_see = "an object that is freed by its owner" },
	{ .name = "sum_exits", .what = "... and one that exits", .setup = setup_sum_exits, .finish = finish_freed_by_owner },
	{ .name = "sum_race", .what = "owner and worker report at the same time", .setup = setup_sum_race,
	  .finish = finish_all_run },
	{ .name = "full_fence_sum_race", .what = "... without membarrier", .setup = setup_full_fence_sum_race,
	  .finish = finish_all_run },
	{ .name = "sum_no_memory", .what = "objects linked by their heads, and passes without callbacks",
	  .setup = setup_sum_no_memory, .finish = finish_all_run },
	{ .name = "stats", .what = "statistics beside all that", .setup = setup_stats, .finish = finish_all_run },
	{ .name = "sum_fork", .what = "the sum of a child", .setup = setup_sum_fork, .must_see = "a child" },
	{ .name = "barrier_own_frees", .what = "rcu_barrier() while owners free", .setup = setup_barrier_own_frees,
	  .finish = finish_freed_by_owner, .must_see = "an object that is freed by its owner" },
	{ .name = "shutdown_own_frees", .what = "quiesce_shutdown() while owners free", .setup = setup_shutdown_own_frees,
	  .finish = finish_freed_by_owner },
	{ .name = NULL },
};
