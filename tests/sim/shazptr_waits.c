/* SPDX-License-Identifier: MIT */
/* shazptr_waits.c - scenarios: many waiters, the scan thread, and that every wait ends. */
#include "shazptr_world.h"

#include "shazptr/shazptr.h"
#include "slots/slots.h"

static void setup_sharing(void)
{
	world_begin();
	world_readers(driver_readers);
	world_updaters(3);
}

static void pointers(void)
{
	world_begin();
	spawn_each(driver_readers, world_reader_of_pointers, "reader");
	for (intptr_t i = 0; i < 3; i++)
		sim_spawn(world_updater, (void *)i, "updater");
}

static void setup_pointers(void)
{
	pointers();
}

/* ---- waits by the scan thread ---- */

static void setup_skip(void)
{
	pointers();
	quiesce_set_skip_self_scan(1);
}

static void setup_skip_sharing(void)
{
	setup_sharing();
	quiesce_set_skip_self_scan(1);
}

static void setup_full_skip(void)
{
	pointers();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	quiesce_set_skip_self_scan(1);
}

static void setup_skip_cpu_each(void)
{
	pointers();
	sim_config()->nr_cpus = 0;
	quiesce_set_skip_self_scan(1);
}

/* A guard holds a specific address while the scan runs. */
static struct shazptr_guard held;
static uint32_t holding, finished;

/* Stay inside, sometimes so long that the waiter has gone to sleep. */
static void stay(void)
{
	for (uint32_t k = sim_random(2) * sim_random(400); k; k--)
		platform_yield();
}

static void holder(void *unused)
{
	(void)unused;
	held = shazptr_protect(&world_pointer[0]);
	world_set(&holding, 1);
	world_await_tag(&held, NULL);
	stay();
	world_check(shazptr_ptr(held));
	shazptr_clear(held);
}

static void waits_for_holder(void *unused)
{
	struct item *old;

	(void)unused;
	world_await(&holding, 1);
	old = world_replace(0);
	synchronize_shazptr(old);
	world_free(old);
	world_set(&finished, 1);
}

/* The wake-up is guaranteed: no time may pass with all threads asleep. */
static void setup_wakes(void)
{
	world_begin();
	sim_config()->idle_limit_ns = 1;
	sim_spawn(holder, NULL, "holder");
	sim_spawn(waits_for_holder, NULL, "updater");
}

static void setup_skip_wakes(void)
{
	setup_wakes();
	quiesce_set_skip_self_scan(1);
}

static void setup_no_thread_wakes(void)
{
	setup_wakes();
	sim_config()->thread_start_failures = -1;
}

/* Two threads wait for the same guard, and a third one arrives meanwhile. */
static void comes_later(void *index)
{
	world_await(&holding, 1);
	for (int k = 0; k < 10; k++)
		platform_yield();
	world_updater(index);
}

static void setup_wakes_many(void)
{
	setup_wakes();
	sim_config()->idle_limit_ns = 900000; /* a caller that shares a heavy fence may sleep for some time; the scan's sleeps are longer */
	sim_spawn(waits_for_holder, NULL, "updater");
	sim_spawn(comes_later, (void *)0, "updater");
	sim_spawn(comes_later, (void *)1, "updater");
}

static void setup_skip_wakes_many(void)
{
	setup_wakes_many();
	quiesce_set_skip_self_scan(1);
}

static void finish_wakes(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.wakeups)
		sim_saw();
}

static void fallback_holder(void *unused)
{
	struct shazptr_guard guard = shazptr_protect(&world_pointer[0]);

	(void)unused;
	world_set(&holding, 1);
	stay();
	world_check(shazptr_ptr(guard));
	shazptr_clear(guard);
}

static void setup_wakes_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	sim_config()->idle_limit_ns = 1;
	quiesce_slots();
	quiesce__slots.lines.capacity = 0;
	sim_spawn(fallback_holder, NULL, "holder");
	sim_spawn(waits_for_holder, NULL, "updater");
}

/* ---- no thread ---- */

static void setup_no_thread(void)
{
	pointers();
	sim_config()->thread_start_failures = -1;
}

static void setup_late_thread(void)
{
	setup_skip();
	sim_config()->thread_start_failures = 1;
}

static void finish_no_thread(void)
{
	sim_assert(!quiesce__shazptr_scan.leading);
}

/* ---- the scan thread is asked to end while waiters arrive ---- */

static void shuts_down(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 20; k++)
			platform_yield();
		sim_assert(quiesce_shutdown(0) == 0);
	}
}

static void setup_shutdown(void)
{
	pointers();
	sim_spawn(shuts_down, NULL, "shutdown");
}

static void setup_shutdown_skip(void)
{
	setup_skip();
	sim_spawn(shuts_down, NULL, "shutdown");
}

static void setup_shutdown_fails(void)
{
	setup_shutdown_skip();
	sim_config()->thread_start_failures = 1;
}

/* ---- a waiter for every guard ---- */

static void waits_for_all(void *unused)
{
	struct item *old[2];

	(void)unused;
	for (int i = 0; i < 2; i++)
		old[i] = world_replace(i);
	synchronize_shazptr(SHAZPTR_WILDCARD);
	for (int i = 0; i < 2; i++)
		world_free(old[i]);
}

static void setup_all(void)
{
	world_begin();
	spawn_each(driver_readers, world_reader_of_pointers, "reader");
	spawn_each(2, waits_for_all, "all");
	sim_spawn(world_updater, (void *)2, "updater");
}

static void setup_skip_all(void)
{
	setup_all();
	quiesce_set_skip_self_scan(1);
}

/* ---- readers that never stop; they yield, because PCT gives others no step otherwise ---- */

static uint32_t nr_waiting;

static void hot_reader(void *wild)
{
	while (quiesce_load_relaxed(&nr_waiting)) {
		struct shazptr_guard guard = shazptr_acquire(wild ? SHAZPTR_WILDCARD : (void *)world_pointer);

		sim_point("in a bucket");
		shazptr_clear(guard);
		platform_yield();
	}
}

/* There is always a guard: two readers alternate. */
static void hot_chain(void *wild)
{
	struct shazptr_guard guard = shazptr_acquire(wild ? SHAZPTR_WILDCARD : (void *)world_pointer), next;

	while (quiesce_load_relaxed(&nr_waiting)) {
		next = shazptr_acquire(wild ? SHAZPTR_WILDCARD : (void *)world_pointer);
		shazptr_clear(guard);
		guard = next;
		platform_yield();
	}
	shazptr_clear(guard);
}

static void bucket_waiter(void *unused)
{
	(void)unused;
	synchronize_shazptr(world_pointer);
	quiesce_fetch_add_relaxed(&nr_waiting, -1u);
}

static void hot(void (*reader)(void *), void *wild, uint32_t nr)
{
	world_begin();
	sim_config()->max_steps = 60000;
	nr_waiting = nr;
	sim_spawn(reader, wild, "hot");
	sim_spawn(reader, wild, "hot");
	for (uint32_t i = 0; i < nr; i++)
		sim_spawn(bucket_waiter, NULL, "waiter");
}

static void setup_hot(void)
{
	hot(hot_reader, NULL, 1);
}

static void setup_hot_cpu_each(void)
{
	hot(hot_reader, NULL, 2);
	sim_config()->nr_cpus = 0;
}

static void setup_hot_chain(void)
{
	hot(hot_chain, NULL, 2);
}

static void setup_hot_full(void)
{
	hot(hot_chain, NULL, 2);
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static void setup_hot_skip(void)
{
	hot(hot_chain, NULL, 2);
	quiesce_set_skip_self_scan(1);
}

static void setup_hot_no_thread(void)
{
	hot(hot_chain, NULL, 2);
	sim_config()->thread_start_failures = -1;
}

static void setup_hot_wild(void)
{
	hot(hot_chain, world_pointer, 2);
	sim_spawn(world_updater, (void *)1, "updater");
}

static void setup_hot_fallback(void)
{
	hot(hot_chain, NULL, 2);
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	quiesce_slots();
	quiesce__slots.lines.capacity = 0;
}

/* ---- a tag for a later waiter does not block an earlier one ---- */

static uint32_t again;

static void holds_again(void *unused)
{
	(void)unused;
	held = shazptr_acquire(world_pointer);
	world_set(&holding, 1);
	world_await_tag(&held, NULL);
	shazptr_clear(held);
	held = shazptr_acquire(world_pointer);
	world_set(&again, 1);
	world_await(&finished, 1);
	shazptr_clear(held);
}

static void first_waiter(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	synchronize_shazptr(world_pointer);
	world_set(&finished, 1);
}

static void second_waiter(void *unused)
{
	(void)unused;
	world_await(&again, 1);
	synchronize_shazptr(world_pointer);
}

static void setup_later_tag(void)
{
	world_begin();
	sim_spawn(holds_again, NULL, "holder");
	sim_spawn(first_waiter, NULL, "first");
	spawn_each(2, second_waiter, "second");
}

/* ---- the whole of the result ---- */

/* Stores of the holder before its clear are visible after the wait. */
static uint64_t written;

static void writer(void *unused)
{
	struct shazptr_guard guard = shazptr_acquire(world_pointer);

	(void)unused;
	world_set(&holding, 1);
	world_await_tag(&guard, &finished);
	quiesce_store_relaxed(&written, 1);
	shazptr_clear(guard);
}

static void sees_it(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	synchronize_shazptr(world_pointer);
	sim_assert(quiesce_load_relaxed(&written) == 1);
}

static void setup_visible(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	sim_spawn(writer, NULL, "writer");
	spawn_each(2, sees_it, "waiter");
}

static void setup_skip_visible(void)
{
	setup_visible();
	quiesce_set_skip_self_scan(1);
}

const struct sim_scenario shazptr_wait_scenarios[] = {
	{ .name = "sharing", .what = "three updaters of one pointer", .setup = setup_sharing },
	{ .name = "sharing_cpu_each", .what = "... a CPU for every thread", .setup = setup_sharing, .but = with_many_cpus },
	{ .name = "full_sharing", .what = "... without membarrier", .setup = setup_sharing, .but = without_membarrier },
	{ .name = "pointers", .what = "three updaters of different pointers", .setup = setup_pointers },
	{ .name = "skip", .what = "without the self-scan", .setup = setup_skip },
	{ .name = "skip_sharing", .what = "... of one pointer", .setup = setup_skip_sharing },
	{ .name = "full_skip", .what = "... without membarrier", .setup = setup_full_skip },
	{ .name = "skip_cpu_each", .what = "... a CPU for every thread", .setup = setup_skip_cpu_each },
	{ .name = "wakes", .what = "a clear wakes the scan", .setup = setup_wakes, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "wakes_cpu_each", .what = "... a CPU for every thread", .setup = setup_wakes, .but = with_many_cpus,
	  .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "full_wakes", .what = "... without membarrier", .setup = setup_wakes, .but = without_membarrier, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "skip_wakes", .what = "... without the self-scan", .setup = setup_skip_wakes, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "no_thread_wakes", .what = "... without a thread", .setup = setup_no_thread_wakes, .finish = finish_wakes,
	  .must_see = "a wake-up" },
	{ .name = "wakes_many", .what = "... with several waiters", .setup = setup_wakes_many },
	{ .name = "skip_wakes_many", .what = "... without the self-scan", .setup = setup_skip_wakes_many },
	{ .name = "no_thread_wakes_many", .what = "... without a thread", .setup = setup_wakes_many, .but = without_threads,
	  .finish = finish_no_thread },
	{ .name = "wakes_fallback", .what = "a clear of a guard without a slot wakes the scan", .setup = setup_wakes_fallback,
	  .finish = finish_wakes, .must_see = "a wake-up" },
	{ .name = "no_thread", .what = "no thread can be started", .setup = setup_no_thread, .finish = finish_no_thread },
	{ .name = "no_thread_sharing", .what = "... updaters of one pointer", .setup = setup_sharing, .but = without_threads,
	  .finish = finish_no_thread },
	{ .name = "no_thread_skip", .what = "... without the self-scan", .setup = setup_skip, .but = without_threads,
	  .finish = finish_no_thread },
	{ .name = "late_thread", .what = "the first attempt to start one fails", .setup = setup_late_thread },
	{ .name = "shutdown", .what = "the thread ends while others wait", .setup = setup_shutdown },
	{ .name = "shutdown_skip", .what = "... without the self-scan", .setup = setup_shutdown_skip },
	{ .name = "shutdown_fails", .what = "... and cannot be started at first", .setup = setup_shutdown_fails },
	{ .name = "all", .what = "waits for every guard", .setup = setup_all },
	{ .name = "skip_all", .what = "... without the self-scan", .setup = setup_skip_all },
	{ .name = "hot", .what = "readers protect the same address for ever", .setup = setup_hot },
	{ .name = "hot_cpu_each", .what = "... a CPU for every thread", .setup = setup_hot_cpu_each },
	{ .name = "hot_chain", .what = "... and always hold a guard", .setup = setup_hot_chain },
	{ .name = "hot_full", .what = "... without membarrier", .setup = setup_hot_full },
	{ .name = "hot_skip", .what = "... without the self-scan", .setup = setup_hot_skip },
	{ .name = "hot_no_thread", .what = "... without a thread", .setup = setup_hot_no_thread, .finish = finish_no_thread },
	{ .name = "hot_wild", .what = "... of every address", .setup = setup_hot_wild },
	{ .name = "hot_fallback", .what = "... without slots", .setup = setup_hot_fallback },
	{ .name = "later_tag", .what = "a later waiter's tag is none of an earlier one's", .setup = setup_later_tag },
	{ .name = "visible", .what = "what the holder wrote is seen", .setup = setup_visible },
	{ .name = "skip_visible", .what = "... without the self-scan", .setup = setup_skip_visible },
	{ .name = NULL },
};
