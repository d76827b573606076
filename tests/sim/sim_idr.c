/* SPDX-License-Identifier: MIT */
/* sim_idr.c - ids to pointers on the simulated machine: trees that grow and shrink in height under their readers. */
#include "idr_world.h"

#include <errno.h>

/* These ids need one, two and three levels. */
#define LOW 1ul
#define HIGH 70ul
#define HIGHER 5000ul

/* True if @id has @ptr now; it is the caller's own id, so no other thread changes it. */
static bool has(unsigned long id, const void *ptr)
{
	bool found;

	rcu_read_lock();
	found = idr_find(&world_idr, id) == ptr;
	rcu_read_unlock();
	return found;
}

/* ---- one owner ---- */

static void grow(void *unused)
{
	(void)unused;
	world_alloc(0, HIGH);
	world_alloc(0, HIGHER);
}

static void setup_grow(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_watch(0, HIGHER);
	world_alloc(0, LOW);
	sim_spawn(grow, NULL, "owner");
	world_readers();
}

/* Grow the tree by two levels at once. */
static void grow_by_two(void *unused)
{
	(void)unused;
	world_alloc(0, HIGHER);
	world_alloc(0, HIGH);
}

static void setup_grow_by_two(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_watch(0, HIGHER);
	world_alloc(0, LOW);
	sim_spawn(grow_by_two, NULL, "owner");
	world_readers();
}

static void shrink(void *unused)
{
	(void)unused;
	world_remove(0, HIGHER);
	world_remove(0, HIGH);
	world_remove(0, LOW);
}

static void setup_shrink(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_watch(0, HIGHER);
	world_alloc(0, LOW);
	world_alloc(0, HIGH);
	world_alloc(0, HIGHER);
	sim_spawn(shrink, NULL, "owner");
	world_readers();
}

/* The tree grows and shrinks again: readers are left behind in roots that were removed. */
static void bounce(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		world_alloc(0, HIGH);
		world_remove(0, HIGH);
	}
	world_alloc(0, HIGH);
}

static void setup_bounce(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_alloc(0, LOW);
	sim_spawn(bounce, NULL, "owner");
	world_readers();
}

/* A node at the bottom is added and removed while the root stays. */
static void branch(void *unused)
{
	(void)unused;
	world_remove(0, HIGH);
	world_alloc(0, HIGH + 1);
	world_alloc(0, HIGH);
	world_remove(0, HIGH + 1);
}

static void setup_branch(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_watch(0, HIGH + 1);
	world_watch(0, HIGH + 64);
	world_alloc(0, LOW);
	world_alloc(0, HIGH);
	world_alloc(0, HIGH + 64);
	sim_spawn(branch, NULL, "owner");
	world_readers();
}

static void empty_and_fill(void *unused)
{
	(void)unused;
	world_remove(0, LOW);
	world_alloc(0, HIGH);
	world_remove(0, HIGH);
	world_alloc(0, LOW);
}

static void setup_empty(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_alloc(0, LOW);
	sim_spawn(empty_and_fill, NULL, "owner");
	world_readers();
}

static void reserve(void *unused)
{
	(void)unused;
	world_reserve(0, HIGH);
	world_replace(0, HIGH);
	world_replace(0, LOW);
	world_remove(0, HIGH);
	world_replace(0, LOW);
}

static void setup_reserve(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_alloc(0, LOW);
	sim_spawn(reserve, NULL, "owner");
	world_readers();
}

static void end_and_begin(void *unused)
{
	(void)unused;
	world_destroy(0);
	world_alloc(0, HIGH);
	world_destroy(0);
	rcu_barrier();
	sim_assert(idr_is_empty(&world_idr));
	sim_assert(world_nr_nodes == 7 && world_nr_nodes_freed == 7); /* nodes of trees of three levels, and of two */
}

static void setup_destroy(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(0, HIGH);
	world_watch(0, HIGHER);
	world_alloc(0, HIGHER);
	world_alloc(0, HIGHER + 1);
	world_alloc(0, LOW);
	world_watch(0, HIGHER + 1);
	sim_spawn(end_and_begin, NULL, "owner");
	world_readers();
}

/* An allocation fails, and the tree is unchanged. */
static void poor(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		world_failures = sim_random(3);
		world_alloc(0, HIGHER);
		if (!has(HIGHER, NULL))
			world_remove(0, HIGHER);
	}
	world_failures = 0;
	rcu_barrier();
	sim_assert(idr_count(&world_idr) == 1 && world_idr.tree.nr_nodes == 1);
	sim_assert(world_nr_nodes == world_nr_nodes_freed + 1); /* preallocated nodes that were not used have been freed, too */
}

static void setup_poor(void)
{
	world_begin();
	world_may_fail = true;
	world_watch(0, LOW);
	world_watch(0, HIGHER);
	world_alloc(0, LOW);
	sim_spawn(poor, NULL, "owner");
	world_readers();
}

/* Without a worker thread, removed nodes wait for a safe point. */
static void alone(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		sim_assert(idr_alloc(&world_idr, &world_idr, HIGH, 0) == (int)HIGH);
		sim_assert(idr_remove(&world_idr, HIGH) == &world_idr);
		if (i == 1)
			continue;
		rcu_throttle();
		sim_assert(world_nr_nodes == world_nr_nodes_freed + 1);
	}
	world_destroy(0);
	rcu_barrier();
	sim_assert(world_nr_nodes == world_nr_nodes_freed);
}

static void setup_no_worker(void)
{
	world_begin();
	sim_config()->thread_start_failures = -1;
	world_watch(0, LOW);
	world_alloc(0, LOW);
	sim_spawn(alone, NULL, "owner");
	world_readers();
}

/* ---- iteration ---- */

static void setup_walk(void)
{
	setup_bounce();
	sim_spawn(world_iterator, NULL, "iterator");
}

static void setup_walk_shrink(void)
{
	setup_shrink();
	sim_spawn(world_iterator, NULL, "iterator");
}

static void setup_walk_branch(void)
{
	setup_branch();
	sim_spawn(world_iterator, NULL, "iterator");
}

/* ---- several owners ---- */

static void toggle(void *id)
{
	int owner = (unsigned long)(uintptr_t)id == HIGH ? 1 : 2;

	for (int i = 0; i < 2; i++) {
		world_alloc(owner, (uintptr_t)id);
		world_remove(owner, (uintptr_t)id);
	}
}

static void setup_owners(void)
{
	world_begin();
	world_watch(0, LOW);
	world_watch(1, HIGH);
	world_watch(2, HIGHER);
	world_alloc(0, LOW);
	sim_spawn(toggle, (void *)HIGH, "owner 1");
	sim_spawn(toggle, (void *)HIGHER, "owner 2");
	world_readers();
}

/* No id has two owners, and each is as low as the number of owners allows. */
#define NR_GREEDY 3
static bool taken[65 + NR_GREEDY];

static void have_one(int place)
{
	static const int limit[] = { 0, 1, 63, 64, 65 };
	int start = limit[place], id = idr_alloc(&world_idr, &world_idr, start, 0);

	sim_assert(id >= start && id < start + NR_GREEDY);
	if (taken[id])
		sim_fail("id %d given out twice", id);
	taken[id] = true;
	sim_point("has it");
	sim_assert(has(id, &world_idr));
	taken[id] = false;
	sim_assert(idr_remove(&world_idr, id) == &world_idr);
}

static void greedy(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++)
		have_one(sim_random(5));
}

static void setup_compete(void)
{
	world_begin();
	spawn_each(NR_GREEDY, greedy, "greedy");
}

static void preloaded(void *unused)
{
	struct idr_nodes nodes = IDR_NODES_INIT;
	int id;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		sim_assert(idr_preload(&nodes) == 0);
		id = idr_alloc_preloaded(&world_idr, &nodes, &nodes, sim_random(2) ? 0 : HIGHER, 0);
		if (id < 0)
			sim_fail("prepared, and yet %d", id);
		sim_assert(has(id, &nodes) && idr_remove(&world_idr, id) == &nodes);
	}
	idr_preload_end(&nodes);
}

static void setup_preload(void)
{
	world_begin();
	spawn_each(2, preloaded, "preloaded");
}

#define CHANGE "a find of an id that is being changed"
#define ABSENT "an id that is not visited"

static const struct sim_scenario scenarios[] = {
	{ "grow", "the tree becomes higher, one level at a time", setup_grow, world_finish, CHANGE },
	{ "grow_by_two", "two levels at once", setup_grow_by_two, world_finish, CHANGE },
	{ "shrink", "it becomes lower, and empty", setup_shrink, world_finish, CHANGE },
	{ "bounce", "higher and lower again", setup_bounce, world_finish, CHANGE },
	{ "branch", "a node at the bottom comes and goes", setup_branch, world_finish, CHANGE },
	{ "empty", "the tree empties and is there again", setup_empty, world_finish, CHANGE },
	{ "reserve", "reserved, filled, replaced, removed", setup_reserve, world_finish, CHANGE },
	{ "destroy", "destroyed and used again while readers are inside", setup_destroy, world_finish, CHANGE },
	{ "poor", "allocations fail", setup_poor, world_finish, CHANGE },
	{ "no_worker", "no worker thread can be had", setup_no_worker, world_finish, NULL },
	{ "walk", "iterations while the tree becomes higher and lower", setup_walk, world_finish, ABSENT },
	{ "walk_shrink", "the same while it becomes lower only", setup_walk_shrink, world_finish, ABSENT },
	{ "walk_branch", "the same while a node comes and goes", setup_walk_branch, world_finish, ABSENT },
	{ "owners", "several updaters, each with ids of its own", setup_owners, world_finish, CHANGE },
	{ "compete", "several updaters that take free ids", setup_compete, world_finish, NULL },
	{ "preload", "memory is there before", setup_preload, world_finish, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	return driver_main(argc, argv, (const struct sim_scenario *const[]){ scenarios, xarray_scenarios, NULL });
}
