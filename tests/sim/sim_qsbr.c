/* SPDX-License-Identifier: MIT */
/* sim_qsbr.c - the RCU whose threads report their quiescent states. */
#include "rcu_world.h"

#include <quiesce/detail/qsbr.h>

static uint64_t asked, given, cookie;
static uint32_t stop;
static struct item *shared_old;

static void enter(void)
{
	sim_assert(quiesce_qsbr_register(QUIESCE_LAYOUT) == 0);
	sim_assert(quiesce__qsbr_ongoing());
}

/* ---- readers ---- */

static void reads(void *unused)
{
	(void)unused;
	enter();
	for (int i = 0; i < 3; i++) {
		world_check();
		quiesce__qsbr_quiescent_state();
	}
	world_check();
	quiesce_qsbr_unregister();
}

static void readers(int nr)
{
	spawn_each(nr, reads, "reader");
}

static void comes_and_goes(void *unused)
{
	(void)unused;
	enter();
	for (int i = 0; i < 3; i++) {
		world_check();
		quiesce__qsbr_offline();
		quiesce__qsbr_quiescent_state();
		sim_assert(!quiesce__qsbr_ongoing());
		quiesce__qsbr_online();
		quiesce__qsbr_online(); /* no quiescent state */
	}
	world_check();
	quiesce_qsbr_unregister();
}

/* The thread ends online, and its end is its last quiescent state. */
static void ends_online(void *unused)
{
	(void)unused;
	enter();
	world_check();
}

/* There may be no free entry for the thread. */
static void generation(void *left)
{
	if (!quiesce_qsbr_register(QUIESCE_LAYOUT)) {
		world_check();
		quiesce__qsbr_quiescent_state();
		world_check();
	} else {
		sim_assert(!quiesce__qsbr_ongoing());
		sim_saw();
	}
	if (left)
		sim_spawn(generation, (void *)((intptr_t)left - 1), "reader");
}

/* ---- updaters ---- */

static void updates(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *old = world_replace();

		quiesce_qsbr_synchronize();
		world_free(old);
	}
}

static void updates_online(void *nr)
{
	enter();
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		struct item *old = world_replace();

		world_check();
		quiesce_qsbr_synchronize();
		sim_assert(quiesce__qsbr_ongoing());
		world_check();
		world_free(old);
	}
	quiesce_qsbr_unregister();
}

static void polls(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace();
		uint64_t mine = quiesce_qsbr_start_poll();

		while (!quiesce_qsbr_poll(mine))
			platform_yield();
		sim_assert(quiesce_qsbr_poll(mine));
		world_free(old);
	}
}

static void setup_basic(void)
{
	world_begin();
	readers(driver_readers);
	sim_spawn(updates, (void *)2, "updater");
}

static void setup_online(void)
{
	world_begin();
	spawn_each(driver_readers, comes_and_goes, "reader");
	sim_spawn(updates, (void *)3, "updater");
}

static void setup_sharing(void)
{
	world_begin();
	readers(driver_readers);
	for (int i = 0; i < 3; i++)
		sim_spawn(updates, (void *)2, "updater");
}

static void setup_late(void)
{
	world_begin();
	sim_spawn(ends_online, NULL, "reader");
	for (int i = 0; i < 2; i++)
		sim_spawn(updates, (void *)1, "updater");
}

static void setup_updaters_online(void)
{
	world_begin();
	readers(1);
	for (int i = 0; i < 2; i++)
		sim_spawn(updates_online, (void *)2, "updater");
}

static void setup_polls(void)
{
	world_begin();
	readers(driver_readers);
	sim_spawn(polls, NULL, "poller");
	sim_spawn(updates, (void *)2, "updater");
}

static void setup_ends(void)
{
	world_begin();
	spawn_each(3, ends_online, "reader");
	sim_spawn(updates, (void *)3, "updater");
}

static void setup_generations(void)
{
	world_begin();
	sim_spawn(generation, (void *)3, "reader");
	sim_spawn(generation, (void *)3, "reader");
	sim_spawn(updates, (void *)3, "updater");
}

/* ---- a cookie that another thread polls ---- */

static void gives_cookie(void *unused)
{
	(void)unused;
	shared_old = world_replace();
	cookie = quiesce_qsbr_start_poll();
	quiesce_store_release(LK1, &given, 1);
}

static void polls_given(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(LK1, &given))
		platform_yield();
	while (!quiesce_qsbr_poll(cookie))
		platform_yield();
	world_free(shared_old);
}

/* The handler polls at any place of a reader, also in the middle of the reader's own calls. */
static void polls_in_handler(void)
{
	uint64_t mine = quiesce_qsbr_start_poll();

	if (quiesce_qsbr_poll(mine))
		sim_saw();
}

static void is_interrupted(void *unused)
{
	sim_set_signal(polls_in_handler, 2);
	comes_and_goes(unused);
}

static void setup_handlers(void)
{
	world_begin();
	sim_spawn(is_interrupted, NULL, "reader");
	sim_spawn(reads, NULL, "reader");
	sim_spawn(updates, (void *)2, "updater");
}

static void setup_given(void)
{
	world_begin();
	readers(driver_readers);
	sim_spawn(gives_cookie, NULL, "giver");
	sim_spawn(polls_given, NULL, "poller");
}

/* ---- a sleeper is woken ---- */

static int nr_waiters;

static void wait_until_asked(void)
{
	while (!quiesce_load_relaxed(&quiesce_sim_self()->qsbr_waiting))
		platform_yield();
}

/* An online thread that blocks must not have missed the number. */
static void reports_new_number(void)
{
	uint64_t word = quiesce_sim_self()->qsbr_word;

	while (quiesce_sim_self()->qsbr_word == word) {
		quiesce__qsbr_quiescent_state();
		platform_yield();
	}
}

static void stays(void *until_asked)
{
	enter();
	quiesce_store_relaxed(&asked, 1);
	if (until_asked)
		wait_until_asked();
	for (uint32_t k = until_asked ? 0 : sim_random(400); k; k--)
		platform_yield();
	if (nr_waiters == 1 && sim_random(2))
		reports_new_number();
	else
		quiesce__qsbr_offline();
	while (!quiesce_load_relaxed(&stop))
		platform_futex_wait(&stop, 0, PLATFORM_FOREVER);
}

static void waits_for_it(void *unused)
{
	(void)unused;
	world_wait_change(&asked, 0);
	quiesce_qsbr_synchronize();
	quiesce_store_relaxed(&stop, 1);
	platform_futex_wake(&stop, INT32_MAX);
}

static void finish_wakes(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.wakeups)
		sim_saw();
}

/* A waiter that is not woken sleeps until its timeout, which exceeds the idle limit. */
static void wakes(void *until_asked, int nr)
{
	sim_config()->idle_limit_ns = 40000000;
	sim_config()->spurious_wakeups = false;
	nr_waiters = nr;
	sim_spawn(stays, until_asked, "reader");
	spawn_each(nr, waits_for_it, "updater");
}

static void setup_wakes(void)
{
	wakes(&asked, 1);
}

static void setup_wakes_early(void)
{
	wakes(NULL, 1);
}

static void setup_wakes_two(void)
{
	wakes(NULL, 2);
}

/* ---- threads that are gone ---- */

/* The thread vanishes without its destructors, so that it would be online for ever. */
static void vanishes(void *unused)
{
	(void)unused;
	enter();
	world_check();
	sim_die();
}

static void setup_vanish(void)
{
	world_begin();
	spawn_each(2, vanishes, "mortal");
	sim_spawn(updates, (void *)2, "updater");
}

/* ---- fork ---- */

static void forks(void *unused)
{
	struct item *old;

	(void)unused;
	enter();
	for (uint32_t k = sim_random(120); k; k--)
		platform_yield();
	world_check();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	world_check();
	old = world_replace();
	quiesce_qsbr_synchronize(); /* the caller is the only reader */
	world_free(old);
	sim_saw();
}

/* Without handlers the parent's readers delay the child until this thread calls the library. */
static void forks_unannounced(void *unused)
{
	(void)unused;
	enter();
	for (uint32_t k = sim_random(120); k; k--)
		platform_yield();
	world_check();
	sim_fork();
	if (sim_random(2))
		sim_spawn(reads, NULL, "child's reader");
	if (sim_random(2))
		sim_spawn(updates, (void *)1, "child's updater");
	for (uint32_t k = sim_random(30); k; k--)
		sim_point("in the child");
	world_check();
	quiesce__qsbr_quiescent_state();
	world_check();
	if (sim_random(2)) {
		quiesce__qsbr_offline();
		updates((void *)1);
	}
	sim_saw();
}

static void setup_unannounced(void)
{
	quiesce_fence(); /* the library is initialised */
	world_begin();
	readers(2);
	sim_spawn(updates, (void *)2, "updater");
	sim_spawn(forks_unannounced, NULL, "forker");
}

/* Fork in the middle of a scan, which goes on in both processes. */
static void forks_in_handler(void)
{
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	sim_spawn(ends_online, NULL, "child's reader");
	sim_spawn(updates, (void *)1, "child's updater");
	sim_saw();
}

static void scans_and_forks(void *unused)
{
	(void)unused;
	sim_set_signal(forks_in_handler, 1);
	updates((void *)1);
}

static void setup_fork_in_handler(void)
{
	quiesce_fence(); /* the library is initialised */
	world_begin();
	readers(1);
	sim_spawn(scans_and_forks, NULL, "scanner");
}

static void setup_fork(void)
{
	world_begin();
	readers(2);
	sim_spawn(updates, (void *)2, "updater");
	sim_spawn(forks, NULL, "forker");
}

static const struct sim_scenario scenarios[] = {
	{ .name = "basic", .what = "readers that report quiescent states, and an updater", .setup = setup_basic },
	{ .name = "online", .what = "readers that go offline and come back", .setup = setup_online },
	{ .name = "sharing", .what = "three updaters at once", .setup = setup_sharing },
	{ .name = "late", .what = "a thread registers while two updaters scan", .setup = setup_late },
	{ .name = "updaters_online", .what = "updaters that are readers", .setup = setup_updaters_online },
	{ .name = "polls", .what = "cookies are polled beside waits", .setup = setup_polls },
	{ .name = "given", .what = "another thread polls a cookie", .setup = setup_given },
	{ .name = "handlers", .what = "handlers poll in the middle of anything", .setup = setup_handlers, .must_see = "a grace period" },
	{ .name = "ends", .what = "threads end while they are online", .setup = setup_ends },
	{ .name = "generations", .what = "threads one after another through few entries", .setup = setup_generations,
	  .must_see = "no entry left" },
	{ .name = "wakes", .what = "an updater that sleeps is woken", .setup = setup_wakes,
	  .finish = finish_wakes, .must_see = "a wake-up" },
	{ .name = "wakes_early", .what = "... as it is about to sleep", .setup = setup_wakes_early,
	  .finish = finish_wakes, .must_see = "a wake-up" },
	{ .name = "wakes_two", .what = "... two of them", .setup = setup_wakes_two,
	  .finish = finish_wakes, .must_see = "a wake-up" },
	{ .name = "vanish", .what = "readers are killed online", .setup = setup_vanish },
	{ .name = "fork_in_handler", .what = "a handler forks in the midst of a scan", .setup = setup_fork_in_handler,
	  .must_see = "a child" },
	{ .name = "fork", .what = "a child waits for itself only", .setup = setup_fork, .must_see = "a child" },
	{ .name = "unannounced", .what = "... of a bare system call, whose threads come in any order", .setup = setup_unannounced,
	  .must_see = "a child" },
	{ .name = NULL },
};

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = { scenarios, NULL };

	return driver_main(argc, argv, tables);
}
