/* SPDX-License-Identifier: MIT */
/* test_hashtable.c - every call of hashtable.h, what it answers, and what is in the table after it. */
#include "tables.h"

#include <ctype.h>

static int nr_seen(const struct hashtable *ht)
{
	struct hashtable_iter it;
	struct object *o;
	int nr = 0;

	rcu_read_lock();
	hashtable_for_each(o, &it, ht)
		nr++;
	rcu_read_unlock();
	return nr;
}

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

static void fill(struct hashtable *ht, struct object *objects, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		objects[i] = (struct object){ .key = i, .state = GOOD };
		assert_int_equal(hashtable_insert(ht, &objects[i]), 0);
	}
}

/* ---- an empty table ---- */

static void must_be_empty(struct hashtable *ht)
{
	assert_int_equal(hashtable_count(ht), 0);
	assert_int_equal(nr_seen(ht), 0);
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
	before = mallinfo2().uordblks;
	assert_int_equal(hashtable_init(&ht, &object_type), 0);
	must_be_empty(&ht);
	assert_null(hashtable_remove_key(&ht, &key));
	assert_int_equal(hashtable_remove(&ht, &o), -ENOENT);
	assert_int_equal(hashtable_replace(&ht, &o, &other), -ENOENT);
	hashtable_destroy(&ht, NULL, NULL);
	must_be_empty(&ht);
	assert_int_equal(mallinfo2().uordblks, before);
	assert_int_equal(table_stats(&ht).bytes, 0);
	assert_int_equal(hashtable_insert(&ht, &o), 0);
	assert_true(!OWN_HEAP || mallinfo2().uordblks > before); /* so the heap is where it would have been seen */
	assert_in_range(table_stats(&ht).bytes, 64, 64 * 4);
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

/* More objects with one key than a line has words, among others. */
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

/* Each object is found in all the tables, by what it has there. */
static void look_for_user(const struct hashtable *ht, const struct user *u)
{
	char copy[16];

	snprintf(copy, sizeof(copy), "%s", u->name); /* by what it says, not where it is */
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
		look_for_user(ht, &users[i]);
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
	return quiesce_hash_u64(*(const uint64_t *)key, seed) << 40; /* but different tags */
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
		fill(&ht, o, NR);
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
		assert_int_equal(nr_seen(&ht), NR / 2);
		hashtable_destroy(&ht, NULL, NULL);
	}
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
	fill(&ht, large, LARGE);
	come_to_rest();
	stats = table_stats(&ht);
	assert_int_equal(hashtable_count(&ht), LARGE);
	assert_int_equal(stats.elements, LARGE);
	assert_int_equal(nr_seen(&ht), LARGE);
	assert_in_range(stats.buckets, LARGE / 8, LARGE);
	assert_true(stats.bytes <= 40 * LARGE);
	assert_int_equal(stats.failures, 0);
	for (uint64_t i = 0; i < LARGE; i++)
		assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1)); /* though nobody updates it */
	come_to_rest();
	assert_in_range(table_stats(&ht).bytes, 64, 64 * 4);
	must_be_empty(&ht);
	hashtable_destroy(&ht, NULL, NULL);
}

/* At the number where it is as full as it gets. */
static void stays_as_it_is_under_churn(void **state)
{
	enum { NR = 4096 * 4, TURNS = 4 };
	uint64_t before, next = NR;
	struct hashtable ht;

	(void)state;
	hashtable_init(&ht, &object_type);
	fill(&ht, large, NR);
	come_to_rest();
	before = table_stats(&ht).resizes;
	for (int i = 0; i < TURNS * NR; i++) {
		assert_int_equal(hashtable_remove(&ht, &large[i % NR]), 0);
		large[i % NR].key = next++;
		assert_int_equal(hashtable_insert(&ht, &large[i % NR]), 0);
	}
	assert_in_range(table_stats(&ht).resizes, before, before + TURNS);
	assert_int_equal(nr_seen(&ht), NR);
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
	fill(&ht, large, LARGE);
	assert_int_equal(table_stats(&ht).resizes, 0);
	for (uint64_t i = 0; i < LARGE; i++)
		assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
	come_to_rest();
	assert_int_equal(table_stats(&ht).buckets, stats.buckets); /* never less */
	assert_int_equal(hashtable_reserve(&ht, 0), 0);
	assert_int_equal(hashtable_insert(&ht, &large[0]), 0);
	assert_int_equal(hashtable_remove(&ht, &large[0]), 0);
	wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	fill(&ht, large, 100);
	assert_int_equal(hashtable_reserve(&ht, LARGE), 0); /* waits for a resize that is under way, too */
	assert_int_equal(table_stats(&ht).buckets, stats.buckets);
	assert_int_equal(nr_seen(&ht), 100);
	hashtable_destroy(&ht, NULL, NULL);
}

/* What cannot be had is forgotten. */
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
		fill(&ht, large, 1000);
		come_to_rest();
		assert_int_equal(nr_seen(&ht), 1000);
		assert_in_range(table_stats(&ht).buckets, 125, 1000);
		for (uint64_t i = 0; i < 1000; i++)
			assert_int_equal(hashtable_remove(&ht, &large[i]), 0);
		wait_until((rcu_barrier(), table_stats(&ht).buckets == 1));
	}
	hashtable_destroy(&ht, NULL, NULL);
}

/* ---- iteration ---- */

/* Of 300 that stay, each is seen once, while as the body goes others make the table grow, or leave and it shrinks. */
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
		fill(&ht, large, way ? STAY + OTHERS : STAY);
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
	fill(&ht, large, 5000);
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
	for (int way = 0; way < 3; way++) { /* grows, shrinks, has moved but the callback has not been there */
		uint64_t before, i = 4000;
		struct hashtable ht;
		int nr = 0;

		hashtable_init(&ht, &object_type);
		fill(&ht, large, 4000);
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
			assert_non_null(quiesce_load_relaxed(&ht.table.array->next)); /* Relaxed: only whether. */
		hashtable_destroy(&ht, drop_counts, &nr);
		must_be_empty(&ht);
		rcu_read_unlock();
		memset(&ht, 0xa5, sizeof(ht)); /* nobody looks at it any more */
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
			for (uint64_t k = 0; k <= i; k++) /* also while it is being resized */
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
		assert_int_equal(g->key, key); /* protected: sanitizers look on */
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
		TEST(an_empty_one_takes_64_bytes),
		TEST(seeds_are_random_unless_given),
		TEST(insert_and_remove),
		TEST(insert_unique),
		TEST(set),
		TEST(replace),
		TEST(duplicates),
		TEST(keys_of_all_kinds),
		TEST(equal_hashes_make_no_large_table),
		TEST(grows_and_becomes_small_again),
		TEST(stays_as_it_is_under_churn),
		TEST(reserve),
		TEST(reserve_too_much),
		TEST(iteration_while_the_body_updates),
		TEST(destroy_gives_each_object_once),
		TEST(destroy_while_it_is_resized),
		TEST(destroy_with_a_reader_inside),
		TEST(found_by_hazard_pointer),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
