/* SPDX-License-Identifier: MIT */
/* sim_buckets.c - tables that grow and shrink under their readers and updaters, on the simulated machine. */
#include "buckets_world.h"

#include "runtime/core.h"

#include <errno.h>

/* Define each scenario once for a hashtable and once for a hashmap. */
#define BOTH(name)                                              \
	static void table_##name(void) { setup_##name(TABLE); } \
	static void map_##name(void) { setup_##name(MAP); }

static int key[NR_KEYS];

static size_t room(enum world_kind kind, int lines)
{
	return lines == 1 ? 1 : (size_t)lines * (kind == MAP ? 2 : 4);
}

static void fill(int from, int to)
{
	for (int i = from; i < to; i++)
		world_insert(key[i]);
}

/* ---- one line becomes two ---- */

/* Owner 0 has the last key that fits in, and one more; owner 1 has the first. */
static void grow(void *unused)
{
	(void)unused;
	world_insert(key[8]);
	world_remove(key[7]);
	world_set(key[8]);
}

static void other(void *unused)
{
	(void)unused;
	world_set(key[1]);
	world_remove(key[1]);
	world_insert(key[1]);
}

static int prepare_grow(enum world_kind kind)
{
	int nr = kind == MAP ? 3 : 7;

	world_begin(kind, room(kind, 1));
	key[1] = world_key(1, 1, -1);
	key[2] = world_key(2, 0, -1);
	for (int i = 3; i < nr; i++) {
		key[i] = world_key(2, i & 1, -1);
		world_unwatch(key[i]);
	}
	key[7] = world_key(0, 0, key[1]);
	key[8] = world_key(0, 1, key[2]);
	fill(1, nr);
	world_insert(key[7]);
	return nr;
}

static void setup_grow(enum world_kind kind)
{
	prepare_grow(kind);
	world_spawn(grow, NULL, "owner 0");
	world_spawn(other, NULL, "owner 1");
	world_readers();
}
BOTH(grow)

static void setup_walk_grow(enum world_kind kind)
{
	prepare_grow(kind);
	world_spawn(grow, NULL, "owner 0");
	world_spawn(other, NULL, "owner 1");
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(walk_grow)

/* ---- eight lines become more ---- */

static void reserve(void *nr)
{
	sim_assert(quiesce__table_reserve(&world_table->table, (uintptr_t)nr) == 0 || world_may_fail);
}

static void two(void *first)
{
	int i = (intptr_t)first;

	world_set(key[i]);
	world_remove(key[i + 1]);
	world_insert(key[i + 1]);
}

static void prepare_eight_lines(enum world_kind kind)
{
	world_begin(kind, room(kind, 8));
	key[0] = world_key(0, 0, -1);
	key[1] = world_key(0, 5, -1);
	key[2] = world_key(1, 7, -1);
	key[3] = world_key(1, 0, -1);
	fill(0, 4);
}

static void setup_eight_lines(enum world_kind kind)
{
	prepare_eight_lines(kind);
	world_spawn(reserve, (void *)room(kind, 16), "reserver");
	world_spawn(two, (void *)0, "owner 0");
	world_spawn(two, (void *)2, "owner 1");
	world_readers();
}
BOTH(eight_lines)

static void setup_walk_eight_lines(enum world_kind kind)
{
	prepare_eight_lines(kind);
	world_spawn(reserve, (void *)room(kind, 16), "reserver");
	world_spawn(two, (void *)0, "owner 0");
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(walk_eight_lines)

/* ---- eight lines become two ---- */

static void shrink(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_set(key[1]);
	world_insert(key[0]);
}

static void prepare_shrink(enum world_kind kind)
{
	world_begin(kind, room(kind, 8));
	key[0] = world_key(0, 1, -1);
	key[1] = world_key(0, 4, -1);
	key[2] = world_key(1, 2, key[1]);
	key[3] = world_key(2, 6, -1);
	key[4] = world_key(2, 7, -1);
	fill(0, kind == MAP ? 3 : 5);
}

static void once(void *unused)
{
	(void)unused;
	world_set(key[2]);
	world_set(key[2]);
}

static void setup_shrink(enum world_kind kind)
{
	prepare_shrink(kind);
	world_spawn(shrink, NULL, "owner 0");
	world_spawn(once, NULL, "owner 1");
	world_readers();
}
BOTH(shrink)

/* Clear the table while two buckets become one. */
static void clear(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	if (sim_random(2))
		world_remove(key[3]);
	for (uint32_t k = sim_random(60); k; k--)
		platform_yield();
	world_clear();
}

static void setup_clear(enum world_kind kind)
{
	world_begin(kind, room(kind, 8));
	for (int i = 0; i < 5; i++) {
		key[i] = world_key(0, (unsigned int[]){ 1, 4, 2, 6, 0 }[i], -1);
		if (i != 1)
			world_unwatch(key[i]);
	}
	fill(0, kind == MAP ? 3 : 5);
	world_spawn(clear, NULL, "owner 0");
	world_readers();
}
BOTH(clear)
static void hazard_clear(void) { setup_clear(HAZARD); }

/* Remove some of the elements of a bucket of several lines, and all with one key, while buckets move. */
static void erase(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(60); k; k--)
		platform_yield();
	world_erase();
}

static void setup_erase(enum world_kind kind)
{
	world_begin(kind, room(kind, 8));
	for (int i = 0; i < 12; i++) {
		key[i] = world_key(0, (unsigned int[]){ 0, 0, 0, 4, 0, 0, 0, 0, 4, 0, 0, 0 }[i], -1);
		if (i > 2)
			world_unwatch(key[i]);
	}
	fill(0, kind == MAP ? 6 : 12);
	world_spawn(erase, NULL, "owner 0");
	if (sim_random(2))
		world_spawn(reserve, (void *)room(kind, 16), "reserver");
	world_readers();
}
BOTH(erase)
static void hazard_erase(void) { setup_erase(HAZARD); }

/* Half of the buckets have moved, the one that is cleared first among them; the others are copied to the same new bucket. */
static void clear_all(void *unused)
{
	(void)unused;
	world_clear();
}

static void find_again(void *unused)
{
	struct view_of_owners view = { { 0 } };

	(void)unused;
	for (int i = 0; i < 4; i++)
		world_find(&view, key[1]);
}

static void hazard_merge(void)
{
	/* The retirer scans at once: elements that a clear has dropped are freed while other threads are still in the bucket. */
	sim_assert(quiesce_set_hazptr_batch(1, 1) == 0);
	world_begin(HAZARD, room(HAZARD, 8));
	for (int i = 0; i < 5; i++)
		key[i] = world_key(0, (unsigned int[]){ 0, 4, 1, 1, 1 }[i], -1);
	fill(0, 5);
	world_remove(key[2]);
	world_set(key[0]);
	world_spawn(reserve, (void *)1, "reserver");
	world_spawn(clear_all, NULL, "owner 0");
	for (int i = 0; i < driver_readers; i++)
		world_spawn(find_again, NULL, "reader");
}

static void setup_walk_shrink(enum world_kind kind)
{
	prepare_shrink(kind);
	world_spawn(shrink, NULL, "owner 0");
	world_spawn(once, NULL, "owner 1");
	world_spawn(world_iterator, NULL, "iterator");
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(walk_shrink)

/* The table shrinks, grows and shrinks: readers are left behind in arrays of any age. */
static void bounce(void *nr)
{
	world_remove(key[0]);
	reserve(nr);
	sim_assert(quiesce__table_reserve(&world_table->table, 0) == 0);
	world_insert(key[0]);
	world_remove(key[0]);
}

static void setup_bounce(enum world_kind kind)
{
	prepare_shrink(kind);
	world_spawn(bounce, (void *)room(kind, 4), "owner 0");
	world_readers();
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(bounce)

/* ---- memory is short ---- */

static void fail(int times)
{
	world_successes = sim_random(3);
	world_failures = times;
}

/* A callback that found no memory may park after an update that came when there was memory again: then one more update is needed. */
static void last_update(void)
{
	world_set(key[0]);
	if (!world_settle())
		world_set(key[0]);
}

/* Bucket 0 needs more than one line in any array. */
static void poor(void *nr)
{
	fail(1 + sim_random(4));
	reserve(nr);
	world_insert(key[11]);
	fail(sim_random(3));
	world_set(key[0]);
	fail(sim_random(2));
	reserve(nr);
	fail(0);
	world_set(key[1]); /* a resize that is waiting for memory goes on */
	last_update();
}

static void setup_poor(enum world_kind kind)
{
	int nr = kind == MAP ? 5 : 9;

	world_begin(kind, room(kind, 8));
	world_may_fail = true;
	for (int i = 0; i < nr; i++) {
		key[i] = world_key(i == 2 ? 1 : 0, 0, -1);
		if (i > 2)
			world_unwatch(key[i]);
	}
	key[11] = world_key(0, 0, -1);
	fill(0, nr);
	world_spawn(poor, (void *)room(kind, 16), "owner 0");
	world_spawn(once, NULL, "owner 1");
	world_readers();
}
BOTH(poor)

/* Two buckets become one, which then needs another line. */
static void poor_shrink(void *unused)
{
	(void)unused;
	world_remove(key[11]);
	fail(1 + sim_random(3));
	for (int i = 0; i < 4; i++)
		world_set(key[0]);
	fail(0);
	if (sim_random(2))
		world_remove(key[0]); /* elements copied by a failed move do not reappear */
	world_set(key[1]);
	last_update();
}

static void setup_poor_shrink(enum world_kind kind)
{
	int half = kind == MAP ? 2 : 4;

	world_begin(kind, room(kind, 16));
	sim_assert(quiesce__table_reserve(&world_table->table, room(kind, 16)) == 0); /* it does not become smaller until it is full */
	world_may_fail = true;
	for (int i = 0; i < 2 * half; i++) {
		key[i] = world_key(i == 2 ? 1 : 0, i & 1 ? 0 : 8, -1);
		if (i > 3)
			world_unwatch(key[i]);
	}
	key[11] = world_key(0, 3, -1);
	fill(0, 2 * half);
	world_insert(key[11]);
	world_table->table.min_lines = 1;
	world_spawn(poor_shrink, NULL, "owner 0");
	world_spawn(once, NULL, "owner 1");
	world_readers();
}
BOTH(poor_shrink)

/* ---- destruction during a resize ---- */

static void end(void *unused)
{
	(void)unused;
	world_insert(key[8]);
	if (sim_random(2))
		world_set(key[7]);
	for (uint32_t k = sim_random(3); k; k--)
		platform_yield();
	if (sim_random(2))
		rcu_read_lock();
	else
		synchronize_rcu(); /* the callback is moving buckets now */
	world_destroy();
	if (rcu_read_lock_held())
		rcu_read_unlock();
}

static void setup_end(enum world_kind kind)
{
	prepare_grow(kind);
	world_spawn(end, NULL, "owner 0");
	world_readers();
}
BOTH(end)
static void hazard_end(void) { setup_end(HAZARD); }

static void hazard_grow(void) { setup_grow(HAZARD); }
static void hazard_shrink(void) { setup_shrink(HAZARD); }

/* ---- a child of a process whose other threads were updating the table ---- */

static void child_of_fork(void)
{
	size_t nr = quiesce__table_count(&world_table->table);

	rcu_read_lock();
	if (quiesce_load_relaxed(&quiesce_load_relaxed(&world_table->table.array)->next))
		sim_saw();
	for (int i = 0; i < 4; i++)
		world_lookup(key[i]);
	rcu_read_unlock();
	rcu_barrier();
	synchronize_rcu();
	sim_assert(quiesce__table_count(&world_table->table) == nr);
}

static void forks(void *unused)
{
	(void)unused;
	for (uint32_t k = sim_random(300); k; k--)
		platform_yield();
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	child_of_fork();
}

/* Threads are spawned without world_spawn(), because they never end in the child, so objects that they hold are not checked. */
static void setup_fork(enum world_kind kind)
{
	prepare_eight_lines(kind);
	sim_spawn(reserve, (void *)room(kind, 16), "reserver");
	sim_spawn(two, (void *)0, "owner 0");
	sim_spawn(two, (void *)2, "owner 1");
	sim_spawn(forks, NULL, "forker");
}
BOTH(fork)

/* A resize of the parent's table that the last update of a child begins completes. */
static void grows_in_child(void *unused)
{
	(void)unused;
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	world_insert(key[8]);
	if (quiesce_load_relaxed(&world_table->table.resizes))
		sim_saw();
}

static void setup_child(enum world_kind kind)
{
	prepare_grow(kind);
	world_spawn(grows_in_child, NULL, "forker");
}
BOTH(child)

#define CHANGE "a lookup of a key that is being changed"
#define ABSENT "a key that is not visited"

static const struct sim_scenario resize_scenarios[] = {
	{ "table_grow", "a table of one line gets a second", table_grow, NULL, CHANGE },
	{ "map_grow", "a map of one line gets a second", map_grow, NULL, CHANGE },
	{ "hazard_grow", "a table of one line gets a second, hazard pointers", hazard_grow, NULL, CHANGE },
	{ "table_eight_lines", "a table of eight lines is made larger while others update it", table_eight_lines, NULL, CHANGE },
	{ "map_eight_lines", "the same with a map", map_eight_lines, NULL, CHANGE },
	{ "table_shrink", "a table of eight lines becomes two", table_shrink, NULL, CHANGE },
	{ "map_shrink", "the same with a map", map_shrink, NULL, CHANGE },
	{ "hazard_shrink", "a table of eight lines becomes two, hazard pointers", hazard_shrink, NULL, CHANGE },
	{ "table_clear", "a table is cleared while it becomes smaller", table_clear, NULL, CHANGE },
	{ "map_clear", "the same with a map", map_clear, NULL, CHANGE },
	{ "hazard_clear", "the same with hazard pointers", hazard_clear, NULL, CHANGE },
	{ "table_erase", "some objects are removed by one call while the table becomes larger", table_erase, NULL, CHANGE },
	{ "map_erase", "the same with a map", map_erase, NULL, CHANGE },
	{ "hazard_erase", "the same with hazard pointers", hazard_erase, NULL, CHANGE },
	{ "hazard_merge", "a table whose buckets become one is cleared, hazard pointers", hazard_merge, NULL, CHANGE },
	{ "table_bounce", "a table becomes smaller, larger, smaller", table_bounce, NULL, CHANGE },
	{ "map_bounce", "the same with a map", map_bounce, NULL, CHANGE },
	{ "table_poor", "a table is made larger, and memory fails", table_poor, NULL, CHANGE },
	{ "map_poor", "the same with a map", map_poor, NULL, CHANGE },
	{ "table_poor_shrink", "a table becomes smaller, and memory fails", table_poor_shrink, NULL, CHANGE },
	{ "map_poor_shrink", "the same with a map", map_poor_shrink, NULL, CHANGE },
	{ "table_walk_grow", "iterations while a table grows", table_walk_grow, NULL, ABSENT },
	{ "map_walk_grow", "the same with a map", map_walk_grow, NULL, ABSENT },
	{ "table_walk_eight_lines", "iterations while a table of eight lines grows", table_walk_eight_lines, NULL, ABSENT },
	{ "map_walk_eight_lines", "the same with a map", map_walk_eight_lines, NULL, ABSENT },
	{ "table_walk_shrink", "iterations while a table shrinks", table_walk_shrink, NULL, ABSENT },
	{ "map_walk_shrink", "the same with a map", map_walk_shrink, NULL, ABSENT },
	{ "table_end", "the end of a table that is being resized, with readers inside", table_end, NULL, CHANGE },
	{ "map_end", "the same with a map", map_end, NULL, CHANGE },
	{ "hazard_end", "the same with hazard pointers", hazard_end, NULL, CHANGE },
	{ "table_fork", "the child of a process that was resizing a table", table_fork, NULL, "a table that is being resized" },
	{ "map_fork", "the same with a map", map_fork, NULL, "a map that is being resized" },
	{ "table_child", "a child makes the table of its parent larger", table_child, NULL, "a resize" },
	{ "map_child", "the same with a map", map_child, NULL, "a resize" },
	{ NULL, NULL, NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct sim_scenario *const tables[] = {
		resize_scenarios, hashtable_scenarios, hashmap_scenarios, buckets_race_scenarios, buckets_lines_scenarios,
		NULL,
	};

	return driver_main(argc, argv, tables);
}
