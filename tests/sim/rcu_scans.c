/* SPDX-License-Identifier: MIT */
/* rcu_scans.c - scenarios: scanners in the registry beside each other, beside threads that end, and stopped in the middle of a
 * step, or of a section with the whole process. */
#include "rcu_world.h"

#include <quiesce/detail/qsbr.h>

/* Threads end in each step, all the time, and others take their entries. */
static void comes_and_goes(void *left)
{
	world_section(1);
	if (left)
		sim_spawn(comes_and_goes, (void *)((intptr_t)left - 1), "reader");
}

static void polls(void *unused)
{
	struct rcu_gp_seq seq = get_state_synchronize_rcu();

	(void)unused;
	for (int i = 0; i < 4 && !poll_state_synchronize_rcu(seq); i++)
		platform_yield();
}

static void waits_for_quiescence(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		quiesce_qsbr_synchronize();
}

static void reports_quiescence(void *unused)
{
	(void)unused;
	if (quiesce_qsbr_register(QUIESCE_LAYOUT) != 0)
		return; /* entries are few */
	quiesce__qsbr_quiescent_state();
	quiesce_qsbr_unregister();
}

/* More scanners than the simulated registry has scanner entries. */
static void setup_scans(void)
{
	sim_config()->thread_start_failures = -1; /* pollers scan */
	world_begin();
	for (int i = 0; i < 2; i++)
		sim_spawn(comes_and_goes, (void *)3, "reader");
	sim_spawn(world_updater, (void *)2, "updater");
	sim_spawn(polls, NULL, "poller");
	sim_spawn(waits_for_quiescence, NULL, "updater of the other domain");
	sim_spawn(reports_quiescence, NULL, "reader of the other domain");
}

/* Nothing else than a walk holds a short lock here. */
static void scans_and_stops(void *unused)
{
	(void)unused;
	synchronize_rcu(); /* the library is initialised */
	sim_stop_within(150);
	for (;;)
		synchronize_rcu();
}

static uint64_t over;

/* The reader does not end by itself, because the step of its own end may be the one that is stopped. */
static void reads_till_all_is_over(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	while (!quiesce_load_relaxed(&over)) {
		world_section(1);
		platform_futex_wait(&never, 0, 1000000);
	}
	sim_die();
}

static void replaces_beside_it(void *unused)
{
	world_updater((void *)2);
	(void)unused;
	quiesce_store_relaxed(&over, 1);
	sim_saw();
}

static void setup_scanner_stops(void)
{
	over = 0;
	sim_config()->stops_in_locks = true;
	sim_config()->idle_limit_ns = 1000000000;
	world_begin();
	spawn_each(3, reads_till_all_is_over, "reader");
	sim_spawn(scans_and_stops, NULL, "scanner");
	sim_spawn(replaces_beside_it, NULL, "updater");
}

/* Sections are short, but the process is stopped in one for longer than a wait may last before it is reported. */
static void stopped_in_section(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	rcu_read_lock();
	platform_futex_wait(&never, 0, 20000000);
	sim_leap(3000000000u);
	platform_futex_wait(&never, 0, 20000000);
	rcu_read_unlock();
}

static void setup_stopped_process(void)
{
	world_begin();
	quiesce_set_stall_timeout(1000000000);
	sim_spawn(stopped_in_section, NULL, "reader");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void finish_stopped_process(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.sleeps)
		sim_saw();
	if (stats.stalls)
		sim_fail("%llu stalls are reported", (unsigned long long)stats.stalls);
}

const struct sim_scenario rcu_scan_scenarios[] = {
	{ .name = "scans", .what = "many scanners, and threads that end beside them", .setup = setup_scans },
	{ .name = "scanner_stops", .what = "a scanner stops for good in the middle of a step", .setup = setup_scanner_stops,
	  .must_see = "a wait that was over beside it" },
	{ .name = "stopped_process", .what = "a stop of the process is no stall", .setup = setup_stopped_process,
	  .finish = finish_stopped_process, .must_see = "a wait that a stop is in the middle of" },
	{ .name = NULL },
};
