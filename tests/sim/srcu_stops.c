/* SPDX-License-Identifier: MIT */
/* srcu_stops.c - scenarios: a thread on which others depend stops for good. */
#include "srcu_world.h"

static void nothing(struct rcu_head *head)
{
	(void)head;
}

/* A leader, or a thread that is about to lead, stops at any place outside of short locks. */
static void stops(void *unused)
{
	static struct rcu_head head;

	(void)unused;
	/* The library is initialised once, as a rule when it is loaded; and there is a helper thread. */
	call_srcu(world_domain[0], &head, nothing);
	srcu_barrier(world_domain[0]);
	sim_stop_within(150);
	for (;;)
		synchronize_srcu(world_domain[0]);
}

static void leader_stops(enum world_mode mode)
{
	world_begin(mode);
	sim_config()->idle_limit_ns = 1000000000;
	world_readers(driver_readers);
	sim_spawn(stops, NULL, "leader");
	spawn_each(2, world_updater, "updater");
}

static void setup_leader_stops(void) { leader_stops(LIGHT); }
static void setup_full_leader_stops(void) { leader_stops(FULL); }

/* The helper makes progress without the leader. */
static void barrier_beside(void *unused)
{
	static struct rcu_head head[2];

	(void)unused;
	for (int i = 0; i < 2; i++) {
		call_srcu(world_domain[0], &head[i], nothing);
		srcu_barrier(world_domain[0]);
	}
}

/* A thread that opens a domain for its first use, or is about to, stops. */
static void first_user_stops(void *unused)
{
	(void)unused;
	synchronize_srcu(world_domain[0]);
	sim_stop_within(40);
	for (;;)
		synchronize_srcu(world_domain[1]);
}

static void other_user(void *unused)
{
	(void)unused;
	synchronize_srcu(world_domain[1]);
}

static void setup_first_user_stops(void)
{
	world_begin(LIGHT);
	sim_config()->idle_limit_ns = 1000000000;
	sim_spawn(first_user_stops, NULL, "first");
	spawn_each(2, other_user, "other");
}

static void setup_leader_stops_barrier(void)
{
	world_begin(LIGHT);
	sim_config()->idle_limit_ns = 1000000000;
	world_readers(driver_readers);
	sim_spawn(stops, NULL, "leader");
	sim_spawn(barrier_beside, NULL, "updater");
}

const struct sim_scenario srcu_stop_scenarios[] = {
	{ .name = "leader_stops", .what = "a leader stops for good", .setup = setup_leader_stops },
	{ .name = "full_leader_stops", .what = "... without membarrier", .setup = setup_full_leader_stops },
	{ .name = "leader_stops_barrier", .what = "... and others wait for callbacks", .setup = setup_leader_stops_barrier },
	{ .name = "first_user_stops", .what = "one that makes a domain ready for use stops for good", .setup = setup_first_user_stops },
	{ .name = NULL },
};
