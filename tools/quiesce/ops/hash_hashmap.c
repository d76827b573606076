/* SPDX-License-Identifier: MIT */
/* hash_hashmap.c - hashmap of quiesce: numbers to numbers, in the bucket itself. */
#include <quiesce/ds/hashmap.h>
#include <quiesce/rcu.h>

#include "hash_ours.h"
#include "hash_table.h"

int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);

static void *create(uint64_t nr_keys)
{
	struct hashmap *map = malloc(sizeof(*map));

	(void)nr_keys; /* it grows */
	if (map)
		hashmap_init(map);
	return map;
}

static void destroy(void *table)
{
	hashmap_destroy(table);
	rcu_barrier(); /* its callbacks know where it was */
	free(table);
}

static uint64_t mapped(const void *table)
{
	return hash_ours_mapped(&((const struct hashmap *)table)->table);
}

static bool resize(void *table, uint64_t nr_keys)
{
	return hash_ours_resize(&((struct hashmap *)table)->table, nr_keys);
}

static inline uint64_t map_lookup(struct hashmap *map, uint64_t key)
{
	uint64_t value;

	rcu_read_lock();
	value = hashmap_lookup(map, key);
	rcu_read_unlock();
	return value;
}

static inline bool map_insert(struct hashmap *map, uint64_t key, uint64_t value)
{
	return hashmap_insert(map, key, value, NULL) == 0;
}

static inline bool map_remove(struct hashmap *map, uint64_t key)
{
	return hashmap_remove(map, key) != 0;
}

HASH_RUN(map, struct hashmap)

static void first_section(void)
{
	rcu_read_lock();
	rcu_read_unlock();
}

static void barrier(void)
{
	rcu_barrier();
}

static const struct hash_op hashmap_hash = {
	.create = create, .destroy = destroy, .run = map_run, .barrier = barrier, .mapped = mapped, .resize = resize, .grows = true,
};
const struct op hash_op_hashmap = {
	.name = "hashmap",
	.what = "hashmap of quiesce, grown by itself: pairs in the buckets; its own hash",
	.fence_modes = true,
	.hash = &hashmap_hash,
	.init = op_rcu_init,
	.thread_enter = first_section,
	.stats = op_rcu_stats,
};
