/* SPDX-License-Identifier: MIT */
/* tables.h - shared by the tests of hashtable and hashmap. */
#ifndef TABLES_H
#define TABLES_H

#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>

#include "testing.h"

#include <malloc.h>
#include <sys/resource.h>

#define GOOD 0x600dcafeu
#define POISON 0x6b6b6b6bu

struct object {
	uint64_t key;
	uint32_t state; /* GOOD until no reader can find it any more */
	int nr_drops;
	struct rcu_head rcu;
};

HASHTABLE_TYPE(object, struct object, key);

static int nr_freed;

static inline struct object *object_new(uint64_t key)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->key = key;
	o->state = GOOD;
	return o;
}

static inline void object_poison(struct rcu_head *head)
{
	struct object *o = (struct object *)(void *)((char *)head - offsetof(struct object, rcu));

	quiesce_store_relaxed(&o->state, POISON); /* Relaxed: RCU is what is tested. */
	count_up(&nr_freed);
	free(o);
}

static inline void object_retire(void *object, void *unused)
{
	(void)unused;
	call_rcu(&((struct object *)object)->rcu, object_poison);
}

static inline struct quiesce_table_stats table_stats(const struct hashtable *ht)
{
	struct quiesce_table_stats stats;

	hashtable_stats(ht, &stats);
	return stats;
}

static inline struct quiesce_table_stats map_stats(const struct hashmap *map)
{
	struct quiesce_table_stats stats;

	hashmap_stats(map, &stats);
	return stats;
}

static inline struct object *table_find(const struct hashtable *ht, uint64_t key)
{
	struct object *o;

	rcu_read_lock();
	o = object_lookup(ht, &key);
	rcu_read_unlock();
	return o;
}

static inline int table_seen(const struct hashtable *ht)
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

static inline void table_fill_one(struct hashtable *ht, struct object *object, uint64_t key)
{
	*object = (struct object){ .key = key, .state = GOOD };
	assert_int_equal(hashtable_insert(ht, object), 0);
}

static inline void table_fill(struct hashtable *ht, struct object *objects, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		table_fill_one(ht, &objects[i], i);
}

static inline uint64_t map_find(const struct hashmap *map, uint64_t key)
{
	uint64_t value;

	rcu_read_lock();
	value = hashmap_lookup(map, key);
	rcu_read_unlock();
	return value;
}

static inline void map_fill(struct hashmap *map, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		assert_int_equal(hashmap_insert(map, i, i + 1, NULL), 0);
}

/* Wait until no resize is under way, and no object waits to be freed. */
static inline void come_to_rest(void)
{
	do
		rcu_barrier();
	while (stats_now().garbage_objects);
}

/* While this is not 0, large allocations fail unless the allocator has the memory already. */
static inline void limit_address_space(int on)
{
	struct rlimit limit;
	long pages = 0;
	FILE *file;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (on) {
		file = fopen("/proc/self/statm", "r");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%ld", &pages), 1);
		fclose(file);
		limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)16 << 20);
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

#endif
