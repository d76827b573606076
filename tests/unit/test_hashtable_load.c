/* SPDX-License-Identifier: MIT */
/* test_hashtable_load.c - tables that grow and shrink under readers and updaters: nothing is missed, nothing is found dead. */
#include "tables.h"

#include <sched.h>

#define NR_STABLE 200   /* number of keys that stay, though not always with the same object */
#define NR_OTHERS 3000  /* number of keys that each updater inserts and removes */
#define NR_UPDATERS 2
#define NR_READERS 2
#define NR_KEYS (NR_STABLE + NR_UPDATERS * NR_OTHERS)
#define NR_WAVES 16     /* least number of rounds of each updater: all in, all out */
#define NR_FINDS 20000  /* least number of walks of all readers */
#define NR_WALKS 8

static uint32_t stop, nr_finds, nr_walks, nr_wrong, nr_replaced;

static void check(bool right)
{
	if (!right)
		count_up(&nr_wrong);
}

static bool alive(const struct object *o, uint64_t key)
{
	return o && quiesce_load_relaxed(&o->state) == GOOD && o->key == key; /* Relaxed: RCU is what is tested. */
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* Updaters that are out of step keep the table's load about constant: they go on until it was resized often enough. */
static bool enough(const struct quiesce__table *t, int waves)
{
	/* Relaxed: a flag of the test. */
	return waves >= NR_WAVES && quiesce_load_relaxed(&t->resizes) >= NR_WAVES && flag_get(&nr_finds) >= NR_FINDS &&
	       flag_get(&nr_walks) >= NR_WALKS;
}

/* Now and then a walk pauses in the middle of a bucket, which moves meanwhile. */
static void linger(unsigned int nr)
{
	if (nr % 128 == 0)
		short_rest();
	else if (nr % 32 == 0)
		sched_yield();
}

static void run(void *(*reader)(void *), void *(*updater)(void *))
{
	pthread_t readers[NR_READERS], updaters[NR_UPDATERS];

	stop = nr_finds = nr_walks = nr_wrong = nr_replaced = 0;
	for (uintptr_t i = 0; i < NR_READERS; i++)
		thread_must(pthread_create(&readers[i], NULL, reader, (void *)i));
	for (uintptr_t i = 0; i < NR_UPDATERS; i++)
		thread_must(pthread_create(&updaters[i], NULL, updater, (void *)i));
	threads_end(updaters, NR_UPDATERS);
	flag_set(&stop);
	threads_end(readers, NR_READERS);
	assert_int_equal(nr_wrong, 0);
	assert_true(nr_finds >= NR_FINDS && nr_walks >= NR_WALKS);
}

/* ---- hashtable ---- */

static struct hashtable table;

static void find_some(uint64_t *seed)
{
	uint64_t key = next_random(seed) % NR_KEYS;
	struct object *o = object_lookup(&table, &key);

	check(o ? alive(o, key) : key >= NR_STABLE);
	count_up(&nr_finds);
}

static void walk_table(void)
{
	uint8_t seen[NR_STABLE] = { 0 };
	struct hashtable_iter it;
	unsigned int nr = 0;
	struct object *o;

	hashtable_for_each(o, &it, &table) {
		check(alive(o, o->key));
		linger(nr++);
		if (o->key < NR_STABLE)
			seen[o->key]++;
	}
	/* An element that replaces another is seen in its place. */
	for (int i = 0; i < NR_STABLE; i++)
		check(seen[i] == 1);
	count_up(&nr_walks);
}

static void *table_reader(void *number)
{
	uint64_t seed = (uintptr_t)number;

	for (int turn = 0; !flag_get(&stop); turn++) {
		rcu_read_lock();
		for (int i = 0; i < 50; i++)
			find_some(&seed);
		if (turn % 32 == 0)
			walk_table();
		rcu_read_unlock();
	}
	return NULL;
}

/* Each updater replaces the objects of its own stable keys. */
static void replace_stable(uint64_t key, uint64_t way)
{
	struct object *fresh = object_new(key);
	void *old = NULL;

	if (way % 2) {
		check(hashtable_set(&table, fresh, &old) == 0 && old);
	} else {
		rcu_read_lock();
		old = object_lookup(&table, &key);
		check(alive((struct object *)old, key) && hashtable_replace(&table, old, fresh) == 0);
		rcu_read_unlock();
	}
	object_retire(old, NULL);
}

static void *table_updater(void *number)
{
	uint64_t me = (uintptr_t)number, first = NR_STABLE + me * NR_OTHERS, seed = first;

	for (int wave = 0; !enough(&table.table, wave); wave++) {
		for (uint64_t key = first; key < first + NR_OTHERS; key++) {
			check(hashtable_insert_unique(&table, object_new(key), NULL) == 0);
			if (key % 64 == 0)
				replace_stable(next_random(&seed) % (NR_STABLE / NR_UPDATERS) * NR_UPDATERS + me, seed >> 40);
		}
		for (uint64_t key = first; key < first + NR_OTHERS; key++) {
			struct object *o = hashtable_remove_key(&table, &key);

			check(alive(o, key));
			object_retire(o, NULL);
		}
	}
	return NULL;
}

static void objects_under_readers_and_updaters(void **state)
{
	(void)state;
	hashtable_init(&table, &object_type);
	for (uint64_t key = 0; key < NR_STABLE; key++)
		assert_int_equal(hashtable_insert(&table, object_new(key)), 0);
	run(table_reader, table_updater);
	come_to_rest();
	assert_int_equal(hashtable_count(&table), NR_STABLE);
	assert_true(table_stats(&table).resizes >= NR_WAVES);
	hashtable_destroy(&table, object_retire, NULL);
	come_to_rest();
}

/* A reader enters after the start of the grace period that precedes moving, but before anything has moved: it
 * walks through the old array after the table has left that. */
static void a_late_reader_keeps_the_old_array(void **state)
{
	static struct object objects[4096];
	const struct quiesce__buckets *before;
	struct hashtable_iter it;
	uint64_t sleeps, nr = 0, seen = 0;
	struct object *o;
	struct held h;

	(void)state;
	hashtable_init(&table, &object_type);
	assert_int_equal(hashtable_reserve(&table, 2048), 0); /* as many buckets as the worker moves in one go */
	come_to_rest();
	before = quiesce_load_relaxed(&table.table.array); /* Relaxed: only compared. */
	held_begin(&h, NULL);
	sleeps = stats_now().sleeps;
	for (; nr < 4096 && !quiesce_load_relaxed(&table.table.resizes); nr++) {
		objects[nr] = (struct object){ .key = nr, .state = GOOD };
		assert_int_equal(hashtable_insert(&table, &objects[nr]), 0);
	}
	assert_int_equal(table_stats(&table).resizes, 1);
	wait_until(stats_now().sleeps > sleeps);
	rcu_read_lock();
	hashtable_for_each(o, &it, &table) {
		if (seen++ == 0) {
			held_end(&h);
			wait_until(quiesce_load_relaxed(&table.table.array) != before); /* Relaxed: only compared. */
			for (int i = 0; i < 10; i++)
				short_rest();
		}
		check(alive(o, o->key));
	}
	rcu_read_unlock();
	assert_int_equal(seen, nr);
	assert_int_equal(nr_wrong, 0);
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
}

/* ---- hashmap ---- */

static struct hashmap map;

/* A value holds its key, in the upper half, and how often it was changed. */
static uint64_t value_of(uint64_t key, uint64_t turn)
{
	return (key + 1) << 32 | (turn & UINT32_MAX);
}

static bool belongs(uint64_t value, uint64_t key)
{
	return value >> 32 == key + 1;
}

static void walk_map(void)
{
	uint8_t seen[NR_STABLE] = { 0 };
	struct hashmap_iter it;
	uint64_t key, value;
	unsigned int nr = 0;

	hashmap_for_each(key, value, &it, &map) {
		check(belongs(value, key));
		linger(nr++);
		if (key < NR_STABLE)
			seen[key]++;
	}
	for (int i = 0; i < NR_STABLE; i++)
		check(seen[i] == 1);
	count_up(&nr_walks);
}

static void *map_reader(void *number)
{
	uint64_t last[NR_STABLE] = { 0 }, seed = (uintptr_t)number;

	for (int turn = 0; !flag_get(&stop); turn++) {
		rcu_read_lock();
		for (int i = 0; i < 50; i++) {
			uint64_t key = next_random(&seed) % NR_KEYS, value = hashmap_lookup(&map, key);

			check(value ? belongs(value, key) : key >= NR_STABLE);
			if (key < NR_STABLE) {
				check(value >= last[key]); /* the number of changes only goes up */
				last[key] = value;
			}
			count_up(&nr_finds);
		}
		if (turn % 32 == 0)
			walk_map();
		rcu_read_unlock();
	}
	return NULL;
}

static void *map_updater(void *number)
{
	uint64_t first = NR_STABLE + (uintptr_t)number * NR_OTHERS, seed = first, stable, value;

	for (int wave = 0; !enough(&map.table, wave); wave++) {
		for (uint64_t key = first; key < first + NR_OTHERS; key++) {
			check(hashmap_insert(&map, key, value_of(key, wave), NULL) == 0);
			if (key % 16)
				continue;
			stable = next_random(&seed) % NR_STABLE; /* a key that all updaters share, so that they meet */
			value = map_find(&map, stable);
			if (hashmap_replace(&map, stable, value, value + 1) == 0)
				count_up(&nr_replaced);
		}
		for (uint64_t key = first; key < first + NR_OTHERS; key++)
			check(hashmap_remove(&map, key) == value_of(key, wave));
	}
	return NULL;
}

static void values_under_readers_and_updaters(void **state)
{
	uint64_t sum = 0;

	(void)state;
	hashmap_init(&map);
	for (uint64_t key = 0; key < NR_STABLE; key++)
		assert_int_equal(hashmap_insert(&map, key, value_of(key, 0), NULL), 0);
	run(map_reader, map_updater);
	come_to_rest();
	assert_int_equal(hashmap_count(&map), NR_STABLE);
	assert_true(map_stats(&map).resizes >= NR_WAVES);
	for (uint64_t key = 0; key < NR_STABLE; key++)
		sum += map_find(&map, key) - value_of(key, 0);
	assert_int_equal(sum, nr_replaced); /* no update was lost */
	hashmap_destroy(&map);
	come_to_rest();
}

/* ---- hazard pointers ---- */

struct guarded {
	uint64_t key;
	uint32_t state;
	struct hazptr_head hazptr;
};

HASHTABLE_TYPE(guarded, struct guarded, key);

static void guarded_free(struct hazptr_head *head)
{
	struct guarded *g = (struct guarded *)(void *)((char *)head - offsetof(struct guarded, hazptr));

	quiesce_store_relaxed(&g->state, POISON); /* Relaxed: hazard pointers are what is tested. */
	free(g);
}

static struct guarded *guarded_new(uint64_t key)
{
	struct guarded *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->key = key;
	g->state = GOOD;
	return g;
}

static void *guarded_reader(void *number)
{
	uint64_t seed = (uintptr_t)number;
	hazptr_t *slot = hazptr_alloc(NULL);

	while (!flag_get(&stop)) {
		uint64_t key = next_random(&seed) % NR_KEYS;
		struct guarded *g = hashtable_lookup_hazptr(&table, &guarded_type, &key, slot, offsetof(struct guarded, hazptr));

		/* Relaxed: hazard pointers are what is tested. */
		check(g ? quiesce_load_relaxed(&g->state) == GOOD && g->key == key : key >= NR_STABLE);
		if (seed >> 60 == 0)
			sched_yield(); /* the section stays open across the yield */
		check(!g || quiesce_load_relaxed(&g->state) == GOOD); /* Relaxed: hazard pointers are what is tested. */
		count_up(&nr_finds);
	}
	hazptr_free(NULL, slot);
	return NULL;
}

static void *guarded_updater(void *number)
{
	uint64_t first = NR_STABLE + (uintptr_t)number * NR_OTHERS;
	void *old;

	quiesce_store_relaxed(&nr_walks, NR_WALKS); /* Relaxed: no thread walks. */
	for (int wave = 0; !enough(&table.table, wave * 5); wave++) { /* a wave takes longer under sanitizers */
		for (uint64_t key = first; key < first + NR_OTHERS; key++) {
			check(hashtable_insert(&table, guarded_new(key)) == 0);
			if (key % 16)
				continue;
			check(hashtable_set(&table, guarded_new(key % NR_STABLE), &old) == 0 && old);
			call_hazptr(&((struct guarded *)old)->hazptr, guarded_free);
		}
		for (uint64_t key = first; key < first + NR_OTHERS; key++) {
			old = hashtable_remove_key(&table, &key);
			call_hazptr(&((struct guarded *)old)->hazptr, guarded_free);
		}
	}
	return NULL;
}

static void guarded_drop(void *object, void *unused)
{
	(void)unused;
	call_hazptr(&((struct guarded *)object)->hazptr, guarded_free);
}

static void hazard_pointers_under_updaters(void **state)
{
	(void)state;
	hashtable_init(&table, &guarded_type);
	for (uint64_t key = 0; key < NR_STABLE; key++)
		assert_int_equal(hashtable_insert(&table, guarded_new(key)), 0);
	run(guarded_reader, guarded_updater);
	come_to_rest();
	assert_int_equal(hashtable_count(&table), NR_STABLE);
	hashtable_destroy(&table, guarded_drop, NULL);
	hazptr_barrier();
	come_to_rest();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(objects_under_readers_and_updaters),
		TEST(a_late_reader_keeps_the_old_array),
		TEST(values_under_readers_and_updaters),
		TEST(hazard_pointers_under_updaters),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
