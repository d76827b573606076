/* SPDX-License-Identifier: MIT */
/* srcu_waits.c - scenarios: readers of a domain, and updaters that wait for them. */
#include "srcu_world.h"

static uint32_t done, asked;

static void basic(enum world_mode mode)
{
	world_begin(mode);
	world_readers(driver_readers);
	sim_spawn(world_updater, NULL, "updater");
}

static void setup_basic(void) { basic(LIGHT); }
static void setup_full(void) { basic(FULL); }
static void setup_no_restart(void) { basic(NO_RESTART); }
static void setup_any(void) { basic(ANY); }

/* One updater publishes by a store, as in most programs. */
static struct item *assigned;

static void assigner(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *old = assigned, *item = world_new(0);

		rcu_assign_pointer(assigned, item);
		synchronize_srcu(world_domain[0]);
		world_free(old);
	}
}

static void assigned_reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		int idx = srcu_read_lock(world_domain[0]);
		struct item *item = srcu_dereference(assigned, world_domain[0]);

		sim_obj_read((int)item->id);
		sim_assert(sim_data_read((int)item->id) == 100 + item->id);
		sim_obj_read((int)item->id);
		srcu_read_unlock(world_domain[0], idx);
	}
}

static void assign(enum world_mode mode)
{
	world_begin(mode);
	assigned = world_new(0);
	spawn_each(driver_readers, assigned_reader, "reader");
	sim_spawn(assigner, NULL, "updater");
}

static void setup_assign(void) { assign(LIGHT); }
static void setup_full_assign(void) { assign(FULL); }

/* ---- several updaters ---- */

static void sharing(enum world_mode mode)
{
	world_begin(mode);
	world_readers(driver_readers);
	spawn_each(3, world_updater, "updater");
}

/* A cookie that was completed stays completed, also when a grace period that began earlier ends later. */
static void polls_again(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct rcu_gp_seq seq = get_state_synchronize_srcu(world_domain[0]);

		synchronize_srcu(world_domain[0]);
		for (int k = 0; k < 3; k++)
			sim_assert(poll_state_synchronize_srcu(world_domain[0], seq));
	}
}

static void setup_stays_over(void)
{
	world_begin(LIGHT);
	world_readers(1);
	spawn_each(4, polls_again, "updater");
}

static void setup_sharing(void) { sharing(LIGHT); }
static void setup_full_sharing(void) { sharing(FULL); }

/* Updaters that complete each other's waits must still be ordered after the readers: each order comes from the wait. */
static void expediter(void *domain)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace((intptr_t)domain);

		synchronize_srcu_expedited(world_domain[(intptr_t)domain]);
		world_free(old);
	}
}

static void setup_expedited(void)
{
	world_begin(ANY);
	world_readers(driver_readers);
	sim_spawn(expediter, NULL, "expediter");
	sim_spawn(world_updater, NULL, "updater");
	sim_spawn(expediter, NULL, "expediter");
}

/* The run is long enough that both indexes are used, and that a reader counts in an old index. */
static uint64_t first_idx;

static void many_waits(void *unused)
{
	(void)unused;
	for (int i = 0; i < 5; i++) {
		world_updater(NULL);
		if (quiesce_load_relaxed(&world_domain[0]->idx) != first_idx)
			sim_saw();
	}
}

static void many_sections(void *unused)
{
	for (int i = 0; i < 4; i++)
		world_reader(unused);
}

static void setup_flips(void)
{
	world_begin(ANY);
	sim_spawn(many_waits, NULL, "updater");
	spawn_each(2, many_sections, "reader");
}

/* ---- the guarantee without reclamation ---- */

/* Stores before a grace period and stores after it never straddle a section. */
static uint64_t before, after;

static void straddled(void *backwards)
{
	uint64_t first, second;
	int idx = srcu_read_lock(world_domain[0]);

	first = quiesce_load_relaxed(backwards ? &after : &before);
	second = quiesce_load_relaxed(backwards ? &before : &after);
	srcu_read_unlock(world_domain[0], idx);
	if (backwards)
		sim_assert(!(first == 1 && second == 0));
	else
		sim_assert(!(first == 0 && second == 1));
}

/* A store in the section that the updater does not see has to be after all of it. */
static uint64_t by_reader, seen_by_reader;

static void storer(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	seen_by_reader = quiesce_load_relaxed(&before);
	quiesce_store_relaxed(&by_reader, 1);
	srcu_read_unlock(world_domain[0], idx);
}

static void straddler(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&before, 1);
	synchronize_srcu(world_domain[0]);
	asked = (uint32_t)quiesce_load_relaxed(&by_reader);
	quiesce_store_relaxed(&after, 1);
}

static void guarantee(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(straddled, NULL, "forwards");
	sim_spawn(straddled, &after, "backwards");
	sim_spawn(storer, NULL, "storer");
	sim_spawn(straddler, NULL, "updater");
}

static void setup_guarantee(void) { guarantee(LIGHT); }
static void setup_full_guarantee(void) { guarantee(FULL); }

static void finish_guarantee(void)
{
	world_finish();
	sim_assert(seen_by_reader || asked);
}

/* ---- sections of odd shape ---- */

/* A section is entered by one thread and left by another. */
static uint32_t passed; /* 1 + index of the section, 0: none */

static void enters(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		int idx = srcu_down_read(world_domain[0]);

		world_check(0);
		world_set(&passed, 1 + (uint32_t)idx);
		world_await(&passed, 0);
	}
}

static void leaves(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		uint32_t found;

		while (!(found = quiesce_load_acquire(RU3, &passed)))
			platform_futex_wait(&passed, 0, PLATFORM_FOREVER);
		world_check(0);
		srcu_up_read(world_domain[0], (int)found - 1);
		world_set(&passed, 0);
	}
}

static void handed(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(enters, NULL, "enters");
	sim_spawn(leaves, NULL, "leaves");
	sim_spawn(world_updater, NULL, "updater");
}

static void setup_handed(void) { handed(LIGHT); }
static void setup_full_handed(void) { handed(FULL); }

/* Sections of two domains overlap without being nested. */
static void overlapper(void *unused)
{
	int outer = srcu_read_lock(world_domain[0]), other, inner;

	(void)unused;
	world_check(0);
	other = srcu_read_lock(world_domain[1]);
	inner = srcu_read_lock(world_domain[0]);
	world_check(1);
	srcu_read_unlock(world_domain[0], outer);
	world_check(0);
	srcu_read_unlock(world_domain[0], inner);
	world_check(1);
	srcu_read_unlock(world_domain[1], other);
}

static void setup_overlap(void)
{
	world_begin(ANY);
	spawn_each(2, overlapper, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void handler(void)
{
	world_section(0);
}

static void signalled(void *unused)
{
	sim_set_signal(handler, 3);
	world_reader(unused);
}

static void signalled_updater(void *unused)
{
	sim_set_signal(handler, 3);
	world_updater(unused);
}

static void signalled_queuer(void *unused)
{
	sim_set_signal(handler, 3);
	world_queuer(unused);
}

static void signals(enum world_mode mode)
{
	world_begin(mode);
	sim_spawn(signalled, NULL, "reader");
	sim_spawn(signalled_queuer, NULL, "queuer");
	sim_spawn(signalled_updater, NULL, "updater");
}

static void setup_signals(void) { signals(ANY); }
static void setup_signals_slow(void) { signals(sim_random(2) ? FULL : NO_RSEQ); }

/* ---- progress ---- */

/* The next section begins before the last one ends, until the wait has ended. */
static void never_empty(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	quiesce_fetch_add(RU3, &asked, 1u);
	while (!quiesce_load_relaxed(&done)) {
		int next = srcu_read_lock(world_domain[0]);

		world_check(0);
		srcu_read_unlock(world_domain[0], idx);
		idx = next;
		platform_yield();
	}
	srcu_read_unlock(world_domain[0], idx);
}

static void waits_for_never_empty(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &asked))
		platform_yield();
	world_updater(NULL);
	quiesce_store_relaxed(&done, 1);
}

static void setup_never_empty(void)
{
	sim_config()->max_steps = 10000;
	world_begin(ANY);
	sim_spawn(never_empty, NULL, "reader");
	sim_spawn(waits_for_never_empty, NULL, "updater");
}

static void setup_never_empty_two(void)
{
	setup_never_empty();
	sim_spawn(never_empty, NULL, "reader");
}

/* The helper waits for a domain that is never empty of readers. */
static void queues_for_never_empty(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &asked))
		platform_yield();
	world_queuer(NULL);
	srcu_barrier(world_domain[0]);
	quiesce_store_relaxed(&done, 1);
}

static void setup_never_empty_barrier(void)
{
	sim_config()->max_steps = 20000;
	world_begin(ANY);
	sim_spawn(never_empty, NULL, "reader");
	sim_spawn(queues_for_never_empty, NULL, "queuer");
}

/* A reader sleeps in one domain until the other one's updater has returned. */
static void sleeper(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_check(0);
	world_set(&asked, 1);
	world_await(&done, 1);
	world_check(0);
	srcu_read_unlock(world_domain[0], idx);
}

static void waits_in_the_other(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_updater((void *)1);
	world_queuer((void *)1);
	srcu_barrier(world_domain[1]);
	world_set(&done, 1);
}

/* This updater has to wait for long, and so has the helper for its callback. */
static void waits_for_sleeper(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_queue(0);
	world_updater(NULL);
}

static void setup_apart(void)
{
	sim_config()->max_steps = 12000;
	world_begin(ANY);
	sim_spawn(sleeper, NULL, "sleeper");
	sim_spawn(waits_in_the_other, NULL, "updater");
	sim_spawn(waits_for_sleeper, NULL, "patient");
	sim_spawn(world_reader, (void *)1, "reader");
}

/* ---- waking ---- */

/* Unlock when a waiter has requested a wake-up: its sleep must not last until it times out. */
static uint64_t wanted_requests;

static void unlocks_when_asked(void *domain)
{
	struct srcu_struct *ssp = world_domain[(intptr_t)domain];
	int idx = srcu_read_lock(ssp);

	world_add(&asked);
	while (!(quiesce_load_relaxed(&ssp->requests[idx]) & wanted_requests) || quiesce_load_relaxed(&ssp->leave[idx]))
		platform_yield();
	srcu_read_unlock(ssp, idx);
}

static void waits_when_asked(void *domain)
{
	world_await(&asked, driver_readers > 1 ? 2 : 1);
	synchronize_srcu(world_domain[(intptr_t)domain]);
}

static void finish_wakes(void)
{
	struct quiesce_stats stats;

	world_finish();
	quiesce_get_stats(&stats, sizeof stats);
	if (stats.wakeups)
		sim_saw();
}

static void wakes(enum world_mode mode, intptr_t other)
{
	world_begin(mode);
	world_no_idling();
	wanted_requests = 1; /* REQUEST_WAKE */
	sim_spawn(unlocks_when_asked, NULL, "reader");
	sim_spawn(waits_when_asked, NULL, "updater");
	if (driver_readers > 1)
		sim_spawn(unlocks_when_asked, (void *)other, "reader");
	if (other)
		sim_spawn(waits_when_asked, (void *)other, "updater");
}

static void setup_wakes(void) { wakes(LIGHT, 0); }
static void setup_full_wakes(void) { wakes(FULL, 0); }
/* Wake updaters of two domains that sleep on the same hashed wait queue. */
static void setup_wakes_shared(void) { wakes(ANY, 1); }

/* The helper is to be woken. */
static void queues_when_asked(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_queue(0);
}

static void ran_at_last(struct rcu_head *head)
{
	world_free_head(head);
	world_set(&done, 1);
}

static void queues_and_waits(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_retire(world_replace(0), ran_at_last);
	world_await(&done, 1);
}

static void wakes_helper(enum world_mode mode)
{
	world_begin(mode);
	world_no_idling();
	wanted_requests = 2; /* REQUEST_HELPER */
	sim_spawn(unlocks_when_asked, NULL, "reader");
	sim_spawn(queues_and_waits, NULL, "queuer");
}

static void setup_wakes_helper(void) { wakes_helper(LIGHT); }
static void setup_full_wakes_helper(void) { wakes_helper(FULL); }

/* The helper hands a grace period to a waiter, by completing it or by making it lead. */
static void setup_helper_and_waiters(void)
{
	world_begin(ANY);
	sim_spawn(unlocks_when_asked, NULL, "reader");
	wanted_requests = 3;
	sim_spawn(queues_when_asked, NULL, "queuer");
	spawn_each(2, world_updater, "updater");
}

const struct sim_scenario srcu_wait_scenarios[] = {
	SCENARIO(basic, "readers, one updater"),
	SCENARIO(full, "... without membarrier"),
	SCENARIO(no_restart, "... that does not restart sequences"),
	SCENARIO(any, "... on some computer"),
	SCENARIO(assign, "publication by rcu_assign_pointer()"),
	SCENARIO(full_assign, "... without membarrier"),
	SCENARIO(sharing, "three updaters share grace periods"),
	SCENARIO(full_sharing, "... without membarrier"),
	SCENARIO(stays_over, "grace periods overlap"),
	SCENARIO(expedited, "expedited and plain waits at once"),
	{ .name = "flips", .what = "many grace periods, sections in both indexes", .setup = setup_flips, .finish = world_finish,
	  .must_see = "a flip" },
	{ .name = "guarantee", .what = "a section is before the end or after the beginning", .setup = setup_guarantee,
	  .finish = finish_guarantee },
	{ .name = "full_guarantee", .what = "... without membarrier", .setup = setup_full_guarantee, .finish = finish_guarantee },
	SCENARIO(handed, "entered by one thread, left by another"),
	SCENARIO(full_handed, "... without membarrier"),
	SCENARIO(overlap, "sections of two domains overlap"),
	SCENARIO(signals, "handlers read"),
	SCENARIO(signals_slow, "... where the slow ways are taken"),
	SCENARIO(never_empty, "an index that is never empty while sections begin in it"),
	SCENARIO(never_empty_two, "... because of two threads"),
	SCENARIO(never_empty_barrier, "... and srcu_barrier()"),
	SCENARIO(apart, "a sleeping reader of one domain delays no other domain"),
	{ .name = "wakes", .what = "an unlock wakes the updater", .setup = setup_wakes, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "full_wakes", .what = "... without membarrier", .setup = setup_full_wakes, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "wakes_shared", .what = "... in a wait queue that two domains share", .setup = setup_wakes_shared, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	SCENARIO(wakes_helper, "an unlock wakes the helper"),
	SCENARIO(full_wakes_helper, "... without membarrier"),
	SCENARIO(helper_and_waiters, "the helper hands over to the waiters"),
	{ .name = NULL },
};
