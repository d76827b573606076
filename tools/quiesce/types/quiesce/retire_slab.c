/* SPDX-License-Identifier: MIT */
/* retire_slab.c - objects of quiesce's caches: retired by RCU and hazard pointers, type-safe ones freed at once; and the
 * cache alone, as raw_malloc_free is malloc() alone. */
#include <pthread.h>

#include <quiesce/control.h>
#include <quiesce/hazptr.h>
#include <quiesce/slab.h>

#include "ours.h"
#include "registry.h"
#include "types/retire.h"

static struct kmem_cache *cache, *type_safe;

static void make_caches(void)
{
	cache = kmem_cache_create("retired", retire_params.bytes, 0, 0, NULL);
	type_safe = kmem_cache_create("type-safe", retire_params.bytes, 0, SLAB_TYPESAFE_BY_RCU, NULL);
	if (!cache || !type_safe)
		abort();
}

static void enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_caches);
	rcu_first_section();
}

static inline struct retire_object *alloc_of(struct kmem_cache *from, uint64_t value)
{
	struct retire_object *o = kmem_cache_alloc(from);

	if (quiesce_unlikely(!o))
		abort();
	o->value = value;
	return o;
}

static inline struct retire_object *alloc(uint64_t value)
{
	return alloc_of(cache, value);
}

static void free_published(void *object)
{
	kfree(object);
}

static void hold(void **where)
{
	rcu_read_lock();
	retire_use(rcu_dereference(*where));
}

OP_FUNCTION(release, rcu_read_unlock())
RETIRE_READ

/* ---- kfree_rcu() ---- */

struct rcu_object {
	struct rcu_head head;
	char rest[RETIRE_MIN_BYTES - sizeof(struct rcu_head)];
};

#define FREE_RCU(object) kfree_rcu((struct rcu_object *)(object), head)
RETIRE_PRODUCE(rcu, alloc, FREE_RCU)
OP_FUNCTION(rcu_await, rcu_barrier())

TYPE(slab_kfree_rcu, .rank = 620, .groups = RUN_TABLE | REPORT, .peers = PEER_RCU,
	.what = "kfree_rcu() of quiesce, objects of a cache",
	.reclaim = &(const struct op_reclaim){
		RETIRE_PRODUCERS(rcu), RETIRE_READERS, .barrier = rcu_await, .dispose = free_published, .freed = op_rcu_freed,
	}, OURS, .thread_enter = enter);

/* ---- kfree_hazptr() ---- */

struct hazptr_object {
	struct hazptr_head head;
};

static __thread hazptr_t *slot;

static void hazptr_enter(void)
{
	enter();
	slot = hazptr_alloc(NULL);
	if (!slot)
		abort();
}

OP_FUNCTION(hazptr_exit, hazptr_free(NULL, slot))

static void hazptr_hold(void **where)
{
	retire_use(hazptr_protect(slot, where));
}

OP_FUNCTION(hazptr_release, hazptr_clear(slot))

static void hazptr_read(void **where)
{
	hazptr_hold(where);
	hazptr_release();
}

#define FREE_HAZPTR(object) kfree_hazptr((struct hazptr_object *)(object), head)
RETIRE_PRODUCE(hazptr, alloc, FREE_HAZPTR)
OP_FUNCTION(hazptr_await, hazptr_barrier())

TYPE(slab_kfree_hazptr, .rank = 525, .groups = RUN_TABLE | REPORT, .peers = PEER_HAZPTR,
	.what = "kfree_hazptr() of quiesce, objects of a cache",
	.reclaim = &(const struct op_reclaim){
		RETIRE_PRODUCERS(hazptr), .read = hazptr_read, .hold = hazptr_hold, .release = hazptr_release, .barrier = hazptr_await,
		.dispose = free_published, .freed = op_hazptr_freed,
	}, OURS, .thread_enter = hazptr_enter, .thread_exit = hazptr_exit);

/* ---- type-safe objects ---- */

static inline struct retire_object *alloc_type_safe(uint64_t value)
{
	return alloc_of(type_safe, value);
}

#define FREE_TYPE_SAFE(object) (kmem_cache_free(type_safe, (object)), retire_count())
RETIRE_PRODUCE(type_safe, alloc_type_safe, FREE_TYPE_SAFE)

TYPE(slab, .rank = 630, .groups = RUN_TABLE | REPORT, .peers = PEER_ALLOC,
	.what = "objects of a type-safe cache of quiesce, which are freed at once",
	.reclaim = &(const struct op_reclaim){ RETIRE_PRODUCERS(type_safe), RETIRE_READERS, .dispose = free_published },
	OURS, .thread_enter = enter);

/* ---- the cache alone ---- */

static __thread struct retire_object **batch;
static __thread size_t nr_batched;

static void batch_enter(void)
{
	enter();
	batch = calloc(retire_params.batch, sizeof(*batch));
	if (!batch)
		abort();
	nr_batched = 0;
}

OP_FUNCTION(batch_exit, free(batch))

static void free_all(void)
{
	for (size_t i = 0; i < nr_batched; i++) {
		kmem_cache_free(cache, batch[i]);
		retire_count();
	}
	nr_batched = 0;
}

static inline void put(struct retire_object *o)
{
	batch[nr_batched++] = o;
	if (quiesce_unlikely(nr_batched == retire_params.batch))
		free_all();
}

RETIRE_PRODUCE(batch, alloc, put)

/* Nothing protects the object, so it is not accessed. */
static void read_address(void **where)
{
	retire_sum += (uintptr_t)quiesce_load_relaxed(where);
}

static void nothing(void)
{
}

TYPE(raw_slab_free, .rank = 105,
	.what = "floor: allocate a batch of a cache of quiesce, free it; readers touch nothing",
	.reclaim = &(const struct op_reclaim){
		RETIRE_PRODUCERS(batch), .read = read_address, .hold = read_address, .release = nothing, .drain = free_all,
		.dispose = free_published,
	}, .thread_enter = batch_enter, .thread_exit = batch_exit);
