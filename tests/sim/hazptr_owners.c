/* SPDX-License-Identifier: MIT */
/* hazptr_owners.c - scenarios: owners of slots: contexts, slots handed over, signal handlers, threads that come and go. */
#include "hazptr_world.h"
#include "hazard_threads.h"

#include "hazptr/hazptr.h"

/* ---- contexts ---- */

static void context_reader(void *unused)
{
	struct hazptr_context ctx;
	hazptr_t *slot;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		if (init_hazptr_context(&ctx)) {
			world_read(0);
			continue;
		}
		slot = hazptr_alloc(&ctx);
		world_protect(slot, 0);
		hazptr_clear(slot);
		world_protect(slot, 0);
		hazptr_free(&ctx, slot);
		cleanup_hazptr_context(&ctx);
	}
}

static void setup_context(void)
{
	world_begin();
	spawn_each(driver_readers, context_reader, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* More contexts than lines; a context has its slots and no more. */
static void many_contexts(void *unused)
{
	struct hazptr_context ctx[3];
	hazptr_t *slot[HAZPTR_SLOT_PER_CTX];

	(void)unused;
	for (int i = 0; i < 3; i++)
		if (init_hazptr_context(&ctx[i]))
			sim_saw();
	for (int i = 0; i < 3; i++) {
		if (!ctx[i].first)
			continue;
		sim_assert(hazptr_alloc_batch(&ctx[i], slot, HAZPTR_SLOT_PER_CTX));
		sim_assert(!hazptr_alloc(&ctx[i]));
		world_protect(slot[i], 0);
		hazptr_free_batch(&ctx[i], slot, HAZPTR_SLOT_PER_CTX);
	}
	for (int i = 0; i < 3; i++)
		cleanup_hazptr_context(&ctx[i]);
}

static void setup_contexts(void)
{
	world_begin();
	sim_config()->max_steps = 40000;
	spawn_each(2, many_contexts, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* Cleaned up while a slot is held: reported, and the protection stays. */
static int nr_reports;

static void report(enum quiesce_misuse kind, const char *message)
{
	(void)message;
	sim_assert(kind == QUIESCE_MISUSE_CONTEXT_HELD);
	nr_reports++;
}

static void cleans_up_too_early(void *unused)
{
	struct hazptr_context ctx;
	struct item *item;
	hazptr_t *slot;

	(void)unused;
	sim_assert(!init_hazptr_context(&ctx));
	slot = hazptr_alloc(&ctx);
	sim_assert(slot);
	item = world_protect(slot, 0);
	cleanup_hazptr_context(&ctx);
	sim_assert(nr_reports);
	world_check(item);
	world_read(1);
	world_check(item);
	hazptr_free(&ctx, slot);
}

static void setup_context_held(void)
{
	world_begin();
	world_short_of_slots = true;
	quiesce_set_misuse_hook(report);
	sim_spawn(cleans_up_too_early, NULL, "reader");
	sim_spawn(context_reader, NULL, "context");
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- hand-over: another thread frees the slot ---- */

static hazptr_t *handed_slot;
static struct item *handed_item;
static uint32_t handed_over;

static void hand_over(hazptr_t *slot, struct item *item)
{
	quiesce_store_relaxed(&handed_slot, slot);
	quiesce_store_relaxed(&handed_item, item);
	world_set(&handed_over, 1);
}

/* The thread that allocated the slot has ended, or is about to end. */
static void leaver(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	hand_over(slot, world_protect(slot, 0));
}

static void giver(void *unused)
{
	leaver(unused);
	world_read(1);
	world_read(0);
}

static void take_over(void)
{
	hazptr_t *slot = quiesce_load_relaxed(&handed_slot);

	world_check(quiesce_load_relaxed(&handed_item));
	if (sim_random(2)) { /* the new owner may go on using the slot */
		world_protect(slot, 1);
		hazptr_clear(slot);
		world_protect(slot, 0);
	}
	hazptr_free(NULL, slot);
}

static void taker(void *unused)
{
	(void)unused;
	world_await(&handed_over, 1);
	take_over();
}

/* The thread begins when the giver ends, so it may get the giver's line. */
static void successor(void *unused)
{
	(void)unused;
	world_await(&handed_over, 1);
	world_read(1);
	world_read(0);
}

static void setup_give(void)
{
	world_begin();
	sim_spawn(giver, NULL, "giver");
	sim_spawn(taker, NULL, "taker");
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_leave(void)
{
	world_begin();
	sim_spawn(leaver, NULL, "leaver");
	spawn_each(2, successor, "successor");
	sim_spawn(taker, NULL, "taker");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* A context has all of its slots, also in a line that a thread has left with one held. */
static void context_successor(void *unused)
{
	struct hazptr_context ctx;
	hazptr_t *slot[HAZPTR_SLOT_PER_CTX];

	(void)unused;
	world_await(&handed_over, 1);
	world_stay(20);
	if (init_hazptr_context(&ctx))
		return;
	sim_assert(hazptr_alloc_batch(&ctx, slot, HAZPTR_SLOT_PER_CTX));
	world_protect(slot[3], 0);
	hazptr_free_batch(&ctx, slot, HAZPTR_SLOT_PER_CTX);
	cleanup_hazptr_context(&ctx);
}

static void setup_leave_context(void)
{
	world_begin();
	sim_spawn(leaver, NULL, "leaver");
	sim_spawn(context_successor, NULL, "context");
	sim_spawn(taker, NULL, "taker");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* Only the slot and the line order their owners: there is no system call, and no other word that the new owner reads. */
static void quiet_leaver(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	quiesce_store_relaxed(&handed_slot, slot);
	quiesce_store_relaxed(&handed_item, world_protect(slot, 0));
	quiesce_store_release(RU3, &handed_over, 1);
}

static void quiet_taker(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &handed_over))
		platform_yield();
	take_over();
}

static void newcomer(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(60); k; k--)
		sim_point("before the first slot");
	world_read(1);
	world_read(1);
	world_read(0);
}

static void setup_line_reused(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	quiesce_slots();
	sim_spawn(quiet_leaver, NULL, "leaver");
	sim_spawn(newcomer, NULL, "newcomer");
	sim_spawn(quiet_taker, NULL, "taker");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* A thread that is killed keeps its line; another thread frees the slot. */
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
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- threads that come and go ---- */

static void setup_generations(void)
{
	world_begin();
	world_short_of_slots = true;
	sim_spawn(generation, (void *)3, "reader");
	sim_spawn(generation, (void *)3, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* A destructor of thread-specific data uses the library after the library's own destructor. */
static void uses_after_exit(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct hazptr_context ctx;
	struct item *item = world_protect(slot, 0);

	(void)unused;
	world_update(1);
	quiesce__thread_exit();
	world_read(0);
	world_update(1);
	world_check(item);
	hazptr_free(NULL, slot);
	if (!init_hazptr_context(&ctx)) {
		slot = hazptr_alloc(&ctx);
		world_protect(slot, 0);
		hazptr_free(&ctx, slot);
		cleanup_hazptr_context(&ctx);
	}
	world_update(1);
}

static void setup_late(void)
{
	world_begin();
	spawn_each(2, uses_after_exit, "late");
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- signal handlers ---- */

static void signalled_updater(void *index)
{
	sim_set_signal(handler, 3);
	world_updater(index);
}

static void setup_signal(void)
{
	world_begin();
	spawn_each(driver_readers, signalled, "reader");
	sim_spawn(signalled_updater, NULL, "updater");
}

static void setup_signal_first(void)
{
	world_begin();
	spawn_each(driver_readers + 2, reads_once, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* The reader holds two slots, and handlers allocate two more. */
static void read_two(void)
{
	hazptr_t *first = hazptr_alloc(NULL), *second = hazptr_alloc(NULL);
	struct item *item;

	sim_assert(first && second && first != second);
	item = world_protect(first, 0);
	world_protect(second, 1);
	world_check(item);
	hazptr_free(NULL, first);
	hazptr_free(NULL, second);
}

static void greedy(void *unused)
{
	(void)unused;
	sim_set_signal(read_two, 2);
	read_two();
}

static void setup_signal_nested(void)
{
	world_begin();
	spawn_each(2, greedy, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* The handler keeps its slot; another thread frees it. */
static uint32_t given;

static void giving_handler(void)
{
	uint32_t none = 0;
	hazptr_t *slot;

	if (!quiesce_cmpxchg(RU3, &given, &none, 1))
		return;
	slot = hazptr_alloc_detached();
	sim_assert(slot);
	hand_over(slot, world_protect(slot, 0));
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
	sim_spawn(world_updater, (void *)0, "updater");
}

/* ---- no memory for lines ---- */

static void setup_no_lines(void)
{
	world_begin();
	quiesce_slots();
	quiesce__hazptr_lines.capacity = 1;
	world_short_of_slots = true;
	world_readers(driver_readers + 1);
	sim_spawn(context_reader, NULL, "context");
	sim_spawn(world_updater, (void *)0, "updater");
}

/* Every other allocation of an array fails. */
static void setup_no_room(void)
{
	sim_config()->reserve_turn = 1;
	world_begin();
	world_readers(driver_readers);
	sim_spawn(world_updater, (void *)0, "updater");
}

static void finish_no_room(void)
{
	sim_assert(!quiesce__hazptr_lines.arena.start && quiesce__slots.lines.arena.start);
	world_finish();
}

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }

const struct sim_scenario hazptr_owner_scenarios[] = {
	SCENARIO(context, "slots of contexts"),
	VARIANT(full_context, context, without_membarrier, "... without membarrier"),
	{ .name = "contexts", .what = "more contexts than lines", .setup = setup_contexts, .finish = world_finish,
	  .must_see = "a context for which there was no line" },
	SCENARIO(context_held, "a context cleaned up while a slot is held"),
	SCENARIO(give, "a slot handed to another thread"),
	VARIANT(full_give, give, without_membarrier, "... without membarrier"),
	SCENARIO(leave, "... by a thread that exits"),
	VARIANT(leave_cpu_each, leave, with_many_cpus, "... a CPU for every thread"),
	VARIANT(full_leave, leave, without_membarrier, "... without membarrier"),
	SCENARIO(leave_context, "... and a context comes after it"),
	SCENARIO(line_reused, "a line that the next thread gets while a slot of it is held"),
	SCENARIO(killed, "... by a thread that is killed"),
	SCENARIO(generations, "threads come and go"),
	SCENARIO(late, "slots and objects after the exit hook"),
	SCENARIO(signal, "handlers read, also during the first use"),
	VARIANT(signal_cpu_each, signal, with_many_cpus, "... a CPU for every thread"),
	VARIANT(full_signal, signal, without_membarrier, "... without membarrier"),
	SCENARIO(signal_first, "... before all others"),
	SCENARIO(signal_nested, "two slots, and handlers that take two"),
	VARIANT(full_signal_nested, signal_nested, without_membarrier, "... without membarrier"),
	SCENARIO(signal_gives, "a handler hands its slot over"),
	VARIANT(full_signal_gives, signal_gives, without_membarrier, "... without membarrier"),
	SCENARIO(no_lines, "one line for all threads"),
	{ .name = "no_room", .what = "lines of the reserve", .setup = setup_no_room, .finish = finish_no_room },
	{ .name = NULL },
};
