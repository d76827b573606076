/* SPDX-License-Identifier: MIT */
/* rcu_callbacks.c - scenarios: deferred reclamation, with and without its worker. */
#include "rcu/reclaim.h"
#include "rcu_retired.h"
#include "runtime/thread.h"

/* Queue with pauses, so that the worker goes to sleep in between. */
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
	spawn_each(2, slow_queuer, "queuer");
}

/* The retirer stays and waits for the callback, which only the worker can run. */
static uint32_t nr_watched[2];

static void free_and_wake(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	check_and_free(head);
	quiesce_fetch_add(RU3, &nr_watched[item->id % 2], 1u);
	platform_futex_wake(&nr_watched[item->id % 2], INT32_MAX);
}

static void watcher(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *first = world_replace(), *old = world_replace();
		uint32_t *watched = &nr_watched[old->id % 2], before = quiesce_load_relaxed(watched);

		retire(first, check_and_free);
		retire(old, free_and_wake);
		while (!sim_obj_is_free(old->id)) {
			platform_futex_wait(watched, before, PLATFORM_FOREVER);
			before = quiesce_load_relaxed(watched);
		}
	}
}

static void setup_watch(void)
{
	world_begin();
	sim_spawn(watcher, (void *)3, "watcher");
	sim_spawn(watcher, (void *)2, "watcher");
}

static void setup_full_fence_watch(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_watch();
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

/* A barrier waits for callbacks that another thread queued before, as the waiter knows. */
static uint64_t has_queued;

static void queue_and_report(void *unused)
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
	sim_spawn(queue_and_report, NULL, "queuer");
	sim_spawn(wait_for_others, NULL, "waiter");
	sim_spawn(world_reader, NULL, "reader");
}

/* A thread goes on queueing; each barrier of another thread waits for the callbacks that were queued before it. */
static struct item *announced[5];
static uint64_t nr_announced;

static void queue_and_publish_each(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 5; i++) {
		announced[i] = world_replace();
		retire(announced[i], check_and_free);
		quiesce_store_release(RU3, &nr_announced, i + 1);
	}
	rcu_barrier();
}

static void wait_for_each(void *unused)
{
	(void)unused;
	for (int k = 0; k < 4; k++) {
		uint64_t nr = quiesce_load_acquire(RU3, &nr_announced);

		rcu_barrier();
		for (uint64_t i = 0; i < nr; i++)
			sim_assert(sim_obj_is_free(announced[i]->id));
	}
}

static void setup_barrier_each(void)
{
	world_begin();
	sim_spawn(queue_and_publish_each, NULL, "queuer");
	sim_spawn(wait_for_each, NULL, "waiter");
}

/* A barrier does not wait for passes of callers that may not run callbacks. */
static void synchronizer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		synchronize_rcu();
}

static void setup_barrier_beside_passes(void)
{
	sim_config()->thread_start_failures = -1;
	setup_barrier_each();
	sim_spawn(synchronizer, NULL, "synchronizer");
}

/* Stores of callbacks are visible after the barrier. */
static uint64_t by_callback;

static void note_and_free(struct rcu_head *head)
{
	quiesce_store_relaxed(&by_callback, 1);
	world_free_head(head);
}

static void wait_and_check(void *unused)
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
	sim_spawn(wait_and_check, NULL, "queuer");
	sim_spawn(queuer, (void *)1, "queuer");
}

/* ---- without a worker ---- */

static void setup_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	setup_callbacks();
	sim_spawn(throttle_at, (void *)5, "throttled");
}

/* A caller at a safe point runs callbacks that others have queued, or ensures that a worker will. */
static void queue_and_throttle(void *unused)
{
	(void)unused;
	queue_one();
	rcu_throttle();
}

/* The first thread finds no worker; while it tries to start one, others take the worker for started. */
static void queue_first(void *unused)
{
	queue_and_throttle(unused);
	spawn_each(3, queue_and_throttle, "throttled");
}

static void setup_safe_points(void)
{
	sim_config()->thread_start_failures = -1;
	world_begin();
	sim_spawn(queue_first, NULL, "throttled");
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

/* A start has failed, and the next attempt is due soon.  If there is a worker at the end, it has run all callbacks. */
static void setup_worker_later_idle(void)
{
	world_begin();
	quiesce__thread_set_failed(QUIESCE_THREAD_WORKER, true);
	for (int i = 0; i < 3; i++)
		sim_spawn(queuer, (void *)2, "queuer");
	sim_spawn(synchronizer, NULL, "synchronizer");
}

static void finish_worker_later_idle(void)
{
	if (!quiesce__reclaim_has_worker())
		return;
	sim_saw();
	if (world_nr_freed != nr_queued)
		sim_fail("%d callbacks queued, %d have run, and the worker sleeps", nr_queued, world_nr_freed);
}

/* The first start fails, or the first two, and no thread comes to a safe point: owners retry, although their queues are listed. */
static void queues_now_and_then(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	for (int i = 0; i < 5; i++) {
		queue_one();
		platform_futex_wait(&never, 0, 1000000);
	}
}

static void setup_worker_tried_again(void)
{
	sim_config()->thread_start_failures = 1 + (int)sim_random(2);
	world_begin();
	world_readers(1);
	sim_spawn(queues_now_and_then, NULL, "queuer");
	if (sim_random(2))
		sim_spawn(queuer, (void *)1, "queuer");
}

/* No start succeeds, and each call would try one. */
#define MANY_FAILURES 1000
#define PACE_NS 100000 /* the library's retry pace on the simulated machine */

static uint64_t paced_since;

static void queue_many_and_wait(void *unused)
{
	uint64_t nr, most;

	(void)unused;
	queuer((void *)28);
	nr = MANY_FAILURES - (uint64_t)sim_config()->thread_start_failures;
	most = 8 * ((sim_now_ns() - paced_since) / PACE_NS + 1); /* two kinds of starts, and starts that begin before one has failed */
	if (nr > most)
		sim_fail("%llu starts were tried, of at most %llu", (unsigned long long)nr, (unsigned long long)most);
	if (nr > 1)
		sim_saw();
	rcu_barrier();
}

static void setup_starts_paced(void)
{
	paced_since = sim_now_ns();
	sim_config()->thread_start_failures = MANY_FAILURES;
	world_begin();
	spawn_each(2, queue_many_and_wait, "queuer");
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

/* ---- threads that queue and end ---- */

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
	spawn_each(2, queue_chain, "queuer");
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
	spawn_each(2, queue_waiting, "queuer");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void finish_callback_waits(void)
{
	sim_assert(world_nr_freed == nr_queued + 1);
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
	spawn_each(2, shutter, "shutter");
}

const struct sim_scenario rcu_callback_scenarios[] = {
	{ .name = "callbacks", .what = "call_rcu() and a worker", .setup = setup_callbacks, .finish = finish_all_run },
	{ .name = "slow_queue", .what = "the worker sleeps in between", .setup = setup_slow_queue, .finish = finish_all_run },
	{ .name = "watch", .what = "threads that wait for their callbacks", .setup = setup_watch, .finish = finish_all_run },
	{ .name = "full_fence_watch", .what = "... without membarrier", .setup = setup_full_fence_watch,
	  .finish = finish_all_run },
	{ .name = "safe_points", .what = "no worker, and threads at safe points", .setup = setup_safe_points,
	  .finish = finish_all_run },
	{ .name = "barrier", .what = "rcu_barrier() of two threads", .setup = setup_barrier, .finish = finish_all_run },
	{ .name = "barrier_others", .what = "rcu_barrier() for another thread's callback", .setup = setup_barrier_others,
	  .finish = finish_all_run },
	{ .name = "barrier_each", .what = "... while that thread queues more", .setup = setup_barrier_each,
	  .finish = finish_all_run },
	{ .name = "barrier_beside_passes", .what = "no worker, beside passes that run no callbacks",
	  .setup = setup_barrier_beside_passes, .finish = finish_all_run },
	{ .name = "barrier_order", .what = "what callbacks wrote is visible", .setup = setup_barrier_order,
	  .finish = finish_all_run },
	{ .name = "no_worker", .what = "no thread can be started", .setup = setup_no_worker, .finish = finish_all_run },
	{ .name = "no_worker_barrier", .what = "... and rcu_barrier()", .setup = setup_no_worker_barrier,
	  .finish = finish_all_run },
	{ .name = "worker_later", .what = "the first start fails", .setup = setup_worker_later, .finish = finish_all_run },
	{ .name = "worker_later_idle", .what = "... and no caller waits for a callback", .setup = setup_worker_later_idle,
	  .finish = finish_worker_later_idle, .must_see = "a worker" },
	{ .name = "worker_tried_again", .what = "... and owners go on", .setup = setup_worker_tried_again,
	  .finish = finish_all_run },
	{ .name = "starts_paced", .what = "none succeeds, and attempts are few", .setup = setup_starts_paced,
	  .finish = finish_all_run, .must_see = "another attempt" },
	{ .name = "full_fence_callbacks", .what = "no membarrier", .setup = setup_full_fence_callbacks,
	  .finish = finish_all_run },
	{ .name = "full_fence_slow", .what = "no membarrier, the worker sleeps in between", .setup = setup_full_fence_slow,
	  .finish = finish_all_run },
	{ .name = "full_fence_no_arm", .what = "no membarrier, no exit hook", .setup = setup_full_fence_no_arm,
	  .finish = finish_all_run },
	{ .name = "no_arm", .what = "no exit hook can be had", .setup = setup_no_arm, .finish = finish_all_run },
	{ .name = "queue_and_exit", .what = "threads queue and exit", .setup = setup_queue_and_exit,
	  .finish = finish_all_run },
	{ .name = "chain", .what = "callbacks queue callbacks", .setup = setup_chain, .finish = finish_all_run },
	{ .name = "callback_waits", .what = "callbacks read and wait", .setup = setup_callback_waits,
	  .finish = finish_callback_waits },
	{ .name = "fork", .what = "no callback runs while the process forks", .setup = setup_fork,
	  .finish = finish_all_run },
	{ .name = "shutdown", .what = "quiesce_shutdown() while others queue", .setup = setup_shutdown,
	  .finish = finish_all_run },
	{ .name = "shutdown_twice", .what = "two threads shut down", .setup = setup_shutdown_twice,
	  .finish = finish_all_run },
	{ .name = NULL },
};
