/* SPDX-License-Identifier: MIT */
/* srcu_polls.c - scenarios: cookies, and grace periods without a waiter. */
#include "srcu_world.h"

static uint32_t asked;
static struct rcu_gp_seq cookie;
static struct item *victim;
static bool start_it;

static void publish_cookie(void)
{
	cookie = start_it ? start_poll_synchronize_srcu(world_domain[0]) : get_state_synchronize_srcu(world_domain[0]);
	quiesce_store_release(RU3, &asked, 1);
}

static void taker(void *unused)
{
	(void)unused;
	victim = world_replace(0);
	publish_cookie();
}

static void poller(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	while (!quiesce_load_acquire(RU3, &asked))
		platform_yield();
	for (int i = 0; !poll_state_synchronize_srcu(world_domain[0], cookie); i++) {
		if (i == 20 && !start_it)
			synchronize_srcu(world_domain[0]);
		else if (i < 20)
			platform_yield();
		else
			platform_futex_wait(&never, 0, 1000000); /* a reader may have missed the request */
		sim_assert(i < 1000);
	}
	world_free(victim);
}

static void poll_threads(enum world_mode mode)
{
	world_begin(mode);
	world_readers(driver_readers);
	sim_spawn(taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
	sim_spawn(world_updater, NULL, "updater");
}

static void setup_poll(void) { poll_threads(LIGHT); }
static void setup_full_poll(void) { poll_threads(FULL); }

static void setup_start_poll(void)
{
	start_it = true;
	poll_threads(ANY);
}

static void setup_poll_no_helper(void)
{
	start_it = sim_random(2);
	poll_threads(ANY);
	sim_config()->thread_start_failures = -1;
}

/* No other thread begins grace periods: the helper has to, as often as it is requested. */
static void second_taker(void *unused)
{
	(void)unused;
	world_stay(50);
	taker(NULL);
}

static void starter(void *unused)
{
	(void)unused;
	start_poll_synchronize_srcu(world_domain[0]);
}

static void setup_poll_asleep(void)
{
	start_it = true;
	world_begin(ANY);
	world_readers(1);
	sim_spawn(starter, NULL, "starter");
	sim_spawn(second_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
}

/* The updater publishes by a store: only the cookie's own fence is between that and the load of the number. */
static struct item *assigned;

static void assigning_taker(void *unused)
{
	struct item *item = world_new(0);

	(void)unused;
	victim = assigned;
	rcu_assign_pointer(assigned, item);
	publish_cookie();
}

static void assigned_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		int idx = srcu_read_lock(world_domain[0]);
		struct item *item = srcu_dereference(assigned, world_domain[0]);

		sim_obj_read((int)item->id);
		sim_assert(sim_data_read((int)item->id) == 100 + item->id);
		srcu_read_unlock(world_domain[0], idx);
	}
}

static void waiter(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		synchronize_srcu(world_domain[0]);
}

static void poll_assign(enum world_mode mode)
{
	world_begin(mode);
	assigned = world_new(0);
	spawn_each(2, assigned_reader, "reader");
	sim_spawn(assigning_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
	sim_spawn(waiter, NULL, "waiter");
}

static void setup_poll_assign(void) { poll_assign(LIGHT); }
static void setup_full_poll_assign(void) { poll_assign(FULL); }

/* ---- the helper runs a callback of the domain, which waits for the poller, or polls itself ---- */

static uint32_t in_callback, has_polled;

static void replace_and_poll(void)
{
	struct item *old = world_replace(0);
	struct rcu_gp_seq seq = start_poll_synchronize_srcu(world_domain[0]);
	uint32_t never = 0;

	for (int i = 0; !poll_state_synchronize_srcu(world_domain[0], seq); i++) {
		platform_futex_wait(&never, 0, 1000000);
		sim_assert(i < 100);
	}
	world_free(old);
}

static void waits_for_poller(struct rcu_head *head)
{
	world_set(&in_callback, 1);
	world_await(&has_polled, 1);
	world_free_head(head);
}

static void polls_in_callback(struct rcu_head *head)
{
	replace_and_poll();
	world_free_head(head);
	world_set(&has_polled, 1);
}

static void polls_beside_callback(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), waits_for_poller);
	world_await(&in_callback, 1);
	replace_and_poll();
	replace_and_poll();
	world_set(&has_polled, 1);
}

static void queues_a_poller(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), polls_in_callback);
	world_await(&has_polled, 1);
}

static void setup_poll_beside_callback(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(polls_beside_callback, NULL, "poller");
}

static void setup_poll_in_callback(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(queues_a_poller, NULL, "queuer");
}

/* A poll that reports completion is a full fence. */
static uint64_t left, right, left_sees, right_sees;

static void polls_left(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&left, 1);
	sim_assert(poll_state_synchronize_srcu(world_domain[0], get_completed_synchronize_srcu()));
	left_sees = quiesce_load_relaxed(&right);
}

static void polls_right(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&right, 1);
	sim_assert(poll_state_synchronize_srcu(world_domain[0], get_completed_synchronize_srcu()));
	right_sees = quiesce_load_relaxed(&left);
}

static void setup_poll_fence(void)
{
	world_begin(ANY);
	sim_spawn(polls_left, NULL, "left");
	sim_spawn(polls_right, NULL, "right");
}

static void finish_poll_fence(void)
{
	sim_assert(left_sees || right_sees);
}

const struct sim_scenario srcu_poll_scenarios[] = {
	SCENARIO(poll, "a cookie polled by another thread"),
	SCENARIO(full_poll, "... without membarrier"),
	SCENARIO(start_poll, "... with a grace period started"),
	SCENARIO(poll_no_helper, "... without a helper"),
	SCENARIO(poll_asleep, "... when the helper has gone to sleep"),
	SCENARIO(poll_beside_callback, "a callback that waits for the poller"),
	SCENARIO(poll_in_callback, "a callback that polls its own cookie"),
	SCENARIO(poll_assign, "a cookie after publication by a store"),
	SCENARIO(full_poll_assign, "... without membarrier"),
	{ .name = "poll_fence", .what = "a poll that says yes is a full fence", .setup = setup_poll_fence,
	  .finish = finish_poll_fence },
	{ .name = NULL },
};
