/* SPDX-License-Identifier: MIT */
/* shazptr_claims.c - scenarios: where claims find a slot, on every kind of machine. */
#include "shazptr_world.h"

#include "slots/slot_groups.h"
#include "slots/slots.h"

static void setup_basic(void)
{
	world_begin();
	world_readers(driver_readers + 1);
	world_updaters(1);
}

/* On one CPU a thread that holds a guard, or is about to claim a slot, is preempted by the others. */
static void setup_one_cpu(void)
{
	world_begin();
	sim_config()->nr_cpus = 1;
	world_readers(driver_readers + 2);
	world_updaters(1);
}

/* Every thread has a CPU, so that all of them run at once. */
static void setup_cpu_each(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	world_readers(driver_readers + 1);
	world_updaters(1);
}

static void setup_cpu_id(void)
{
	setup_basic();
	sim_config()->rseq_kind = PLATFORM_RSEQ_CPU_ID;
}

static void setup_no_rseq(void)
{
	setup_basic();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
}

static void setup_full(void)
{
	setup_basic();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static const char *wants_threads(const char *name)
{
	return __builtin_strcmp(name, "QUIESCE_SLOTS") ? NULL : "thread";
}

static void setup_kind_thread(void)
{
	setup_basic();
	sim_config()->getenv_hook = wants_threads;
}

/* One updater publishes by a store, as in most programs. */
static void assigner(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *old = rcu_access_pointer(world_pointer[0]), *item = world_new(NULL);

		rcu_assign_pointer(world_pointer[0], item);
		synchronize_shazptr(old);
		world_free(old);
	}
}

static void setup_assign(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(assigner, NULL, "updater");
}

/* ---- ids with holes, and impossible ids ---- */

static int far_apart(int id)
{
	return 511 - id * 200;
}

static int out_of_range(int id)
{
	return id ? 511 + id : 511;
}

static void setup_sparse(void)
{
	setup_basic();
	sim_config()->possible_cpus = 512;
	sim_config()->id_hook = far_apart;
}

static void setup_out_of_range(void)
{
	setup_basic();
	sim_config()->possible_cpus = 512;
	sim_config()->id_hook = out_of_range;
}

/* ---- ways to acquire ---- */

static void known_reader(void *wild)
{
	world_read_known(0, wild);
	world_read_known(0, wild);
}

static void setup_known(void)
{
	world_begin();
	spawn_each(driver_readers + 1, known_reader, "reader");
	world_updaters(1);
}

static void setup_wildcard(void)
{
	world_begin();
	sim_spawn(known_reader, world_pointer, "wild");
	sim_spawn(known_reader, world_pointer, "wild");
	world_readers(1);
	world_updaters(1);
}

static void try_reader(void *unused)
{
	struct shazptr_guard guard;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		guard = shazptr_tryprotect(&world_pointer[0]);
		if (shazptr_ptr(guard))
			world_check(shazptr_ptr(guard));
		shazptr_clear(guard);
	}
}

static void setup_try(void)
{
	world_begin();
	spawn_each(driver_readers + 1, try_reader, "reader");
	world_updaters(2);
}

/* ---- several guards at once ---- */

static void nester(void *unused)
{
	struct shazptr_guard guard[3];

	(void)unused;
	for (int i = 0; i < 3; i++)
		guard[i] = shazptr_protect(&world_pointer[i & 1]);
	/* The guards are cleared out of order. */
	world_check(shazptr_ptr(guard[2]));
	shazptr_clear(guard[2]);
	world_check(shazptr_ptr(guard[0]));
	shazptr_clear(guard[0]);
	guard[0] = shazptr_protect(&world_pointer[0]);
	world_check(shazptr_ptr(guard[1]));
	shazptr_clear(guard[1]);
	world_check(shazptr_ptr(guard[0]));
	shazptr_clear(guard[0]);
}

static void setup_nested(void)
{
	world_begin();
	spawn_each(driver_readers, nester, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* ---- no slots ---- */

/* There is no memory for lines, so guards have no slots. */
static void few_lines(uint32_t nr)
{
	quiesce_slots();
	quiesce__slots.lines.capacity = nr;
}

static void finish_storm(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.fallback_guards)
		sim_saw();
}

static void setup_storm(void)
{
	world_begin();
	few_lines(0);
	spawn_each(driver_readers, nester, "reader");
	world_updaters(1);
}

static void setup_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	few_lines(0);
	world_readers(driver_readers);
	world_updaters(1);
}

static void setup_full_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	few_lines(0);
	world_readers(driver_readers);
	world_updaters(1);
}

/* The updater publishes by a store, with full fences, so only the count's own order is left. */
static void setup_full_fallback_assign(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	few_lines(0);
	world_readers(driver_readers);
	sim_spawn(assigner, NULL, "updater");
}

/* Lines of exiting threads cannot be taken back, so threads use shared slots. */
static void setup_shared(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->arm_exit_failures = -1;
	spawn_each(driver_readers, nester, "reader");
	world_updaters(1);
}

/* Fill the first slots of both ids, then the lines, then shared lines. */
static void hoarder(void *unused)
{
	struct shazptr_guard guard[10];

	(void)unused;
	for (int i = 0; i < 10; i++)
		guard[i] = shazptr_protect(&world_pointer[0]);
	for (int i = 0; i < 10; i++) {
		world_check(shazptr_ptr(guard[i]));
		shazptr_clear(guard[i]);
	}
}

static void setup_hoard(void)
{
	world_begin();
	few_lines(2);
	spawn_each(2, hoarder, "hoarder");
	world_updaters(1);
}

/* The first line keeps its thread while there are other lines to share. */
static void setup_first_line(void)
{
	world_begin();
	sim_config()->arm_exit_failures = -1;
	sim_spawn(hoarder, NULL, "hoarder");
	world_updaters(1);
}

static void finish_first_line(void)
{
	sim_assert(!*quiesce__line_owner(quiesce__slots.lines.first));
	if (quiesce__slots.lines.nr > 1)
		sim_saw();
}

/* ---- sections of RCU between guards ---- */

static void both_reader(void *unused)
{
	struct shazptr_guard guard;
	struct item *item;

	(void)unused;
	rcu_read_lock();
	item = rcu_dereference(world_pointer[1]);
	world_check(item);
	guard = shazptr_protect(&world_pointer[0]);
	world_check(item);
	rcu_read_unlock();
	world_check(shazptr_ptr(guard));
	shazptr_clear(guard);
	world_read(0);
}

static void rcu_updater(void *unused)
{
	struct item *old = world_replace(1);

	(void)unused;
	synchronize_rcu();
	world_free(old);
}

static void setup_rcu(void)
{
	world_begin();
	spawn_each(driver_readers, both_reader, "reader");
	world_updaters(1);
	sim_spawn(rcu_updater, NULL, "rcu");
}

/* The range that a scan reads grows while several threads claim in a group at once: it covers each thread's slot. */
static uint32_t lines_used;
static uintptr_t group[QUIESCE_ID_WORDS];

static void raises(void *arg)
{
	uint32_t k = (uint32_t)(uintptr_t)arg;

	quiesce__raise_used(group, QUIESCE_ID_WORDS, k);
	sim_assert(quiesce_load_relaxed(&group[QUIESCE_ID_WORDS - 1]) > k);
	quiesce__raise_to(&lines_used, k + 1);
	sim_assert(quiesce_load_relaxed(&lines_used) > k);
}

static void setup_raised(void)
{
	static const uint32_t order[] = { 2, 0, 3, 1 };

	for (int i = 0; i < 4; i++)
		sim_spawn(raises, (void *)(uintptr_t)order[i], "claimer");
}

static void finish_raised(void)
{
	sim_assert(group[QUIESCE_ID_WORDS - 1] == 4 && lines_used == 4);
}

const struct sim_scenario shazptr_claim_scenarios[] = {
	{ .name = "basic", .what = "readers, one updater; two CPUs", .setup = setup_basic },
	{ .name = "cpu_each", .what = "a CPU for every thread", .setup = setup_cpu_each },
	{ .name = "one_cpu", .what = "four readers on one CPU", .setup = setup_one_cpu },
	{ .name = "cpu_id", .what = "slots by CPU number", .setup = setup_cpu_id },
	{ .name = "no_rseq", .what = "no restartable sequences", .setup = setup_no_rseq },
	{ .name = "kind_thread", .what = "QUIESCE_SLOTS=thread", .setup = setup_kind_thread },
	{ .name = "full", .what = "no membarrier", .setup = setup_full },
	{ .name = "full_cpu_each", .what = "no membarrier, a CPU for every thread", .setup = setup_cpu_each, .but = without_membarrier },
	{ .name = "full_no_rseq", .what = "neither of the two", .setup = setup_no_rseq, .but = without_membarrier },
	{ .name = "assign", .what = "publication by rcu_assign_pointer()", .setup = setup_assign },
	{ .name = "full_assign", .what = "... without membarrier", .setup = setup_assign, .but = without_membarrier },
	{ .name = "sparse", .what = "512 ids, of which few are used", .setup = setup_sparse },
	{ .name = "out_of_range", .what = "ids beyond the possible ones", .setup = setup_out_of_range },
	{ .name = "known", .what = "shazptr_acquire(), then find the object again", .setup = setup_known },
	{ .name = "wildcard", .what = "readers that block every wait", .setup = setup_wildcard },
	{ .name = "full_wildcard", .what = "... without membarrier", .setup = setup_wildcard, .but = without_membarrier },
	{ .name = "try", .what = "shazptr_tryprotect()", .setup = setup_try },
	{ .name = "nested", .what = "three guards, cleared out of order", .setup = setup_nested },
	{ .name = "nested_cpu_each", .what = "... a CPU for every thread", .setup = setup_nested, .but = with_many_cpus },
	{ .name = "full_nested", .what = "... without membarrier", .setup = setup_nested, .but = without_membarrier },
	{ .name = "nested_no_rseq", .what = "... without restartable sequences", .setup = setup_nested, .but = without_rseq },
	{ .name = "storm", .what = "more guards than slots", .setup = setup_storm, .finish = finish_storm,
	  .must_see = "a fallback guard" },
	{ .name = "fallback", .what = "no slots at all", .setup = setup_fallback, .finish = finish_storm,
	  .must_see = "a fallback guard" },
	{ .name = "full_fallback", .what = "... without membarrier", .setup = setup_full_fallback, .finish = finish_storm,
	  .must_see = "a fallback guard" },
	{ .name = "full_fallback_assign_again", .what = "... publication by a store", .setup = setup_full_fallback_assign,
	  .finish = finish_storm, .must_see = "a fallback guard" },
	{ .name = "shared", .what = "threads that get no line of their own", .setup = setup_shared },
	{ .name = "full_shared", .what = "... without membarrier", .setup = setup_shared, .but = without_membarrier },
	{ .name = "hoard", .what = "ten guards each", .setup = setup_hoard, .finish = finish_storm,
	  .must_see = "a fallback guard" },
	{ .name = "first_line", .what = "... of a thread without a line of its own", .setup = setup_first_line, .finish = finish_first_line,
	  .must_see = "a shared line" },
	{ .name = "raised", .what = "the number of lines to scan grows", .setup = setup_raised, .finish = finish_raised },
	{ .name = "rcu", .what = "sections of RCU and guards", .setup = setup_rcu },
	{ .name = NULL },
};
