/* SPDX-License-Identifier: MIT */
/* rcu_queues.c - scenarios: queues that are long, that get no memory, that are bounded; locks of callers; plain frees. */
#include "runtime/lock.h"
#include "rcu_retired.h"

/* ---- queues that are full ---- */

static void queue_in_section(void *nr)
{
	rcu_read_lock();
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		queue_one();
	world_check();
	rcu_read_unlock();
}

static void queue_in_section_and_wait(void *nr)
{
	queue_in_section(nr);
	rcu_barrier();
	sim_assert(world_nr_freed >= (intptr_t)nr);
}

static void setup_overflow(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(queue_in_section, (void *)7, "queuer");
}

static void setup_overflow_barrier(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(queue_in_section_and_wait, (void *)6, "queuer");
	sim_spawn(queue_in_section_and_wait, (void *)5, "queuer");
}

static void setup_full_queue(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(queuer, (void *)10, "queuer");
}

static void setup_full_fence_overflow(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_overflow();
}

static void setup_full_fence_full_queue(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_full_queue();
}

static void setup_overflow_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_overflow_barrier();
}

static void setup_full_queue_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_full_queue();
	sim_spawn(throttle_at, (void *)10, "throttled");
}

/* Segments get no memory, or none now and then, so objects are linked. */
static void setup_no_memory(void)
{
	sim_config()->block_failures = -1;
	setup_callbacks();
}

static void setup_little_memory(void)
{
	sim_config()->block_failures = 2;
	setup_callbacks();
	sim_spawn(queue_in_section_and_wait, (void *)2, "queuer");
}

static void setup_full_fence_no_memory(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_no_memory();
}

static void setup_no_memory_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_no_memory();
	sim_spawn(throttle_at, (void *)5, "throttled");
}

/* ---- the child of a fork: all that was queued is there, in a list or in the middle of a pass ---- */

static int nr_surely_queued, nr_inherited;

static void parents_queuer(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		queue_one();
		nr_surely_queued++;
	}
}

static void forker(void *unused)
{
	(void)unused;
	queue_one();
	for (uint32_t i = sim_random(80); i; i--)
		platform_yield();
	quiesce__fork_prepare();
	sim_fork();
	nr_inherited = nr_surely_queued + 1;
	quiesce__fork_child();
	rcu_barrier();
	if (world_nr_freed < nr_inherited)
		sim_fail("%d callbacks were queued before the fork, %d have run", nr_inherited, world_nr_freed);
	queue_one();
	rcu_barrier();
	sim_assert(world_nr_freed > nr_inherited);
}

static void setup_child(void)
{
	world_begin();
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_queuer, (void *)4, "queuer");
	sim_spawn(world_reader, NULL, "reader");
}

static void setup_child_no_memory(void)
{
	sim_config()->block_failures = -1;
	setup_child();
}

/* ---- under a lock that readers and callbacks take ---- */

static struct quiesce__lock held;

static void lock_and_free(struct rcu_head *head)
{
	quiesce__lock(&held);
	quiesce__unlock(&held);
	check_and_free(head);
}

static void queue_locked(void *nr)
{
	quiesce__lock(&held);
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		retire(world_replace(), lock_and_free);
	quiesce__unlock(&held);
}

static void locking_reader(void *unused)
{
	(void)unused;
	rcu_read_lock();
	world_check();
	quiesce__lock(&held);
	quiesce__unlock(&held);
	rcu_read_unlock();
}

static void setup_locked(void)
{
	quiesce_set_garbage_ceiling(QUIESCE_OBJECT_BYTES);
	world_begin();
	spawn_each(2, locking_reader, "reader");
	sim_spawn(queue_locked, (void *)6, "queuer");
	sim_spawn(queue_locked, (void *)3, "queuer");
}

static void setup_locked_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_locked();
	sim_spawn(throttle_at, (void *)9, "throttled");
}

/* ---- too many bytes ---- */

static void queue_big(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		retire_sized(world_replace(), check_and_free, 70000);
}

/* The statistics include the thread's garbage as long as none can be reclaimed. */
static void queue_big_and_ask(void *nr)
{
	struct quiesce_stats stats;

	rcu_read_lock();
	queue_big(nr);
	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.garbage_bytes >= 70000u * (uintptr_t)nr && stats.garbage_objects >= (uintptr_t)nr);
	rcu_read_unlock();
}

static void setup_bytes(void)
{
	world_begin();
	sim_spawn(queue_big_and_ask, (void *)3, "queuer");
	sim_spawn(queue_big_and_ask, (void *)2, "queuer");
}

static void setup_bytes_no_memory(void)
{
	sim_config()->block_failures = -1;
	setup_bytes();
}

static void queue_big_throttled(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		queue_big((void *)1);
		rcu_throttle();
	}
}

static void setup_throttle(void)
{
	quiesce_set_garbage_ceiling(100000);
	world_begin();
	world_readers(1);
	sim_spawn(queue_big_throttled, (void *)3, "queuer");
	sim_spawn(queue_big_throttled, (void *)3, "queuer");
}

static void setup_throttle_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_throttle();
	sim_spawn(throttle_at, (void *)6, "throttled");
}

/* One object is above the ceiling, and less than a thread reports when it retires; the reader stays until a caller waits for less. */
static uint64_t reader_inside;

static void read_until_throttled(void *arg)
{
	struct quiesce_stats stats = { .backpressure = 0 };

	(void)arg;
	rcu_read_lock();
	quiesce_store_relaxed(&reader_inside, (uint64_t)1); /* Relaxed: the other thread only waits for it. */
	for (; !stats.backpressure; quiesce_get_stats(&stats, sizeof stats))
		platform_yield();
	rcu_read_unlock();
}

static void queue_small_throttled(void *arg)
{
	(void)arg;
	world_wait_change(&reader_inside, 0);
	retire_sized(world_replace(), check_and_free, 400);
	rcu_throttle();
}

static void setup_throttle_small(void)
{
	quiesce_set_garbage_ceiling(300);
	reader_inside = 0;
	world_begin();
	sim_spawn(read_until_throttled, NULL, "reader");
	sim_spawn(queue_small_throttled, NULL, "queuer");
}

/* A callback that throttles does not wait, because its own thread would have to reclaim. */
static void throttle_and_free(struct rcu_head *head)
{
	rcu_throttle();
	check_and_free(head);
}

static void queue_throttling(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		retire_sized(world_replace(), throttle_and_free, 70000);
}

static void setup_throttle_in_callbacks(void)
{
	quiesce_set_garbage_ceiling(100000);
	world_begin();
	sim_spawn(queue_throttling, (void *)3, "queuer");
	sim_spawn(queue_throttling, (void *)2, "queuer");
}

static void setup_ceiling(void)
{
	quiesce_set_garbage_ceiling(100000);
	quiesce_set_throttle(1);
	world_begin();
	world_readers(1);
	sim_spawn(queue_big, (void *)3, "queuer");
	sim_spawn(queue_big, (void *)3, "queuer");
}

static void setup_ceiling_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_ceiling();
	sim_spawn(throttle_at, (void *)6, "throttled");
}

static void finish_ceiling(void)
{
	struct quiesce_stats stats;

	finish_all_run();
	quiesce_get_stats(&stats, sizeof stats);
	if (stats.backpressure)
		sim_saw();
	sim_assert(stats.garbage_bytes == 0);
}

/* ---- objects without callback ---- */

static void freer(void *unused)
{
	struct item *old = world_replace();

	(void)unused;
	nr_queued += 2;
	kfree_rcu(old, head);
	old = world_replace();
	kfree_rcu_mightsleep(old);
}

static void setup_kfree(void)
{
	sim_config()->free_hook = free_item;
	world_begin();
	world_readers(driver_readers);
	spawn_each(2, freer, "freer");
}

static void setup_full_fence_kfree(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_kfree();
}

/* Objects that are ready are freed by their owner while it goes on retiring, else by the worker; never twice. */
static int freed_by_owner;

static void free_hook_of_owner(void *object)
{
	freed_by_owner += in_call[sim_self()];
	world_free(object);
}

static void steady_freer(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *old = world_replace();

		nr_queued++;
		in_call[sim_self()] = true;
		kfree_rcu(old, head);
		in_call[sim_self()] = false;
		for (int k = 0; k < 15; k++)
			platform_yield();
	}
}

static void setup_own_frees(void)
{
	sim_config()->free_hook = free_hook_of_owner;
	world_begin();
	world_readers(1);
	sim_spawn(steady_freer, (void *)8, "freer");
	sim_spawn(steady_freer, (void *)5, "freer");
}

static void finish_own_frees(void)
{
	if (freed_by_owner)
		sim_saw();
	finish_all_run();
}

static void free_and_wait_for_all(void *nr)
{
	steady_freer(nr);
	rcu_barrier();
	sim_assert(world_nr_freed >= (intptr_t)nr);
}

static void setup_own_frees_barrier(void)
{
	sim_config()->free_hook = free_hook_of_owner;
	world_begin();
	world_readers(1);
	sim_spawn(free_and_wait_for_all, (void *)5, "freer");
	sim_spawn(steady_freer, (void *)4, "freer");
}

/* synchronize_rcu() frees what it may where there is no worker; callbacks stay. */
static void free_and_synchronize(void *unused)
{
	(void)unused;
	steady_freer((void *)3);
	retire(world_replace(), check_and_free);
	in_call[sim_self()] = true;
	synchronize_rcu();
	in_call[sim_self()] = false;
	sim_assert(world_nr_freed == 3);
	rcu_barrier();
}

static void setup_synchronize_frees(void)
{
	sim_config()->free_hook = free_hook_of_owner;
	sim_config()->thread_start_failures = -1;
	world_begin();
	world_readers(1);
	sim_spawn(free_and_synchronize, NULL, "freer");
}

const struct sim_scenario rcu_queue_scenarios[] = {
	{ .name = "full_fence_overflow", .what = "no membarrier, a full queue inside a section",
	  .setup = setup_full_fence_overflow, .finish = finish_all_run },
	{ .name = "full_fence_full_queue", .what = "no membarrier, waiting for room",
	  .setup = setup_full_fence_full_queue, .finish = finish_all_run },
	{ .name = "overflow", .what = "a full queue inside a section", .setup = setup_overflow, .finish = finish_all_run },
	{ .name = "overflow_barrier", .what = "... and rcu_barrier()", .setup = setup_overflow_barrier,
	  .finish = finish_all_run },
	{ .name = "overflow_no_worker", .what = "... and no worker", .setup = setup_overflow_no_worker,
	  .finish = finish_all_run },
	{ .name = "full_queue", .what = "a full queue, waiting for room", .setup = setup_full_queue,
	  .finish = finish_all_run },
	{ .name = "full_queue_no_worker", .what = "... without a worker", .setup = setup_full_queue_no_worker,
	  .finish = finish_all_run },
	{ .name = "no_memory", .what = "no memory for queues", .setup = setup_no_memory, .finish = finish_all_run },
	{ .name = "little_memory", .what = "none at first", .setup = setup_little_memory, .finish = finish_all_run },
	{ .name = "full_fence_no_memory", .what = "no membarrier, and no memory for queues", .setup = setup_full_fence_no_memory,
	  .finish = finish_all_run },
	{ .name = "child", .what = "the child of a fork runs what was queued", .setup = setup_child },
	{ .name = "child_no_memory", .what = "... and no memory for queues", .setup = setup_child_no_memory },
	{ .name = "no_memory_no_worker", .what = "no memory, no worker", .setup = setup_no_memory_no_worker,
	  .finish = finish_all_run },
	{ .name = "locked", .what = "under a lock that readers and callbacks take, above the ceiling", .setup = setup_locked,
	  .finish = finish_all_run },
	{ .name = "locked_no_worker", .what = "... without a worker", .setup = setup_locked_no_worker,
	  .finish = finish_all_run },
	{ .name = "bytes", .what = "bytes that are garbage", .setup = setup_bytes, .finish = finish_all_run },
	{ .name = "bytes_no_memory", .what = "... without memory for queues", .setup = setup_bytes_no_memory, .finish = finish_all_run },
	{ .name = "ceiling", .what = "more garbage than allowed, and calls throttle", .setup = setup_ceiling,
	  .finish = finish_ceiling, .must_see = "a thread that waits for less garbage" },
	{ .name = "ceiling_no_worker", .what = "... without a worker: no call waits for callbacks", .setup = setup_ceiling_no_worker,
	  .finish = finish_ceiling, .must_see = "a thread that waits for less garbage" },
	{ .name = "throttle", .what = "rcu_throttle()", .setup = setup_throttle, .finish = finish_ceiling,
	  .must_see = "a thread that waits for less garbage" },
	{ .name = "throttle_no_worker", .what = "... without a worker", .setup = setup_throttle_no_worker,
	  .finish = finish_ceiling },
	{ .name = "throttle_small", .what = "... of few bytes", .setup = setup_throttle_small, .finish = finish_ceiling,
	  .must_see = "a thread that waits for less garbage" },
	{ .name = "throttle_in_callbacks", .what = "... in callbacks, which it does not hold up", .setup = setup_throttle_in_callbacks,
	  .finish = finish_all_run },
	{ .name = "kfree", .what = "kfree_rcu(), kfree_rcu_mightsleep()", .setup = setup_kfree, .finish = finish_all_run },
	{ .name = "full_fence_kfree", .what = "... without membarrier", .setup = setup_full_fence_kfree,
	  .finish = finish_all_run },
	{ .name = "own_frees", .what = "threads free what they have retired", .setup = setup_own_frees,
	  .finish = finish_own_frees, .must_see = "an object that is freed by its owner" },
	{ .name = "own_frees_barrier", .what = "... beside rcu_barrier()", .setup = setup_own_frees_barrier,
	  .finish = finish_all_run },
	{ .name = "synchronize_frees", .what = "synchronize_rcu() without a worker", .setup = setup_synchronize_frees,
	  .finish = finish_all_run },
	{ .name = NULL },
};
