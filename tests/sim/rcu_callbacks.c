/* SPDX-License-Identifier: MIT */
/* rcu_callbacks.c - scenarios: deferred reclamation, with and without its worker. */
#include "rcu_world.h"

#define LAST_WORDS 500
#define LAST_WORDS_OF(item) (NR_ITEMS + (item)->id) /* a word beside the item, which no reader looks at */

static int nr_queued;

/* What was written before call_rcu() is there for the callback. */
static void check_and_free(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	sim_assert(sim_data_read(LAST_WORDS_OF(item)) == LAST_WORDS);
	world_free(item);
}

static void retire(struct item *old, void (*callback)(struct rcu_head *head))
{
	nr_queued++;
	sim_data_write(LAST_WORDS_OF(old), LAST_WORDS);
	call_rcu(&old->head, callback);
}

static void queue_one(void)
{
	retire(world_replace(), check_and_free);
}

static void queuer(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		queue_one();
}

/* Nobody waits for the callbacks: the worker must run them all by itself. */
static void finish_all_run(void)
{
	struct quiesce_stats stats;

	if (world_nr_freed != nr_queued)
		sim_fail("%d callbacks queued, %d have run, and everybody is idle", nr_queued, world_nr_freed);
	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.garbage_objects == 0);
}

static void setup_callbacks(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(queuer, (void *)3, "queuer");
	sim_spawn(queuer, (void *)2, "queuer");
}

/* With pauses, so that the worker goes to sleep in between. */
static void slow_queuer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		queue_one();
		for (int k = 0; k < 40; k++)
			platform_yield();
	}
}

static void setup_slow_queue(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(slow_queuer, NULL, "queuer");
	sim_spawn(slow_queuer, NULL, "queuer");
}

/* ---- rcu_barrier() ---- */

static void queue_and_wait(void *nr)
{
	struct item *mine[4];
	intptr_t n = (intptr_t)nr;

	for (intptr_t i = 0; i < n; i++) {
		mine[i] = world_replace();
		retire(mine[i], check_and_free);
	}
	rcu_barrier();
	for (intptr_t i = 0; i < n; i++)
		sim_assert(sim_obj_is_free(mine[i]->id));
}

static void setup_barrier(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(queue_and_wait, (void *)2, "queuer");
	sim_spawn(queue_and_wait, (void *)2, "queuer");
}

/* The callbacks of another thread, queued before in a way that the waiter can know of. */
static uint64_t has_queued;

static void queue_and_tell(void *unused)
{
	(void)unused;
	queue_one();
	quiesce_store_release(RU3, &has_queued, 1);
}

static void wait_for_others(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &has_queued))
		platform_yield();
	rcu_barrier();
	sim_assert(world_nr_freed == 1);
}

static void setup_barrier_others(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(queue_and_tell, NULL, "queuer");
	sim_spawn(wait_for_others, NULL, "waiter");
	sim_spawn(world_reader, NULL, "reader");
}

/* What callbacks did is visible after the barrier. */
static uint64_t by_callback;

static void note_and_free(struct rcu_head *head)
{
	quiesce_store_relaxed(&by_callback, 1);
	world_free_head(head);
}

static void wait_and_look(void *unused)
{
	struct item *old = world_replace();

	(void)unused;
	retire(old, note_and_free);
	rcu_barrier();
	sim_assert(quiesce_load_relaxed(&by_callback) == 1);
}

static void setup_barrier_order(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(wait_and_look, NULL, "queuer");
	sim_spawn(queuer, (void *)1, "queuer");
}

/* ---- without a worker ---- */

static void setup_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_callbacks();
}

static void setup_no_worker_barrier(void)
{
	sim_config()->thread_start_failures = -1;
	setup_barrier();
}

static void setup_worker_later(void)
{
	sim_config()->thread_start_failures = 1;
	setup_barrier();
}

static void setup_full_fence_callbacks(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_callbacks();
}

static void setup_full_fence_slow(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_slow_queue();
}

static void setup_full_fence_no_arm(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	sim_config()->arm_exit_failures = -1;
	setup_callbacks();
}

static void setup_no_arm(void)
{
	sim_config()->arm_exit_failures = -1;
	setup_barrier();
}

/* ---- queues that are full ---- */

static void queue_in_section(void *nr)
{
	rcu_read_lock();
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		queue_one();
	world_look();
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
}

/* Too many bytes: the queuer sleeps at the ceiling. */
static void queue_big(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *old = world_replace();

		nr_queued++;
		call_rcu_sized(&old->head, world_free_head, 70000);
	}
}

static void setup_ceiling(void)
{
	quiesce_set_garbage_ceiling(100000);
	world_begin();
	world_readers(1);
	sim_spawn(queue_big, (void *)3, "queuer");
	sim_spawn(queue_big, (void *)3, "queuer");
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

/* ---- threads that queue and go ---- */

static void queue_generation(void *left)
{
	queue_one();
	if (left)
		sim_spawn(queue_generation, (void *)((intptr_t)left - 1), "queuer");
}

static void setup_queue_and_exit(void)
{
	world_begin();
	sim_spawn(queue_generation, (void *)3, "queuer");
	sim_spawn(queue_generation, (void *)3, "queuer");
	world_readers(1);
}

/* ---- callbacks that do more ---- */

static void free_and_queue(struct rcu_head *head)
{
	world_free_head(head);
	if (nr_queued < 6)
		queue_one();
}

static void queue_chain(void *unused)
{
	struct item *old = world_replace();

	(void)unused;
	retire(old, free_and_queue);
}

static void setup_chain(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(queue_chain, NULL, "queuer");
	sim_spawn(queue_chain, NULL, "queuer");
}

static void free_and_wait(struct rcu_head *head)
{
	struct item *old = world_replace();

	world_section(1);
	world_free_head(head);
	synchronize_rcu();
	sim_obj_free(old->id);
}

static void queue_waiting(void *unused)
{
	struct item *old = world_replace();

	(void)unused;
	retire(old, free_and_wait);
}

static void setup_callback_waits(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(queue_waiting, NULL, "queuer");
	sim_spawn(queue_waiting, NULL, "queuer");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void finish_callback_waits(void)
{
	sim_assert(world_nr_freed == nr_queued + 1);
}

/* ---- objects without callback ---- */

static void free_hook(void *object)
{
	world_free(object);
}

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
	sim_config()->free_hook = free_hook;
	world_begin();
	world_readers(driver_readers);
	sim_spawn(freer, NULL, "freer");
	sim_spawn(freer, NULL, "freer");
}

/* ---- fork(): between prepare and parent no callback runs, and all that ran is visible ---- */

static uint64_t first_half, second_half;
static bool in_callback;

static void two_halves(struct rcu_head *head)
{
	uint64_t n = quiesce_load_relaxed(&first_half) + 1;

	in_callback = true;
	quiesce_store_relaxed(&first_half, n);
	sim_point("between the halves");
	quiesce_store_relaxed(&second_half, n);
	in_callback = false;
	world_free_head(head);
}

static void halves_queuer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++)
		retire(world_replace(), two_halves);
}

static void forker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 20; k++)
			platform_yield();
		quiesce__fork_prepare();
		for (int k = 0; k < 3; k++) {
			sim_assert(!in_callback);
			sim_assert(quiesce_load_relaxed(&first_half) == quiesce_load_relaxed(&second_half));
		}
		quiesce__fork_parent();
	}
}

static void setup_fork(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(halves_queuer, NULL, "queuer");
	sim_spawn(forker, NULL, "forker");
}

/* ---- the end ---- */

static void shutter(void *unused)
{
	(void)unused;
	queue_one();
	sim_assert(quiesce_shutdown(0) == 0);
	queue_one();
}

static void setup_shutdown(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(shutter, NULL, "shutter");
	sim_spawn(slow_queuer, NULL, "queuer");
}

static void setup_shutdown_twice(void)
{
	world_begin();
	sim_spawn(shutter, NULL, "shutter");
	sim_spawn(shutter, NULL, "shutter");
}

const struct sim_scenario rcu_callback_scenarios[] = {
	{ .name = "callbacks", .what = "call_rcu() and a worker", .setup = setup_callbacks, .finish = finish_all_run },
	{ .name = "slow_queue", .what = "the worker sleeps in between", .setup = setup_slow_queue, .finish = finish_all_run },
	{ .name = "barrier", .what = "rcu_barrier() of two threads", .setup = setup_barrier, .finish = finish_all_run },
	{ .name = "barrier_others", .what = "rcu_barrier() for another thread's callback", .setup = setup_barrier_others,
	  .finish = finish_all_run },
	{ .name = "barrier_order", .what = "what callbacks wrote is visible", .setup = setup_barrier_order,
	  .finish = finish_all_run },
	{ .name = "no_worker", .what = "no thread can be started", .setup = setup_no_worker, .finish = finish_all_run },
	{ .name = "no_worker_barrier", .what = "... and rcu_barrier()", .setup = setup_no_worker_barrier,
	  .finish = finish_all_run },
	{ .name = "worker_later", .what = "the first start fails", .setup = setup_worker_later, .finish = finish_all_run },
	{ .name = "full_fence_callbacks", .what = "no membarrier", .setup = setup_full_fence_callbacks,
	  .finish = finish_all_run },
	{ .name = "full_fence_slow", .what = "no membarrier, the worker sleeps in between", .setup = setup_full_fence_slow,
	  .finish = finish_all_run },
	{ .name = "full_fence_overflow", .what = "no membarrier, a full queue inside a section",
	  .setup = setup_full_fence_overflow, .finish = finish_all_run },
	{ .name = "full_fence_full_queue", .what = "no membarrier, waiting for room",
	  .setup = setup_full_fence_full_queue, .finish = finish_all_run },
	{ .name = "full_fence_no_arm", .what = "no membarrier, no exit hook", .setup = setup_full_fence_no_arm,
	  .finish = finish_all_run },
	{ .name = "no_arm", .what = "no exit hook can be had", .setup = setup_no_arm, .finish = finish_all_run },
	{ .name = "overflow", .what = "a full queue inside a section", .setup = setup_overflow, .finish = finish_all_run },
	{ .name = "overflow_barrier", .what = "... and rcu_barrier()", .setup = setup_overflow_barrier,
	  .finish = finish_all_run },
	{ .name = "overflow_no_worker", .what = "... and no worker", .setup = setup_overflow_no_worker,
	  .finish = finish_all_run },
	{ .name = "full_queue", .what = "a full queue, waiting for room", .setup = setup_full_queue,
	  .finish = finish_all_run },
	{ .name = "full_queue_no_worker", .what = "... without a worker", .setup = setup_full_queue_no_worker,
	  .finish = finish_all_run },
	{ .name = "ceiling", .what = "more garbage than allowed", .setup = setup_ceiling, .finish = finish_ceiling,
	  .must_see = "back-pressure" },
	{ .name = "queue_and_exit", .what = "threads queue and exit", .setup = setup_queue_and_exit,
	  .finish = finish_all_run },
	{ .name = "chain", .what = "callbacks queue callbacks", .setup = setup_chain, .finish = finish_all_run },
	{ .name = "callback_waits", .what = "callbacks read and wait", .setup = setup_callback_waits,
	  .finish = finish_callback_waits },
	{ .name = "kfree", .what = "kfree_rcu(), kfree_rcu_mightsleep()", .setup = setup_kfree, .finish = finish_all_run },
	{ .name = "fork", .what = "no callback runs while the process forks", .setup = setup_fork,
	  .finish = finish_all_run },
	{ .name = "shutdown", .what = "quiesce_shutdown() while others queue", .setup = setup_shutdown,
	  .finish = finish_all_run },
	{ .name = "shutdown_twice", .what = "two threads shut down", .setup = setup_shutdown_twice,
	  .finish = finish_all_run },
	{ .name = NULL },
};
