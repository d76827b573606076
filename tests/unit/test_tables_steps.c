/* SPDX-License-Identifier: MIT */
/* test_tables_steps.c - updates by a function, tables that are cleared, and walks of several sections. */
#include "tables.h"

#include <errno.h>

#define NR 5000

/* ---- updates by a function ---- */

static uint64_t one_more(uint64_t value, void *arg)
{
	if (arg)
		(*(int *)arg)++;
	return value + 1;
}

static uint64_t nothing(uint64_t value, void *arg)
{
	(void)value;
	(void)arg;
	return 0;
}

static void a_map_of_counters(void **state)
{
	struct hashmap map;
	uint64_t old = 77;
	int calls = 0;

	(void)state;
	hashmap_init(&map);
	assert_int_equal(hashmap_update(&map, 5, nothing, NULL, &old), 0);
	assert_int_equal(old, 0);
	assert_int_equal(hashmap_count(&map), 0);
	for (uint64_t i = 0; i < 100; i++)
		for (uint64_t key = 0; key < 50; key++) {
			assert_int_equal(hashmap_update(&map, key, one_more, &calls, &old), 0);
			assert_int_equal(old, i);
		}
	assert_int_equal(hashmap_count(&map), 50);
	assert_in_range(calls, 5000, 5050); /* again where a line had to be fetched */
	for (uint64_t key = 0; key < 50; key++) {
		assert_int_equal(map_find(&map, key), 100);
		assert_int_equal(hashmap_update(&map, key, nothing, NULL, &old), 0);
		assert_int_equal(old, 100);
		assert_int_equal(map_find(&map, key), 0);
	}
	assert_int_equal(hashmap_count(&map), 0);
	hashmap_destroy(&map);
}

#define THREADS 3

static struct hashmap shared;

static void *count(void *unused)
{
	for (uint64_t i = 0; i < 30000; i++)
		assert_int_equal(hashmap_update(&shared, i % 7, one_more, NULL, NULL), 0);
	return unused;
}

static void counters_lose_nothing(void **state)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;

	(void)state;
	hashmap_init(&shared);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
	threads_end(thread, THREADS);
	for (uint64_t key = 0; key < 7; key++)
		sum += map_find(&shared, key);
	assert_int_equal(sum, 30000 * THREADS);
	hashmap_destroy(&shared);
}

/* The object that a step puts into the table, and the one that it replaces. */
struct step {
	struct object *is, *was;
	bool change;
};

static void *decide(void *object, void *arg)
{
	struct step *step = arg;

	step->was = object;
	if (step->change)
		((struct object *)object)->nr_drops++;
	return step->is;
}

static void a_table_by_a_function(void **state)
{
	static struct object a = { .key = 1 }, b = { .key = 1 }, c = { .key = 2 };
	struct hashtable ht;
	struct step step;
	uint64_t key = 1;
	void *old = &a;

	(void)state;
	hashtable_init(&ht, &object_type);
	step = (struct step){ .is = NULL };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), 0);
	assert_null(old);
	step = (struct step){ .is = &a };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), 0);
	assert_null(step.was);
	assert_null(old);
	assert_ptr_equal(table_find(&ht, 1), &a);
	step = (struct step){ .is = &a, .change = true };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, NULL), 0);
	assert_ptr_equal(step.was, &a);
	assert_int_equal(a.nr_drops, 1);
	step = (struct step){ .is = &c };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), -EINVAL);
	step = (struct step){ .is = (struct object *)(void *)((char *)&b + 1) };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), -EINVAL);
	assert_ptr_equal(table_find(&ht, 1), &a);
	step = (struct step){ .is = &b };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), 0);
	assert_ptr_equal(old, &a);
	assert_ptr_equal(table_find(&ht, 1), &b);
	assert_int_equal(hashtable_count(&ht), 1);
	step = (struct step){ .is = NULL };
	assert_int_equal(hashtable_update(&ht, &key, decide, &step, &old), 0);
	assert_ptr_equal(old, &b);
	assert_null(table_find(&ht, 1));
	assert_int_equal(hashtable_count(&ht), 0);
	hashtable_destroy(&ht, NULL, NULL);
}

/* ---- cleared ---- */

static void dropped(void *object, void *arg)
{
	((struct object *)object)->nr_drops++;
	++*(int *)arg;
	assert_true(rcu_read_lock_held());
}

static void a_table_is_cleared(void **state)
{
	static struct object o[NR];
	struct hashtable ht;
	int nr = 0;

	(void)state;
	hashtable_init(&ht, &object_type);
	hashtable_clear(&ht, dropped, &nr);
	for (int turn = 0; turn < 3; turn++) {
		nr = 0;
		table_fill(&ht, o, NR);
		hashtable_clear(&ht, dropped, &nr); /* perhaps while it is being resized */
		assert_int_equal(nr, NR);
		assert_int_equal(hashtable_count(&ht), 0);
		assert_int_equal(table_seen(&ht), 0);
		for (int i = 0; i < NR; i++)
			assert_int_equal(o[i].nr_drops, 1);
		come_to_rest();
	}
	assert_in_range(table_stats(&ht).buckets, 1, NR / 8);
	hashtable_destroy(&ht, NULL, NULL);
}

static uint64_t one_bucket(const void *key, uint64_t seed)
{
	return quiesce_hash_u64(*(const uint64_t *)key, seed) << 40;
}

static void a_long_bucket_is_cleared(void **state)
{
	static struct object o[500];
	struct hashtable_type type = object_type;
	struct hashtable ht;
	int nr = 0;

	(void)state;
	type.hash = one_bucket;
	hashtable_init(&ht, &type);
	table_fill(&ht, o, 500);
	hashtable_clear(&ht, dropped, &nr);
	assert_int_equal(nr, 500);
	assert_int_equal(hashtable_count(&ht), 0);
	assert_int_equal(table_stats(&ht).longest, 1);
	hashtable_clear(&ht, NULL, NULL);
	hashtable_destroy(&ht, NULL, NULL);
}

static void a_map_is_cleared(void **state)
{
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	hashmap_clear(&map);
	for (int turn = 0; turn < 3; turn++) {
		map_fill(&map, NR);
		hashmap_clear(&map);
		assert_int_equal(hashmap_count(&map), 0);
		for (uint64_t i = 0; i < NR; i++)
			assert_int_equal(map_find(&map, i), 0);
	}
	hashmap_destroy(&map);
}

/* ---- in several sections ---- */

static void a_walk_leaves_its_section(void **state)
{
	static struct object o[NR];
	struct hashtable_walk walk;
	struct hashtable ht;
	struct object *found;
	int nr = 0, sections = 0;

	(void)state;
	hashtable_init(&ht, &object_type);
	hashtable_walk_enter(&ht, &walk);
	assert_true(hashtable_walk_start(&walk));
	assert_null(hashtable_walk_next(&walk));
	hashtable_walk_stop(&walk);
	assert_false(hashtable_walk_start(&walk));
	table_fill(&ht, o, NR);
	for (hashtable_walk_enter(&ht, &walk); hashtable_walk_start(&walk); hashtable_walk_stop(&walk), sections++) {
		while ((found = hashtable_walk_next(&walk))) {
			assert_true(rcu_read_lock_held());
			found->nr_drops++;
			nr++;
		}
		if (sections % 8 == 0) { /* another array may be the table's then */
			hashtable_walk_stop(&walk);
			synchronize_rcu();
			assert_int_equal(hashtable_reserve(&ht, sections % 16 ? 4 * NR : 0), 0);
			rcu_read_lock();
		}
	}
	assert_false(rcu_read_lock_held());
	assert_int_equal(nr, NR);
	for (int i = 0; i < NR; i++)
		assert_int_equal(o[i].nr_drops, 1);
	assert_in_range(sections, NR / 7 / 64, NR);
	hashtable_destroy(&ht, NULL, NULL);
}

static void a_walk_over_a_map(void **state)
{
	static char seen[NR];
	struct hashmap_walk walk;
	uint64_t key, value;
	struct hashmap map;
	int nr = 0;

	(void)state;
	hashmap_init(&map);
	map_fill(&map, NR);
	for (hashmap_walk_enter(&map, &walk); hashmap_walk_start(&walk); hashmap_walk_stop(&walk))
		while (hashmap_walk_next(&walk, &key, &value)) {
			assert_int_equal(value, key + 1);
			assert_int_equal(seen[key]++, 0);
			nr++;
		}
	assert_int_equal(nr, NR);
	hashmap_destroy(&map);
}

/* A walk that stops in the middle of a bucket begins that bucket again. */
static void a_walk_is_broken_off(void **state)
{
	struct hashmap_walk walk;
	uint64_t key, value;
	struct hashmap map;
	int nr = 0;

	(void)state;
	hashmap_init(&map);
	assert_int_equal(hashmap_insert(&map, 1, 1, NULL), 0);
	assert_int_equal(hashmap_insert(&map, 2, 2, NULL), 0);
	hashmap_walk_enter(&map, &walk);
	assert_true(hashmap_walk_start(&walk));
	assert_true(hashmap_walk_next(&walk, &key, &value));
	hashmap_walk_stop(&walk);
	synchronize_rcu();
	for (; hashmap_walk_start(&walk); hashmap_walk_stop(&walk))
		while (hashmap_walk_next(&walk, &key, &value))
			nr++;
	assert_int_equal(nr, 2);
	hashmap_destroy(&map);
}

/* More keys than one step takes, some of them absent, and one twice. */
static void many_lookups_are_as_many_single_ones(void **state)
{
	enum { NR_AT_ONCE = 100 };
	uint64_t key[NR_AT_ONCE], value[NR_AT_ONCE];
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	for (size_t i = 0; i < NR_AT_ONCE; i++)
		key[i] = i == 40 ? 6 : i * 3;
	for (size_t nr = 0; nr <= NR_AT_ONCE; nr += nr < 40 ? 1 : 20) {
		size_t found = 0;

		memset(value, 0x55, sizeof value);
		rcu_read_lock();
		assert_int_equal(hashmap_lookup_many(&map, key, nr, value), 0);
		rcu_read_unlock();
		for (size_t i = 0; i < nr; i++)
			assert_int_equal(value[i], 0);
		for (uint64_t k = 0; k < 3 * NR_AT_ONCE; k += 2)
			assert_int_equal(hashmap_set(&map, k, k + 1, NULL), 0);
		rcu_read_lock();
		assert_int_equal(hashmap_lookup_many(&map, key, nr, value), (nr + 1) / 2);
		for (size_t i = 0; i < nr; i++) {
			assert_int_equal(value[i], hashmap_lookup(&map, key[i]));
			found += value[i] != 0;
		}
		assert_int_equal(hashmap_lookup_many(&map, key, nr, value), found);
		rcu_read_unlock();
		hashmap_clear(&map);
	}
	hashmap_destroy(&map);
}

/* Keys are the objects' own, of absent objects as well; the table grows from one call to the next. */
static void many_objects_are_found_at_once(void **state)
{
	enum { NR_AT_ONCE = 100 };
	static struct object objects[NR], absent[NR_AT_ONCE];
	const void *keys[NR_AT_ONCE];
	void *found[NR_AT_ONCE];
	struct hashtable table;
	size_t there = 0;

	(void)state;
	hashtable_init(&table, &object_type);
	for (size_t nr = 0; nr <= NR_AT_ONCE; nr += nr < 50 ? 1 : 10) {
		size_t expected = 0;

		for (size_t i = 0; i < nr; i++) {
			absent[i].key = NR + i;
			keys[i] = i % 3 == 2 ? &absent[i].key : &objects[i * 7].key;
			expected += i % 3 != 2 && i * 7 < there;
		}
		memset(found, 0x55, sizeof found);
		rcu_read_lock();
		assert_int_equal(hashtable_lookup_many(&table, &object_type, keys, nr, found), expected);
		for (size_t i = 0; i < nr; i++)
			assert_ptr_equal(found[i], i % 3 != 2 && i * 7 < there ? &objects[i * 7] : NULL);
		rcu_read_unlock();
		for (size_t i = 0; nr > 3 && i < 50 && there < NR; i++, there++)
			table_fill_one(&table, &objects[there], there);
		for (size_t i = there; i < NR; i++)
			objects[i].key = i;
	}
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
}

/* The objects' keys are strings elsewhere, which no request of an object reaches. */
struct named {
	const char *name;
};
HASHTABLE_TYPE_STRING(named, struct named, name);

static void many_names_are_found_at_once(void **state)
{
	enum { NR_AT_ONCE = 70 };
	static struct named named[NR_AT_ONCE] __attribute__((__aligned__(16)));
	static char name[2 * NR_AT_ONCE][8];
	const void *keys[2 * NR_AT_ONCE];
	void *found[2 * NR_AT_ONCE];
	struct hashtable table;

	(void)state;
	hashtable_init(&table, &named_type);
	for (int i = 0; i < 2 * NR_AT_ONCE; i++) {
		snprintf(name[i], sizeof name[i], "%d", i);
		keys[i] = name[i];
	}
	for (int i = 0; i < NR_AT_ONCE; i++) {
		named[i].name = name[2 * i];
		assert_int_equal(named_insert(&table, &named[i]), 0);
	}
	rcu_read_lock();
	assert_int_equal(hashtable_lookup_many(&table, &named_type, keys, sizeof keys / sizeof *keys, found), NR_AT_ONCE);
	rcu_read_unlock();
	for (int i = 0; i < 2 * NR_AT_ONCE; i++)
		assert_ptr_equal(found[i], i % 2 ? NULL : &named[i / 2]);
	hashtable_destroy(&table, NULL, NULL);
	come_to_rest();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_map_of_counters),
		TEST(counters_lose_nothing),
		TEST(a_table_by_a_function),
		TEST(a_table_is_cleared),
		TEST(a_long_bucket_is_cleared),
		TEST(a_map_is_cleared),
		TEST(a_walk_leaves_its_section),
		TEST(a_walk_over_a_map),
		TEST(a_walk_is_broken_off),
		TEST(many_lookups_are_as_many_single_ones),
		TEST(many_objects_are_found_at_once),
		TEST(many_names_are_found_at_once),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
