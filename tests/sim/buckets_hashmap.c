/* SPDX-License-Identifier: MIT */
/* buckets_hashmap.c - features of hashmaps alone: keys and values in the line, and places that another key reuses. */
#include "buckets_world.h"

static int key[10];

static void prepare(int nr, int mine)
{
	int first = sim_random(nr);

	world_begin(MAP, 16);
	for (int i = 0; i < nr; i++)
		key[i] = world_key(i < mine ? 0 : 1, 0, -1);
	for (int i = 0; i < nr; i++)
		world_insert(key[(first + i) % nr]);
}

/* The place of one key is reused by another key, and by the first again. */
static void take_place(void *unused)
{
	(void)unused;
	world_remove(key[0]);
	world_insert(key[4]);
	world_remove(key[4]);
	world_insert(key[0]);
	world_set(key[0]);
}

static void setup_place(void)
{
	prepare(3, 1);
	key[4] = world_key(0, 0, -1);
	world_spawn(take_place, NULL, "owner");
	world_readers();
}

static void setup_walk_place(void)
{
	setup_place();
	world_spawn(world_iterator, NULL, "iterator");
}

/* The line becomes full, is continued, and has room again. */
static void continue_line(void *unused)
{
	(void)unused;
	world_insert(key[4]);
	world_insert(key[5]);
	world_remove(key[0]);
	world_replace(key[5]);
	world_remove(key[4]);
	world_insert(key[4]);
	world_insert(key[0]);
}

static void setup_lines(void)
{
	prepare(3, 1);
	key[4] = world_key(0, 0, -1);
	key[5] = world_key(0, 0, -1);
	world_spawn(continue_line, NULL, "owner");
	world_readers();
}

static void setup_walk_lines(void)
{
	setup_lines();
	world_spawn(world_iterator, NULL, "iterator");
}

/* The key of every unused place is 0, so a map must tell key 0 from an unused place. */
static void setup_zero(void)
{
	unsigned int bucket = quiesce_hash_u64(0, WORLD_SEED) >> 6 & 15;
	int nr = sim_random(4);

	world_begin(MAP, 16);
	key[0] = sim_random(2) ? world_key_zero(0) : world_key(0, bucket, -1);
	key[4] = world_key_of[key[0]] ? world_key_zero(0) : world_key(0, bucket, -1);
	key[5] = world_key(0, bucket, -1);
	for (int i = 1; i <= nr; i++)
		world_insert(key[i] = world_key(1, bucket, -1));
	world_insert(key[0]);
	world_spawn(continue_line, NULL, "owner");
	world_readers();
}

/* Two threads insert the first keys at the same time. */
static void fill(void *from)
{
	intptr_t i = (intptr_t)from;

	world_insert(key[i]);
	world_set(key[i]);
	world_insert(key[i + 1]);
	world_remove(key[i]);
	world_insert(key[i]);
}

static void setup_static(void)
{
	world_begin(MAP, sim_random(2) ? 16 : 0);
	/* Room may have been reserved before. */
	world_table->table.seed = ((struct hashmap)HASHMAP_INIT).table.seed;
	sim_assert(world_table->table.kind == ((struct hashmap)HASHMAP_INIT).table.kind);
	for (int i = 0; i < 4; i++)
		key[i] = world_key(i / 2, 0, -1);
	world_spawn(fill, (void *)0, "owner");
	world_spawn(fill, (void *)2, "owner");
	world_readers();
}

/* ---- a map that counts per CPU ---- */

#define ROOM 32 /* size of an array that is large enough to count per CPU */

static void come_and_go(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		world_insert(key[1]);
		world_remove(key[1]);
	}
}

static void insert_one(void *unused)
{
	(void)unused;
	world_insert(key[2]);
}

/* There are never more than it has room for.  A sum may have both of the keys that come and go, but not two sums. */
static int judge_size(void)
{
	struct quiesce_table_stats stats;

	hashmap_stats(&world_table->map, &stats);
	if (stats.resizes)
		sim_fail("a map became larger that was never full");
	return 0;
}

static void setup_sums(void)
{
	world_begin(MAP, ROOM);
	sim_assert(quiesce__table_reserve(&world_table->table, ROOM) == 0); /* it need not become smaller first */
	world_untracked(world_key(0, 0, -1), judge_size);
	for (int i = 0; i < ROOM - 2; i++) {
		int other = world_key(2, i & 15, -1);

		world_unwatch(other);
		world_insert(other);
	}
	key[1] = world_key(0, 3, -1);
	key[2] = world_key(1, 5, -1);
	world_spawn(come_and_go, NULL, "owner 0");
	world_spawn(insert_one, NULL, "owner 1");
}

const struct sim_scenario hashmap_scenarios[] = {
	{ "map_sums", "keys come and go while they are counted", setup_sums, NULL, NULL },
	{ "map_place", "a key is written where another one was", setup_place, NULL, "a lookup of a key that is being changed" },
	{ "map_walk_place", "iterations meanwhile", setup_walk_place, NULL, "a key that is not visited" },
	{ "map_lines", "a full line is continued", setup_lines, NULL, "a lookup of a key that is being changed" },
	{ "map_walk_lines", "iterations meanwhile", setup_walk_lines, NULL, "a key that is not visited" },
	{ "map_static", "the first two put something in at once", setup_static, NULL, NULL },
	{ "map_zero", "the key 0 in all places", setup_zero, NULL, "a lookup of a key that is being changed" },
	{ NULL, NULL, NULL, NULL, NULL },
};
