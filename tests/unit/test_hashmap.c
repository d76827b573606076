/* SPDX-License-Identifier: MIT */
/* test_hashmap.c - every call of hashmap.h and its result, the size of maps, and the hash functions. */
#include "heap.h"
#include "tables.h"

/* Any number is a key, among them those that look like a word that was never written. */
static const uint64_t odd_keys[] = { 0, 1, 2, 3, UINT64_MAX, UINT64_MAX - 1, 1ull << 63, 1ull << 32, 0x5555555555555555u };
enum { ODD_KEYS = sizeof(odd_keys) / sizeof(*odd_keys) };

static int nr_seen(const struct hashmap *map)
{
	struct hashmap_iter it;
	uint64_t key, value;
	int nr = 0;

	rcu_read_lock();
	hashmap_for_each(key, value, &it, map) {
		assert_int_not_equal(value, 0);
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

static void drain(struct hashmap *map, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(hashmap_remove(map, i), i + 1);
}

static void must_be_empty(const struct hashmap *map)
{
	assert_int_equal(hashmap_count(map), 0);
	assert_int_equal(nr_seen(map), 0);
	for (int i = 0; i < ODD_KEYS; i++)
		assert_int_equal(map_find(map, odd_keys[i]), 0);
}

/* ---- an empty map ---- */

static void an_empty_one_takes_64_bytes(void **state)
{
	struct hashmap map;
	size_t before;

	(void)state;
	assert_int_equal(sizeof(map), 64);
	synchronize_rcu(); /* the thread has what it needs */
	before = heap_used();
	assert_int_equal(hashmap_init(&map), 0);
	must_be_empty(&map);
	assert_int_equal(hashmap_remove(&map, 1), 0);
	assert_int_equal(hashmap_remove_value(&map, 1, 1), -ENOENT);
	assert_int_equal(hashmap_replace(&map, 1, 1, 2), -ENOENT);
	assert_int_equal(hashmap_insert(&map, 1, 0, NULL), -EINVAL);
	hashmap_destroy(&map);
	must_be_empty(&map);
	assert_int_equal(heap_used(), before);
	assert_int_equal(map_stats(&map).bytes, 0);
	assert_int_equal(hashmap_set(&map, 1, 1, NULL), 0);
	assert_true(!HEAP_COUNTED || heap_used() > before); /* this shows that heap_used() sees the map's memory */
	assert_in_range(map_stats(&map).bytes, 64, 64 * 6);
	assert_int_equal(map_stats(&map).buckets, 1);
	hashmap_destroy(&map);
	assert_int_equal(map_stats(&map).bytes, 0);
}

static void seeds_are_random_unless_given(void **state)
{
	enum { NR = 16 };
	struct hashmap map[NR], given[2];
	int nr_equal = 0;

	(void)state;
	for (int i = 0; i < NR; i++) {
		assert_int_equal(hashmap_init(&map[i]), 0);
		for (int k = 0; k < i; k++)
			nr_equal += map[i].table.seed == map[k].table.seed;
	}
	assert_int_equal(nr_equal, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hashmap_init_seeded(&given[i], 42), 0);
	assert_int_equal(given[0].table.seed, given[1].table.seed);
}

/* ---- the calls ---- */

static void insert(void **state)
{
	struct hashmap map;
	uint64_t existing;

	(void)state;
	hashmap_init(&map);
	for (int i = 0; i < ODD_KEYS; i++) {
		existing = 99;
		assert_int_equal(hashmap_insert(&map, odd_keys[i], i + 1, &existing), 0);
		assert_int_equal(existing, 0);
		assert_int_equal(hashmap_insert(&map, odd_keys[i], 50, &existing), -EEXIST);
		assert_int_equal(existing, i + 1);
		assert_int_equal(hashmap_insert(&map, odd_keys[i], 50, NULL), -EEXIST);
		assert_int_equal(hashmap_insert(&map, odd_keys[i], 0, &existing), -EINVAL);
		for (int k = 0; k < ODD_KEYS; k++)
			assert_int_equal(map_find(&map, odd_keys[k]), k <= i ? k + 1 : 0);
		assert_int_equal(hashmap_count(&map), i + 1);
	}
	for (int i = 0; i < ODD_KEYS; i++) {
		assert_int_equal(hashmap_remove(&map, odd_keys[i]), i + 1);
		assert_int_equal(hashmap_remove(&map, odd_keys[i]), 0);
		assert_int_equal(map_find(&map, odd_keys[i]), 0);
	}
	must_be_empty(&map);
	hashmap_destroy(&map);
}

static void set(void **state)
{
	uint64_t old = 99;
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	assert_int_equal(hashmap_set(&map, 0, UINT64_MAX, &old), 0);
	assert_int_equal(old, 0);
	assert_int_equal(hashmap_set(&map, 0, 5, &old), 0);
	assert_int_equal(old, UINT64_MAX);
	assert_int_equal(hashmap_set(&map, 0, 0, &old), -EINVAL);
	assert_int_equal(map_find(&map, 0), 5);
	assert_int_equal(hashmap_set(&map, 0, 6, NULL), 0);
	assert_int_equal(map_find(&map, 0), 6);
	assert_int_equal(hashmap_count(&map), 1);
	hashmap_destroy(&map);
}

/* Key 0 where no place is left in the only line: words that were never written look like it. */
static void key_0_is_no_empty_place(void **state)
{
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(map_find(&map, 0), 0);
		assert_int_equal(hashmap_set(&map, 3 - i, i + 5, NULL), 0);
	}
	assert_int_equal(map_find(&map, 0), 8);
	assert_int_equal(hashmap_count(&map), 4);
	hashmap_destroy(&map);
}

static void replace(void **state)
{
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	assert_int_equal(hashmap_set(&map, 7, 70, NULL), 0);
	assert_int_equal(hashmap_replace(&map, 7, 71, 72), -ENOENT);
	assert_int_equal(hashmap_replace(&map, 8, 70, 72), -ENOENT);
	assert_int_equal(hashmap_replace(&map, 7, 0, 72), -EINVAL);
	assert_int_equal(hashmap_replace(&map, 7, 70, 0), -EINVAL);
	assert_int_equal(map_find(&map, 7), 70);
	assert_int_equal(hashmap_replace(&map, 7, 70, 72), 0);
	assert_int_equal(map_find(&map, 7), 72);
	assert_int_equal(map_find(&map, 8), 0);
	assert_int_equal(hashmap_remove_value(&map, 7, 70), -ENOENT);
	assert_int_equal(hashmap_remove_value(&map, 7, 0), -ENOENT);
	assert_int_equal(hashmap_remove_value(&map, 8, 72), -ENOENT);
	assert_int_equal(hashmap_count(&map), 1);
	assert_int_equal(hashmap_remove_value(&map, 7, 72), 0);
	assert_int_equal(hashmap_remove_value(&map, 7, 72), -ENOENT);
	must_be_empty(&map);
	hashmap_destroy(&map);
}

/* ---- sizes ---- */

enum { LARGE = 20000 };

static void grows_and_becomes_small_again(void **state)
{
	struct quiesce_table_stats stats;
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	map_fill(&map, LARGE);
	come_to_rest();
	stats = map_stats(&map);
	assert_int_equal(hashmap_count(&map), LARGE);
	assert_int_equal(stats.elements, LARGE);
	assert_int_equal(nr_seen(&map), LARGE);
	assert_in_range(stats.buckets, LARGE / 4, LARGE);
	assert_true(stats.bytes <= 100 * LARGE);
	assert_int_equal(stats.failures, 0);
	for (uint64_t i = 0; i < LARGE; i++)
		assert_int_equal(map_find(&map, i), i + 1);
	drain(&map, LARGE);
	wait_until((rcu_barrier(), map_stats(&map).buckets == 1)); /* the map shrinks without further updates */
	come_to_rest();
	assert_in_range(map_stats(&map).bytes, 64, 64 * 6);
	must_be_empty(&map);
	hashmap_destroy(&map);
}

/* Fill the map up to its highest load. */
static void stays_as_it_is_under_churn(void **state)
{
	enum { NR = 4096 * 2, TURNS = 4 };
	struct hashmap map;
	uint64_t before;

	(void)state;
	hashmap_init(&map);
	map_fill(&map, NR);
	come_to_rest();
	before = map_stats(&map).resizes;
	for (uint64_t i = 0; i < TURNS * NR; i++) {
		assert_int_equal(hashmap_remove(&map, i), i + 1);
		assert_int_equal(hashmap_insert(&map, i + NR, i + NR + 1, NULL), 0);
	}
	assert_in_range(map_stats(&map).resizes, before, before + TURNS);
	assert_int_equal(nr_seen(&map), NR);
	hashmap_destroy(&map);
}

static void reserve(void **state)
{
	struct quiesce_table_stats stats;
	struct hashmap map;

	(void)state;
	hashmap_init(&map);
	assert_int_equal(hashmap_reserve(&map, LARGE), 0);
	stats = map_stats(&map);
	map_fill(&map, LARGE);
	assert_int_equal(map_stats(&map).resizes, 0);
	drain(&map, LARGE);
	come_to_rest();
	assert_int_equal(map_stats(&map).buckets, stats.buckets); /* a reservation never shrinks the table */
	assert_int_equal(hashmap_reserve(&map, 0), 0);
	map_fill(&map, 1);
	drain(&map, 1);
	wait_until((rcu_barrier(), map_stats(&map).buckets == 1));
	map_fill(&map, 100);
	assert_int_equal(hashmap_reserve(&map, LARGE), 0);
	assert_int_equal(map_stats(&map).buckets, stats.buckets);
	assert_int_equal(nr_seen(&map), 100);
	hashmap_destroy(&map);
}

/* A reservation that cannot be met fails, and leaves no trace. */
static void reserve_too_much(void **state)
{
	struct hashmap map;
	int err;

	(void)state;
	hashmap_init(&map);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(hashmap_reserve(&map, SIZE_MAX), -ENOMEM);
		if (OWN_HEAP) {
			limit_address_space(1);
			err = hashmap_reserve(&map, (size_t)1 << 24);
			limit_address_space(0);
			assert_int_equal(err, -ENOMEM);
		}
		map_fill(&map, 1000);
		come_to_rest();
		assert_int_equal(nr_seen(&map), 1000);
		drain(&map, 1000);
		wait_until((rcu_barrier(), map_stats(&map).buckets == 1));
	}
	hashmap_destroy(&map);
}

/* ---- iteration, and the end ---- */

static void iteration_while_the_body_updates(void **state)
{
	enum { STAY = 300, OTHERS = 6000 };
	struct hashmap_iter it;
	uint64_t key, value;
	struct hashmap map;

	(void)state;
	for (int way = 0; way < 2; way++) {
		bool seen[STAY] = { false };
		uint64_t next = STAY;
		int nr_stay = 0;

		hashmap_init(&map);
		map_fill(&map, way ? STAY + OTHERS : STAY);
		rcu_read_lock();
		hashmap_for_each(key, value, &it, &map) {
			assert_int_equal(value, key + 1);
			if (key >= STAY)
				continue;
			nr_stay++;
			assert_false(seen[key]);
			seen[key] = true;
			for (int i = 0; i < OTHERS / STAY; i++, next++)
				assert_true(way ? hashmap_remove(&map, next) == next + 1 : !hashmap_insert(&map, next, next + 1, NULL));
		}
		rcu_read_unlock();
		assert_int_equal(nr_stay, STAY);
		come_to_rest();
		assert_int_equal(hashmap_count(&map), way ? STAY : STAY + OTHERS);
		hashmap_destroy(&map);
	}
}

/* In a section no grace period ends, so the resize that was begun in it stays under way. */
static void destroy_with_a_reader_inside(void **state)
{
	struct hashmap_iter it;
	uint64_t key, value;

	(void)state;
	for (int way = 0; way < 2; way++) {
		uint64_t before, i = 4000;
		struct hashmap map;
		int nr = 0;

		hashmap_init(&map);
		map_fill(&map, 4000);
		come_to_rest();
		rcu_read_lock();
		before = map_stats(&map).resizes;
		for (; way && map_stats(&map).resizes == before; i++)
			assert_int_equal(hashmap_insert(&map, i, i + 1, NULL), 0);
		assert_int_equal(!quiesce_load_relaxed(&map.table.array->next), !way); /* Relaxed: a test for NULL. */
		hashmap_for_each(key, value, &it, &map) {
			assert_int_equal(value, key + 1);
			if (!nr++)
				hashmap_destroy(&map); /* does not sleep */
		}
		must_be_empty(&map);
		rcu_read_unlock();
		memset(&map, 0xa5, sizeof(map)); /* no reader or worker accesses it any more */
		come_to_rest();
	}
}

/* ---- hashes ---- */

static uint64_t shifted(uint64_t i, unsigned int by)
{
	return i << by;
}

static uint64_t rows(uint64_t i, unsigned int by)
{
	return (i % 512) << by | i / 512;
}

static uint64_t pointers(uint64_t i, unsigned int by)
{
	return 0x7f1234560000ull + i * by;
}

static uint64_t doubles(uint64_t i, unsigned int by)
{
	double d = (double)i / by;
	uint64_t key;

	memcpy(&key, &d, sizeof(key));
	return key;
}

static uint64_t of_few_bits(uint64_t i, unsigned int apart)
{
	uint64_t key = 0;

	for (unsigned int b = 0; b < 18; b++)
		key |= (i >> b & 1) << (b * apart + 3) % 64;
	return key;
}

enum { BUCKETS = 1 << 14, KEYS = BUCKETS * 4 };

/* Return the variance of the number of keys in a bucket; 1 is that of random hashes. */
static double variance(uint64_t (*key)(uint64_t, unsigned int), unsigned int by, uint64_t seed, unsigned int shift)
{
	static unsigned int load[BUCKETS];
	double sum = 0, mean = (double)KEYS / BUCKETS;

	memset(load, 0, sizeof(load));
	for (uint64_t i = 0; i < KEYS; i++)
		load[quiesce_hash_u64(key(i, by), seed) >> shift & (BUCKETS - 1)]++;
	for (int i = 0; i < BUCKETS; i++)
		sum += (load[i] - mean) * (load[i] - mean);
	return sum / BUCKETS / mean;
}

static void must_spread(const char *name, uint64_t (*key)(uint64_t, unsigned int), unsigned int by)
{
	static const uint64_t seed[] = { 0, 0x14057b7ef767814full };

	for (int s = 0; s < 2; s++)
		for (unsigned int shift = 6; shift <= 50; shift += 44) { /* the bits that choose the bucket, and those of the tag */
			double found = variance(key, by, seed[s], shift);

			if (found > 1.3)
				fail_msg("%s %u, seed %d, shift %u: variance %.2f", name, by, s, shift, found);
		}
}

static void keys_that_are_alike_spread(void **state)
{
	static const unsigned int apart[] = { 1, 3, 5, 7, 11, 13 };

	(void)state;
	for (unsigned int by = 0; by <= 48; by += 4)
		must_spread("shifted by", shifted, by);
	for (unsigned int by = 16; by <= 48; by += 8)
		must_spread("rows of", rows, by);
	for (unsigned int by = 16; by <= 272; by += 64)
		must_spread("pointers to", pointers, by);
	must_spread("doubles in parts of", doubles, 1);
	must_spread("doubles in parts of", doubles, 10);
	for (int i = 0; i < 6; i++)
		must_spread("18 bits, apart by", of_few_bits, apart[i]);
	assert_true(variance(shifted, 0, 0, 6) > 0.5); /* otherwise the table shows no function of the hash */
}

/* Keys that collide in a bucket with one seed do not collide with another. */
static void the_seed_decides_which_keys_collide(void **state)
{
	int met = 0, meet = 0;

	(void)state;
	for (uint64_t key = 0; key < 1 << 20; key++) {
		if (quiesce_hash_u64(key, 1) & (BUCKETS - 1))
			continue;
		met++;
		meet += (quiesce_hash_u64(key, 2) & (BUCKETS - 1)) == (quiesce_hash_u64(0, 2) & (BUCKETS - 1));
	}
	assert_in_range(met, 30, 130);
	assert_in_range(meet, 0, 3);
}

/* The first two values are those of XXH3_64bits() of libxxhash. */
static void bytes_by_xxh3(void **state)
{
	char text[600];
	uint64_t before;

	(void)state;
	assert_int_equal(quiesce_hash_bytes("", 0, 0), 0x2d06800538d394c2ull);
	assert_int_equal(quiesce_hash_bytes("quiesce", 7, 0), 0xfb0d7c16fd4e8af4ull);
	memset(text, 'a', sizeof(text));
	for (size_t length = 1; length <= sizeof(text); length += length < 40 ? 1 : 31) {
		before = quiesce_hash_bytes(text, length, 1);
		assert_int_equal(quiesce_hash_bytes(text, length, 1), before);
		assert_int_not_equal(quiesce_hash_bytes(text, length, 2), before);
		assert_int_not_equal(quiesce_hash_bytes(text, length - 1, 1), before);
		for (size_t at = 0; at < length; at += length < 40 ? 1 : 13) {
			text[at] ^= 1;
			assert_int_not_equal(quiesce_hash_bytes(text, length, 1), before);
			text[at] ^= 1;
		}
	}
	for (size_t length = 1; length < 20; length++) {
		uint64_t wide = 0x123456789abcdef0u;
		uint32_t narrow = 0x9abcdef0u;

		memcpy(text, &wide, sizeof(wide)); /* the hash of equal bytes is equal, at each alignment and by each function */
		assert_int_equal(quiesce_hash(text, 8, length), quiesce_hash_u64(wide, length));
		assert_int_equal(quiesce_hash(&narrow, 4, length), quiesce_hash_u64(narrow, length));
		assert_int_equal(quiesce_hash(text, length == 4 || length == 8 ? 9 : length, 5),
				 quiesce_hash_bytes(text, length == 4 || length == 8 ? 9 : length, 5));
	}
}

/* ---- fork ---- */

static struct hashmap inherited;

/* Return a map that is being resized, in a section, so that no callback continues the resize. */
static struct quiesce__buckets *begin_to_resize(struct hashmap *map)
{
	struct quiesce__buckets *array;

	hashmap_init(map);
	map_fill(map, 1000);
	come_to_rest();
	rcu_read_lock();
	for (uint64_t key = 1000; array = quiesce_load_relaxed(&map->table.array), !quiesce_load_relaxed(&array->next); key++)
		assert_int_equal(hashmap_insert(map, key, key + 1, NULL), 0);
	return array;
}

/* Lock or unlock all that other threads may have locked: the array, and buckets. */
static void lock_all(struct quiesce__buckets *array, bool lock)
{
	for (uint64_t offset = 0; offset <= array->mask; offset += sizeof(struct quiesce__bucket)) {
		uint64_t *header = &quiesce__bucket_in(array, offset)->word[0];

		if (!(*header & QUIESCE_BUCKET_MOVED))
			*header = lock ? *header | QUIESCE_BUCKET_LOCKED : *header & ~QUIESCE_BUCKET_LOCKED;
	}
	array->lock.word = lock ? 1 : 0;
}

static void only_reads(void)
{
	size_t nr = hashmap_count(&inherited);

	if (nr <= 1000 || hashmap_lookup(&inherited, 1000) != 1001)
		abort();
	rcu_read_unlock();
	rcu_barrier();
	synchronize_rcu();
	if (hashmap_count(&inherited) != nr)
		abort();
}

static void also_updates(void)
{
	rcu_read_unlock();
	rcu_barrier();
	for (uint64_t i = 2; i < 100; i++)
		if (!hashmap_remove(&inherited, i))
			abort();
	while (quiesce_load_relaxed(&inherited.table.array->next))
		rcu_barrier();
	hashmap_destroy(&inherited);
	come_to_rest();
}

static void updates_first(void)
{
	if (!hashmap_remove(&inherited, 1))
		abort();
	also_updates();
}

static void a_child_takes_no_lock_that_may_be_left_locked(void **state)
{
	struct quiesce__buckets *array = begin_to_resize(&inherited);
	struct outcome o;

	(void)state;
	lock_all(array, true);
	in_child(only_reads, &o);
	lock_all(array, false);
	assert_true(exited_with(o.status, 0));
	rcu_read_unlock();
	hashmap_destroy(&inherited);
	come_to_rest();
}

static void a_child_that_updates_finishes_a_resize(void **state)
{
	struct outcome o;

	(void)state;
	begin_to_resize(&inherited);
	in_child(also_updates, &o);
	assert_true(exited_with(o.status, 0));
	in_child(updates_first, &o);
	rcu_read_unlock();
	hashmap_destroy(&inherited);
	come_to_rest();
	assert_true(exited_with(o.status, 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_one_takes_64_bytes),
		TEST(seeds_are_random_unless_given),
		TEST(insert),
		TEST(set),
		TEST(key_0_is_no_empty_place),
		TEST(replace),
		TEST(grows_and_becomes_small_again),
		TEST(stays_as_it_is_under_churn),
		TEST(reserve),
		TEST(reserve_too_much),
		TEST(iteration_while_the_body_updates),
		TEST(destroy_with_a_reader_inside),
		TEST(keys_that_are_alike_spread),
		TEST(the_seed_decides_which_keys_collide),
		TEST(bytes_by_xxh3),
		TEST(a_child_takes_no_lock_that_may_be_left_locked),
		TEST(a_child_that_updates_finishes_a_resize),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
