/* SPDX-License-Identifier: MIT */
/* hash.c - Concurrency Kit's table, which has one writer: updates take a mutex.
 *
 * Pairs lie in the table's array, so only arrays that were replaced have to be kept from readers.  They are kept
 * until no reader is inside, so the lookups of this type need no protection.
 */
#include <ck_ht.h>
#include <pthread.h>
#include <stdlib.h>

#include "types/hash.h"
#include "registry.h"

#define FIRST_ENTRIES 8

/* An array that was replaced while readers could use it. */
struct old {
	struct old *next;
	void *array;
};

static struct old *olds; /* guarded by the mutex */
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void *take(size_t size)
{
	return malloc(size);
}

static void *retake(void *array, size_t size, size_t fresh, bool later)
{
	(void)size;
	(void)later;
	return realloc(array, fresh);
}

static void give(void *array, size_t size, bool later)
{
	struct old *old = later ? malloc(sizeof(*old)) : NULL;

	(void)size;
	if (!later) {
		free(array);
	} else if (old) {
		*old = (struct old){ olds, array };
		olds = old;
	} /* without memory for the note the array leaks: readers may still use it */
}

static struct ck_malloc memory = { .malloc = take, .realloc = retake, .free = give };

static void barrier(void)
{
	while (olds) {
		struct old *next = olds->next;

		free(olds->array);
		free(olds);
		olds = next;
	}
}

static void hash(ck_ht_hash_t *ret, const void *key, size_t length, uint64_t seed)
{
	(void)length;
	(void)seed;
	ret->value = hash_mix(*(const uint64_t *)key);
}

static void *create(uint64_t nr_keys)
{
	ck_ht_t *t = malloc(sizeof(*t));

	(void)nr_keys;
	if (t && ck_ht_init(t, CK_HT_MODE_DIRECT | CK_HT_WORKLOAD_DELETE, hash, &memory, FIRST_ENTRIES, 0))
		return t;
	free(t);
	return NULL;
}

static void destroy(void *table)
{
	ck_ht_destroy(table);
	barrier();
	free(table);
}

HASH_LOOKUP ck_lookup(ck_ht_t *t, uint64_t key)
{
	ck_ht_hash_t h = { hash_mix(key) };
	ck_ht_entry_t entry;

	ck_ht_entry_key_set_direct(&entry, key);
	return ck_ht_get_spmc(t, h, &entry) ? ck_ht_entry_value_direct(&entry) : 0;
}

static bool ck_insert(ck_ht_t *t, uint64_t key, uint64_t value)
{
	ck_ht_hash_t h = { hash_mix(key) };
	ck_ht_entry_t entry;
	bool good;

	ck_ht_entry_set_direct(&entry, h, key, value);
	pthread_mutex_lock(&writer);
	good = ck_ht_put_spmc(t, h, &entry);
	pthread_mutex_unlock(&writer);
	return good;
}

static bool ck_remove(ck_ht_t *t, uint64_t key)
{
	ck_ht_hash_t h = { hash_mix(key) };
	ck_ht_entry_t entry;
	bool good;

	ck_ht_entry_key_set_direct(&entry, key);
	pthread_mutex_lock(&writer);
	good = ck_ht_remove_spmc(t, h, &entry);
	pthread_mutex_unlock(&writer);
	return good;
}

HASH_RUN(ck, ck_ht_t)

TYPE(ck_ht, .rank = 1100, .groups = PEER_TABLE | RUN_TABLE | REPORT,
	.what = "Concurrency Kit's ck_ht: one writer, so a mutex around updates; old arrays are kept until no reader is inside",
	.hash = &(const struct hash_op){ .create = create, .destroy = destroy, .run = ck_run, .barrier = barrier });
