/* SPDX-License-Identifier: MIT */
/* quiesce/slab.h - caches of objects of one size, for objects that are retired.
 *
 * Use where objects of a type are allocated and freed all the time: an allocation and a free are
 * some fifteen instructions each, without a fence, a lock or a line that another CPU writes.  Use
 * malloc() for what is rare, or of many sizes.
 *
 *	struct kmem_cache *routes = KMEM_CACHE(route, 0);
 *
 *	struct route *r = kmem_cache_alloc(routes);         // NULL: no memory
 *	...
 *	kfree_rcu(r, rcu);                                  // back to its cache after a grace period
 *
 * kfree_rcu(), kfree_rcu_mightsleep() and kfree_hazptr() take objects of caches and of malloc()
 * alike: the address says which it is.  So does kfree(), which frees at once.  free() does not.
 *
 * SLAB_TYPESAFE_BY_RCU.  kmem_cache_free() of such an object lets it be allocated again at once,
 * while readers may still have its address; but its memory stays an object of this cache until every
 * section has ended that was open.  So a reader may lock it, or take a reference, and then check
 * that it is still the object with its key: neither it nor the memory waits for a grace period.  The
 * fields that a reader may touch so are initialised by the constructor, once, and not by the
 * allocation:
 *
 *	rcu_read_lock();
 *	c = rcu_dereference(table[hash]);
 *	if (c && refcount_inc_not_zero(&c->users) && c->key != key) {
 *		connection_put(c);                          // it became another one
 *		c = NULL;
 *	}
 *	rcu_read_unlock();
 *
 * ds/rculist_nulls.h has lists of such objects: a reader finds out that one took it to another list.
 *
 * Where objects are.  A cache has slabs of 64 KiB, divided into objects, and for each CPU a sheaf:
 * an array of free objects.  An allocation takes the last object of the sheaf, a free puts it there.
 * An empty sheaf is filled to a half from the slabs, and a full one is emptied to a half, under
 * the cache's lock.  A sheaf has 510 objects, but not more than 64 KiB of them, and at
 * least 8.  A slab without an object in use goes back to the system, but for eight and an eighth of
 * the cache's slabs.  All caches together have at most 64 GiB.  Objects do not move to other caches,
 * and are not freed by the end of the thread that allocated them.
 *
 * Memory at rest.  A cache has 4 KiB for each CPU that uses it, and 4 KiB more.  An object in a
 * sheaf keeps its slab: where each object is in another one, a sheaf keeps 4 MiB of objects of
 * 1 KiB, and 32 MiB of those of 128 bytes or less.  This memory stays while that CPU does not use
 * the cache; kmem_cache_shrink() gives all of it back.
 *
 * Ordering.  Accesses of an object before its free happen before those that follow its next
 * allocation.
 *
 * Checks.  Programs built with AddressSanitizer have free objects poisoned, except those of
 * SLAB_TYPESAFE_BY_RCU, which readers may load; and sheaves by a call.  Under valgrind a cache is
 * defined memory as a whole.  Debug builds report objects that are freed twice, and addresses that
 * are of no object.
 *
 * fork(): the child has the caches of the parent, and may use them.  In a child that was made without
 * the library's handlers (_Fork(), clone()), objects that other threads were moving between sheaf and
 * slab are lost, and no others.
 *
 * Differences from the kernel: no gfp flags; a failed allocation returns NULL.  A name is copied,
 * and never merged with that of another cache.  No NUMA nodes: a CPU keeps the memory that it has
 * touched first in its sheaf as long as frees and allocations balance there.
 * Source: the kernel's SLUB with sheaves, for names and the idea; J. Bonwick's slabs and magazines.
 * Proof: docs/design/slab.md; docs/ordering.md.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a
 * pointer to the last restartable sequence of each thread.
 */
#ifndef QUIESCE_SLAB_H
#define QUIESCE_SLAB_H

#include <quiesce/detail/sheaf.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* kmem_cache_create() takes these flags.  HWCACHE_ALIGN: no object of at most 64 bytes is in two
 * cache lines, and larger ones begin with a line. */
#define SLAB_HWCACHE_ALIGN 1u
#define SLAB_TYPESAFE_BY_RCU 2u /* memory stays of the type for a grace period, see above */

#define QUIESCE_SLAB_SIZE_MAX 16384 /* the largest object */
#define QUIESCE_SLAB_ALIGN_MAX 4096

/** struct kmem_cache - a cache; its members are private, and there are more than these. */
struct kmem_cache {
	uint64_t open;  /* nonzero: sheaves are used inline; see sheaf.h */
	uint64_t limit; /* most objects of a sheaf */
};

QUIESCE_API struct kmem_cache *quiesce_kmem_cache_create(uint32_t layout, const char *name, size_t size, size_t align, unsigned int flags,
							 void (*ctor)(void *object));
QUIESCE_API void quiesce_kmem_cache_destroy(struct kmem_cache *cache);
QUIESCE_API int quiesce_kmem_cache_shrink(struct kmem_cache *cache);
QUIESCE_API size_t quiesce_kmem_cache_size(const struct kmem_cache *cache);
QUIESCE_API size_t quiesce_kmem_cache_alloc_bulk(struct kmem_cache *cache, size_t nr, void **ret_objects);
QUIESCE_API void quiesce_kmem_cache_free_bulk(struct kmem_cache *cache, size_t nr, void **objects);
QUIESCE_API void quiesce_kfree(const void *object);
QUIESCE_API struct kmem_cache *quiesce__kmem_cache_of_size(uint32_t layout, size_t size, size_t align); /* slab.hpp */
QUIESCE_API void *quiesce__kmem_cache_alloc_slow(struct kmem_cache *cache);
QUIESCE_API void quiesce__kmem_cache_free_slow(struct kmem_cache *cache, void *object);
QUIESCE_API void quiesce__kmem_cache_free_debug(struct kmem_cache *cache, void *object);

/** kmem_cache_create - make a cache of objects of @size bytes.
 * @name: for reports; the first 31 characters are copied.
 * @align: a power of two, at most 4096, to which each object is aligned; 0: 8.
 * @flags: SLAB_*.
 * @ctor: called for each object of a slab when the slab is made; NULL: none.  An object keeps what
 *   @ctor made of it from one use to the next, so it is freed in that state.  It may not use the cache.
 *
 * Context: a thread; may allocate.
 * Cost: 4 KiB of addresses for each CPU that the kernel is built for, 32 MiB for 8192, in two
 *   mappings; only for each possible CPU, 1 MiB for 256, where addresses are limited.  Those of
 *   possible CPUs count as memory where the kernel limits commitment, and mlockall() locks it.
 * Return: the cache; NULL, and errno is ENOMEM, or EINVAL: @size is 0 or more than 16384, or @align
 *   or @flags is not valid. */
QUIESCE_PLAIN struct kmem_cache *kmem_cache_create(const char *name, size_t size, size_t align, unsigned int flags,
						   void (*ctor)(void *object))
{
	return quiesce_kmem_cache_create(QUIESCE_LAYOUT, name, size, align, flags, ctor);
}

/** KMEM_CACHE - make a cache of objects of struct @type, with its name, size and alignment. */
#define KMEM_CACHE(type, flags) \
	kmem_cache_create(#type, sizeof(struct type), __alignof__(struct type), (flags), QUIESCE_NO_POINTER)

/** kmem_cache_destroy - free @cache, none of whose objects is in use.
 * @cache: NULL: no effect.
 *
 * Objects that were given to kfree_rcu(), kfree_hazptr() and the like count as freed: the call
 * waits for them, by rcu_barrier() and hazptr_barrier().  So where there are such objects it is
 * not in a section, has no guard of one of them, and is not in a callback.  Type-safe memory goes
 * back to the system after a grace period, which it does not wait for.
 * Context: a thread; no other thread uses @cache any more.
 * Misuse: objects in use: reported (QUIESCE_MISUSE_IN_USE), and the cache stays as it is.  An object that
 *   another thread allocates while the call waits is one of them, if it is not freed before the
 *   wait ends; an allocation or a free after that is not detected, and uses freed memory. */
QUIESCE_PLAIN void kmem_cache_destroy(struct kmem_cache *cache)
{
	quiesce_kmem_cache_destroy(cache);
}

/** kmem_cache_shrink - give the memory of all slabs without an object in use back to the system.
 *
 * Empties the sheaves of all CPUs, other threads may allocate and free meanwhile, more slowly.
 * Context: a thread.
 * Cost: a membarrier, which restarts the sequences of all CPUs that run this process.
 * Return: 0. */
QUIESCE_PLAIN int kmem_cache_shrink(struct kmem_cache *cache)
{
	return quiesce_kmem_cache_shrink(cache);
}

/** kmem_cache_size - return the size of the objects of @cache, as it was created. */
QUIESCE_PLAIN size_t kmem_cache_size(const struct kmem_cache *cache)
{
	return quiesce_kmem_cache_size(cache);
}

/** kmem_cache_alloc - allocate an object.
 *
 * Its contents: what @ctor made of it, with a constructor; else undefined.
 * Context: any, but for signal handlers, constructors of objects included; under any lock.  May call the
 *   constructor.
 * Cost: a restartable sequence on the CPU's own line.  The cache's lock, once for half a sheaf that
 *   is allocated more than freed on a CPU, and a system call for each new slab of 64 KiB.
 *   Without restartable sequences (other CPUs than x86-64 and arm64, arm64 with
 *   the kernels 6.19 and 7.0, full fences) a lock of the CPU's sheaf.
 * Misuse: @cache is NULL: SIGSEGV at address 0, as the inlined code loads from there; calls of the
 *   library and debug builds report it (QUIESCE_MISUSE_NULL), as they do for each call with a cache.
 * Return: the object; NULL: no memory.
 * Orders: acquire of the accesses before its last free. */
QUIESCE_FAST void *kmem_cache_alloc(struct kmem_cache *cache)
{
	void *object;

#ifdef QUIESCE_DEBUG
	if (!cache)
		return quiesce__kmem_cache_alloc_slow(cache);
#endif
	/* SB1: acquire, pairs with SB1 in kmem_cache_free() and add() and fence_closed() */
	if (quiesce_likely(quiesce_sheaf_pop(SB1, &cache->open, &object)))
		return object;
	return quiesce__kmem_cache_alloc_slow(cache);
}

/** kmem_cache_zalloc - allocate an object of zeroes, from a cache without a constructor.
 * Context, cost, return: as kmem_cache_alloc(). */
QUIESCE_FAST void *kmem_cache_zalloc(struct kmem_cache *cache)
{
	void *object = kmem_cache_alloc(cache);

	return quiesce_likely(object != QUIESCE_NO_POINTER) ? __builtin_memset(object, 0, quiesce_kmem_cache_size(cache)) : object;
}

/** kmem_cache_free - free @object of @cache; NULL: no effect.
 *
 * Any thread may free what another one allocated.
 * Context: as kmem_cache_alloc(), which it calls no constructor for; of a type-safe cache also as call_rcu().
 * Cost: as kmem_cache_alloc().
 * Misuse: an object of another cache, or an address that is of no object: reported
 *   (QUIESCE_MISUSE_ARGUMENT) when it leaves the sheaf, and leaked.  So is a second free that finds
 *   the object free in its slab; if the first free is still in a sheaf, two allocations may return the
 *   object.  Debug builds report each at once, without effect, a second free as QUIESCE_MISUSE_TWICE.
 * Orders: release. */
QUIESCE_FAST void kmem_cache_free(struct kmem_cache *cache, void *object)
{
#ifdef QUIESCE_DEBUG
	quiesce__kmem_cache_free_debug(cache, object);
#else
	/* SB1: release, pairs with SB1 in kmem_cache_alloc() and take() and fence_closed() */
	if (quiesce_unlikely(!object || !quiesce_sheaf_push(SB1, &cache->open, &cache->limit, object)))
		quiesce__kmem_cache_free_slow(cache, object);
#endif
}

/** kmem_cache_alloc_bulk - allocate @nr objects.
 * @ret_objects: gets their addresses.
 *
 * Context: as kmem_cache_alloc().
 * Cost: a call, and a copy of the addresses, for up to a sheaf of objects.
 * Return: @nr; 0: no memory for all of them, and none was allocated. */
QUIESCE_PLAIN size_t kmem_cache_alloc_bulk(struct kmem_cache *cache, size_t nr, void **ret_objects)
{
	return quiesce_kmem_cache_alloc_bulk(cache, nr, ret_objects);
}

/** kmem_cache_free_bulk - free @nr objects.
 * @cache: their cache; NULL: each is of any cache, or of malloc().
 *
 * Context, misuse: as kmem_cache_free().
 * Cost: a call, and a copy of the addresses, as far as the sheaf has room; the others go to the slabs under one lock. */
QUIESCE_PLAIN void kmem_cache_free_bulk(struct kmem_cache *cache, size_t nr, void **objects)
{
	quiesce_kmem_cache_free_bulk(cache, nr, objects);
}

/** kfree - free @object, of any cache or of malloc(); NULL: no effect.
 * Context, misuse: as kmem_cache_free(); free() may take locks of the allocator.
 * Cost: a call more than kmem_cache_free(), and a load of the slab's cache. */
QUIESCE_PLAIN void kfree(const void *object)
{
	quiesce_kfree(object);
}

/** struct kmem_cache_stats - figures of a cache, from different moments while it is used. */
struct kmem_cache_stats {
	uint64_t objects;   /* in use */
	uint64_t sheaved;   /* free, in sheaves */
	uint64_t free;      /* free, in slabs */
	uint64_t slabs;
	uint64_t bytes;     /* memory of all slabs */
	uint64_t size;      /* bytes of an object, with what its alignment adds */
	uint64_t limit;     /* most objects of a sheaf */
};
QUIESCE_API void quiesce_kmem_cache_get_stats(const struct kmem_cache *cache, struct kmem_cache_stats *ret_stats, size_t bytes);

/** kmem_cache_get_stats - return figures of @cache.
 * Context: a thread.  Takes the cache's lock, and loads a word for each possible CPU. */
QUIESCE_PLAIN void kmem_cache_get_stats(const struct kmem_cache *cache, struct kmem_cache_stats *ret_stats)
{
	quiesce_kmem_cache_get_stats(cache, ret_stats, sizeof *ret_stats);
}

QUIESCE_END_DECLS

#endif
