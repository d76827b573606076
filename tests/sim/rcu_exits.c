/* SPDX-License-Identifier: MIT */
/* rcu_exits.c - scenarios: callbacks that end their thread. */
#include "rcu/reclaim.h"
#include "rcu_retired.h"

#define MOST_EXITS 3
static int nr_exits;

static void may_exit(void)
{
	if (nr_exits == MOST_EXITS || sim_random(2))
		return;
	nr_exits++;
	sim_saw();
	sim_exit();
}

static void free_and_exit(struct rcu_head *head)
{
	check_and_free(head);
	may_exit();
}

static void exiting_queuer(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		retire(world_replace(), free_and_exit);
}

static void setup_exits(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(exiting_queuer, (void *)3, "queuer");
	sim_spawn(exiting_queuer, (void *)2, "queuer");
}

static void setup_full_fence_exits(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_exits();
}

/* Queues get no memory, so objects are linked. */
static void setup_exits_no_memory(void)
{
	sim_config()->block_failures = -1;
	setup_exits();
}

/* Threads that have no queue retire these callbacks. */
static void setup_exits_no_arm(void)
{
	sim_config()->arm_exit_failures = -1;
	setup_exits();
}

static void exit_and_wait(void *nr)
{
	struct item *mine[3];

	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		mine[i] = world_replace();
		retire(mine[i], free_and_exit);
	}
	rcu_barrier();
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		sim_assert(sim_obj_is_free(mine[i]->id));
}

static void setup_exits_barrier(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(exit_and_wait, (void *)2, "queuer");
	sim_spawn(exit_and_wait, (void *)3, "queuer");
}

/* The next worker cannot be started at once. */
static void free_and_exit_for_long(struct rcu_head *head)
{
	check_and_free(head);
	sim_config()->thread_start_failures = 2;
	may_exit();
}

static void queue_and_exit_for_long(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		retire(world_replace(), free_and_exit_for_long);
	rcu_barrier();
}

/* Without a worker the waiters run callbacks, and may end in their waits, so there are several waiters. */
static void waits_till_the_end(void *nr)
{
	uint32_t never = 0;

	do {
		platform_futex_wait(&never, 0, 10000000);
		rcu_barrier();
	} while (world_nr_freed < (intptr_t)nr);
	rcu_barrier(); /* callbacks that have run may not have been counted */
}

static void waiters(intptr_t nr)
{
	for (int i = 0; i <= MOST_EXITS; i++)
		sim_spawn(waits_till_the_end, (void *)nr, "waiter");
}

static void setup_exits_no_successor(void)
{
	world_begin();
	sim_spawn(queue_and_exit_for_long, (void *)3, "queuer");
	sim_spawn(exit_and_wait, (void *)2, "queuer");
	waiters(5);
}

static void setup_exits_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_exits();
	waiters(5);
}

static void setup_exits_throttle(void)
{
	sim_config()->thread_start_failures = -1;
	quiesce_set_garbage_ceiling(QUIESCE_OBJECT_BYTES);
	setup_exits();
	for (int i = 0; i < MOST_EXITS; i++)
		sim_spawn(throttle_at, (void *)5, "throttled");
	waiters(5);
}

/* A callback ends its thread; its queue has frees that are ready, and an owner that does not return. */
static void both_kinds(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	nr_queued++;
	kfree_rcu(world_replace(), head);
	retire(world_replace(), free_and_exit);
	nr_queued++;
	kfree_rcu(world_replace(), head);
	while (world_nr_freed < nr_queued) /* the owner stays, with its queue */
		platform_futex_wait(&never, 0, 10000000);
}

static void setup_exits_frees(void)
{
	sim_config()->free_hook = free_item;
	world_begin();
	world_readers(1);
	spawn_each(2, both_kinds, "queuer");
}

static void shut_down_beside(void *unused)
{
	(void)unused;
	retire(world_replace(), free_and_exit);
	sim_assert(quiesce_shutdown(0) == 0);
}

static void setup_exits_shutdown(void)
{
	world_begin();
	sim_spawn(shut_down_beside, NULL, "shutter");
	sim_spawn(exiting_queuer, (void *)3, "queuer");
}

/* No count of waiting threads is left. */
static void finish_exits(void)
{
	struct quiesce_stats stats;

	finish_all_run();
	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.garbage_bytes == 0);
	sim_assert(stats.callbacks_queued == stats.callbacks_run);
	sim_assert(!quiesce__pass.waiting);
}

#define EXITS(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = finish_exits, .must_see = "a thread that ended in a callback" }

const struct sim_scenario rcu_exit_scenarios[] = {
	EXITS(exits, "callbacks end the worker"),
	EXITS(full_fence_exits, "... without membarrier"),
	EXITS(exits_no_memory, "... of objects that are linked"),
	EXITS(exits_no_arm, "... of threads that have no queue"),
	EXITS(exits_barrier, "... beside rcu_barrier()"),
	EXITS(exits_no_successor, "... and another worker cannot be had at once"),
	EXITS(exits_no_worker, "callbacks end threads that wait for callbacks"),
	EXITS(exits_throttle, "... or for less garbage"),
	EXITS(exits_frees, "the queue has frees, too"),
	EXITS(exits_shutdown, "beside quiesce_shutdown()"),
	{ .name = NULL },
};
