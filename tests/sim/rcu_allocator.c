/* SPDX-License-Identifier: MIT */
/* rcu_allocator.c - scenarios: an allocator that retires. */
#include "rcu_retired.h"

#define MOST_BY_HEAP 8
static int nr_by_heap;
static size_t bytes_by_heap = QUIESCE_OBJECT_BYTES;

/* The allocator has no guard against recursion: the library calls it for objects that it retires itself. */
static void heap_retires(void)
{
	struct item *old;

	if (nr_by_heap == MOST_BY_HEAP || sim_random(2))
		return;
	nr_by_heap++;
	sim_saw();
	old = world_replace();
	if (nr_by_heap % 3 == 0) {
		nr_queued++;
		kfree_rcu(old, head);
	} else {
		retire_sized(old, check_and_free, bytes_by_heap);
	}
}

static void retires_both(void *nr)
{
	for (intptr_t i = 0; i < (intptr_t)nr; i++) {
		queue_one();
		nr_queued++;
		kfree_rcu(world_replace(), head);
	}
}

static void allocator(void)
{
	sim_config()->free_hook = free_item;
	sim_config()->heap_hook = heap_retires;
	world_begin();
	world_readers(1);
	sim_spawn(retires_both, (void *)4, "queuer");
	sim_spawn(retires_both, (void *)3, "queuer");
}

static void setup_allocator(void)
{
	allocator();
}

/* Stay below the ceiling, above which call_rcu() would wait. */
static void setup_allocator_throttled(void)
{
	quiesce_set_garbage_ceiling(QUIESCE_OBJECT_BYTES);
	quiesce_set_throttle(1);
	bytes_by_heap = 70000;
	allocator();
}

static void setup_allocator_short(void)
{
	sim_config()->block_failures = 2;
	sim_config()->lines_failures = 1;
	allocator();
}

static void finish_allocator(void)
{
	struct quiesce_stats stats;

	finish_all_run();
	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.garbage_bytes == 0);
	sim_assert(stats.callbacks_queued == stats.callbacks_run);
	sim_assert(stats.queues <= 1); /* the queue of the worker */
}

#define HEAP(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = finish_allocator, .must_see = "an allocator that retired" }

const struct sim_scenario rcu_allocator_scenarios[] = {
	HEAP(allocator, "the allocator retires whenever the library calls it"),
	HEAP(allocator_throttled, "... above the ceiling"),
	HEAP(allocator_short, "... and is short of memory"),
	{ .name = NULL },
};
