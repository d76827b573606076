/* SPDX-License-Identifier: MIT */
/* hash_slab.c - hashtable of quiesce, with objects from an object cache, to which they return after a grace period. */
#include <errno.h>

#include <quiesce/control.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#include "ours.h"
#include "hash_ours.h"
#include "types/hash.h"
#include "registry.h"

struct pair {
	uint64_t key, value;
};

HASHTABLE_TYPE_HASHED(pair, struct pair, key, hash_mix(*(const uint64_t *)key ^ seed));

static struct kmem_cache *cache; /* made by the main thread before there are others */

static int init(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	if (!err && !cache)
		cache = KMEM_CACHE(pair, 0);
	return err ? err : cache ? 0 : -ENOMEM;
}

static void drop(void *object, void *arg)
{
	(void)arg;
	kmem_cache_free(cache, object); /* no other thread uses the table */
}

HASH_OURS(struct hashtable, hashtable_init(t, &pair_type), hashtable_destroy(t, drop, NULL))

/* The slabs are of no other table that counts. */
static uint64_t mapped_with_slabs(const void *table)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof(stats));
	return mapped(table) + stats.slab_bytes;
}

HASH_LOOKUP slab_lookup(struct hashtable *t, uint64_t key)
{
	const struct pair *o;
	uint64_t value;

	rcu_read_lock();
	o = pair_lookup(t, &key);
	value = o ? o->value : 0;
	rcu_read_unlock();
	return value;
}

static bool slab_insert(struct hashtable *t, uint64_t key, uint64_t value)
{
	struct pair *o = kmem_cache_alloc(cache);

	if (!o)
		return false;
	*o = (struct pair){ key, value };
	if (!hashtable_insert_unique(t, o, NULL))
		return true;
	kmem_cache_free(cache, o);
	return false;
}

static bool slab_remove(struct hashtable *t, uint64_t key)
{
	struct pair *o = hashtable_remove_key(t, &key);

	kfree_rcu_mightsleep(o);
	return o;
}

HASH_RUN(slab, struct hashtable)

OP_FUNCTION(barrier, rcu_barrier())

static const struct hash_op slab_hash = { .create = create, .destroy = destroy, .mapped = mapped_with_slabs, .grows = true, .run = slab_run,
	.barrier = barrier, .resize = resize, .waiting = op_rcu_waiting };
TYPE(hashtable_slab, .rank = 335,
	.what = "hashtable of quiesce, objects of 16 bytes from an object cache, RCU, kfree_rcu_mightsleep()",
	.fence_modes = true, .hash = &slab_hash, .init = init, .thread_enter = rcu_first_section, .stats = op_rcu_stats);
