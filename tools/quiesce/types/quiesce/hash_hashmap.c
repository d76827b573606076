/* SPDX-License-Identifier: MIT */
/* hash_hashmap.c - hashmap of quiesce: numbers to numbers, in the bucket itself. */
#include <quiesce/ds/hashmap.h>
#include <quiesce/rcu.h>

#include "ours.h"
#include "hash_ours.h"
#include "types/hash.h"
#include "registry.h"

HASH_OURS(struct hashmap, hashmap_init(t), hashmap_destroy(t))

HASH_LOOKUP map_lookup(struct hashmap *map, uint64_t key)
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

OP_FUNCTION(barrier, rcu_barrier())

#define MAP .create = create, .destroy = destroy, .barrier = barrier, .mapped = mapped, .grows = true
#define OP .fence_modes = true, .init = op_rcu_init, .thread_enter = rcu_first_section, .stats = op_rcu_stats

TYPE(hashmap, .rank = 300, .groups = RUN_TABLE | REPORT, .peers = PEER_TABLE,
	.what = "hashmap of quiesce, grown by itself: pairs in the buckets; its own hash",
	.hash = &(const struct hash_op){ MAP, .run = map_run, .resize = resize }, OP);

/* ---- hashmap with lookups in batches ---- */

static inline void map_lookup_many(struct hashmap *map, const uint64_t *key, size_t nr, uint64_t *ret_value)
{
	rcu_read_lock();
	hashmap_lookup_many(map, key, nr, ret_value);
	rcu_read_unlock();
}

HASH_RUN_MANY(map_many, map, struct hashmap)

TYPE(hashmap_many, .rank = 305,
	.what = "hashmap of quiesce, up to 32 lookups at once: hashmap_lookup_many()",
	.hash = &(const struct hash_op){ MAP, .run = map_many_run }, OP);

/* ---- hashmap updated by functions ---- */

static uint64_t put(uint64_t there, void *value)
{
	return there ? there : *(uint64_t *)value;
}

static uint64_t take(uint64_t there, void *unused)
{
	(void)there;
	(void)unused;
	return 0;
}

HASH_LOOKUP map_update_lookup(struct hashmap *map, uint64_t key)
{
	return map_lookup(map, key);
}

static inline bool map_update_insert(struct hashmap *map, uint64_t key, uint64_t value)
{
	uint64_t old;

	return hashmap_update(map, key, put, &value, &old) == 0 && !old;
}

static inline bool map_update_remove(struct hashmap *map, uint64_t key)
{
	uint64_t old;

	return hashmap_update(map, key, take, NULL, &old) == 0 && old;
}

HASH_RUN(map_update, struct hashmap)

TYPE(hashmap_update, .rank = 310,
	.what = "hashmap of quiesce, inserts and removes by functions: hashmap_update()",
	.hash = &(const struct hash_op){ MAP, .run = map_update_run }, OP);
