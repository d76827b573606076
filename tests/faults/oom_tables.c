/* SPDX-License-Identifier: MIT */
/* oom_tables.c - for oom.py: an allocation that fails leaves a table as it was, and calls that need no memory still succeed. */
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>

#include <errno.h>
#include <unistd.h>

struct object {
	uint32_t key;
};

static uint64_t one_bucket(const void *key, uint64_t seed)
{
	return quiesce_hash_u64(*(const uint32_t *)key, seed) << 32;
}

static const void *key_of(const void *object)
{
	return &((const struct object *)object)->key;
}

static bool equal(const void *object, const void *key)
{
	return ((const struct object *)object)->key == *(const uint32_t *)key;
}

static const struct hashtable_type one_bucket_type = { one_bucket, key_of, equal };
HASHTABLE_TYPE(object, struct object, key);

#define NR 80
static struct object objects[NR];
static bool there[NR];
static size_t nr_there;
static int ok = 1;

static void must(int condition)
{
	ok &= condition != 0;
}

/* ---- hashtable ---- */

static void check_all(const struct hashtable *ht, const struct hashtable_type *type)
{
	bool seen[NR] = { false };
	struct hashtable_iter iter;
	struct object *object;
	size_t nr_seen = 0;

	rcu_read_lock();
	for (uint32_t i = 0; i < NR; i++)
		must(hashtable_lookup(ht, type, &i) == (there[i] ? &objects[i] : NULL));
	hashtable_for_each(object, &iter, ht) {
		must(there[object->key] && !seen[object->key]);
		seen[object->key] = true;
		nr_seen++;
	}
	rcu_read_unlock();
	must(nr_seen == nr_there);
}

static void fill_table(struct hashtable *ht, const struct hashtable_type *type, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		int err = hashtable_insert_unique(ht, &objects[i], NULL);

		must(err == (there[i] ? -EEXIST : 0) || err == -ENOMEM);
		nr_there += err == 0;
		there[i] |= err == 0;
		if (i % 8 == 0)
			check_all(ht, type);
	}
	check_all(ht, type);
}

static void empty_table(struct hashtable *ht, const struct hashtable_type *type)
{
	for (uint32_t i = 0; i < NR; i++) {
		must(hashtable_remove(ht, &objects[i]) == (there[i] ? 0 : -ENOENT));
		nr_there -= there[i];
		there[i] = false;
		if (i % 8 == 0)
			check_all(ht, type);
	}
}

static void table(const struct hashtable_type *type, uint32_t nr)
{
	struct hashtable ht;
	int err;

	must(hashtable_init_seeded(&ht, type, 1) == 0);
	fill_table(&ht, type, nr);
	err = hashtable_reserve(&ht, nr * 4);
	must(err == 0 || err == -ENOMEM);
	fill_table(&ht, type, nr);
	must(hashtable_reserve(&ht, 0) != -EINVAL);
	empty_table(&ht, type);
	fill_table(&ht, type, 3);
	hashtable_destroy(&ht, NULL, NULL);
	for (uint32_t i = 0; i < NR; i++)
		there[i] = false;
	nr_there = 0;
}

/* ---- hashmap ---- */

static void map(void)
{
	struct hashmap map;
	int err;

	must(hashmap_init_seeded(&map, 1) == 0);
	for (uint32_t i = 0; i < NR; i++) {
		err = i % 2 ? hashmap_insert(&map, i, i + 1, NULL) : hashmap_set(&map, i, i + 1, NULL);
		must(err == 0 || err == -ENOMEM);
		there[i] = err == 0;
		nr_there += err == 0;
		if (i == NR / 2) {
			err = hashmap_reserve(&map, 8000); /* pages, not the heap */
			must(err == 0 || err == -ENOMEM);
		}
	}
	for (uint32_t i = 0; i < NR; i++) {
		rcu_read_lock();
		must(hashmap_lookup(&map, i) == (there[i] ? i + 1 : 0));
		rcu_read_unlock();
		must(hashmap_replace(&map, i, i + 1, i + 2) == (there[i] ? 0 : -ENOENT));
		must(!there[i] || hashmap_set(&map, i, i + 3, NULL) == 0);
	}
	for (uint32_t i = 0; i < NR; i++) {
		must(hashmap_remove(&map, i) == (there[i] ? i + 3 : 0));
		nr_there -= there[i];
		there[i] = false;
	}
	rcu_barrier(); /* elements that are being moved may be counted twice */
	must(hashmap_count(&map) == 0);
	hashmap_destroy(&map);
	rcu_barrier();
}

int main(void)
{
	alarm(25);
	for (uint32_t i = 0; i < NR; i++)
		objects[i].key = i;
	table(&object_type, NR);
	table(&one_bucket_type, 16);
	map();
	return !ok;
}
