/* SPDX-License-Identifier: MIT */
/* rcu_holdouts.c - scenarios: the program's hook gets the holdouts of a grace period. */
#include "rcu_world.h"

#define NR_READERS 2
#define SECTION_NS 45000000u
#define AGAIN_NS 10000000u

/* ---- readers that are named ---- */

static struct reader {
	uint32_t tid, times;
	uint64_t first, last; /* times of the first and the last call */
} readers[NR_READERS];
static uint32_t nr_ready; /* number of readers that have reached their places for the wait */
static uint64_t over;     /* set after the wait */
static uint64_t gp_before;

static void sleep_ns(uint64_t ns)
{
	uint64_t end = sim_now_ns() + ns;
	uint32_t never = 0;

	while (sim_now_ns() < end)
		platform_futex_wait(&never, 0, end - sim_now_ns());
}

static void am_ready(void)
{
	quiesce_fetch_add_relaxed(&nr_ready, 1u);
}

static void await_ready(uint32_t nr)
{
	while (quiesce_load_relaxed(&nr_ready) != nr)
		platform_yield();
}

static void await_over(void)
{
	while (!quiesce_load_relaxed(&over))
		sleep_ns(1000000);
}

static void record_holdout(int tid, uint64_t waited_ns, void *arg)
{
	struct reader *r = arg;

	sim_assert(waited_ns >= 1000000);
	for (int i = 0; i < NR_READERS; i++, r++)
		if (quiesce_load_relaxed(&r->tid) == (uint32_t)tid)
			break;
	sim_assert(r < readers + NR_READERS);
	if (!quiesce_load_relaxed(&r->times))
		quiesce_store_relaxed(&r->first, sim_now_ns());
	quiesce_store_relaxed(&r->last, sim_now_ns());
	quiesce_store_relaxed(&r->times, quiesce_load_relaxed(&r->times) + 1);
}

static void stays_inside(void *arg)
{
	struct reader *r = arg;

	rcu_read_lock();
	quiesce_store_relaxed(&r->tid, quiesce__tid());
	am_ready();
	sleep_ns(SECTION_NS);
	rcu_read_unlock();
}

static void stays_outside(void *unused)
{
	(void)unused;
	world_section(1);
	am_ready();
	await_over();
}

static void enters_late(void *unused)
{
	(void)unused;
	world_section(1);
	am_ready();
	world_wait_change(&quiesce_rcu_v1.gp, gp_before);
	rcu_read_lock();
	await_over();
	rcu_read_unlock();
}

static void waits_with_hook(void *nr)
{
	quiesce_set_holdout_hook(record_holdout, readers);
	await_ready((uint32_t)(intptr_t)nr);
	synchronize_rcu();
	quiesce_store_relaxed(&over, 1);
}

static void setup_named(void)
{
	world_begin();
	gp_before = quiesce_rcu_v1.gp;
	for (int i = 0; i < NR_READERS; i++)
		sim_spawn(stays_inside, &readers[i], "reader");
	sim_spawn(stays_outside, NULL, "idle reader");
	sim_spawn(enters_late, NULL, "late reader");
	sim_spawn(waits_with_hook, (void *)(NR_READERS + 2), "updater");
}

/* A call may come late, the first one too; the next search comes after it. */
static void finish_named(void)
{
	for (int i = 0; i < NR_READERS; i++) {
		const struct reader *r = &readers[i];

		if (r->times > 2)
			sim_assert((uint64_t)(r->times - 2) * AGAIN_NS <= r->last - r->first);
	}
	sim_assert(readers[0].times && readers[1].times);
	sim_saw();
}

/* ---- dead readers are not named ---- */

static void dies_inside(void *arg)
{
	struct reader *r = arg;

	rcu_read_lock();
	quiesce_store_relaxed(&r->tid, quiesce__tid());
	am_ready();
	sim_die();
}

static void record_living(int tid, uint64_t waited_ns, void *arg)
{
	record_holdout(tid, waited_ns, arg);
	sim_assert((uint32_t)tid == quiesce_load_relaxed(&readers[1].tid));
}

static void waits_for_the_dead(void *unused)
{
	(void)unused;
	quiesce_set_holdout_hook(record_living, readers);
	await_ready(2);
	while (platform_thread_alive(quiesce_load_relaxed(&readers[0].tid)))
		platform_yield();
	synchronize_rcu();
}

static void setup_dead(void)
{
	world_begin();
	sim_spawn(dies_inside, &readers[0], "mortal");
	sim_spawn(stays_inside, &readers[1], "reader");
	sim_spawn(waits_for_the_dead, NULL, "updater");
}

static void finish_dead(void)
{
	if (readers[1].times)
		sim_saw();
}

/* ---- a hook that was replaced has returned ---- */

static uint32_t removed, nr_calls;

static void take_time(int tid, uint64_t waited_ns, void *arg)
{
	(void)tid, (void)waited_ns;
	sim_assert(!quiesce_load_relaxed(&removed));
	quiesce_fetch_add_relaxed((uint32_t *)arg, 1u);
	sleep_ns(3000000);
	sim_assert(!quiesce_load_relaxed(&removed));
}

static void removes(void *unused)
{
	(void)unused;
	quiesce_set_holdout_hook(take_time, &nr_calls);
	am_ready();
	sleep_ns(1000000 * (1 + sim_random(8)));
	quiesce_set_holdout_hook(NULL, NULL);
	quiesce_store_relaxed(&removed, 1);
}

static void waits_beside(void *unused)
{
	(void)unused;
	await_ready(2);
	synchronize_rcu();
}

static void setup_removed(void)
{
	world_begin();
	sim_spawn(stays_inside, &readers[0], "reader");
	sim_spawn(removes, NULL, "remover");
	sim_spawn(waits_beside, NULL, "updater");
}

static void finish_removed(void)
{
	if (nr_calls)
		sim_saw();
}

/* ---- beside a leader that stops, a follower that runs alone has readers named ---- */

static void leads_and_stops(void *unused)
{
	(void)unused;
	await_ready(2);
	sim_stop_within(150);
	for (;;)
		synchronize_rcu();
}

static void follows_with_hook(void *unused)
{
	(void)unused;
	quiesce_set_holdout_hook(record_holdout, readers);
	await_ready(2);
	synchronize_rcu();
	synchronize_rcu();
}

static void setup_stopped(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	for (int i = 0; i < NR_READERS; i++)
		sim_spawn(stays_inside, &readers[i], "reader");
	sim_spawn(leads_and_stops, NULL, "leader");
	sim_spawn(follows_with_hook, NULL, "follower");
}

const struct sim_scenario rcu_holdout_scenarios[] = {
	{ .name = "named", .what = "a hook is called for all readers that delay the wait, and for no other thread", .setup = setup_named,
	  .finish = finish_named, .must_see = "two readers that are named" },
	{ .name = "named_dead", .what = "... but for one that has died", .setup = setup_dead, .finish = finish_dead,
	  .must_see = "a reader that is named" },
	{ .name = "named_removed", .what = "the hook is removed meanwhile", .setup = setup_removed, .finish = finish_removed,
	  .must_see = "a call of the hook" },
	{ .name = "named_by_follower", .what = "a leader stops for good, and a follower goes on", .setup = setup_stopped,
	  .finish = finish_named,
	  .must_see = "two readers that are named" },
	{ .name = NULL },
};
