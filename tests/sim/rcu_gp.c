/* SPDX-License-Identifier: MIT */
/* rcu_gp.c - scenarios: grace periods of several callers, shared, overlapping, abandoned. */
#include "rcu_world.h"

static void setup_sharing(void)
{
	world_begin();
	world_readers(driver_readers);
	for (int i = 0; i < 3; i++)
		sim_spawn(world_updater, (void *)2, "updater");
}

/* A leader stops at any place outside of short locks. */
static void stops(void *unused)
{
	(void)unused;
	synchronize_rcu(); /* the library is initialised once, as a rule when it is loaded */
	sim_stop_within(120);
	for (;;)
		synchronize_rcu();
}

static void setup_leader_stops(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	world_readers(driver_readers);
	sim_spawn(stops, NULL, "leader");
	for (int i = 0; i < 2; i++)
		sim_spawn(world_updater, (void *)2, "updater");
}

static void setup_full_leader_stops(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_leader_stops();
}

/* A leader that waits for long stops just before, or after, the section that it waits for ends. */
#define SECTION_NS 170000000u
#define LEFT_NS 25000000u

static uint64_t entered, left_at;

static void sleeps_in_a_section(void *unused)
{
	uint32_t never = 0;
	uint64_t end;

	(void)unused;
	rcu_read_lock();
	quiesce_store_relaxed(&entered, 1);
	end = sim_now_ns() + SECTION_NS;
	while (sim_now_ns() < end)
		platform_futex_wait(&never, 0, end - sim_now_ns());
	left_at = sim_now_ns();
	rcu_read_unlock();
}

static void waits_and_stops(void *unused)
{
	(void)unused;
	world_wait_change(&entered, 0);
	sim_stop_within(3000);
	synchronize_rcu();
	for (;;)
		sim_point("is over");
}

static void follows(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	world_wait_change(&entered, 0);
	platform_futex_wait(&never, 0, 3000000);
	synchronize_rcu();
	sim_assert(sim_now_ns() < left_at + LEFT_NS);
	sim_saw();
}

static void setup_leader_stops_late(void)
{
	entered = left_at = 0;
	world_begin();
	sim_spawn(sleeps_in_a_section, NULL, "reader");
	sim_spawn(waits_and_stops, NULL, "leader");
	sim_spawn(follows, NULL, "follower");
}

/* A retirer stops at any place, and another thread waits for callbacks. */
static void nothing(struct rcu_head *head)
{
	(void)head;
}

static void retires_and_stops(void *unused)
{
	static struct rcu_head head[40];

	(void)unused;
	call_rcu(&head[0], nothing);
	rcu_barrier(); /* the library is initialised, and there is a worker */
	sim_stop_within(80);
	for (int i = 1; i < 40; i++)
		call_rcu(&head[i], nothing);
}

static void waits_for_callbacks(void *unused)
{
	static struct rcu_head head[2];

	(void)unused;
	for (int i = 0; i < 2; i++) {
		call_rcu(&head[i], nothing);
		rcu_barrier();
	}
}

static void setup_waker_stops(void)
{
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	sim_spawn(retires_and_stops, NULL, "retirer");
	sim_spawn(waits_for_callbacks, NULL, "waiter");
}

/* A cookie that was completed stays completed, also when a grace period that began earlier ends later. */
static void polls_again(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct rcu_gp_seq seq = get_state_synchronize_rcu();

		synchronize_rcu();
		for (int k = 0; k < 3; k++)
			sim_assert(poll_state_synchronize_rcu(seq));
	}
}

static void setup_stays_over(void)
{
	world_begin();
	world_readers(1);
	spawn_each(4, polls_again, "updater");
}

static void expediter(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace();

		synchronize_rcu_expedited();
		world_free(old);
	}
}

static void setup_expedited(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(expediter, NULL, "expediter");
	sim_spawn(world_updater, (void *)2, "updater");
}

/* ---- a poller depends on no thread that is in a callback, or does not run ---- */

static void replace_and_poll(void)
{
	struct item *old = world_replace();
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();
	uint32_t never = 0;

	for (int i = 0; !poll_state_synchronize_rcu(seq); i++) {
		platform_futex_wait(&never, 0, 1000000);
		sim_assert(i < 100);
	}
	world_free(old);
}

static uint32_t in_callback, has_polled;

static void await(uint32_t *word)
{
	while (!quiesce_load_acquire(RU3, word))
		platform_futex_wait(word, 0, PLATFORM_FOREVER);
}

static void set(uint32_t *word)
{
	quiesce_store_release(RU3, word, 1);
	platform_futex_wake(word, INT32_MAX);
}

static void waits_for_poller(struct rcu_head *head)
{
	(void)head;
	set(&in_callback);
	await(&has_polled);
}

static void polls_in_callback(struct rcu_head *head)
{
	(void)head;
	replace_and_poll();
	set(&has_polled);
}

static struct rcu_head busy;

static void polls_beside_callback(void *unused)
{
	(void)unused;
	call_rcu(&busy, waits_for_poller);
	await(&in_callback);
	replace_and_poll();
	replace_and_poll();
	set(&has_polled);
}

static void queues_a_poller(void *unused)
{
	(void)unused;
	call_rcu(&busy, polls_in_callback);
	await(&has_polled);
}

static void setup_poll_beside_callback(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(polls_beside_callback, NULL, "poller");
}

static void setup_full_poll_beside_callback(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_poll_beside_callback();
}

static void setup_poll_in_callback(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(queues_a_poller, NULL, "queuer");
}

/* The leader stops for good at any place, beside pollers. */
static void setup_poll_leader_stops(void)
{
	setup_poll_beside_callback();
	sim_spawn(stops, NULL, "leader");
}

const struct sim_scenario rcu_gp_scenarios[] = {
	{ .name = "sharing", .what = "three updaters share grace periods", .setup = setup_sharing },
	{ .name = "leader_stops", .what = "one that leads stops for good", .setup = setup_leader_stops },
	{ .name = "leader_stops_late", .what = "... after a long wait", .setup = setup_leader_stops_late, .must_see = "a follower" },
	{ .name = "full_leader_stops", .what = "... without membarrier", .setup = setup_full_leader_stops },
	{ .name = "poll_beside_callback", .what = "a cookie, and a worker in a callback that waits for the poller",
	  .setup = setup_poll_beside_callback },
	{ .name = "full_poll_beside_callback", .what = "... without membarrier", .setup = setup_full_poll_beside_callback },
	{ .name = "poll_in_callback", .what = "a callback that polls its own cookie", .setup = setup_poll_in_callback },
	{ .name = "poll_leader_stops", .what = "... and a leader that stops for good", .setup = setup_poll_leader_stops },
	{ .name = "waker_stops", .what = "one that retires stops for good", .setup = setup_waker_stops },
	{ .name = "stays_over", .what = "grace periods overlap", .setup = setup_stays_over },
	{ .name = "expedited", .what = "expedited and plain waits at once", .setup = setup_expedited },
	{ .name = NULL },
};
