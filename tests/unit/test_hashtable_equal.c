/* SPDX-License-Identifier: MIT */
/* test_hashtable_equal.c - many objects with one key: the table shrinks. */
#include "tables.h"

enum { FEW = 3000 };
static struct object equal[FEW];
static struct hashtable ht;

static void fill_equal(int nr, uint64_t key)
{
	for (int i = 0; i < nr; i++) {
		equal[i].key = key;
		assert_int_equal(hashtable_insert(&ht, &equal[i]), 0);
	}
}

/* Whatever the seed: updates of one key are among those that are counted, and an insertion may find the table too large. */
static void the_table_shrinks_by_updates_of_one_key(void **state)
{
	struct object o = { .key = 42 };

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
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
		TEST(the_table_shrinks_by_updates_of_one_key),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
