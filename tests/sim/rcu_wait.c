/* SPDX-License-Identifier: MIT */
/* rcu_wait.c - scenarios: readers, and updaters that wait for them. */
#include "rcu_world.h"
#include "runtime/readers.h"

static uint64_t done, asked, ready;

static void setup_basic(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(world_updater, (void *)3, "updater");
}

/* The kernel revokes membarrier during the run. */
static void setup_lost_membarrier(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_LOST;
	setup_basic();
}

/* One updater publishes by a store, as in most programs. */
static void assigner(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *old = world_current, *item = world_new();

		rcu_assign_pointer(world_current, item);
		synchronize_rcu();
		world_free(old);
	}
}

static void setup_assign(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(assigner, NULL, "updater");
}

static void nester(void *unused)
{
	(void)unused;
	rcu_read_lock();
	world_section(2);
	world_check();
	rcu_read_lock();
	rcu_read_unlock();
	world_check();
	rcu_read_unlock();
	sim_assert(!rcu_read_lock_held());
}

static void setup_nested(void)
{
	world_begin();
	spawn_each(driver_readers, nester, "reader");
	sim_spawn(world_updater, (void *)3, "updater");
}

/* The guarantee without memory reclamation: stores before a grace period
 * and stores after it never straddle a section. */
static uint64_t before, after;

static void straddled(void *backwards)
{
	uint64_t first, second;

	rcu_read_lock();
	first = quiesce_load_relaxed(backwards ? &after : &before);
	second = quiesce_load_relaxed(backwards ? &before : &after);
	rcu_read_unlock();
	if (backwards)
		sim_assert(!(first == 1 && second == 0));
	else
		sim_assert(!(first == 0 && second == 1));
}

static void straddler(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&before, 1);
	synchronize_rcu();
	quiesce_store_relaxed(&after, 1);
}

static void setup_guarantee(void)
{
	sim_spawn(straddled, NULL, "forwards");
	sim_spawn(straddled, &after, "backwards");
	sim_spawn(straddler, NULL, "updater");
}

/* ---- threads that come and go ---- */

static void parent(void *unused)
{
	(void)unused;
	for (int i = 0; i < driver_readers; i++) {
		sim_spawn(world_reader, NULL, "reader");
		sim_point("spawned");
	}
	world_section(1);
}

static void setup_register(void)
{
	world_begin();
	sim_spawn(world_updater, (void *)2, "updater");
	sim_spawn(parent, NULL, "parent");
}

static int nr_exit_reports;

static void count_exit(enum quiesce_misuse kind, const char *text)
{
	if (kind != QUIESCE_MISUSE_EXIT_IN_READER)
		sim_fail("misuse: %s", text);
	nr_exit_reports++;
}

static void exits_inside(void *unused)
{
	(void)unused;
	world_section(1);
	rcu_read_lock();
	world_check();
}

static void setup_exit(void)
{
	world_begin();
	quiesce_set_misuse_hook(count_exit);
	sim_spawn(exits_inside, NULL, "exiter");
	sim_spawn(world_reader, NULL, "reader");
	sim_spawn(world_updater, (void *)3, "updater");
}

static void finish_exit(void)
{
	sim_assert(nr_exit_reports == 1);
}

/* A thread that ends its section by its end must wake the sleeping updater. */
static void exits_when_asked(void *unused)
{
	(void)unused;
	rcu_read_lock();
	quiesce_store_release(GP1, &asked, 1);
	while (!(quiesce_load_relaxed(&quiesce_sim_self()->rcu_word) & QUIESCE_RCU_SLOW))
		platform_yield();
}

static void waits_for_exiter(void *unused)
{
	(void)unused;
	world_wait_change(&asked, 0);
	synchronize_rcu();
}

static void setup_exit_wakes(void)
{
	quiesce_set_misuse_hook(count_exit);
	sim_spawn(exits_when_asked, NULL, "exiter");
	sim_spawn(waits_for_exiter, NULL, "updater");
}

static void finish_wakes(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.wakeups)
		sim_saw();
}

static void unlocks_when_asked(void *unused)
{
	exits_when_asked(unused);
	rcu_read_unlock();
}

static void setup_unlock_wakes(void)
{
	sim_spawn(unlocks_when_asked, NULL, "reader");
	sim_spawn(waits_for_exiter, NULL, "updater");
}

/* Many threads use few registry entries, one after another. */
static void generation(void *left)
{
	world_section(1);
	if (left)
		sim_spawn(generation, (void *)((intptr_t)left - 1), "reader");
}

static void finish_generations(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	/* All readers have gone; at most the updater has an entry, and it never read. */
	if (!stats.readers)
		sim_saw();
	sim_assert(stats.readers == 0);
	/* With another number each registration would search for a free entry that does not exist, or none would find one that does. */
	sim_assert(quiesce__readers.nr_free == quiesce__readers.nr);
}

static void setup_generations(void)
{
	world_begin();
	sim_spawn(generation, (void *)4, "reader");
	sim_spawn(generation, (void *)4, "reader");
	sim_spawn(world_updater, (void *)3, "updater");
}

/* There are more threads than registry entries, so some sections have no entry. */
static void setup_unregistered(void)
{
	world_begin();
	world_readers(6);
	sim_spawn(world_updater, (void *)2, "updater");
}

/* A destructor of thread-specific data reads after the library's own destructor. */
static void reads_after_exit(void *unused)
{
	(void)unused;
	world_section(1);
	quiesce__thread_exit();
	world_section(2);
}

static void setup_late_section(void)
{
	world_begin();
	spawn_each(2, reads_after_exit, "reader");
	sim_spawn(world_updater, (void *)3, "updater");
}

/* A thread is killed outside of a section; its entry must not delay updaters. */
static void killed(void *unused)
{
	world_reader(unused);
	sim_die();
}

static void setup_killed(void)
{
	world_begin();
	spawn_each(4, killed, "mortal");
	sim_spawn(generation, (void *)2, "reader");
	sim_spawn(world_updater, (void *)2, "updater");
}

/* ---- signals ---- */

static void handler(void)
{
	world_section(1);
}

static void signalled(void *unused)
{
	sim_set_signal(handler, 3);
	world_reader(unused);
}

static void signalled_updater(void *nr)
{
	sim_set_signal(handler, 3);
	world_updater(nr);
}

static void setup_signal(void)
{
	world_begin();
	spawn_each(driver_readers, signalled, "reader");
	sim_spawn(signalled_updater, (void *)2, "updater");
}

/* ---- full fences, and a kernel without membarrier ---- */

static void setup_full_fence(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_basic();
}

static void setup_full_signal(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_signal();
}

static void setup_full_unregistered(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_unregistered();
}

static void setup_full_guarantee(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_guarantee();
}

/* ---- progress: a section that begins during a grace period does not delay it ---- */

static void late_reader(void *unused)
{
	(void)unused;
	world_section(1); /* this registers the thread */
	quiesce_store_release(RU3, &ready, 1);
	world_wait_change(&quiesce_rcu_v1.gp, asked);
	rcu_read_lock();
	world_wait_change(&done, 0);
	rcu_read_unlock();
}

static void early_updater(void *unused)
{
	(void)unused;
	world_wait_change(&ready, 0);
	synchronize_rcu();
	quiesce_store_relaxed(&done, 1);
}

static void setup_late_reader(void)
{
	sim_config()->max_steps = 8000;
	world_begin();
	asked = quiesce_rcu_v1.gp;
	sim_spawn(late_reader, NULL, "reader");
	sim_spawn(early_updater, NULL, "updater");
}

/* ---- cookies ---- */

static struct rcu_gp_seq cookie;
static struct item *victim;
static bool start_it;

static void cookie_taker(void *unused)
{
	(void)unused;
	victim = world_replace();
	cookie = start_it ? start_poll_synchronize_rcu() : get_state_synchronize_rcu();
	quiesce_store_release(RU3, &asked, 1);
}

static void poller(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	while (!quiesce_load_acquire(RU3, &asked))
		platform_yield();
	for (int i = 0; !poll_state_synchronize_rcu(cookie); i++) {
		if (i == 20 && !start_it)
			cond_synchronize_rcu(cookie);
		else if (i < 20)
			platform_yield();
		else
			platform_futex_wait(&never, 0, 1000000); /* the worker may sleep for a while */
		sim_assert(i < 1000);
	}
	world_free(victim);
}

static void cookie_starter(void *unused)
{
	(void)unused;
	start_poll_synchronize_rcu();
}

static void poll_threads(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(cookie_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
	sim_spawn(world_updater, (void *)2, "updater");
}

static void setup_poll(void)
{
	poll_threads();
}

static void setup_start_poll(void)
{
	start_it = true;
	poll_threads();
}

static void setup_full_start_poll(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_start_poll();
}

/* Only the worker can complete the cookies, and it has been asleep. */
static void second_taker(void *unused)
{
	(void)unused;
	for (int k = 0; k < 30; k++)
		platform_yield();
	cookie_taker(NULL);
}

static void setup_poll_asleep(void)
{
	start_it = true;
	world_begin();
	sim_spawn(cookie_starter, NULL, "starter");
	sim_spawn(second_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
}

static void setup_full_poll_asleep(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_poll_asleep();
}

static void setup_poll_no_worker(void)
{
	sim_config()->thread_start_failures = -1;
	start_it = true;
	poll_threads();
}

/* Publication by a store: only the cookie's own fence stands between it and the number. */
static void assigning_taker(void *unused)
{
	struct item *item = world_new();

	(void)unused;
	victim = world_current;
	rcu_assign_pointer(world_current, item);
	cookie = get_state_synchronize_rcu();
	quiesce_store_release(RU3, &asked, 1);
}

static void waiter(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++)
		synchronize_rcu();
}

static void setup_poll_assign(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(assigning_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
	sim_spawn(waiter, (void *)3, "waiter");
}

static void setup_full_poll_assign(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	setup_poll_assign();
}

static void unregistered_reader(void *unused)
{
	quiesce__thread_exit();
	world_reader(unused);
}

static void setup_poll_unregistered(void)
{
	world_begin();
	spawn_each(3, unregistered_reader, "reader");
	sim_spawn(cookie_taker, NULL, "taker");
	sim_spawn(poller, NULL, "poller");
	sim_spawn(waiter, (void *)2, "waiter");
}

/* A poll that reports completion is a full fence. */
static uint64_t left, right;

static void polls_left(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&left, 1);
	sim_assert(poll_state_synchronize_rcu(get_completed_synchronize_rcu()));
	before = quiesce_load_relaxed(&right);
}

static void polls_right(void *unused)
{
	(void)unused;
	quiesce_store_relaxed(&right, 1);
	sim_assert(poll_state_synchronize_rcu(get_completed_synchronize_rcu()));
	after = quiesce_load_relaxed(&left);
}

static void setup_poll_fence(void)
{
	quiesce_fence(); /* otherwise the library's initialisation would act as the fence */
	sim_spawn(polls_left, NULL, "left");
	sim_spawn(polls_right, NULL, "right");
}

static void finish_poll_fence(void)
{
	sim_assert(before || after);
}

/* Updaters that only poll, and free when a grace period of others has covered their objects. */
static void cond_updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace();
		struct rcu_gp_seq seq = get_state_synchronize_rcu();

		sim_point("later");
		cond_synchronize_rcu(seq);
		world_free(old);
	}
}

static void setup_cond(void)
{
	world_begin();
	world_readers(driver_readers);
	spawn_each(2, cond_updater, "updater");
}

const struct sim_scenario rcu_wait_scenarios[] = {
	{ .name = "basic", .what = "readers, one updater", .setup = setup_basic },
	{ .name = "lost_membarrier", .what = "... while membarrier fails, after it has worked", .setup = setup_lost_membarrier },
	{ .name = "assign", .what = "publication by rcu_assign_pointer()", .setup = setup_assign },
	{ .name = "nested", .what = "nested sections", .setup = setup_nested },
	{ .name = "guarantee", .what = "a section is before the end or after the beginning", .setup = setup_guarantee },
	{ .name = "register", .what = "threads start while an updater works", .setup = setup_register },
	{ .name = "exit", .what = "a thread exits inside a section", .setup = setup_exit, .finish = finish_exit },
	{ .name = "exit_wakes", .what = "a thread that exits in a section wakes the waiter", .setup = setup_exit_wakes,
	  .finish = finish_wakes, .must_see = "a wake-up by a thread that exits" },
	{ .name = "unlock_wakes", .what = "an unlock wakes the waiter", .setup = setup_unlock_wakes,
	  .finish = finish_wakes, .must_see = "a wake-up by an unlock" },
	{ .name = "generations", .what = "registry entries are given back", .setup = setup_generations,
	  .finish = finish_generations },
	{ .name = "unregistered", .what = "more threads than registry entries", .setup = setup_unregistered },
	{ .name = "late_section", .what = "sections after the exit hook", .setup = setup_late_section },
	{ .name = "killed", .what = "threads die without a word", .setup = setup_killed },
	{ .name = "signal", .what = "handlers read, also during registration", .setup = setup_signal },
	{ .name = "full_fence", .what = "no membarrier", .setup = setup_full_fence },
	{ .name = "full_signal", .what = "no membarrier, handlers read", .setup = setup_full_signal },
	{ .name = "full_unregistered", .what = "no membarrier, no entries", .setup = setup_full_unregistered },
	{ .name = "full_guarantee", .what = "no membarrier, see guarantee", .setup = setup_full_guarantee },
	{ .name = "late_reader", .what = "a new section does not delay a grace period", .setup = setup_late_reader },
	{ .name = "poll", .what = "a cookie polled by another thread", .setup = setup_poll },
	{ .name = "start_poll", .what = "the same, with a grace period started", .setup = setup_start_poll },
	{ .name = "full_start_poll", .what = "the same, without membarrier", .setup = setup_full_start_poll },
	{ .name = "poll_asleep", .what = "the same, when the worker has gone to sleep", .setup = setup_poll_asleep },
	{ .name = "full_poll_asleep", .what = "... without membarrier", .setup = setup_full_poll_asleep },
	{ .name = "poll_no_worker", .what = "the same, without a worker", .setup = setup_poll_no_worker },
	{ .name = "poll_assign", .what = "a cookie after publication by a store", .setup = setup_poll_assign },
	{ .name = "full_poll_assign", .what = "... without membarrier", .setup = setup_full_poll_assign },
	{ .name = "poll_unregistered", .what = "a cookie, and readers without entries", .setup = setup_poll_unregistered },
	{ .name = "poll_fence", .what = "a poll that says yes is a full fence", .setup = setup_poll_fence,
	  .finish = finish_poll_fence },
	{ .name = "cond", .what = "cond_synchronize_rcu()", .setup = setup_cond },
	{ .name = NULL },
};
