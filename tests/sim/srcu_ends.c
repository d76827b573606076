/* SPDX-License-Identifier: MIT */
/* srcu_ends.c - scenarios: domains opened, cleaned up, freed; quiesce_shutdown(). */
#include "srcu_world.h"

#include <quiesce/control.h>

#include "runtime/core.h"

#include <errno.h>

static uint32_t asked, done;

/* ---- beginnings ---- */

/* Several threads at once make the first use of domains with static initialisers. */
static void forget_domains(void)
{
	for (int i = 0; i < NR_DOMAINS; i++)
		*world_domain[i] = (struct srcu_struct){ .name = "static" };
}

static void setup_static(void)
{
	world_begin(ANY);
	forget_domains();
	world_readers(driver_readers);
	spawn_each(2, world_updater, "updater");
	sim_spawn(world_queuer, NULL, "queuer");
}

/* ---- the end of a domain ---- */

static void cleanup(intptr_t domain)
{
	cleanup_srcu_struct(world_domain[domain]);
	sim_assert(!world_domain[domain]->percpu.base && !quiesce__srcu_usage(world_domain[domain])->begun);
	world_domain_gone(domain);
}

/* An object that readers find by a pointer is freed, and its domain with it. */
static uint64_t closing;

static void last_reader(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_add(&asked);
	world_check(0);
	world_stay(10);
	srcu_read_unlock(world_domain[0], idx);
}

static void ends_domain(void *expedited)
{
	struct item *old;

	world_await(&asked, 2);
	old = world_replace(0);
	if (expedited)
		synchronize_srcu_expedited(world_domain[0]);
	else
		synchronize_srcu(world_domain[0]);
	world_free(old);
	cleanup(0);
}

static void cleanup_after(enum world_mode mode)
{
	world_begin(mode);
	spawn_each(2, last_reader, "reader");
	sim_spawn(ends_domain, sim_random(2) ? &closing : NULL, "updater");
}

static void setup_cleanup(void) { cleanup_after(ANY); }
static void setup_full_cleanup(void) { cleanup_after(FULL); }

/* The reader announces the end of its section by an atomic count: the cleanup follows without a grace period, by its own check alone. */
static void reader_signals(void *unused)
{
	(void)unused;
	world_section(0);
	quiesce_fetch_add(RU3, &asked, 1u);
}

static void cleans_when_asked(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &asked) != 2)
		platform_yield();
	cleanup(0);
}

static void setup_cleanup_known(void)
{
	world_begin(ANY);
	spawn_each(2, reader_signals, "reader");
	sim_spawn(cleans_when_asked, NULL, "cleaner");
}

/* The cleanup comes while the helper may be at its last step. */
static void queues_and_cleans(void *domain)
{
	world_queuer(domain);
	srcu_barrier(world_domain[(intptr_t)domain]);
	cleanup((intptr_t)domain);
}

static void setup_cleanup_barrier(void)
{
	world_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(queues_and_cleans, (void *)0, "cleaner");
	sim_spawn(queues_and_cleans, (void *)1, "cleaner");
}

/* A reader that leaves wakes the helper, which may be at any place. */
static void queues_beside_readers(void *unused)
{
	(void)unused;
	world_await(&asked, 2);
	world_queuer(NULL);
	srcu_barrier(world_domain[0]);
	cleanup(0);
}

static void setup_cleanup_woken(void)
{
	world_begin(ANY);
	spawn_each(2, last_reader, "reader");
	sim_spawn(queues_beside_readers, NULL, "cleaner");
}

static void polls_and_cleans(void *unused)
{
	struct rcu_gp_seq seq;

	(void)unused;
	world_await(&asked, 2);
	seq = start_poll_synchronize_srcu(world_domain[0]);
	while (!poll_state_synchronize_srcu(world_domain[0], seq))
		platform_yield();
	cleanup(0);
}

static void setup_cleanup_polled(void)
{
	world_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	spawn_each(2, last_reader, "reader");
	sim_spawn(polls_and_cleans, NULL, "cleaner");
}

/* After the cleanup another domain uses the memory and the counters. */
static void lives_again(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 3; i++) {
		world_spawn(last_reader, NULL, "reader");
		world_spawn(last_reader, NULL, "reader");
		world_await(&asked, 2 * i + 2);
		synchronize_srcu(world_domain[0]);
		cleanup_srcu_struct(world_domain[0]);
		if (i & 1)
			forget_domains();
		else
			sim_assert(init_srcu_struct(world_domain[0]) == 0);
	}
}

static void setup_again(void)
{
	world_begin(ANY);
	sim_spawn(lives_again, NULL, "updater");
}

/* ---- cleaned up too early: reported, and nothing is lost ---- */

static int nr_reports;

static void count_report(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_IN_USE)
		sim_fail("misuse: %s", text);
	nr_reports++;
}

static void holds_until_reported(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_set(&asked, 1);
	world_await(&done, 1);
	world_check(0);
	srcu_read_unlock(world_domain[0], idx);
}

static void cleans_too_early(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	cleanup_srcu_struct(world_domain[0]);
	sim_assert(nr_reports == 1);
	world_set(&done, 1);
}

static void setup_busy_reader(void)
{
	quiesce_set_misuse_hook(count_report);
	world_begin(ANY);
	sim_spawn(holds_until_reported, NULL, "reader");
	sim_spawn(cleans_too_early, NULL, "cleaner");
	sim_spawn(world_updater, NULL, "updater");
}

/* A callback cannot have run while the caller's own section delays it. */
static void cleans_with_callback(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_queue(0);
	cleanup_srcu_struct(world_domain[0]);
	sim_assert(nr_reports == 1);
	srcu_read_unlock(world_domain[0], idx);
	srcu_barrier(world_domain[0]);
	cleanup(0);
}

static void setup_busy_pending(void)
{
	quiesce_set_misuse_hook(count_report);
	world_begin(ANY);
	sim_spawn(cleans_with_callback, NULL, "cleaner");
}

/* ---- quiesce_shutdown() ---- */

static void shutter(void *domain)
{
	struct item *old = world_replace((intptr_t)domain);

	world_queuer(domain);
	world_retire(old, world_free_head);
	sim_assert(quiesce_shutdown(0) == 0);
	if (!sim_obj_is_free((int)old->id))
		sim_fail("a callback was pending when quiesce_shutdown() returned 0");
	world_queue((intptr_t)domain);
}

static void setup_shutdown(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(shutter, (void *)0, "shutter");
	sim_spawn(shutter, (void *)1, "shutter");
	sim_spawn(world_queuer, NULL, "queuer");
}

/* After call_srcu() has returned, a shutdown includes the callback, also if it was not the first of its batch. */
static void shutter_no_helper(void *domain)
{
	shutter(domain);
	sim_assert(quiesce_shutdown(0) == 0);
}

static void setup_shutdown_no_helper(void)
{
	world_begin(ANY);
	sim_config()->thread_start_failures = -1;
	world_readers(1);
	sim_spawn(shutter_no_helper, (void *)0, "shutter");
	sim_spawn(shutter_no_helper, (void *)0, "shutter");
}

/* A reader delays the shutdown past its time limit; and a grace period without a waiter keeps no thread alive. */
static void shuts_down_in_vain(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	start_poll_synchronize_srcu(world_domain[0]);
	sim_assert(quiesce_shutdown(0) == 0);
	sim_assert(!quiesce__helper_running());
	world_queue(0);
	sim_assert(quiesce_shutdown(20000000) == -ETIMEDOUT);
	sim_assert(!world_nr_run);
	srcu_read_unlock(world_domain[0], idx);
	sim_assert(quiesce_shutdown(0) == 0);
	sim_assert(world_nr_run == 1 && !quiesce__helper_running());
}

static void setup_shutdown_stuck(void)
{
	world_begin(ANY);
	if (sim_random(3) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(shuts_down_in_vain, NULL, "shutter");
}

const struct sim_scenario srcu_end_scenarios[] = {
	SCENARIO(static, "a domain that opens itself, for several at once"),
	SCENARIO(cleanup, "the last unlock, then the domain is freed"),
	SCENARIO(full_cleanup, "... without membarrier"),
	SCENARIO(cleanup_known, "... known without a grace period"),
	SCENARIO(cleanup_barrier, "... after srcu_barrier()"),
	SCENARIO(cleanup_woken, "... beside readers"),
	SCENARIO(cleanup_polled, "... after a poll"),
	SCENARIO(again, "... and is another one"),
	SCENARIO(busy_reader, "cleaned up with a reader inside"),
	SCENARIO(busy_pending, "cleaned up with a callback pending"),
	SCENARIO(shutdown, "quiesce_shutdown() while callbacks are queued"),
	SCENARIO(shutdown_no_helper, "... without a helper"),
	SCENARIO(shutdown_stuck, "... and a reader is in the way"),
	{ .name = NULL },
};
