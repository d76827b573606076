/* SPDX-License-Identifier: MIT */
/* buckets_hashtable.c - features of hashtables alone: words and their tags, objects with equal keys, hazard pointers, signal handlers. */
#include "buckets_world.h"

#define FULL 7

static int key[12];

static void prepare(enum world_kind kind, int nr, int mine)
{
	world_begin(kind, 32);
	for (int i = 0; i < nr; i++) {
		key[i] = world_key(i < mine ? 0 : 1, 0, -1);
		if (i >= 2 && i != FULL - 1)
			world_unwatch(key[i]);
	}
	for (int i = 0; i < nr; i++)
		world_insert(key[i]);
}

/* The word of one key is reused by another key, with the same tag or not, and by the first again. */
static void take_word(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_insert(key[8]);
	world_remove(key[8]);
	world_insert(key[9]);
	world_replace(key[9]);
	world_set(key[0]);
	world_set(key[0]);
}

static void setup_word(enum world_kind kind)
{
	prepare(kind, 2, 1);
	key[8] = world_key(0, 0, key[0]);
	key[9] = world_key(0, 0, -1);
	world_spawn(take_word, NULL, "owner");
	world_readers();
}
static void table_word(void) { setup_word(TABLE); }
static void hazard_word(void) { setup_word(HAZARD); }

/* The first of several objects with equal tags is removed, inserted into another word, and replaced: a lookup of an object behind it
 * meets the new object and the emptied word, and continues in a bucket that moves meanwhile. */
static void move_first(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_insert(key[8]);
	world_insert(key[0]);
	world_remove(key[8]);
	world_set(key[0]);
}

static void move_second(void *unused)
{
	(void)unused;
	world_replace(key[1]);
	world_remove(key[1]);
	world_insert(key[9]);
	world_insert(key[1]);
}

static void grow(void *unused)
{
	(void)unused;
	sim_assert(hashtable_reserve(&world_table->ht, 64) == 0);
}

/* Objects that stay are behind two that change: the last of them is in the same line, or in the one that continues it. */
static void setup_first(enum world_kind kind)
{
	int nr = sim_random(2) ? 3 : FULL + 1;

	world_begin(kind, 32);
	for (int i = 0; i < nr; i++) {
		key[i] = world_key(i < 2 ? i : 2, 0, i && (i < 3 || sim_random(2)) ? key[0] : -1);
		if (i > 2 && i < nr - 1)
			world_unwatch(key[i]);
		world_insert(key[i]);
	}
	key[8] = world_key(0, 0, sim_random(2) ? key[0] : -1);
	key[9] = world_key(1, 0, key[0]);
	world_spawn(move_first, NULL, "owner 0");
	world_readers();
}

static void table_first(void)
{
	setup_first(TABLE);
	world_spawn(move_second, NULL, "owner 1");
	world_spawn(grow, NULL, "reserver");
}

/* Three objects are few: here the table shrinks.  (More threads would make the runs too long.) */
static void hazard_first(void)
{
	setup_first(HAZARD);
}

/* The object in the last word of a full line moves to another line, and then so few are left that the bucket gives that line away. */
static void give_line_away(void *unused)
{
	(void)unused;
	world_insert(key[8]);
	world_insert(key[9]);
	world_remove(key[0]);
	world_remove(key[8]);
	world_remove(key[1]);
	world_remove(key[2]);
	world_insert(key[0]);
}

static void change_last(void *unused)
{
	(void)unused;
	world_set(key[FULL - 1]);
	world_remove(key[FULL - 1]);
	world_insert(key[FULL - 1]);
}

static void setup_lines(enum world_kind kind)
{
	prepare(kind, FULL, 3);
	key[8] = world_key(0, 0, key[FULL - 1]);
	key[9] = world_key(0, 0, -1);
	world_spawn(give_line_away, NULL, "owner 0");
	world_spawn(change_last, NULL, "owner 1");
	world_readers();
}
static void table_lines(void) { setup_lines(TABLE); }
static void hazard_lines(void) { setup_lines(HAZARD); }

static void table_walk_lines(void)
{
	prepare(TABLE, FULL, 1);
	key[8] = world_key(0, 0, -1);
	key[9] = world_key(0, 0, -1);
	world_spawn(give_line_away, NULL, "owner 0");
	world_spawn(world_iterator, NULL, "iterator");
	world_spawn(world_iterator, NULL, "iterator");
}

/* ---- objects with equal keys ---- */

static void come_and_go(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *item = world_item_new(key[0]);

		sim_assert(hashtable_insert(&world_table->ht, item) == 0);
		if (i)
			sim_assert(hashtable_remove(&world_table->ht, item) == 0);
		if (i)
			world_item_retire(item);
	}
}

/* The object that stays is visited once, the others at most twice: the one that was added last has stayed. */
static void match(void *constant)
{
	for (int i = 0; i < 2; i++) {
		struct hashtable_iter it;
		struct item *item;
		int met = 0, others = 0;

		rcu_read_lock();
		hashtable_for_each_match(item, &it, &world_table->ht, &world_key_of[key[0]]) {
			world_check(item, key[0]);
			met += item == constant;
			others += item != constant;
		}
		sim_assert(met == 1);
		if (others)
			sim_saw();
		sim_assert(world_lookup(key[0]));
		rcu_read_unlock();
	}
}

static int two(void)
{
	return 2;
}

static void setup_equal(void)
{
	struct item *constant;

	prepare(TABLE, FULL - 1, FULL);
	key[0] = world_key(2, 0, -1);
	constant = world_item_new(key[0]);
	sim_assert(hashtable_insert(&world_table->ht, constant) == 0);
	world_untracked(key[0], two);
	world_spawn(come_and_go, NULL, "updater");
	world_spawn(grow, NULL, "reserver");
	world_spawn(match, constant, "reader");
	world_spawn(match, constant, "reader");
}

/* ---- the end of a table whose objects are found with hazard pointers ---- */

static void end(void *unused)
{
	(void)unused;
	world_set(key[0]);
	world_destroy();
}

static void setup_end(void)
{
	prepare(HAZARD, 3, 1);
	world_spawn(end, NULL, "owner");
	world_readers();
}

/* ---- lookups in signal handlers ---- */

static void handler(void)
{
	rcu_read_lock();
	sim_assert(world_lookup(key[1]) != NULL);
	world_lookup(key[0]);
	rcu_read_unlock();
}

static void interrupted(void *unused)
{
	sim_set_signal(handler, 2);
	take_word(unused);
}

static void setup_signal(enum world_kind kind)
{
	prepare(kind, 3, 1);
	key[8] = world_key(0, 0, key[0]);
	key[9] = world_key(0, 0, -1);
	world_spawn(interrupted, NULL, "owner");
	world_spawn(grow, NULL, "reserver");
	world_readers();
}
static void table_signal(void) { setup_signal(TABLE); }
static void map_signal(void) { setup_signal(MAP); }

#define CHANGE "a lookup of a key that is being changed"

const struct sim_scenario hashtable_scenarios[] = {
	{ "table_word", "an object is put where another one was", table_word, NULL, CHANGE },
	{ "hazard_word", "the same with hazard pointers", hazard_word, NULL, CHANGE },
	{ "table_first", "the first object with a tag changes, and the bucket moves", table_first, NULL, CHANGE },
	{ "hazard_first", "the same with hazard pointers", hazard_first, NULL, CHANGE },
	{ "table_lines", "a full line is continued", table_lines, NULL, CHANGE },
	{ "hazard_lines", "the same with hazard pointers", hazard_lines, NULL, CHANGE },
	{ "table_walk_lines", "iterations meanwhile", table_walk_lines, NULL, "a key that is not visited" },
	{ "table_equal", "several objects with one key, while the table grows", setup_equal, NULL, "more than one object" },
	{ "hazard_over", "the end of a table under hazard pointers", setup_end, NULL, CHANGE },
	{ "table_signal", "lookups in a handler that interrupts an update", table_signal, NULL, CHANGE },
	{ "map_signal", "the same with a map", map_signal, NULL, CHANGE },
	{ NULL, NULL, NULL, NULL, NULL },
};
