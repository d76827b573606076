/* SPDX-License-Identifier: MIT */
/* srcu_callbacks.c - scenarios: call_srcu(), srcu_barrier(); with the helper thread and without. */
#include "srcu_world.h"

#include <quiesce/control.h>

static uint32_t asked;
/* Without a helper callbacks wait for a caller that may run them: the last thread to finish does. */
static uint32_t nr_inside;

static void callbacks(enum world_mode mode)
{
	world_begin(mode);
	world_readers(driver_readers);
	spawn_each(2, world_queuer, "queuer");
}

static void setup_callbacks(void) { callbacks(LIGHT); }
static void setup_full_callbacks(void) { callbacks(FULL); }

/* Queue with pauses, so that the helper goes to sleep in between; beside an updater. */
static void slow_queuer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		world_queue(0);
		world_stay(60);
	}
}

static void setup_slow_queue(void)
{
	world_begin(ANY);
	world_readers(1);
	spawn_each(2, slow_queuer, "queuer");
	sim_spawn(world_updater, NULL, "updater");
}

/* Callbacks of a thread run in the order of its calls, whatever lists they are in. */
#define NR_ORDERED 5
#define NR_QUEUERS 3 /* two of them may have the same shard */
static struct item ordered[NR_QUEUERS][NR_ORDERED];
static int last_run[NR_QUEUERS];
static void through(void);

static void in_order(struct rcu_head *head)
{
	struct item *item = (struct item *)head;
	intptr_t thread = item->domain;

	if (item != &ordered[thread][last_run[thread]])
		sim_fail("callback %d of a thread runs after %d", (int)(item - ordered[thread]), last_run[thread] - 1);
	sim_assert(sim_data_read(SIM_MAX_OBJECTS / 2 + (int)item->id) == 500);
	last_run[thread]++;
	world_nr_run++;
}

static void order_one(intptr_t thread, int i)
{
	struct item *item = &ordered[thread][i];

	item->domain = thread;
	item->id = (uint64_t)(NR_ORDERED * thread + i);
	sim_data_write(SIM_MAX_OBJECTS / 2 + (int)item->id, 500);
	world_nr_queued++;
	call_srcu(world_domain[0], &item->head, in_order);
}

static void ordered_queuer(void *thread)
{
	for (int i = 0; i < NR_ORDERED; i++) {
		order_one((intptr_t)thread, i);
		if (sim_random(2))
			world_stay(20);
	}
	through();
}

static void setup_order(void)
{
	world_begin(ANY);
	nr_inside = NR_QUEUERS - sim_random(2);
	if (nr_inside < NR_QUEUERS)
		world_readers(1);
	for (intptr_t i = 0; i < nr_inside; i++)
		sim_spawn(ordered_queuer, (void *)i, "queuer");
}

static void setup_order_no_helper(void)
{
	setup_order();
	sim_config()->thread_start_failures = -1;
}

/* The first attempts to allocate shards fail. */
static void setup_order_no_memory(void)
{
	setup_order();
	sim_config()->lines_failures = 1 + (int)sim_random(3);
}

/* ---- srcu_barrier() ---- */

static void queue_and_wait(void *domain)
{
	struct item *mine[2];

	for (int i = 0; i < 2; i++) {
		mine[i] = world_replace((intptr_t)domain);
		world_retire(mine[i], world_free_head);
	}
	srcu_barrier(world_domain[(intptr_t)domain]);
	for (int i = 0; i < 2; i++)
		sim_assert(sim_obj_is_free((int)mine[i]->id));
}

static void barrier(enum world_mode mode)
{
	world_begin(mode);
	world_readers(driver_readers);
	spawn_each(2, queue_and_wait, "queuer");
}

static void setup_barrier(void) { barrier(ANY); }
static void setup_full_barrier(void) { barrier(FULL); }

static void setup_barrier_no_idling(void)
{
	world_begin(ANY);
	world_no_idling();
	spawn_each(2, queue_and_wait, "queuer");
}

/* A barrier waits for callbacks that another thread queued before, as the waiter knows. */
static void queue_and_report(void *unused)
{
	(void)unused;
	world_queue(0);
	world_set(&asked, 1);
	world_queue(0);
}

static void wait_for_others(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	srcu_barrier(world_domain[0]);
	sim_assert(world_nr_run >= 1);
}

static void setup_barrier_others(void)
{
	world_begin(ANY);
	world_readers(driver_readers);
	sim_spawn(queue_and_report, NULL, "queuer");
	sim_spawn(wait_for_others, NULL, "waiter");
	sim_spawn(world_queuer, NULL, "queuer");
}

/* Stores of callbacks are visible after the barrier. */
static uint64_t by_callback;

static void note_and_free(struct rcu_head *head)
{
	quiesce_store_relaxed(&by_callback, quiesce_load_relaxed(&by_callback) + 1);
	world_free_head(head);
}

static void wait_and_check(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), note_and_free);
	srcu_barrier(world_domain[0]);
	sim_assert(quiesce_load_relaxed(&by_callback) >= 1);
}

static void barrier_order(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(wait_and_check, NULL, "queuer");
	sim_spawn(world_queuer, NULL, "queuer");
	sim_spawn(wait_and_check, NULL, "queuer");
}

static void setup_barrier_order(void) { barrier_order(LIGHT); }
static void setup_full_barrier_order(void) { barrier_order(FULL); }

static void finish_barrier_order(void)
{
	world_finish();
	sim_assert(by_callback == 2);
}

/* ---- without a helper thread ---- */

static void no_helper(void)
{
	sim_config()->thread_start_failures = -1;
}

static void through(void)
{
	if (quiesce_fetch_add(RU3, &nr_inside, (uint32_t)-1) != 1)
		return;
	srcu_barrier(world_domain[0]);
	srcu_barrier(world_domain[1]);
}

static void counted_queuer(void *domain)
{
	world_queuer(domain);
	through();
}

static void counted_reader(void *domain)
{
	world_reader(domain);
	through();
}

static void queues_in_section(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_queue(0);
	world_check(0);
	world_queue(0);
	world_check(0);
	srcu_read_unlock(world_domain[0], idx);
	through();
}

static void setup_in_section(void)
{
	world_begin(ANY);
	nr_inside = 1;
	world_readers(1);
	sim_spawn(queues_in_section, NULL, "queuer");
}

static void setup_no_helper(void)
{
	no_helper();
	world_begin(ANY);
	nr_inside = 3;
	sim_spawn(queues_in_section, NULL, "queuer");
	sim_spawn(counted_queuer, NULL, "queuer");
	sim_spawn(counted_reader, NULL, "reader");
}

static void setup_no_helper_barrier(void)
{
	barrier(ANY);
	no_helper();
}

/* synchronize_srcu() runs callbacks that are due. */
static void waits_until_all_have_run(void *unused)
{
	int queued;

	(void)unused;
	while (quiesce_load_acquire(RU3, &nr_inside) != 1)
		platform_yield();
	for (queued = world_nr_queued; world_nr_run < queued;)
		synchronize_srcu(world_domain[0]);
}

static void setup_no_helper_synchronize(void)
{
	world_begin(ANY);
	no_helper();
	nr_inside = 3;
	sim_spawn(counted_queuer, NULL, "queuer");
	sim_spawn(counted_queuer, (void *)1, "queuer");
	sim_spawn(waits_until_all_have_run, NULL, "updater");
}

/* call_srcu() runs no callback, because its caller may hold locks that callbacks take. */
static uint32_t in_call[SIM_MAX_THREADS];

static void not_in_a_caller(struct rcu_head *head)
{
	if (in_call[sim_self()])
		sim_fail("call_srcu() has run a callback");
	world_free_head(head);
}

static void queues_under_a_lock(void *domain)
{
	for (int i = 0; i < 3; i++) {
		struct item *old = world_replace((intptr_t)domain);

		in_call[sim_self()] = 1;
		world_retire(old, not_in_a_caller);
		in_call[sim_self()] = 0;
	}
	through();
}

static void setup_no_helper_locked(void)
{
	world_begin(ANY);
	if (sim_random(4))
		no_helper();
	else
		sim_config()->thread_start_failures = 1 + (int)sim_random(3);
	nr_inside = 3;
	sim_spawn(queues_under_a_lock, NULL, "queuer");
	sim_spawn(queues_under_a_lock, (void *)1, "queuer");
	sim_spawn(counted_reader, NULL, "reader");
}

/* The first attempts to start a helper fail. */
static void setup_helper_late(void)
{
	barrier(ANY);
	sim_config()->thread_start_failures = 1 + (int)sim_random(2);
}

/* ---- callbacks that do more ---- */

static void free_and_queue(struct rcu_head *head)
{
	intptr_t domain = ((struct item *)head)->domain;

	world_free_head(head);
	if (world_nr_queued < 6)
		world_retire(world_replace(!domain), free_and_queue);
	if (world_nr_queued < 6)
		world_retire(world_replace(domain), free_and_queue);
}

static void queue_chain(void *domain)
{
	world_retire(world_replace((intptr_t)domain), free_and_queue);
}

static void setup_chain(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(queue_chain, (void *)0, "queuer");
	sim_spawn(queue_chain, (void *)1, "queuer");
}

static void queue_chain_and_end(void *domain)
{
	queue_chain(domain);
	sim_assert(quiesce_shutdown(0) == 0); /* the shutdown includes callbacks that callbacks queue */
}

static void setup_chain_no_helper(void)
{
	no_helper();
	world_begin(ANY);
	sim_spawn(queue_chain_and_end, (void *)0, "queuer");
	sim_spawn(queue_chain_and_end, (void *)1, "queuer");
}

/* Callbacks read, wait, and make calls that are forbidden to them. */
static int nr_reports;

static void count_report(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_WAIT_IN_CALLBACK)
		sim_fail("misuse: %s", text);
	nr_reports++;
}

static void free_and_wait(struct rcu_head *head)
{
	intptr_t domain = ((struct item *)head)->domain;
	struct item *old = world_replace(domain);

	world_section(domain);
	world_free_head(head);
	synchronize_srcu(world_domain[domain]);
	world_free(old);
	srcu_barrier(world_domain[domain]);
}

static void queue_waiting(void *domain)
{
	world_retire(world_replace((intptr_t)domain), free_and_wait);
	world_section(0);
	through();
}

static void finish_callback_waits(void)
{
	world_finish();
	if (nr_reports != 2)
		sim_fail("%d of 2 barriers in callbacks were reported", nr_reports);
}

static void setup_callback_waits(void)
{
	quiesce_set_misuse_hook(count_report);
	world_begin(ANY);
	if (sim_random(4) == 0)
		no_helper();
	nr_inside = 2;
	sim_spawn(queue_waiting, (void *)0, "queuer");
	sim_spawn(queue_waiting, (void *)1, "queuer");
	sim_spawn(world_updater, NULL, "updater");
}

const struct sim_scenario srcu_callback_scenarios[] = {
	SCENARIO(callbacks, "call_srcu() and the helper"),
	SCENARIO(full_callbacks, "... without membarrier"),
	SCENARIO(slow_queue, "the helper sleeps in between"),
	SCENARIO(order, "callbacks of a thread run in the order of its calls"),
	SCENARIO(order_no_memory, "... where the domain has no memory for shards at first"),
	SCENARIO(barrier, "srcu_barrier() of two threads"),
	SCENARIO(full_barrier, "... without membarrier"),
	SCENARIO(barrier_no_idling, "... and no caller sleeps longer than it must"),
	SCENARIO(barrier_others, "srcu_barrier() for another thread's callback"),
	{ .name = "barrier_order", .what = "what callbacks wrote is visible", .setup = setup_barrier_order,
	  .finish = finish_barrier_order },
	{ .name = "full_barrier_order", .what = "... without membarrier", .setup = setup_full_barrier_order,
	  .finish = finish_barrier_order },
	SCENARIO(in_section, "queued by the reader that delays them"),
	SCENARIO(no_helper, "... without a helper"),
	SCENARIO(no_helper_barrier, "srcu_barrier() without a helper"),
	SCENARIO(no_helper_synchronize, "synchronize_srcu() runs callbacks without a helper"),
	SCENARIO(no_helper_locked, "call_srcu() under a lock that callbacks take"),
	SCENARIO(order_no_helper, "in order without a helper"),
	SCENARIO(helper_late, "the helper cannot be started at first"),
	SCENARIO(chain, "callbacks queue callbacks, of both domains"),
	SCENARIO(chain_no_helper, "... without a helper"),
	{ .name = "callback_waits", .what = "callbacks read, and wait", .setup = setup_callback_waits,
	  .finish = finish_callback_waits },
	{ .name = NULL },
};
