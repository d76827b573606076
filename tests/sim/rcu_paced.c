/* SPDX-License-Identifier: MIT */
/* rcu_paced.c - scenarios: grace periods for threads that retire slowly are few, and never delayed beside a waiter. */
#include "rcu/reclaim.h"
#include "rcu_retired.h"

#define NR_SLOW 12
#define SLOW_NS 20000000u /* fewer objects than QUIESCE_PACED in the time for which a grace period is put off */
#define SOON_NS 30000000u

static void sleep_for(uint64_t ns)
{
	uint32_t never = 0;
	uint64_t end = sim_now_ns() + ns;

	while (sim_now_ns() < end)
		platform_futex_wait(&never, 0, end - sim_now_ns());
}

static uint64_t grace_periods(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats.grace_periods;
}

static void free_one(void)
{
	struct item *old = world_replace();

	nr_queued++;
	kfree_rcu(old, head);
}

static void retire_slowly(void *unused)
{
	(void)unused;
	for (int i = 0; i < NR_SLOW; i++) {
		free_one();
		sleep_for(SLOW_NS);
	}
}

static void begin(void (*fn)(void *))
{
	sim_config()->free_hook = free_item;
	world_begin();
	sim_spawn(fn, NULL, "queuer");
}

static void setup_paced(void)
{
	begin(retire_slowly);
}

static void finish_paced(void)
{
	finish_all_run();
	sim_assert(grace_periods() <= NR_SLOW * 2 / 3);
	sim_saw();
}

/* ---- what ends the sleep of the worker ---- */

/* Retire one object and wait for its grace period: an object that is retired next has to wait for another grace period. */
static void become_slow(void)
{
	free_one();
	while (!grace_periods())
		sleep_for(1000000);
}

static void retire_many(void *unused)
{
	uint64_t now, before;

	(void)unused;
	become_slow();
	now = sim_now_ns();
	before = grace_periods();
	for (uint32_t i = 0; i < 2 * QUIESCE_PACED; i++)
		free_one();
	if (sim_now_ns() - now >= 1000000) /* the worker's sleep has ended in between, and what is left may be little */
		return;
	while (grace_periods() == before)
		sleep_for(1000000);
}

static void setup_paced_many(void)
{
	begin(retire_many);
	sim_config()->idle_limit_ns = SOON_NS;
}

static bool has_run;

static void run_soon(struct rcu_head *head)
{
	check_and_free(head);
	has_run = true;
}

/* With some objects for free() before it, or none; while the worker is in a pass, or asleep. */
static void retire_and_await(void *unused)
{
	(void)unused;
	become_slow();
	if (sim_random(2))
		retire(world_replace(), check_and_free);
	for (uint32_t i = sim_random(3); i; i--)
		free_one();
	for (uint32_t i = sim_random(60); i; i--)
		platform_yield();
	retire(world_replace(), run_soon);
	while (!has_run)
		sleep_for(1000000);
}

static void setup_paced_callback(void)
{
	has_run = false;
	begin(retire_and_await);
	sim_config()->idle_limit_ns = SOON_NS;
}

static void retire_and_wait(void *unused)
{
	(void)unused;
	become_slow();
	free_one();
	for (uint32_t i = sim_random(60); i; i--)
		platform_yield();
	rcu_barrier();
}

static void setup_paced_barrier(void)
{
	begin(retire_and_wait);
	sim_config()->idle_limit_ns = SOON_NS;
}

const struct sim_scenario rcu_paced_scenarios[] = {
	{ .name = "paced", .what = "a thread retires slowly what is for free()", .setup = setup_paced, .finish = finish_paced,
	  .must_see = "fewer grace periods than objects" },
	{ .name = "paced_many", .what = "... and then quickly", .setup = setup_paced_many, .finish = finish_all_run },
	{ .name = "paced_callback", .what = "... and then a callback", .setup = setup_paced_callback, .finish = finish_all_run },
	{ .name = "paced_barrier", .what = "... and waits for it", .setup = setup_paced_barrier, .finish = finish_all_run },
	{ .name = NULL },
};
