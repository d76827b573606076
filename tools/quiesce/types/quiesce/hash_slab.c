/* SPDX-License-Identifier: MIT */
/* hash_slab.c - hashtable of quiesce, with objects from an object cache, to which they return after a grace period. */
#include <errno.h>

#include <quiesce/control.h>
#include <quiesce/slab.h>

#include "ours.h"
#include "hash_objects.h"
#include "hash_ours.h"
#include "types/hash.h"
#include "registry.h"

static struct kmem_cache *cache; /* made by the main thread before there are others */

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	if (!err && !cache)
		cache = KMEM_CACHE(object, 0);
	return err ? err : cache ? 0 : -ENOMEM;
}

static void drop(void *object, void *arg)
{
	(void)arg;
	kmem_cache_free(cache, object); /* no other thread uses the table */
}

HASH_OURS(struct hashtable, hashtable_init(t, &object_type), hashtable_destroy(t, drop, NULL))

/* The slabs are of no other table that counts. */
static uint64_t mapped_with_slabs(const void *table)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return mapped(table) + stats.slab_bytes;
}

HASH_LOOKUP slab_lookup(struct hashtable *t, uint64_t key)
{
	return hash_objects_lookup(t, key);
}

static void put_back(void *object)
{
	kmem_cache_free(cache, object);
}

static bool slab_insert(struct hashtable *t, uint64_t key, uint64_t value)
{
	return hash_objects_insert(t, kmem_cache_alloc(cache), key, value, put_back);
}

static bool slab_remove(struct hashtable *t, uint64_t key)
{
	return hash_objects_remove(t, key);
}

HASH_RUN(slab, struct hashtable)

OP_FUNCTION(barrier, rcu_barrier())

static const struct hash_op slab_hash = { .create = create, .destroy = destroy, .mapped = mapped_with_slabs, .grows = true, .run = slab_run,
	.barrier = barrier, .resize = resize, .waiting = op_rcu_waiting };
TYPE(hashtable_slab, .rank = 335,
	.what = "hashtable of quiesce, objects of 16 bytes from an object cache, RCU, kfree_rcu_mightsleep()",
	.fence_modes = true, .hash = &slab_hash, .init = init, .thread_enter = rcu_first_section, .stats = op_rcu_stats);
