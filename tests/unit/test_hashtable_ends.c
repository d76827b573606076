/* SPDX-License-Identifier: MIT */
/* test_hashtable_ends.c - tables with static initialisers; growth and shrinking; iterations; memory that is left at the end. */
#include "tables.h"

static void must_be_empty(struct hashtable *ht)
{
	assert_int_equal(hashtable_count(ht), 0);
	assert_int_equal(table_seen(ht), 0);
	assert_null(table_find(ht, 0));
}

/* ---- beginnings ---- */

static struct hashtable zero;
static struct object one = { .key = 1 };

static void warn_of_an_insert(void)
{
	hashtable_insert(&zero, &one);
}

static void warn_of_a_remove(void)
{
	hashtable_remove(&zero, &one);
}

static void tables_are_initialised_statically(void **state)
{
	static struct hashtable ht = HASHTABLE_INIT(&object_type);
	void (*const tells[])(void) = { warn_of_an_insert, warn_of_a_remove };
	struct outcome o;

	(void)state;
	assert_null(table_find(&ht, 1));
	assert_int_equal(hashtable_remove(&ht, &one), -ENOENT);
	assert_int_equal(hashtable_insert(&ht, &one), 0);
	assert_ptr_equal(table_find(&ht, 1), &one);
	assert_int_not_equal(ht.table.seed, 0);
	hashtable_destroy(&ht, NULL, NULL);
	assert_null(table_find(&ht, 1));
	assert_null(table_find(&zero, 1));
	for (int i = 0; i < 2; i++) {
		in_child(tells[i], &o);
		assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
		assert_non_null(strstr(o.text, "on a table that was not initialised"));
	}
}

static struct hashmap zero_map;

static void warn_of_a_zero_map(void)
{
	hashmap_insert(&zero_map, 1, 1, NULL);
}

static void warn_of_a_reserve(void)
{
	hashmap_reserve(&zero_map, 1);
}

static void maps_are_initialised_statically(void **state)
{
	static struct hashmap map[2] = { HASHMAP_INIT, HASHMAP_INIT };
	struct outcome o;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(map_find(&map[i], 1), 0);
		assert_int_equal(hashmap_count(&map[i]), 0);
		assert_int_equal(hashmap_remove(&map[i], 1), 0);
		assert_int_equal(map[i].table.seed, 0);
		assert_int_equal(hashmap_insert(&map[i], 1, 2, NULL), 0);
		assert_int_equal(map_find(&map[i], 1), 2);
		assert_int_equal(hashmap_reserve(&map[i], 100), 0);
		assert_int_equal(map_find(&map[i], 1), 2);
	}
	assert_int_not_equal(map[0].table.seed, map[1].table.seed);
	for (int i = 0; i < 2; i++)
		hashmap_destroy(&map[i]);
	assert_int_equal(map_find(&zero_map, 0), 0);
	assert_int_equal(hashmap_count(&zero_map), 0);
	in_child(warn_of_a_zero_map, &o);
	assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
	assert_non_null(strstr(o.text, "hashmap_insert() on a table that was not initialised"));
	in_child(warn_of_a_reserve, &o);
	assert_non_null(strstr(o.text, "hashtable_reserve() or hashmap_reserve() on a table that was not initialised"));
}

/* ---- sizes ---- */

enum { LARGE = 20000 };
static struct object large[LARGE];

static void grows_and_becomes_small_again(void **state)
{
	struct quiesce_table_stats stats;
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	table_fill(&ht, large, LARGE);
	come_to_rest();
	stats = table_stats(&ht);
	assert_int_equal(hashtable_count(&ht), LARGE);
	assert_int_equal(stats.elements, LARGE);
	assert_int_equal(table_seen(&ht), LARGE);
	assert_in_range(stats.buckets, LARGE / 8, LARGE);
	assert_true(stats.bytes <= 40 * LARGE);
	assert_int_equal(stats.failures, 0);
	for (uint64_t i = 0; i < LARGE; i++)
		assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1)); /* the table shrinks without further updates */
	come_to_rest();
	assert_in_range(table_stats(&ht).bytes, 64, 64 * 6);
	must_be_empty(&ht);
	hashtable_destroy(&ht, NULL, NULL);
}

/* Fill the table up to its highest load. */
static void stays_as_it_is_under_churn(void **state)
{
	enum { NR = 4096 * 4, TURNS = 4 };
	uint64_t before, next = NR;
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	table_fill(&ht, large, NR);
	come_to_rest();
	before = table_stats(&ht).resizes;
	for (int i = 0; i < TURNS * NR; i++) {
		assert_int_equal(hashtable_remove(&ht, &large[i % NR]), 0);
		large[i % NR].key = next++;
		assert_int_equal(hashtable_insert(&ht, &large[i % NR]), 0);
	}
	assert_in_range(table_stats(&ht).resizes, before, before + TURNS);
	assert_int_equal(table_seen(&ht), NR);
	hashtable_destroy(&ht, NULL, NULL);
}

static void reserve(void **state)
{
	struct quiesce_table_stats stats;
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	assert_int_equal(hashtable_reserve(&ht, LARGE), 0);
	stats = table_stats(&ht);
	assert_int_equal(stats.resizes, 0);
	table_fill(&ht, large, LARGE);
	assert_int_equal(table_stats(&ht).resizes, 0);
	for (uint64_t i = 0; i < LARGE; i++)
		assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
	come_to_rest();
	assert_int_equal(table_stats(&ht).buckets, stats.buckets); /* a reservation never shrinks the table */
	assert_int_equal(hashtable_reserve(&ht, 0), 0);
	assert_int_equal(hashtable_insert(&ht, &large[0]), 0);
	assert_int_equal(hashtable_remove(&ht, &large[0]), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	table_fill(&ht, large, 100);
	assert_int_equal(hashtable_reserve(&ht, LARGE), 0); /* waits for a resize that is under way, too */
	assert_int_equal(table_stats(&ht).buckets, stats.buckets);
	assert_int_equal(table_seen(&ht), 100);
	hashtable_destroy(&ht, NULL, NULL);
}

/* A reservation that cannot be met fails, and leaves no trace. */
static void reserve_too_much(void **state)
{
	struct hashtable ht;
	int err;

	(void)state;
	hashtable_init(&ht, &object_type);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(hashtable_reserve(&ht, SIZE_MAX), -ENOMEM);
		if (OWN_HEAP) {
			limit_address_space(1);
			err = hashtable_reserve(&ht, (size_t)1 << 24);
			limit_address_space(0);
			assert_int_equal(err, -ENOMEM);
		}
		table_fill(&ht, large, 1000);
		come_to_rest();
		assert_int_equal(table_seen(&ht), 1000);
		assert_in_range(table_stats(&ht).buckets, 125, 1000);
		for (uint64_t i = 0; i < 1000; i++)
			assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
		wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	}
	hashtable_destroy(&ht, NULL, NULL);
}

/* A clear reads the buckets that no element was ever in, and writes none of them. */
static void a_clear_takes_no_memory(void **state)
{
	enum { NR = 1 << 20 };
	struct hashtable ht;
	struct hashmap map;
	long before;

	(void)state;
	hashtable_init(&ht, &object_type);
	hashmap_init(&map);
	assert_int_equal(hashtable_reserve(&ht, NR), 0);
	assert_int_equal(hashmap_reserve(&map, NR), 0);
	before = resident_pages();
	hashtable_clear(&ht, NULL, NULL);
	hashmap_clear(&map);
	if (OWN_HEAP)
		assert_true((resident_pages() - before) * sysconf(_SC_PAGESIZE) < NR);
	hashtable_destroy(&ht, NULL, NULL);
	hashmap_destroy(&map);
}

/* ---- iteration ---- */

/* Each of 300 elements that stay is visited once, while the loop's body inserts others until the table grows, or removes others
 * until it shrinks. */
static void iteration_while_the_body_updates(void **state)
{
	enum { STAY = 300, OTHERS = 6000 };
	struct hashtable_iter it;
	struct hashtable ht;
	struct object *o;

	(void)state;
	for (int way = 0; way < 2; way++) {
		uint64_t next = STAY;
		int nr_stay = 0;

		hashtable_init(&ht, &object_type);
		table_fill(&ht, large, way ? STAY + OTHERS : STAY);
		rcu_read_lock();
		hashtable_for_each(o, &it, &ht) {
			if (o->key >= STAY)
				continue;
			nr_stay++;
			assert_int_equal(o->nr_drops++, 0);
			for (int i = 0; i < OTHERS / STAY; i++, next++) {
				large[next].key = next;
				assert_int_equal(way ? hashtable_remove(&ht, &large[next]) : hashtable_insert(&ht, &large[next]), 0);
			}
		}
		rcu_read_unlock();
		assert_int_equal(nr_stay, STAY);
		assert_int_equal(hashtable_count(&ht), way ? STAY : STAY + OTHERS);
		hashtable_destroy(&ht, NULL, NULL);
		come_to_rest();
	}
}

/* ---- the end ---- */

static void drop_counts(void *object, void *arg)
{
	((struct object *)object)->nr_drops++;
	(*(int *)arg)++;
}

static void destroy_gives_each_object_once(void **state)
{
	struct hashtable ht;
	int nr = 0;

	(void)state;
	hashtable_init(&ht, &object_type);
	table_fill(&ht, large, 5000);
	hashtable_destroy(&ht, drop_counts, &nr);
	assert_int_equal(nr, 5000);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(large[i].nr_drops, 1);
	must_be_empty(&ht);
	come_to_rest();
}

/* In a section no grace period ends, so the resize that was begun in it stays under way. */
static void destroy_while_it_is_resized(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) { /* the table grows, shrinks, or has moved and its callback has not run */
		uint64_t before, i = 4000;
		struct hashtable ht;
		int nr = 0;

		hashtable_init(&ht, &object_type);
		table_fill(&ht, large, 4000);
		come_to_rest();
		rcu_read_lock();
		before = table_stats(&ht).resizes;
		for (; way != 1 && table_stats(&ht).resizes == before; i++) {
			large[i] = (struct object){ .key = i };
			assert_int_equal(hashtable_insert(&ht, &large[i]), 0);
		}
		for (; way == 1 && table_stats(&ht).resizes == before; i--)
			assert_int_equal(hashtable_remove(&ht, &large[i - 1]), 0);
		if (way == 2)
			assert_int_equal(hashtable_reserve(&ht, 0), 0);
		else
			assert_non_null(quiesce_load_relaxed(&ht.table.array->next)); /* Relaxed: a test for NULL. */
		hashtable_destroy(&ht, drop_counts, &nr);
		must_be_empty(&ht);
		rcu_read_unlock();
		memset(&ht, 0xa5, sizeof(ht)); /* no reader or worker accesses it any more */
		assert_int_equal(nr, i);
		come_to_rest();
	}
}

static void destroy_with_a_reader_inside(void **state)
{
	enum { NR = 3000 };
	struct hashtable_iter it;
	struct object *o, *kept;
	struct hashtable ht;
	int nr_after = 0;

	(void)state;
	quiesce_store_relaxed(&nr_freed, 0); /* Relaxed: nothing is under way. */
	hashtable_init(&ht, &object_type);
	for (uint64_t i = 0; i < NR; i++)
		assert_int_equal(hashtable_insert(&ht, object_new(i)), 0);
	rcu_read_lock();
	kept = table_find(&ht, 17);
	assert_non_null(kept);
	hashtable_for_each(o, &it, &ht) {
		if (!nr_after++)
			hashtable_destroy(&ht, object_retire, NULL); /* does not sleep */
		assert_int_equal(o->state, GOOD);
	}
	assert_int_equal(kept->state, GOOD);
	assert_int_equal(flag_get(&nr_freed), 0);
	must_be_empty(&ht);
	rcu_read_unlock();
	come_to_rest();
	assert_int_equal(flag_get(&nr_freed), NR);
}

/* ---- hazard pointers ---- */

struct guarded {
	uint64_t key;
	uint32_t *ret_freed;
	struct hazptr_head hazptr;
};

HASHTABLE_TYPE(guarded, struct guarded, key);

static uint64_t one_hash(const void *key, uint64_t seed)
{
	(void)key;
	return seed;
}

static void guarded_free(struct hazptr_head *head)
{
	struct guarded *g = (struct guarded *)(void *)((char *)head - offsetof(struct guarded, hazptr));

	flag_set(g->ret_freed);
	free(g);
}

static struct guarded *guarded_find(const struct hashtable *ht, const struct hashtable_type *type, uint64_t key, hazptr_t *slot)
{
	return hashtable_lookup_hazptr(ht, type, &key, slot, offsetof(struct guarded, hazptr));
}

static void guarded_drop(void *object, void *unused)
{
	(void)unused;
	call_hazptr(&((struct guarded *)object)->hazptr, guarded_free);
}

static void found_by_hazard_pointer(void **state)
{
	enum { NR = 40 };
	struct hashtable_type type[2] = { guarded_type, guarded_type };
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)state;
	type[1].hash = one_hash;
	for (int t = 0; t < 2; t++) {
		uint32_t freed[NR] = { 0 };
		struct guarded *g;
		struct hashtable ht;
		uint64_t key = 35;

		hashtable_init(&ht, &type[t]);
		assert_null(guarded_find(&ht, &type[t], 1, slot));
		for (uint64_t i = 0; i < NR; i++) {
			g = malloc(sizeof(*g));
			*g = (struct guarded){ .key = i, .ret_freed = &freed[i] };
			assert_int_equal(hashtable_insert(&ht, g), 0);
			for (uint64_t k = 0; k <= i; k++) /* lookups find each key also while the table is being resized */
				assert_int_equal(guarded_find(&ht, &type[t], k, slot)->key, k);
			assert_int_equal(slot->value, (uintptr_t)&g->hazptr);
		}
		assert_null(guarded_find(&ht, &type[t], NR, slot));
		assert_int_equal(slot->value, 0);
		g = guarded_find(&ht, &type[t], key, slot);
		assert_ptr_equal(hashtable_remove_key(&ht, &key), g);
		call_hazptr(&g->hazptr, guarded_free);
		hashtable_destroy(&ht, guarded_drop, NULL);
		rcu_barrier();
		assert_int_equal(flag_get(&freed[key]), 0);
		assert_int_equal(g->key, key); /* protected: sanitizers would report a use after free */
		hazptr_clear(slot);
		hazptr_barrier();
		for (int i = 0; i < NR; i++)
			assert_int_equal(flag_get(&freed[i]), 1);
	}
	hazptr_free(NULL, slot);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(tables_are_initialised_statically),
		TEST(maps_are_initialised_statically),
		TEST(grows_and_becomes_small_again),
		TEST(stays_as_it_is_under_churn),
		TEST(reserve),
		TEST(reserve_too_much),
		TEST(a_clear_takes_no_memory),
		TEST(iteration_while_the_body_updates),
		TEST(destroy_gives_each_object_once),
		TEST(destroy_while_it_is_resized),
		TEST(destroy_with_a_reader_inside),
		TEST(found_by_hazard_pointer),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
