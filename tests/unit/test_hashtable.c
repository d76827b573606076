/* SPDX-License-Identifier: MIT */
/* test_hashtable.c - every call of hashtable.h, its result, and the content of the table after it. */
#include "heap.h"
#include "tables.h"

#include <ctype.h>

static int nr_matches(const struct hashtable *ht, uint64_t key)
{
	struct hashtable_iter it;
	struct object *o;
	int nr = 0;

	rcu_read_lock();
	hashtable_for_each_match(o, &it, ht, &key) {
		assert_int_equal(o->key, key);
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

/* ---- an empty table ---- */

static void must_be_empty(struct hashtable *ht)
{
	assert_int_equal(hashtable_count(ht), 0);
	assert_int_equal(table_seen(ht), 0);
	assert_int_equal(nr_matches(ht, 0), 0);
	assert_null(table_find(ht, 0));
}

static void an_empty_one_takes_64_bytes(void **state)
{
	struct object o = { .key = 1 }, other = { .key = 1 };
	uint64_t key = 1;
	struct hashtable ht;
	size_t before;

	(void)state;
	assert_int_equal(sizeof(ht), 64);
	synchronize_rcu(); /* the thread has what it needs */
	before = heap_used();
	assert_int_equal(hashtable_init(&ht, &object_type), 0);
	must_be_empty(&ht);
	assert_null(hashtable_remove_key(&ht, &key));
	assert_int_equal(hashtable_remove(&ht, &o), -ENOENT);
	assert_int_equal(hashtable_replace(&ht, &o, &other), -ENOENT);
	hashtable_destroy(&ht, NULL, NULL);
	must_be_empty(&ht);
	assert_int_equal(heap_used(), before);
	assert_int_equal(table_stats(&ht).bytes, 0);
	assert_int_equal(hashtable_insert(&ht, &o), 0);
	assert_true(!HEAP_COUNTED || heap_used() > before); /* this shows that heap_used() sees the table's memory */
	assert_in_range(table_stats(&ht).bytes, 64, 64 * 6);
	assert_int_equal(table_stats(&ht).buckets, 1);
	hashtable_destroy(&ht, NULL, NULL);
	assert_int_equal(table_stats(&ht).bytes, 0);
}

static void seeds_are_random_unless_given(void **state)
{
	enum { NR = 16 };
	struct hashtable ht[NR], given[2];
	int nr_equal = 0;

	(void)state;
	for (int i = 0; i < NR; i++) {
		assert_int_equal(hashtable_init(&ht[i], &object_type), 0);
		for (int k = 0; k < i; k++)
			nr_equal += ht[i].table.seed == ht[k].table.seed;
	}
	assert_int_equal(nr_equal, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hashtable_init_seeded(&given[i], &object_type, 42), 0);
	assert_int_equal(given[0].table.seed, given[1].table.seed);
}

/* ---- the calls ---- */

static void insert_and_remove(void **state)
{
	struct object a = { .key = 1 }, b = { .key = 2 }, absent = { .key = 1 };
	struct hashtable ht;
	uint64_t key = 2;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_insert(&ht, &a), 0);
	assert_int_equal(hashtable_insert(&ht, &b), 0);
	assert_ptr_equal(table_find(&ht, 1), &a);
	assert_ptr_equal(table_find(&ht, 2), &b);
	assert_null(table_find(&ht, 3));
	assert_int_equal(hashtable_count(&ht), 2);
	assert_int_equal(hashtable_remove(&ht, &absent), -ENOENT); /* equal is not the same */
	assert_int_equal(hashtable_remove(&ht, &a), 0);
	assert_int_equal(hashtable_remove(&ht, &a), -ENOENT);
	assert_null(table_find(&ht, 1));
	assert_ptr_equal(hashtable_remove_key(&ht, &key), &b);
	assert_null(hashtable_remove_key(&ht, &key));
	must_be_empty(&ht);
	hashtable_destroy(&ht, NULL, NULL);
}

static void insert_unique(void **state)
{
	struct object a = { .key = 7 }, b = { .key = 7 };
	void *existing = &b;
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_insert_unique(&ht, &a, &existing), 0);
	assert_null(existing);
	assert_int_equal(hashtable_insert_unique(&ht, &b, &existing), -EEXIST);
	assert_ptr_equal(existing, &a);
	assert_int_equal(hashtable_insert_unique(&ht, &b, NULL), -EEXIST);
	assert_int_equal(hashtable_insert_unique(&ht, &a, &existing), -EEXIST);
	assert_ptr_equal(table_find(&ht, 7), &a);
	assert_int_equal(hashtable_count(&ht), 1);
	assert_int_equal(hashtable_remove(&ht, &a), 0);
	assert_int_equal(hashtable_insert_unique(&ht, &b, NULL), 0);
	assert_ptr_equal(table_find(&ht, 7), &b);
	hashtable_destroy(&ht, NULL, NULL);
}

static void set(void **state)
{
	struct object a = { .key = 7 }, b = { .key = 7 };
	struct hashtable ht;
	void *old = &b;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_set(&ht, &a, &old), 0);
	assert_null(old);
	assert_int_equal(hashtable_set(&ht, &b, &old), 0);
	assert_ptr_equal(old, &a);
	assert_ptr_equal(table_find(&ht, 7), &b);
	assert_int_equal(hashtable_set(&ht, &a, NULL), 0);
	assert_ptr_equal(table_find(&ht, 7), &a);
	assert_int_equal(hashtable_count(&ht), 1);
	assert_int_equal(nr_matches(&ht, 7), 1);
	hashtable_destroy(&ht, NULL, NULL);
}

static void replace(void **state)
{
	struct object a = { .key = 7 }, b = { .key = 7 }, other = { .key = 8 };
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_insert(&ht, &a), 0);
	assert_int_equal(hashtable_replace(&ht, &a, &other), -EINVAL);
	assert_int_equal(hashtable_replace(&ht, &b, &a), -ENOENT);
	assert_ptr_equal(table_find(&ht, 7), &a);
	assert_int_equal(hashtable_replace(&ht, &a, &b), 0);
	assert_ptr_equal(table_find(&ht, 7), &b);
	assert_null(table_find(&ht, 8));
	assert_int_equal(hashtable_replace(&ht, &a, &b), -ENOENT);
	assert_int_equal(hashtable_count(&ht), 1);
	hashtable_destroy(&ht, NULL, NULL);
}

/* Insert more objects with one key than a line has words, among others. */
static void duplicates(void **state)
{
	enum { SAME = 40, NR = 200 };
	static struct object o[NR];
	struct hashtable_iter it;
	struct hashtable ht;
	struct object *each;
	uint64_t key = 1000;
	int n = 0;

	(void)state;
	hashtable_init(&ht, &object_type);
	for (int i = 0; i < NR; i++) {
		o[i] = (struct object){ .key = i < SAME ? key : (uint64_t)i };
		assert_int_equal(hashtable_insert(&ht, &o[i]), 0);
	}
	assert_int_equal(hashtable_count(&ht), NR);
	assert_int_equal(nr_matches(&ht, key), SAME);
	assert_int_equal(nr_matches(&ht, SAME), 1);
	assert_int_equal(nr_matches(&ht, 0), 0);
	rcu_read_lock();
	hashtable_for_each_match(each, &it, &ht, &key) { /* the body may update */
		assert_true(each < o + SAME && !each->nr_drops++);
		if (n++ % 2)
			assert_int_equal(hashtable_remove(&ht, each), 0);
	}
	rcu_read_unlock();
	assert_int_equal(n, SAME);
	assert_int_equal(nr_matches(&ht, key), SAME / 2);
	for (n = 0; hashtable_remove_key(&ht, &key); n++)
		;
	assert_int_equal(n, SAME / 2);
	assert_int_equal(hashtable_count(&ht), NR - SAME);
	hashtable_destroy(&ht, NULL, NULL);
}

/* ---- keys ---- */

struct user {
	const char *name;
	char nick[12];
	struct {
		uint64_t high, low;
	} address;
	uint32_t number;
	unsigned char code[3];
};

HASHTABLE_TYPE_STRING(by_name, struct user, name);
HASHTABLE_TYPE_STRING(by_nick, struct user, nick);
HASHTABLE_TYPE(by_address, struct user, address);
HASHTABLE_TYPE(by_number, struct user, number);
HASHTABLE_TYPE(by_code, struct user, code);

static uint64_t folded_hash(const void *key, uint64_t seed)
{
	const char *c = key;
	uint64_t hash = seed;

	for (; *c; c++)
		hash = quiesce_hash_u64((uint64_t)tolower((unsigned char)*c), hash);
	return hash;
}

static const void *folded_key(const void *object)
{
	return ((const struct user *)object)->name;
}

static bool folded_equal(const void *object, const void *key)
{
	return strcasecmp(((const struct user *)object)->name, key) == 0;
}

static const struct hashtable_type folded_type = { folded_hash, folded_key, folded_equal };

enum { USERS = 300 };
static struct user users[USERS];
static char names[USERS][16];

/* Each object is found in all tables, by its key in each. */
static void find_user(const struct hashtable *ht, const struct user *u)
{
	char copy[16];

	snprintf(copy, sizeof(copy), "%s", u->name); /* keys are compared by their text, not by address */
	assert_ptr_equal(by_name_lookup(&ht[0], copy), u);
	assert_ptr_equal(by_nick_lookup(&ht[1], u->nick), u);
	assert_ptr_equal(by_address_lookup(&ht[2], &u->address), u);
	assert_ptr_equal(by_number_lookup(&ht[3], &u->number), u);
	assert_ptr_equal(by_code_lookup(&ht[4], &u->code), u);
	for (char *c = copy; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	assert_ptr_equal(hashtable_lookup(&ht[5], &folded_type, copy), u);
	assert_null(by_name_lookup(&ht[0], copy));
}

static void keys_of_all_kinds(void **state)
{
	static const struct hashtable_type *const type[] = { &by_name_type,   &by_nick_type, &by_address_type,
							     &by_number_type, &by_code_type, &folded_type };
	enum { TYPES = sizeof(type) / sizeof(*type) };
	struct hashtable ht[TYPES];

	(void)state;
	for (int t = 0; t < TYPES; t++)
		hashtable_init(&ht[t], type[t]);
	for (uint32_t i = 0; i < USERS; i++) {
		struct user *u = &users[i];

		snprintf(names[i], sizeof(names[i]), "name %u", i);
		*u = (struct user){ .name = names[i], .number = i * 3, .address = { i / 7, i % 7 }, .code = { 1, i >> 8, i & 255 } };
		snprintf(u->nick, sizeof(u->nick), "%s%u", i % 2 ? "" : "n", i);
		for (int t = 0; t < TYPES; t++)
			assert_int_equal(hashtable_insert_unique(&ht[t], u, NULL), 0);
	}
	rcu_read_lock();
	for (int i = 0; i < USERS; i++)
		find_user(ht, &users[i]);
	assert_null(by_name_lookup(&ht[0], ""));
	assert_null(by_nick_lookup(&ht[1], "n"));
	rcu_read_unlock();
	for (int t = 0; t < TYPES; t++) {
		assert_int_equal(hashtable_count(&ht[t]), USERS);
		hashtable_destroy(&ht[t], NULL, NULL);
	}
}

/* ---- one bucket for all ---- */

static uint64_t one_bucket(const void *key, uint64_t seed)
{
	return quiesce_hash_u64(*(const uint64_t *)key, seed) << 40; /* one bucket, but different tags */
}

static uint64_t one_hash(const void *key, uint64_t seed)
{
	(void)key;
	return seed;
}

static void equal_hashes_make_no_large_table(void **state)
{
	enum { NR = 2000 };
	static struct object o[NR];
	struct hashtable_type type[2] = { object_type, object_type };
	struct quiesce_table_stats stats;
	struct hashtable ht;

	(void)state;
	type[0].hash = one_bucket;
	type[1].hash = one_hash;
	for (int t = 0; t < 2; t++) {
		hashtable_init(&ht, &type[t]);
		table_fill(&ht, o, NR);
		come_to_rest();
		stats = table_stats(&ht);
		assert_in_range(stats.longest, NR / 7, NR);
		assert_in_range(stats.buckets, 1, NR);
		assert_in_range(stats.bytes, 64, 400 * NR);
		assert_in_range(stats.resizes, 0, 24);
		for (uint64_t i = 0; i < NR; i += 2)
			assert_int_equal(hashtable_remove(&ht, &o[i]), 0);
		rcu_read_lock();
		for (uint64_t i = 0; i < NR; i++)
			assert_ptr_equal(hashtable_lookup(&ht, &type[t], &i), i % 2 ? &o[i] : NULL);
		rcu_read_unlock();
		assert_int_equal(table_seen(&ht), NR / 2);
		hashtable_destroy(&ht, NULL, NULL);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_one_takes_64_bytes),
		TEST(seeds_are_random_unless_given),
		TEST(insert_and_remove),
		TEST(insert_unique),
		TEST(set),
		TEST(replace),
		TEST(duplicates),
		TEST(keys_of_all_kinds),
		TEST(equal_hashes_make_no_large_table),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
