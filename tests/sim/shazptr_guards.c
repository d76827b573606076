/* SPDX-License-Identifier: MIT */
/* shazptr_guards.c - scenarios: guards handed over, signal handlers, threads that come and go; forks are in shazptr_forks.c. */
#include "shazptr_world.h"
#include "hazard_threads.h"

#include "slots/slots.h"
#include "runtime/core.h"

/* ---- hand-over: the guard is cleared by another thread ---- */

static struct shazptr_guard handed_guard;
static uint32_t handed_over;

static void hand_over(struct shazptr_guard guard)
{
	quiesce_store_relaxed(&handed_guard.slot, guard.slot);
	quiesce_store_relaxed(&handed_guard.ptr, guard.ptr);
	world_set(&handed_over, 1);
}

static void giver(void *unused)
{
	(void)unused;
	world_read(1);
	hand_over(shazptr_protect(&world_pointer[0]));
	world_read(1);
}

/* The acquirer ends as soon as it has a guard. */
static void leaver(void *unused)
{
	(void)unused;
	hand_over(shazptr_protect(&world_pointer[0]));
}

static void taker(void *unused)
{
	struct shazptr_guard guard;

	(void)unused;
	world_await(&handed_over, 1);
	guard.slot = quiesce_load_relaxed(&handed_guard.slot);
	guard.ptr = quiesce_load_relaxed(&handed_guard.ptr);
	world_check(shazptr_ptr(guard));
	shazptr_clear(guard);
}

static void setup_give(void)
{
	world_begin();
	sim_spawn(giver, NULL, "giver");
	sim_spawn(taker, NULL, "taker");
	world_readers(1);
	world_updaters(1);
}

/* The thread begins when the giver of the guard has ended, so it may get the giver's line. */
static void successor(void *unused)
{
	(void)unused;
	world_await(&handed_over, 1);
	world_read(1);
	world_read(0);
	world_read(1);
}

static void setup_leave(void)
{
	world_begin();
	sim_spawn(leaver, NULL, "leaver");
	spawn_each(2, successor, "successor");
	sim_spawn(taker, NULL, "taker");
	world_updaters(1);
}

static void setup_full_leave(void)
{
	setup_leave();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

/* Only the line itself orders its two owners: there is no system call, and no other word that the new owner reads. */
static void quiet_leaver(void *unused)
{
	struct shazptr_guard guard = shazptr_protect(&world_pointer[0]);

	(void)unused;
	quiesce_store_relaxed(&handed_guard.slot, guard.slot);
	quiesce_store_relaxed(&handed_guard.ptr, guard.ptr);
	quiesce_store_release(RU3, &handed_over, 1);
}

static void quiet_taker(void *unused)
{
	while (!quiesce_load_acquire(RU3, &handed_over))
		platform_yield();
	taker(unused);
}

static void newcomer(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(60); k; k--)
		sim_point("before the first guard");
	world_read(1);
	world_read(1);
}

static void setup_line_reused(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	quiesce_slots();
	sim_spawn(quiet_leaver, NULL, "leaver");
	sim_spawn(newcomer, NULL, "newcomer");
	sim_spawn(quiet_taker, NULL, "taker");
	world_updaters(1);
}

/* A thread that is killed keeps its line and its guard; another thread clears the guard. */
static void killed(void *unused)
{
	leaver(unused);
	sim_die();
}

static void setup_killed(void)
{
	world_begin();
	sim_spawn(killed, NULL, "mortal");
	sim_spawn(taker, NULL, "taker");
	world_readers(2);
	world_updaters(1);
}

/* ---- threads that come and go ---- */

static void setup_generations(void)
{
	world_begin();
	sim_spawn(generation, (void *)3, "reader");
	sim_spawn(generation, (void *)3, "reader");
	world_updaters(1);
}

static bool is_live(const struct quiesce__lines *lines, uint32_t i)
{
	return lines->live[i / 64] >> i % 64 & 1;
}

/* A line without an owner is marked as left, so that a claim finds it, and not as live, so that no scan reads it. */
static void finish_generations(void)
{
	struct quiesce__lines *lines = &quiesce__slots.lines;

	for (uint32_t i = 0; i < lines->nr; i++) {
		bool owned = *quiesce__line_owner(quiesce__line(lines, i));

		sim_assert(is_live(lines, i) == owned);
		sim_assert((lines->vacant[i / 64] >> i % 64 & 1) == !owned);
		sim_assert(owned || (lines->summary[0] & 1));
	}
}

/* Released lines get new owners while an updater scans. */
static void visitor(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(100); k; k--)
		sim_point("before the visit");
	world_read(0);
}

static void setup_given_back(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->nr_cpus = 0;
	spawn_each(4, visitor, "visitor");
	world_updaters(1);
}

static void finish_given_back(void)
{
	finish_generations();
	if (quiesce__slots.lines.nr < 3)
		sim_saw();
}

/* A line in which a guard was left stays live, because no event marks the clear of that guard. */
static void finish_leave(void)
{
	struct quiesce__lines *lines = &quiesce__slots.lines;

	for (uint32_t i = 0; i < lines->nr; i++)
		sim_assert(is_live(lines, i) || !*quiesce__line_owner(quiesce__line(lines, i)));
}

/* A destructor of thread-specific data reads after the library's own destructor. */
static void reads_after_exit(void *unused)
{
	struct shazptr_guard guard;

	(void)unused;
	guard = shazptr_protect(&world_pointer[0]);
	quiesce__thread_exit();
	world_read(0);
	world_check(shazptr_ptr(guard));
	shazptr_clear(guard);
	world_read(0);
}

static void setup_late_guard(void)
{
	world_begin();
	spawn_each(2, reads_after_exit, "reader");
	world_readers(1);
	world_updaters(1);
}

/* ---- signal handlers ---- */

static void signalled_updater(void *index)
{
	sim_set_signal(handler, 2);
	world_updater(index);
}

static void signal_threads(void)
{
	world_begin();
	spawn_each(driver_readers, signalled, "reader");
	sim_spawn(signalled_updater, NULL, "updater");
}

static void setup_signal_first(void)
{
	world_begin();
	spawn_each(driver_readers + 2, reads_once, "reader");
	world_updaters(1);
}

/* No thread has a line, so all claim in blocks of CPUs and are migrated; main program and handler share one cached slot. */
static void moved(void *unused)
{
	sim_set_signal(handler, 8);
	for (int i = 0; i < 4; i++) {
		const struct quiesce__cached_slot *near = &quiesce__self()->shazptr_cached;

		world_read(i & 1);
		/* The cached slot is in the block of the id that is cached with it. */
		sim_assert(near->id >= quiesce_shazptr_v1.nr_ids ||
			   (size_t)(near->slot - quiesce_shazptr_v1.slot_array) / QUIESCE_BLOCK_WORDS == near->id);
	}
	world_reader(unused);
}

static void setup_signal_moved(void)
{
	world_begin();
	sim_config()->arm_exit_failures = -1;
	quiesce_slots();
	spawn_each(driver_readers, moved, "reader");
	world_updaters(1);
}

static void setup_signal(void)
{
	signal_threads();
}

static void setup_full_signal(void)
{
	signal_threads();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

/* The thread nests guards, and a nested handler takes two more. */
static void greedy_handler(void)
{
	struct shazptr_guard first = shazptr_protect(&world_pointer[0]), second = shazptr_protect(&world_pointer[1]);

	world_check(shazptr_ptr(first));
	world_check(shazptr_ptr(second));
	shazptr_clear(first);
	shazptr_clear(second);
}

static void greedy(void *unused)
{
	struct shazptr_guard first, second;

	(void)unused;
	sim_set_signal(greedy_handler, 2);
	first = shazptr_protect(&world_pointer[0]);
	second = shazptr_protect(&world_pointer[1]);
	world_check(shazptr_ptr(first));
	shazptr_clear(first);
	world_check(shazptr_ptr(second));
	shazptr_clear(second);
}

static void setup_signal_nested(void)
{
	world_begin();
	spawn_each(2, greedy, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* The handler keeps its guard; another thread clears it. */
static uint32_t given;

static struct shazptr_guard detached(void)
{
	for (;;) {
		struct item *item = rcu_access_pointer(world_pointer[0]);
		struct shazptr_guard guard = shazptr_acquire_detached(item);

		if (rcu_dereference(world_pointer[0]) == item)
			return guard;
		shazptr_clear(guard);
	}
}

static void giving_handler(void)
{
	uint32_t none = 0;

	if (quiesce_cmpxchg(RU3, &given, &none, 1))
		hand_over(detached());
}

static void interrupted(void *unused)
{
	sim_set_signal(giving_handler, 1);
	world_reader(unused);
	sim_set_signal(NULL, 0);
	giving_handler(); /* the signal never came */
}

static void setup_signal_gives(void)
{
	world_begin();
	sim_spawn(interrupted, NULL, "reader");
	sim_spawn(taker, NULL, "taker");
	world_readers(1);
	world_updaters(1);
}

/* ---- a reused address ---- */

static void recycler(void *unused)
{
	struct item *spare = world_new(NULL);

	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *old = rcu_xchg_pointer(&world_pointer[0], spare);

		synchronize_shazptr(old);
		world_free(old);
		spare = world_new(old);
	}
}

static void setup_recycled(void)
{
	world_begin();
	world_readers(driver_readers + 1);
	sim_spawn(recycler, NULL, "recycler");
}

const struct sim_scenario shazptr_guard_scenarios[] = {
	{ .name = "give", .what = "a guard handed to another thread", .setup = setup_give },
	{ .name = "full_give", .what = "... without membarrier", .setup = setup_give, .but = without_membarrier },
	{ .name = "leave", .what = "... by a thread that exits", .setup = setup_leave },
	{ .name = "leave_cpu_each", .what = "... a CPU for every thread", .setup = setup_leave, .but = with_many_cpus },
	{ .name = "leave_no_rseq", .what = "... without restartable sequences", .setup = setup_leave, .but = without_rseq,
	  .finish = finish_leave },
	{ .name = "full_leave", .what = "... and without membarrier", .setup = setup_full_leave },
	{ .name = "line_reused", .what = "a line that the next thread gets while a guard in it is held", .setup = setup_line_reused },
	{ .name = "killed", .what = "... by a thread that is killed", .setup = setup_killed },
	{ .name = "generations", .what = "threads come and go", .setup = setup_generations, .finish = finish_generations },
	{ .name = "generations_no_rseq", .what = "... without restartable sequences", .setup = setup_generations, .but = without_rseq,
	  .finish = finish_generations },
	{ .name = "given_back", .what = "lines of threads that have ended", .setup = setup_given_back, .finish = finish_given_back,
	  .must_see = "a line let again" },
	{ .name = "late_guard", .what = "guards after the exit hook", .setup = setup_late_guard },
	{ .name = "late_no_rseq", .what = "... without restartable sequences", .setup = setup_late_guard, .but = without_rseq },
	{ .name = "signal", .what = "handlers read, also during the first use", .setup = setup_signal },
	{ .name = "signal_first", .what = "... before all others", .setup = setup_signal_first },
	{ .name = "signal_moved", .what = "... of threads that are moved between two CPUs", .setup = setup_signal_moved },
	{ .name = "signal_cpu_each", .what = "... a CPU for every thread", .setup = signal_threads, .but = with_many_cpus },
	{ .name = "signal_no_rseq", .what = "... without restartable sequences", .setup = signal_threads, .but = without_rseq },
	{ .name = "full_signal", .what = "... without membarrier", .setup = setup_full_signal },
	{ .name = "signal_nested", .what = "two guards, and handlers that take two", .setup = setup_signal_nested },
	{ .name = "signal_nested_no_rseq", .what = "... without restartable sequences", .setup = setup_signal_nested, .but = without_rseq },
	{ .name = "signal_gives", .what = "a handler hands its guard over", .setup = setup_signal_gives },
	{ .name = "signal_gives_no_rseq", .what = "... without restartable sequences", .setup = setup_signal_gives, .but = without_rseq },
	{ .name = "full_signal_gives", .what = "... without membarrier", .setup = setup_signal_gives, .but = without_membarrier },
	{ .name = "recycled", .what = "an address is published again", .setup = setup_recycled },
	{ .name = "full_recycled", .what = "... without membarrier", .setup = setup_recycled, .but = without_membarrier },
	{ .name = NULL },
};
