/* SPDX-License-Identifier: MIT */
/* shazptr_stops.c - scenarios: heavy fences that are shared, and a leader that stops for good. */
#include "shazptr_world.h"

/* The updater publishes by a store, so that only the fence orders it. */
static void storing_updater(void *index)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = rcu_access_pointer(world_pointer[(intptr_t)index]), *item = world_new(NULL);

		rcu_assign_pointer(world_pointer[(intptr_t)index], item);
		synchronize_shazptr(old);
		world_free(old);
	}
}

static void setup_fences(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	spawn_each(driver_readers, world_reader_of_pointers, "reader");
	for (intptr_t i = 0; i < 3; i++)
		sim_spawn(storing_updater, (void *)i, "updater");
}

/* A caller that shares a heavy fence with others stops at any instruction. */
static void stops(void *unused)
{
	static char object;

	(void)unused;
	synchronize_shazptr(&object); /* the library is initialised once, as a rule when it is loaded */
	sim_stop_within(60);
	for (;;)
		synchronize_shazptr(&object);
}

static void setup_fence_stops(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_config()->nr_cpus = 0;
	sim_spawn(stops, NULL, "leader");
	for (intptr_t i = 0; i < 3; i++)
		sim_spawn(storing_updater, (void *)i, "updater");
}

/* ---- membarriers that take long, one at a time ---- */

#define DEAR_CALLERS 8
#define DEAR_CALLS 12

static void fences_again_and_again(void *unused)
{
	static char object;

	(void)unused;
	for (int i = 0; i < DEAR_CALLS; i++)
		synchronize_shazptr(&object);
}

static void setup_fences_slow(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	sim_config()->possible_cpus = DEAR_CALLERS; /* with so few possible CPUs two callers are contended */
	sim_config()->membarrier_ns = 400000;
	sim_config()->idle_limit_ns = 0;
	sim_config()->spurious_wakeups = false;
	spawn_each(DEAR_CALLERS, fences_again_and_again, "caller");
}

/* Each new membarrier queues behind those under way: a caller that executes one more delays all of them, and the next caller. */
static void finish_fences_slow(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.membarriers <= DEAR_CALLERS * DEAR_CALLS * 5 / 12);
	sim_saw();
}

/* ---- the leader stops for good ---- */

static void leads_and_stops(void *unused)
{
	static char object;

	(void)unused;
	synchronize_shazptr(&object);
	sim_stop_within(200);
	for (;;)
		synchronize_shazptr(world_pointer);
}

/* The holder delays all waiters, again and again. */
static void holds_now_and_then(void *unused)
{
	(void)unused;
	for (int i = 0; i < 8; i++) {
		struct shazptr_guard guard = shazptr_acquire(world_pointer);

		world_check(rcu_dereference(world_pointer[0]));
		shazptr_clear(guard);
		platform_yield();
	}
}

static void waits_beside(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace(0);

		synchronize_shazptr(world_pointer);
		world_free(old);
	}
}

static void setup_leader_stops(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_spawn(leads_and_stops, NULL, "leader");
	sim_spawn(holds_now_and_then, NULL, "holder");
	spawn_each(2, waits_beside, "updater");
}

/* The leader stops after a long wait, just before or after the guard is cleared. */
#define GUARDED_NS 170000000u
#define LEFT_NS 25000000u

static uint32_t guarded;
static uint64_t cleared_at;

static void sleep_ns(uint64_t ns)
{
	uint64_t end = sim_now_ns() + ns;
	uint32_t never = 0;

	while (sim_now_ns() < end)
		platform_futex_wait(&never, 0, end - sim_now_ns());
}

static void holds_for_long(void *unused)
{
	struct shazptr_guard guard = shazptr_acquire(world_pointer);

	(void)unused;
	world_set(&guarded, 1);
	sleep_ns(GUARDED_NS);
	quiesce_store_relaxed(&cleared_at, sim_now_ns());
	shazptr_clear(guard);
	quiesce_store_relaxed(&cleared_at, sim_now_ns()); /* the thread may have been preempted in between */
}

static void leads_for_long_and_stops(void *unused)
{
	(void)unused;
	world_await(&guarded, 1);
	sim_stop_within(1500);
	synchronize_shazptr(world_pointer);
	for (;;)
		sim_point("is over");
}

static void follows_for_long(void *unused)
{
	(void)unused;
	world_await(&guarded, 1);
	sleep_ns(3000000);
	synchronize_shazptr(world_pointer);
	sim_assert(sim_now_ns() < quiesce_load_relaxed(&cleared_at) + LEFT_NS);
	sim_saw();
}

static void setup_leader_stops_late(void)
{
	sim_config()->thread_start_failures = -1; /* a caller leads */
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_spawn(holds_for_long, NULL, "holder");
	sim_spawn(leads_for_long_and_stops, NULL, "leader");
	spawn_each(2, follows_for_long, "follower");
}

/* Most followers have returned long before the last one, which came last. */
#define NR_EARLY 8
#define EARLY_NS 30000000u
#define LEFT_ALONE_NS 13000000u

static uint32_t early_guarded;

static void holds_for_others(void *unused)
{
	struct shazptr_guard guard = shazptr_acquire(world_pointer + 1);

	(void)unused;
	world_set(&early_guarded, 1);
	sleep_ns(EARLY_NS);
	shazptr_clear(guard);
}

static void follows_early(void *unused)
{
	(void)unused;
	world_await(&early_guarded, 1);
	sleep_ns(1000000);
	synchronize_shazptr(world_pointer + 1);
}

static void is_the_last_follower(void *unused)
{
	(void)unused;
	world_await(&guarded, 1);
	sleep_ns(10000000);
	synchronize_shazptr(world_pointer);
	sim_assert(sim_now_ns() < quiesce_load_relaxed(&cleared_at) + LEFT_ALONE_NS);
	sim_saw();
}

static void setup_followers_leave(void)
{
	sim_config()->thread_start_failures = -1;
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_spawn(holds_for_long, NULL, "holder");
	sim_spawn(holds_for_others, NULL, "holder");
	sim_spawn(leads_for_long_and_stops, NULL, "leader");
	spawn_each(NR_EARLY, follows_early, "early follower");
	sim_spawn(is_the_last_follower, NULL, "last follower");
}

const struct sim_scenario shazptr_stop_scenarios[] = {
	{ .name = "fences", .what = "updaters of different pointers share heavy fences", .setup = setup_fences },
	{ .name = "fence_stops", .what = "... and one of them stops for good", .setup = setup_fence_stops },
	{ .name = "fences_slow", .what = "membarriers that take long are shared by those that wait for them", .setup = setup_fences_slow,
	  .finish = finish_fences_slow, .must_see = "callers that shared" },
	{ .name = "leader_stops", .what = "the leader of all waiters stops for good", .setup = setup_leader_stops },
	{ .name = "full_leader_stops", .what = "... without membarrier", .setup = setup_leader_stops, .but = without_membarrier },
	{ .name = "leader_stops_late", .what = "... after a long wait", .setup = setup_leader_stops_late, .must_see = "a follower" },
	{ .name = "followers_leave", .what = "... and most followers are through", .setup = setup_followers_leave,
	  .must_see = "a follower" },
	{ .name = "no_thread_leader_stops", .what = "... without a thread", .setup = setup_leader_stops, .but = without_threads },
	{ .name = NULL },
};
