/* SPDX-License-Identifier: MIT */
/* buckets_lines.c - elements behind the first line of a bucket move to holes of that line, or to other lines, and the lines that
 * they leave are used again. */
#include "buckets_world.h"
#include "table/buckets.h"

#define BOTH(name)                                              \
	static void table_##name(void) { setup_##name(TABLE); } \
	static void map_##name(void) { setup_##name(MAP); }

#define MANY 20

static int key[NR_KEYS];
static int slots;

/* @nr keys in bucket 0, of which owner 0 has the first @mine; the last of those that fit, and those that come after, are watched, as they
 * are the ones that go to other places. */
static void prepare(enum world_kind kind, int nr, int mine)
{
	world_begin(kind, kind == MAP ? 16 : 32);
	slots = kind == MAP ? 3 : 7;
	for (int i = 0; i < nr; i++) {
		key[i] = world_key(i < mine ? 0 : 1, 0, i && sim_random(4) == 0 && kind != MAP ? key[0] : -1);
		if (i != slots - 1 && i < nr - 2)
			world_unwatch(key[i]);
	}
	for (int i = 0; i < nr; i++)
		world_insert(key[i]);
}

/* ---- back to the first line ---- */

static void turn(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		world_remove(key[0]);
		world_remove(key[1]);
		world_insert(key[0]);
		world_insert(key[1]);
	}
}

static void once(void *unused)
{
	(void)unused;
	world_set(key[slots]);
}

static void setup_turn(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 5 : 9, 2);
	world_spawn(turn, NULL, "owner 0");
	if (sim_random(2))
		world_spawn(once, NULL, "owner 1");
	world_readers();
}
BOTH(turn)
static void hazard_turn(void) { setup_turn(HAZARD); }

static void setup_walk_turn(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 5 : 9, 2);
	world_spawn(turn, NULL, "owner 0");
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(walk_turn)

/* The first line's last word gets another object, and its former object is in a hole. */
static void seventh(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_remove(key[1]);
	world_remove(key[2]);
	world_insert(key[0]);
	if (sim_random(2))
		world_insert(key[1]);
}

static void setup_seventh(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 3 : 7, 3);
	for (int i = 0; i < 2; i++)
		world_insert(key[10 + i] = world_key(1, 0, -1));
	world_spawn(seventh, NULL, "owner 0");
	world_readers();
}
BOTH(seventh)
static void hazard_seventh(void) { setup_seventh(HAZARD); }

/* ---- other lines ---- */

static void many(void *unused)
{
	int nr = world_kind == MAP ? 6 : 10;

	(void)unused;
	for (int i = 0; i < nr; i++)
		world_remove(key[i]);
	for (int i = 0; i < 3; i++)
		world_insert(key[i]);
}

static void setup_many(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 12 : MANY, kind == MAP ? 6 : 10);
	world_spawn(many, NULL, "owner 0");
	world_readers();
}
BOTH(many)
static void hazard_many(void) { setup_many(HAZARD); }

static void setup_walk_many(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 12 : MANY, kind == MAP ? 6 : 10);
	world_spawn(many, NULL, "owner 0");
	world_spawn(world_iterator, NULL, "iterator");
}
BOTH(walk_many)

/* ---- used again ---- */

/* Another bucket uses the line after a grace period. */
static void reuse(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_remove(key[1]);
	if (sim_random(2))
		synchronize_rcu();
	for (int i = 0; i <= slots; i++)
		world_insert(key[20 + i]);
	world_remove(key[20]);
	world_insert(key[0]);
	world_insert(key[1]);
}

static void setup_reuse(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 5 : 9, 2);
	for (int i = 0; i <= slots; i++) {
		key[20 + i] = world_key(0, 1, -1);
		if (i < slots)
			world_unwatch(key[20 + i]);
	}
	world_spawn(reuse, NULL, "owner 0");
	world_readers();
}
BOTH(reuse)
static void hazard_reuse(void) { setup_reuse(HAZARD); }

/* Two buckets of one pool lose their overflow lines at one time, and take lines again. */
static void empty(void *owner)
{
	int *mine = key + (owner ? 20 : 0), from = world_kind == MAP ? slots - 1 : slots - 2;

	for (int i = 0; i < 2; i++) {
		for (int k = from; k <= slots; k++)
			world_remove(mine[k]);
		for (int k = from; k <= slots; k++)
			world_insert(mine[k]);
	}
}

static void setup_empty(enum world_kind kind)
{
	world_begin(kind, kind == MAP ? 16 : 32);
	slots = kind == MAP ? 3 : 7;
	for (int owner = 0; owner < 2; owner++)
		for (int i = 0; i <= slots; i++) {
			int *mine = &key[20 * owner + i];

			*mine = world_key(owner, (unsigned int)owner, -1);
			if (i > 0 && i < slots - 1)
				world_unwatch(*mine);
			world_insert(*mine);
		}
	world_spawn(empty, NULL, "owner 0");
	world_spawn(empty, key, "owner 1");
	world_readers();
}
BOTH(empty)
static void hazard_empty(void) { setup_empty(HAZARD); }

/* ---- kept ---- */

static const struct quiesce__bucket *second_line(void)
{
	const struct quiesce__table *table = &world_table->table;

	return table->kind->follow(quiesce__bucket_in(quiesce__buckets_of(table), 0));
}

/* A key behind a full line comes and goes in one line, which the bucket leaves when its elements would not fill the first line. */
static void keep(void *unused)
{
	const struct quiesce__bucket *line = second_line();

	(void)unused;
	sim_assert(line);
	for (int i = 0; i < 3; i++) {
		world_remove(key[slots + i % 2]);
		if (second_line() != line)
			sim_fail("a full bucket has given away its only overflow line");
		world_insert(key[slots + (i + 1) % 2]);
		sim_assert(second_line() == line);
	}
	world_remove(key[slots + 1]);
	for (int i = 0; i < (world_kind == MAP ? 1 : 2); i++) {
		sim_assert(second_line() == line);
		world_remove(key[i]);
	}
	if (second_line())
		sim_fail("a bucket with holes keeps an overflow line");
	world_insert(key[slots]);
	world_insert(key[slots + 1]);
}

static void setup_keep(enum world_kind kind)
{
	prepare(kind, kind == MAP ? 4 : 8, MANY);
	key[slots + 1] = world_key(0, 0, -1);
	sim_assert(quiesce__table_reserve(&world_table->table, kind == MAP ? 16 : 32) == 0); /* it does not become smaller */
	world_spawn(keep, NULL, "owner 0");
	world_readers();
}
BOTH(keep)

/* ---- searched before the lock ---- */

/* Two threads change a bucket of two lines, or of one that becomes two. */
static void change_pair(void *owner)
{
	int *mine = key + (owner ? 20 : 10);

	for (int i = 0; i < 2; i++) {
		world_insert(mine[i]);
		world_remove(mine[i]);
		world_insert(mine[1 - i]);
		world_insert(mine[i]);
		world_remove(mine[1 - i]);
		world_remove(mine[i]);
	}
}

static void map_pairs(void)
{
	prepare(MAP, 2 + sim_random(3), MANY);
	for (int owner = 0; owner < 2; owner++)
		for (int i = 0; i < 2; i++)
			key[10 + 10 * owner + i] = world_key(owner, 0, -1);
	sim_assert(quiesce__table_reserve(&world_table->table, 16) == 0); /* it does not become smaller */
	world_spawn(change_pair, NULL, "owner 0");
	world_spawn(change_pair, key, "owner 1");
	world_readers();
}

#define CHANGE "a lookup of a key that is being changed"
#define ABSENT "a key that is not visited"

const struct sim_scenario buckets_lines_scenarios[] = {
	{ "table_turn", "a bucket of two lines becomes one of one line, and again", table_turn, NULL, CHANGE },
	{ "map_turn", "the same with a map", map_turn, NULL, CHANGE },
	{ "hazard_turn", "the same with hazard pointers", hazard_turn, NULL, CHANGE },
	{ "table_walk_turn", "iterations meanwhile", table_walk_turn, NULL, ABSENT },
	{ "map_walk_turn", "the same with a map", map_walk_turn, NULL, ABSENT },
	{ "table_seventh", "the last word of a line is one object's, a link, another's", table_seventh, NULL, NULL },
	{ "map_seventh", "the same with a map", map_seventh, NULL, NULL },
	{ "hazard_seventh", "the same with hazard pointers", hazard_seventh, NULL, NULL },
	{ "table_many", "a bucket of many lines is given less", table_many, NULL, NULL },
	{ "map_many", "the same with a map", map_many, NULL, NULL },
	{ "hazard_many", "the same with hazard pointers", hazard_many, NULL, NULL },
	{ "table_walk_many", "iterations meanwhile", table_walk_many, NULL, ABSENT },
	{ "map_walk_many", "the same with a map", map_walk_many, NULL, ABSENT },
	{ "table_reuse", "a line that a bucket has left is another one's", table_reuse, NULL, CHANGE },
	{ "map_reuse", "the same with a map", map_reuse, NULL, CHANGE },
	{ "hazard_reuse", "the same with hazard pointers", hazard_reuse, NULL, CHANGE },
	{ "table_empty", "two buckets leave their lines, and take others", table_empty, NULL, NULL },
	{ "map_empty", "the same with maps", map_empty, NULL, NULL },
	{ "hazard_empty", "the same with hazard pointers", hazard_empty, NULL, NULL },
	{ "table_keep", "the last overflow line stays behind a full one", table_keep, NULL, CHANGE },
	{ "map_keep", "the same with a map", map_keep, NULL, CHANGE },
	{ "map_pairs", "a bucket changes between a search and its lock", map_pairs, NULL, CHANGE },
	{ NULL, NULL, NULL, NULL, NULL },
};
