/* SPDX-License-Identifier: MIT */
/* slab.h - object caches: slabs, sheaves, and what a cache has of both. */
#ifndef QUIESCE_SRC_SLAB_H
#define QUIESCE_SRC_SLAB_H

#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#include "percpu/percpu.h"
#include "runtime/core.h"
#include "runtime/object.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_SLAB_SHIFT 12
#else
#define QUIESCE_SLAB_SHIFT 16
#endif
#define QUIESCE_SLAB_BYTES ((size_t)1 << QUIESCE_SLAB_SHIFT)
#define QUIESCE_ROW 64u /* addresses of objects on the stack, at most */

struct quiesce__cache;

/* A slab's description, which stays; its memory is in the range of objects, at the same index. */
struct quiesce__slab {
	struct quiesce__cache *cache;     /* NULL: it is of none */
	struct quiesce__slab *next, **at; /* a list of the cache; or the region's list, by @next */
	uint64_t *map;                    /* a bit for each free object: @word, or the end of the memory */
	uint64_t word;
	uint32_t nr_free;
	union {
		uint32_t first;           /* no word of @map before this one has a bit */
		uint32_t flags;           /* when the slab has left its cache: that one's */
	};
	struct rcu_head rcu;              /* until its memory may go back */
};

#define QUIESCE_CACHE_NAME 32

struct quiesce__cache {
	struct kmem_cache fast; /* loaded by all threads; changes when the sheaves are closed or opened */
	uint64_t closed;        /* nonzero: no thread may use the sheaves */
	struct quiesce__percpu_pages sheaves;
	uint32_t size, stride;  /* bytes of an object, and from one to the next */
	uint32_t nr;            /* objects of a slab */
	uint32_t reciprocal;    /* 2^32 by the stride, rounded up */
	uint32_t batch;         /* objects that move between a sheaf and the slabs, at most */
	uint32_t flags;
	bool poisons;           /* free objects are poisoned */
	void (*ctor)(void *object);
	char name[QUIESCE_CACHE_NAME];
	struct quiesce__cache *next, **link; /* all caches */

	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE))); /* guards the slabs */
	struct quiesce__slab *partial; /* slabs with free objects and others */
	struct quiesce__slab *empty;   /* slabs without an object in use */
	uint32_t nr_slabs, nr_empty;
	uint64_t nr_free;              /* free objects of all slabs */
};

/* The content of a report of a bad object. */
struct quiesce__bad {
	const void *object; /* NULL: none was bad */
	char name[QUIESCE_CACHE_NAME];
};

static inline struct quiesce__cache *quiesce__cache_of(const struct kmem_cache *cache)
{
	return (struct quiesce__cache *)(uintptr_t)cache;
}

/* ---- region.c: memory for slabs ---- */

/* Take a slab, which has no object yet; NULL: no memory, or no addresses.  Return the memory of one to the system. */
struct quiesce__slab *quiesce__region_get(void);
void quiesce__region_put(struct quiesce__slab *slab);
/* The descriptions of all slabs; fixed before there is an object. */
extern struct quiesce__slab *quiesce__slabs;

/* Return the slab of an address in the range of objects. */
static inline struct quiesce__slab *quiesce__slab_of(const void *object)
{
	uintptr_t start = quiesce_load_relaxed(&quiesce__object_range.start); /* Relaxed: fixed, as the descriptions are. */

	return &quiesce__slabs[((uintptr_t)object - start) >> QUIESCE_SLAB_SHIFT];
}

/* Return the memory of a slab. */
static inline char *quiesce__slab_memory(const struct quiesce__slab *slab)
{
	uintptr_t start = quiesce_load_relaxed(&quiesce__object_range.start); /* Relaxed: fixed. */

	return (char *)(start + ((uintptr_t)(slab - quiesce__slabs) << QUIESCE_SLAB_SHIFT));
}

/* Return slab @i; NULL: there are fewer. */
struct quiesce__slab *quiesce__region_slab(size_t i);
uint64_t quiesce__region_bytes(void);
void quiesce__region_fork_prepare(void);
void quiesce__region_fork_parent(void);
void quiesce__region_fork_child(void);

/* ---- slabs.c: the slabs of a cache ---- */

/* Take up to @nr objects, and make a slab if there is no free one.  Returns their number; 0: no memory. */
uint32_t quiesce__slabs_take(struct quiesce__cache *cache, void **ret_row, uint32_t nr);
/* Return @nr objects to their slabs.  Returns a list of slabs that are surplus now, for quiesce__slabs_release(), which the
 * caller calls without a lock; *@bad: an object that is not one, if any is not.  The cache may be destroyed meanwhile, if the
 * caller has no other object of it in use: neither the list nor @bad needs it. */
struct quiesce__slab *quiesce__slabs_put(struct quiesce__cache *cache, void *const *row, uint32_t nr, struct quiesce__bad *bad);
void quiesce__slabs_release(struct quiesce__slab *list);
/* Take all slabs without an object in use, for quiesce__slabs_release(). */
struct quiesce__slab *quiesce__slabs_take_empty(struct quiesce__cache *cache);
/* True if @object is one of @cache, and is not free in its slab. */
bool quiesce__slabs_own(struct quiesce__cache *cache, const void *object);
/* In the child of a fork that has interrupted a change of the lists: make them anew. */
void quiesce__slabs_rebuild(struct quiesce__cache *cache);

/* ---- sheaves.c ---- */

/* Take up to @nr objects from the sheaf of the thread's CPU, or add objects to it; returns how many. */
uint64_t quiesce__sheaf_take_row(struct quiesce__cache *cache, void **ret_row, uint64_t nr);
uint64_t quiesce__sheaf_add_row(struct quiesce__cache *cache, void *const *row, uint64_t nr);
/* Let no thread use the sheaves; use them again. */
void quiesce__sheaves_close(struct quiesce__cache *cache);
void quiesce__sheaves_open(struct quiesce__cache *cache);
/* Take up to @nr objects from closed sheaves, from that of *@id on, which is 0 at first and goes up.  Less than @nr: all are empty. */
uint32_t quiesce__sheaves_drain(struct quiesce__cache *cache, size_t *id, void **ret_row, uint32_t nr);
uint64_t quiesce__sheaves_count(const struct quiesce__cache *cache);
/* True if the sheaf of the thread's CPU has @object, as far as one can find out while it changes. */
bool quiesce__sheaf_has(const struct quiesce__cache *cache, const void *object);
void quiesce__sheaves_fork_child(struct quiesce__cache *cache);

/* ---- cache.c ---- */

/* Free @nr objects, which may be of several caches. */
void quiesce__cached_objects_free(void *const *objects, size_t nr);
void quiesce__caches_fork_prepare(void);
void quiesce__caches_fork_parent(void);
void quiesce__caches_fork_child(void);

#endif
