/* SPDX-License-Identifier: MIT */
/* test_hashtable_equal.c - many objects with one key: what removals and a clear cost, and what they leave. */
#include "tables.h"

/* Only the worker runs beside these updates, so ThreadSanitizer, which takes ten times as long, finds as much in fewer. */
enum { MANY = QUIESCE_TSAN ? 30000 : 200000, FEW = 30000, NR_SEEDS = QUIESCE_TSAN ? 1 : 10 };
static struct object equal[MANY];
static struct hashtable ht;

static void fill_equal(int nr, uint64_t key)
{
	for (int i = 0; i < nr; i++) {
		equal[i].key = key;
		assert_int_equal(hashtable_insert(&ht, &equal[i]), 0);
	}
}

/* A walk of the whole bucket for each removal would take minutes. */
static void removals_do_not_walk_the_bucket(void **state)
{
	const uint64_t key = 42;

	(void)state;
	hashtable_init(&ht, &object_type);
	fill_equal(MANY, key);
	for (int i = 0; i < MANY; i++)
		assert_non_null(object_remove_key(&ht, &key));
	assert_null(object_remove_key(&ht, &key));
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	hashtable_destroy(&ht, NULL, NULL);
}

static void a_clear_does_not_walk_the_bucket(void **state)
{
	(void)state;
	hashtable_init(&ht, &object_type);
	fill_equal(MANY, 42);
	hashtable_clear(&ht, NULL, NULL);
	assert_int_equal(hashtable_count(&ht), 0);
	assert_int_equal(table_seen(&ht), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	hashtable_destroy(&ht, NULL, NULL);
}

static void count_drop(void *object, void *unused)
{
	(void)unused;
	((struct object *)object)->nr_drops++;
}

static bool is_third(void *object, void *nr_judged)
{
	++*(int *)nr_judged;
	return ((struct object *)object - equal) % 3 == 0;
}

static void count_drop_of_third(void *object, void *unused)
{
	assert_true(((struct object *)object - equal) % 3 == 0);
	count_drop(object, unused);
}

/* Walks of the whole bucket for each removal, or for each 64, would take minutes; objects that stay are judged twice. */
static void removals_of_all_walk_the_bucket_twice(void **state)
{
	const uint64_t key = 42, other = 43;
	int nr_judged = 0;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_remove_all(&ht, &key, count_drop, NULL), 0);
	fill_equal(MANY, key);
	assert_int_equal(hashtable_remove_if(&ht, is_third, count_drop_of_third, &nr_judged), (MANY + 2) / 3);
	assert_in_range(nr_judged, MANY, 2 * MANY);
	assert_int_equal(hashtable_count(&ht), MANY - (MANY + 2) / 3);
	assert_int_equal(table_seen(&ht), MANY - (MANY + 2) / 3);
	for (int i = 0; i < MANY; i += 3) { /* with another key, between the objects that have stayed */
		equal[i].key = other;
		assert_int_equal(hashtable_insert(&ht, &equal[i]), 0);
	}
	assert_int_equal(hashtable_remove_all(&ht, &key, count_drop, NULL), MANY - (MANY + 2) / 3);
	assert_int_equal(hashtable_remove_all(&ht, &key, count_drop, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(equal[i].nr_drops, 1);
		equal[i].nr_drops = 0;
	}
	assert_int_equal(hashtable_remove_all(&ht, &other, NULL, NULL), (MANY + 2) / 3);
	assert_int_equal(hashtable_count(&ht), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	hashtable_destroy(&ht, NULL, NULL);
}

static void reuse(void *object, void *unused)
{
	count_drop(object, unused);
	((struct object *)object)->key = 7;
}

/* Its memory may be used again once the object has been dropped. */
static void the_key_may_be_in_an_object(void **state)
{
	(void)state;
	hashtable_init(&ht, &object_type);
	for (int nr = 1; nr < 1000; nr = nr * 3 / 2 + 1)
		for (int with = 0; with < nr; with += nr / 2 + 1) {
			fill_equal(nr, 42);
			assert_int_equal(hashtable_remove_all(&ht, &equal[with].key, reuse, NULL), nr);
			for (int i = 0; i < nr; i++) {
				assert_int_equal(equal[i].nr_drops, 1);
				equal[i].nr_drops = 0;
			}
		}
	assert_int_equal(hashtable_count(&ht), 0);
	hashtable_destroy(&ht, NULL, NULL);
}

/* No overflow line is empty, although none can be used again before the reader leaves. */
static void lines_go_with_their_objects(void **state)
{
	enum { LIVE = 16, NR = 20000 };

	(void)state;
	hashtable_init(&ht, &object_type);
	rcu_read_lock();
	for (int i = 0; i < NR; i++) {
		equal[i].key = 42;
		assert_int_equal(hashtable_insert(&ht, &equal[i]), 0);
		if (i >= LIVE)
			assert_int_equal(hashtable_remove(&ht, &equal[i - LIVE]), 0);
		if (i % 100 == 0)
			assert_in_range(table_stats(&ht).longest, 1, 1 + LIVE);
	}
	for (int i = NR - LIVE; i < NR; i++)
		assert_int_equal(hashtable_remove(&ht, &equal[i]), 0);
	assert_int_equal(table_stats(&ht).longest, 1);
	rcu_read_unlock();
	hashtable_destroy(&ht, NULL, NULL);
}

/* Removals in an order of their own leave lines with few objects, until one of them counts the bucket. */
static void a_sparse_bucket_is_rebuilt(void **state)
{
	enum { STEP = 7 };

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_reserve(&ht, FEW / 10), 0); /* a resize, which would rebuild the bucket too, does not come */
	fill_equal(FEW / 10, 42);
	for (int step = 1; step < STEP; step++) {
		for (int i = step; i < FEW / 10; i += STEP)
			assert_int_equal(hashtable_remove(&ht, &equal[i]), 0);
		synchronize_rcu(); /* too many replaced lines would wait for readers otherwise, and none would be replaced */
	}
	assert_in_range(table_stats(&ht).longest, 1, FEW / 10 / STEP / 2);
	hashtable_destroy(&ht, NULL, NULL);
}

/* Whatever the seed: updates of one key are among those that are counted, and an insertion may find the table too large. */
static void the_table_shrinks_by_updates_of_one_key(void **state)
{
	struct object o = { .key = 42 };

	(void)state;
	for (uint64_t seed = 1; seed <= NR_SEEDS; seed++) {
		hashtable_init_seeded(&ht, &object_type, seed * 0x9e3779b97f4a7c15ull);
		fill_equal(FEW, 42);
		rcu_barrier();
		assert_true(table_stats(&ht).buckets > 1);
		for (int i = 0; i < FEW; i++)
			assert_non_null(object_remove_key(&ht, &o.key));
		for (int i = 0; i < 2000; i++) {
			assert_int_equal(hashtable_insert(&ht, &o), 0);
			assert_int_equal(hashtable_remove(&ht, &o), 0);
		}
		wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
		hashtable_destroy(&ht, NULL, NULL);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(removals_do_not_walk_the_bucket),
		TEST(a_clear_does_not_walk_the_bucket),
		TEST(removals_of_all_walk_the_bucket_twice),
		TEST(the_key_may_be_in_an_object),
		TEST(lines_go_with_their_objects),
		TEST(a_sparse_bucket_is_rebuilt),
		TEST(the_table_shrinks_by_updates_of_one_key),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
