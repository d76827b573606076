/* SPDX-License-Identifier: MIT */
/* test_tables_churn.c - the length of buckets follows the elements in them, however many were inserted and removed. */
#include "tables.h"

#define TURNS 20000
#define ONE_BUCKET ((uint64_t)0xfff << 6)

/* Check the promise of buckets_lines.c after a removal, for one bucket with @nr elements in lines of @slots. */
static void assert_short(const struct quiesce_table_stats *stats, uint64_t nr, uint64_t slots)
{
	assert_in_range(stats->longest, 1, 1 + 2 * ((nr + slots - 1) / slots));
}

static uint64_t one_bucket(const void *key, uint64_t seed)
{
	return quiesce_hash_u64(*(const uint64_t *)key, seed) & ~ONE_BUCKET; /* one bucket, while there are at most 4096 */
}

/* Numbers whose hashes have equal leading bits. */
static uint64_t colliding_key(uint64_t n)
{
	static uint64_t found[64], last;
	static unsigned int nr;

	for (; nr <= n; last++)
		if (!(quiesce_hash_u64(last, 1) & ONE_BUCKET))
			found[nr++] = last;
	return found[n];
}

static void first_in_first_out(void **state)
{
	enum { NR = 16 };
	static struct object o[4 * NR];
	struct hashtable_type type = object_type;
	struct quiesce_table_stats stats;
	struct hashtable_iter it;
	struct object *found;
	struct hashtable ht;
	uint64_t key = 7;
	int seen;

	(void)state;
	type.hash = one_bucket;
	hashtable_init_seeded(&ht, &type, 1);
	for (int i = 0; i < TURNS; i++) {
		if (i >= NR)
			assert_int_equal(hashtable_remove(&ht, &o[(i - NR) % (4 * NR)]), 0);
		if (i % NR == 0)
			synchronize_rcu(); /* iterations do not meet them again */
		o[i % (4 * NR)] = (struct object){ .key = key, .state = GOOD };
		assert_int_equal(hashtable_insert(&ht, &o[i % (4 * NR)]), 0);
		if (i % 100 || i < NR)
			continue;
		stats = table_stats(&ht);
		assert_short(&stats, NR, 7);
		seen = 0;
		rcu_read_lock();
		hashtable_for_each_match(found, &it, &ht, &key)
			seen++;
		rcu_read_unlock();
		assert_int_equal(seen, NR);
	}
	hashtable_destroy(&ht, NULL, NULL);
}

/* Elements are inserted and removed at random; at times all are removed. */
static void any_order_in_a_table(void **state)
{
	enum { NR = 60 };
	static struct object o[NR];
	static bool in[NR];
	struct hashtable_type type = object_type;
	struct quiesce_table_stats stats;
	unsigned int random = 1;
	struct hashtable ht;
	uint64_t nr = 0;

	(void)state;
	type.hash = one_bucket;
	hashtable_init_seeded(&ht, &type, 1);
	for (int i = 0; i < TURNS; i++) {
		uint64_t n = (uint64_t)rand_r(&random) % NR;
		bool out = i % 2000 > 1800 || in[n];

		if (out && in[n])
			assert_int_equal(hashtable_remove(&ht, &o[n]), 0);
		else if (!out)
			table_fill_one(&ht, &o[n], n);
		nr += (uint64_t)!out - (out && in[n]);
		in[n] = !out;
		stats = table_stats(&ht);
		assert_short(&stats, nr, 7);
		assert_int_equal(hashtable_count(&ht), nr);
		n = (uint64_t)rand_r(&random) % NR;
		rcu_read_lock();
		assert_ptr_equal(hashtable_lookup(&ht, &type, &n), in[n] ? &o[n] : NULL);
		rcu_read_unlock();
	}
	assert_int_equal(table_seen(&ht), nr);
	hashtable_destroy(&ht, NULL, NULL);
}

static void any_order_in_a_map(void **state)
{
	enum { NR = 30 };
	static uint64_t value[NR];
	struct quiesce_table_stats stats;
	unsigned int random = 1;
	struct hashmap map;
	uint64_t nr = 0;

	(void)state;
	hashmap_init_seeded(&map, 1);
	for (int i = 0; i < TURNS; i++) {
		uint64_t n = (uint64_t)rand_r(&random) % NR;
		bool out = i % 2000 > 1800 || value[n];

		if (out)
			assert_int_equal(hashmap_remove(&map, colliding_key(n)), value[n]);
		else
			assert_int_equal(hashmap_insert(&map, colliding_key(n), (uint64_t)i + 1, NULL), 0);
		nr += (uint64_t)!out - (out && value[n]);
		value[n] = out ? 0 : (uint64_t)i + 1;
		stats = map_stats(&map);
		assert_short(&stats, nr, 3);
		assert_int_equal(hashmap_count(&map), nr);
		n = (uint64_t)rand_r(&random) % NR;
		assert_int_equal(map_find(&map, colliding_key(n)), value[n]);
	}
	hashmap_destroy(&map);
}

/* Replace @key in a map of @nr keys that map_fill() made. */
static void one_for_another(struct hashmap *map, uint64_t key, uint64_t nr)
{
	assert_int_equal(hashmap_remove(map, key), key + 1);
	assert_int_equal(hashmap_insert(map, key + nr, key + nr + 1, NULL), 0);
}

/* Elements are replaced at a constant number: one bucket in seven of a full map has further lines, later one in five; and no memory
 * is lost. */
static void a_map_keeps_its_shape(void **state)
{
	enum { NR = 16384, TIMES = QUIESCE_TSAN ? 4 : 20 };
	struct quiesce_table_stats fresh, stats;
	struct hashmap map;

	(void)state;
	hashmap_init_seeded(&map, 1);
	map_fill(&map, NR);
	come_to_rest();
	fresh = map_stats(&map);
	assert_in_range(fresh.full, 1, fresh.buckets / 6);
	for (uint64_t i = 0; i < TIMES * NR; i++) {
		if (i % 512 == 0)
			synchronize_rcu(); /* otherwise lines would wait for the worker to run, and not for readers */
		one_for_another(&map, i, NR);
	}
	come_to_rest();
	stats = map_stats(&map);
	assert_int_equal(stats.buckets, fresh.buckets);
	assert_in_range(stats.full, 1, fresh.full + fresh.full / 2);
	assert_in_range(stats.bytes, fresh.bytes, 2 * fresh.bytes);
	hashmap_destroy(&map);
}

/* Behind a reader that stays the number of lines that buckets have left is bounded. */
static void a_reader_that_stays(void **state)
{
	enum { NR = 1024 };
	struct quiesce_table_stats stats;
	struct hashmap map;

	(void)state;
	hashmap_init_seeded(&map, 1);
	map_fill(&map, NR);
	come_to_rest();
	rcu_read_lock();
	for (uint64_t i = 0; i < 100 * NR; i++)
		one_for_another(&map, i, NR);
	stats = map_stats(&map);
	assert_in_range(stats.bytes, 64 * NR / 2, 1024 * NR);
	assert_int_equal(hashmap_count(&map), NR);
	for (uint64_t key = 100 * NR; key < 101 * NR; key++)
		assert_int_equal(hashmap_lookup(&map, key), key + 1);
	rcu_read_unlock();
	hashmap_destroy(&map);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(first_in_first_out),
		TEST(any_order_in_a_table),
		TEST(any_order_in_a_map),
		TEST(a_map_keeps_its_shape),
		TEST(a_reader_that_stays),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
