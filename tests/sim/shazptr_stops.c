/* SPDX-License-Identifier: MIT */
/* shazptr_stops.c - scenarios: heavy fences that are shared, and a leader that stops for good. */
#include "shazptr_world.h"

/* The updater publishes by a store, so that only the fence orders it. */
static void storing_updater(void *place)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = rcu_access_pointer(world_place[(intptr_t)place]), *item = world_new(NULL);

		rcu_assign_pointer(world_place[(intptr_t)place], item);
		synchronize_shazptr(old);
		world_free(old);
	}
}

static void setup_fences(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	for (int i = 0; i < driver_readers; i++)
		sim_spawn(world_reader_of_places, NULL, "reader");
	for (intptr_t i = 0; i < 3; i++)
		sim_spawn(storing_updater, (void *)i, "updater");
}

/* A caller that shares a heavy fence with others stops at any place. */
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

static void setup_fences_dear(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	sim_config()->possible_cpus = DEAR_CALLERS; /* with so few possible CPUs two callers are contended */
	sim_config()->membarrier_ns = 400000;
	sim_config()->idle_limit_ns = 0;
	sim_config()->spurious_wakeups = false;
	for (int i = 0; i < DEAR_CALLERS; i++)
		sim_spawn(fences_again_and_again, NULL, "caller");
}

/* Each new membarrier queues behind those under way: a caller that executes one more delays all of them, and the next caller. */
static void finish_fences_dear(void)
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
		synchronize_shazptr(world_place);
}

/* Delay all waiters, again and again. */
static void holds_now_and_then(void *unused)
{
	(void)unused;
	for (int i = 0; i < 8; i++) {
		struct shazptr_guard guard = shazptr_acquire(world_place);

		world_look(rcu_dereference(world_place[0]));
		shazptr_clear(guard);
		platform_yield();
	}
}

static void waits_beside(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace(0);

		synchronize_shazptr(world_place);
		world_free(old);
	}
}

static void setup_leader_stops(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_spawn(leads_and_stops, NULL, "leader");
	sim_spawn(holds_now_and_then, NULL, "holder");
	sim_spawn(waits_beside, NULL, "updater");
	sim_spawn(waits_beside, NULL, "updater");
}

static void setup_full_leader_stops(void)
{
	setup_leader_stops();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static void setup_alone_leader_stops(void)
{
	setup_leader_stops();
	sim_config()->thread_start_failures = -1;
}

const struct sim_scenario shazptr_stop_scenarios[] = {
	{ .name = "fences", .what = "updaters of different pointers share heavy fences", .setup = setup_fences },
	{ .name = "fence_stops", .what = "... and one of them stops for good", .setup = setup_fence_stops },
	{ .name = "fences_dear", .what = "membarriers that take long are shared by those that wait for them", .setup = setup_fences_dear,
	  .finish = finish_fences_dear, .must_see = "callers that shared" },
	{ .name = "leader_stops", .what = "who looks for everybody stops for good", .setup = setup_leader_stops },
	{ .name = "full_leader_stops", .what = "... without membarrier", .setup = setup_full_leader_stops },
	{ .name = "alone_leader_stops", .what = "... without a thread", .setup = setup_alone_leader_stops },
	{ .name = NULL },
};
