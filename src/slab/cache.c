/* SPDX-License-Identifier: MIT */
/* cache.c - object caches: their making and end, and the calls that find a sheaf empty or full.
 *
 *   program <-- pop, push --> sheaf of the CPU <-- rows of objects --> slabs <-- 64 KiB --> system
 *                             (sheaves.c)          (cache's lock)      (slabs.c)   (region.c)
 *
 * I1. Each object is in exactly one place: in use, in one sheaf, in its slab's map of free ones, or in the row of a thread
 *     that moves it.  Rows are on stacks, so they are what the child of a fork can lose.
 * I2. caches.lock guards the list of caches.  It is held from the closing of sheaves until they are drained, and when they are
 *     opened: so no thread opens sheaves that another one drains.  Order: caches.lock, the cache's lock; region.lock alone.
 *     None is held over the constructor, a report, call_rcu() or free().
 * I3. A cache's fields besides the sheaves' words and what its lock guards do not change.
 * I4. A cache enters or leaves the list by one store: so the child of a fork without handlers has a whole list, and sets the back
 *     pointers again, of which a thread of the parent may have been about to change one.
 *
 * SB1  see sheaves.c
 */
#include "slab.h"

#include "platform/probe.h"
#include "rcu/reclaim.h"

#include <quiesce/hazptr.h>

#include <errno.h>
#include <string.h>

#define SHEAF_BYTES ((size_t)64 << 10) /* most bytes of the objects of a sheaf */
#if defined(QUIESCE_SIM)
#define SHEAF_MIN 2u
#define SHEAF_MAX 2u
#else
#define SHEAF_MIN 8u
#define SHEAF_MAX QUIESCE_SHEAF_OBJECTS
#endif
#define STRIDE_MIN 8u
#define NR_COLOURS ((1u << QUIESCE_PERCPU_SHIFT) / QUIESCE_CACHELINE)

static struct {
	struct quiesce__lock lock;
	struct quiesce__cache *all;
	uint32_t nr_made;
	bool held_by_fork; /* fork() has taken all locks */
} caches;

/* Report a call without a cache, whose creation the program has not checked. */
static bool is_missing(const struct kmem_cache *cache, const char *call)
{
	if (quiesce_unlikely(!cache))
		quiesce__misuse(QUIESCE_MISUSE_NULL, "%s() without a cache: did kmem_cache_create() return one?", call);
	return !cache;
}

/* ---- rows ---- */

static void report_bad(const struct quiesce__bad *bad)
{
	if (quiesce_unlikely(bad->object != NULL))
		quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "object %p was freed to the cache %s, which has no such object in use",
				bad->object, bad->name);
}

/* The cache may be gone afterwards, if the row has the last objects in use. */
static void put_row(struct quiesce__cache *cache, void *const *row, uint32_t nr)
{
	struct quiesce__bad bad;

	bad.object = NULL;
	quiesce__slabs_release(quiesce__slabs_put(cache, row, nr, &bad));
	report_bad(&bad);
}

static void poison(const struct quiesce__cache *cache, void *const *row, size_t nr, bool on)
{
	for (size_t i = 0; cache->poisons && i < nr; i++)
		platform_poison(row[i], cache->size, on);
}

/* Move objects of the sheaf to their slabs, so that it is half full. */
static void make_room(struct quiesce__cache *cache)
{
	void *row[QUIESCE_ROW];
	uint32_t left = cache->batch;

	while (left) {
		uint32_t want = left < QUIESCE_ROW ? left : QUIESCE_ROW, nr = (uint32_t)quiesce__sheaf_take_row(cache, row, want);

		if (nr)
			put_row(cache, row, nr);
		if (nr < want)
			return;
		left -= nr;
	}
}

static void put_rows(struct quiesce__cache *cache, void *const *row, size_t nr)
{
	while (nr) {
		uint32_t some = nr < QUIESCE_ROW ? (uint32_t)nr : QUIESCE_ROW;

		put_row(cache, row, some);
		row += some;
		nr -= some;
	}
}

static void free_row(struct quiesce__cache *cache, void *const *row, size_t nr)
{
	size_t added;

	poison(cache, row, nr, true);
	added = quiesce__sheaf_add_row(cache, row, nr);
	if (added == nr)
		return;
	make_room(cache);
	row += added;
	nr -= added;
	added = quiesce__sheaf_add_row(cache, row, nr < cache->batch ? nr : cache->batch);
	put_rows(cache, row + added, nr - added);
}

static struct quiesce__cache *cache_with(const void *object)
{
	return quiesce_load_relaxed(&quiesce__slab_of(object)->cache); /* Relaxed: it was written before the object was allocated. */
}

/* Not inline: a single object is freed without a frame. */
static __attribute__((noinline)) void free_any(void *const *objects, size_t nr)
{
	while (nr) {
		struct quiesce__cache *cache = cache_with(*objects);
		size_t row = 1;

		while (row < nr && cache_with(objects[row]) == cache)
			row++;
		if (quiesce_likely(cache != NULL))
			free_row(cache, objects, row);
		else
			quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "object %p is freed, whose cache was destroyed", *objects);
		objects += row;
		nr -= row;
	}
}

void quiesce__cached_objects_free(void *const *objects, size_t nr)
{
	struct quiesce__cache *cache = cache_with(*objects);

	/* SB1: release, pairs with SB1 in kmem_cache_alloc() and take() and fence_closed() */
	if (nr != 1 || !cache || !quiesce_sheaf_push(SB1, &cache->fast.open, &cache->fast.limit, *objects))
		free_any(objects, nr);
}

/* ---- allocating ---- */

/* Fill the sheaf to a half from the slabs, and return one object besides. */
static void *refill(struct quiesce__cache *cache)
{
	void *row[QUIESCE_ROW], *object = NULL;
	uint32_t left = cache->batch;

	while (left) {
		uint32_t nr = quiesce__slabs_take(cache, row, left < QUIESCE_ROW ? left : QUIESCE_ROW), more, added;

		if (!nr)
			break;
		more = object ? nr : nr - 1;
		if (!object)
			object = row[nr - 1];
		added = more ? (uint32_t)quiesce__sheaf_add_row(cache, row, more) : 0;
		if (added < more) {
			put_row(cache, row + added, more - added);
			break;
		}
		left -= nr;
	}
	quiesce_probe(slab_refill, cache, cache->batch - left);
	return object;
}

void *quiesce__kmem_cache_alloc_slow(struct kmem_cache *fast)
{
	struct quiesce__cache *cache = quiesce__cache_of(fast);
	void *object;

	quiesce__init();
	if (is_missing(fast, "kmem_cache_alloc"))
		return NULL;
	if (!quiesce__sheaf_take_row(cache, &object, 1))
		object = refill(cache);
	if (object)
		poison(cache, &object, 1, false);
	return object;
}

size_t quiesce_kmem_cache_alloc_bulk(struct kmem_cache *fast, size_t nr, void **ret_objects)
{
	struct quiesce__cache *cache = quiesce__cache_of(fast);
	size_t done = 0;

	quiesce__init();
	if (is_missing(fast, "kmem_cache_alloc_bulk"))
		return 0;
	while (done < nr) {
		uint32_t want = nr - done < QUIESCE_ROW ? (uint32_t)(nr - done) : QUIESCE_ROW;
		size_t some = (size_t)quiesce__sheaf_take_row(cache, ret_objects + done, want);

		if (!some)
			some = quiesce__slabs_take(cache, ret_objects + done, want);
		if (!some) {
			if (done)
				free_row(cache, ret_objects, done);
			return 0;
		}
		poison(cache, ret_objects + done, some, false);
		done += some;
	}
	return nr;
}

/* ---- freeing ---- */

void quiesce__kmem_cache_free_slow(struct kmem_cache *fast, void *object)
{
	if (!object)
		return;
	quiesce__init();
	if (!is_missing(fast, "kmem_cache_free"))
		free_row(quiesce__cache_of(fast), &object, 1);
}

void quiesce_kmem_cache_free_bulk(struct kmem_cache *fast, size_t nr, void **objects)
{
	quiesce__init();
	if (!nr)
		return;
	if (fast)
		free_row(quiesce__cache_of(fast), objects, nr);
	else
		quiesce__objects_free(objects, nr);
}

void quiesce_kfree(const void *object)
{
	if (object) {
		quiesce__init();
		quiesce__object_free((void *)(uintptr_t)object);
	}
}

/* Check what the sheaf does not. */
void quiesce__kmem_cache_free_debug(struct kmem_cache *fast, void *object)
{
	struct quiesce__cache *cache = quiesce__cache_of(fast);
	struct platform_location here;

	if (object && cache && !quiesce__slabs_own(cache, object))
		quiesce__misuse(QUIESCE_MISUSE_ARGUMENT, "kmem_cache_free() at %s of %p to the cache %s, which has no such object in use",
				platform_location(quiesce__caller(), &here), object, cache->name);
	else if (object && cache && quiesce__sheaf_has(cache, object))
		quiesce__misuse(QUIESCE_MISUSE_TWICE, "kmem_cache_free() at %s of %p to the cache %s, where it is free already",
				platform_location(quiesce__caller(), &here), object, cache->name);
	else
		quiesce__kmem_cache_free_slow(fast, object);
}

/* ---- making ---- */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Objects smaller than a line are aligned so that none is in two lines. */
static size_t line_align(size_t size)
{
	size_t align = QUIESCE_CACHELINE;

	while (size <= align / 2)
		align /= 2;
	return align;
}

static bool are_valid(size_t size, size_t align, unsigned int flags)
{
	return size && size <= QUIESCE_SLAB_SIZE_MAX && align <= QUIESCE_SLAB_ALIGN_MAX && !(align & (align - 1)) &&
	       !(flags & ~(SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU));
}

/* Objects of a slab, beside the map of the free ones where that is not in the slab's description. */
static uint32_t nr_of_slab(size_t stride)
{
	size_t nr = QUIESCE_SLAB_BYTES / stride;

	while (nr > 64 && nr * stride + (nr + 63) / 64 * 8 > QUIESCE_SLAB_BYTES)
		nr--;
	return (uint32_t)nr;
}

static uint64_t sheaf_limit(size_t stride)
{
	uint64_t limit = SHEAF_BYTES / stride;

	return limit < SHEAF_MIN ? SHEAF_MIN : limit > SHEAF_MAX ? SHEAF_MAX : limit;
}

static void set_shape(struct quiesce__cache *cache, size_t size, size_t align, unsigned int flags)
{
	if (flags & SLAB_HWCACHE_ALIGN && align < line_align(size))
		align = line_align(size);
	align = align < STRIDE_MIN ? STRIDE_MIN : align;
	cache->size = (uint32_t)size;
	cache->stride = (uint32_t)round_up(size, align);
	cache->nr = nr_of_slab(cache->stride);
	cache->reciprocal = (uint32_t)((((uint64_t)1 << 32) + cache->stride - 1) / cache->stride);
	cache->flags = flags;
	cache->fast.limit = sheaf_limit(cache->stride);
	cache->batch = (uint32_t)cache->fast.limit / 2;
	cache->poisons = platform_poisons() && !(flags & SLAB_TYPESAFE_BY_RCU);
}

static void list(struct quiesce__cache *cache)
{
	quiesce__lock(&caches.lock);
	cache->next = caches.all;
	cache->link = &caches.all;
	if (caches.all)
		caches.all->link = &cache->next;
	caches.all = cache;
	quiesce__unlock(&caches.lock);
}

static void unlist(struct quiesce__cache *cache)
{
	quiesce__lock(&caches.lock);
	quiesce_store_relaxed(cache->link, cache->next); /* Relaxed: under the lock; one store, so a fork finds a whole list (I4). */
	if (cache->next)
		quiesce_store_relaxed(&cache->next->link, cache->link); /* Relaxed: under the lock. */
	quiesce__unlock(&caches.lock);
}

/* The distance of the sheaves from the beginning of a page: heads of 64 caches that are used in turn are in 64 sets of the
 * first-level cache, instead of in one. */
static size_t colour(void)
{
	/* Relaxed: any numbers do, as long as they are different. */
	return quiesce_fetch_add_relaxed(&caches.nr_made, (uint32_t)1) % NR_COLOURS * QUIESCE_CACHELINE;
}

static struct quiesce__cache *make(void)
{
	struct quiesce__cache *cache;
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__heap_begin(self);
	cache = platform_lines_get(sizeof *cache);
	quiesce__heap_end(self);
	if (cache && !quiesce__percpu_pages_get(&cache->sheaves, colour())) {
		platform_lines_put(cache, sizeof *cache);
		return NULL;
	}
	return cache;
}

struct kmem_cache *quiesce_kmem_cache_create(uint32_t layout, const char *name, size_t size, size_t align, unsigned int flags,
					     void (*ctor)(void *object))
{
	struct quiesce__cache *cache;

	quiesce__init();
	quiesce__check_layout(layout);
	cache = are_valid(size, align, flags) ? make() : NULL;
	if (!cache) {
		errno = are_valid(size, align, flags) ? ENOMEM : EINVAL;
		return NULL;
	}
	set_shape(cache, size, align, flags);
	cache->ctor = ctor;
	strncpy(cache->name, name ? name : "?", sizeof cache->name - 1);
	quiesce__sheaves_open(cache);
	list(cache);
	return &cache->fast;
}

/* ---- shrinking and the end ---- */

/* Open the sheaves again; under caches.lock, or a drain of another thread would find them open (I2). */
static void reopen(struct quiesce__cache *cache)
{
	quiesce__lock(&caches.lock);
	quiesce__sheaves_open(cache);
	quiesce__unlock(&caches.lock);
}

/* Move all objects of the sheaves to their slabs, and leave the sheaves closed, or @open them. */
static void drain(struct quiesce__cache *cache, bool open)
{
	void *row[QUIESCE_ROW];
	struct quiesce__bad bad = { NULL, "" };
	struct quiesce__slab *dropped = NULL, **end = &dropped;
	size_t id = 0;
	uint32_t nr;

	quiesce__lock(&caches.lock);
	quiesce__sheaves_close(cache);
	while ((nr = quiesce__sheaves_drain(cache, &id, row, QUIESCE_ROW))) {
		*end = quiesce__slabs_put(cache, row, nr, &bad);
		while (*end)
			end = &(*end)->next;
	}
	if (open && !QUIESCE_MUTANT(slab_opened_late))
		quiesce__sheaves_open(cache);
	quiesce__unlock(&caches.lock);
	if (open && QUIESCE_MUTANT(slab_opened_late))
		quiesce__sheaves_open(cache);
	quiesce__slabs_release(dropped);
	report_bad(&bad);
}

int quiesce_kmem_cache_shrink(struct kmem_cache *fast)
{
	struct quiesce__cache *cache = quiesce__cache_of(fast);

	quiesce__init();
	if (is_missing(fast, "kmem_cache_shrink"))
		return 0;
	drain(cache, true);
	quiesce__slabs_release(quiesce__slabs_take_empty(cache));
	return 0;
}

static uint64_t nr_in_use(struct quiesce__cache *cache)
{
	uint64_t nr;

	quiesce__lock(&cache->lock);
	nr = (uint64_t)cache->nr_slabs * cache->nr - cache->nr_free;
	quiesce__unlock(&cache->lock);
	return nr;
}

/* Wait for objects that were retired.  Returns how many objects are in use then. */
static uint64_t await_retired(struct quiesce__cache *cache)
{
	quiesce_rcu_barrier();
	quiesce_hazptr_barrier();
	drain(cache, false);
	return nr_in_use(cache);
}

void quiesce_kmem_cache_destroy(struct kmem_cache *fast)
{
	struct quiesce__cache *cache = quiesce__cache_of(fast);
	uint64_t in_use;

	if (!cache)
		return;
	quiesce__init();
	drain(cache, false);
	in_use = nr_in_use(cache);
	if (in_use && quiesce__barrier_is_misuse("kmem_cache_destroy()", quiesce__caller())) {
		reopen(cache);
		return;
	}
	if (in_use)
		in_use = await_retired(cache);
	if (in_use) {
		reopen(cache);
		quiesce__misuse(QUIESCE_MISUSE_IN_USE, "kmem_cache_destroy() of the cache %s, %llu of whose objects are in use",
				cache->name, (unsigned long long)in_use);
		return;
	}
	unlist(cache);
	quiesce__slabs_release(quiesce__slabs_take_empty(cache));
	quiesce__percpu_pages_put(&cache->sheaves);
	platform_lines_put(cache, sizeof *cache);
}

/* ---- figures ---- */

size_t quiesce_kmem_cache_size(const struct kmem_cache *cache)
{
	return is_missing(cache, "kmem_cache_size") ? 0 : quiesce__cache_of(cache)->size;
}

static void get_stats(struct quiesce__cache *cache, struct kmem_cache_stats *s)
{
	uint64_t out;

	s->size = cache->stride;
	s->limit = cache->fast.limit;
	s->sheaved = quiesce__sheaves_count(cache);
	quiesce__lock(&cache->lock);
	s->slabs = cache->nr_slabs;
	s->free = cache->nr_free;
	quiesce__unlock(&cache->lock);
	s->bytes = s->slabs * QUIESCE_SLAB_BYTES;
	out = s->slabs * cache->nr - s->free;
	s->objects = out > s->sheaved ? out - s->sheaved : 0;
}

void quiesce_kmem_cache_get_stats(const struct kmem_cache *fast, struct kmem_cache_stats *ret_stats, size_t bytes)
{
	struct kmem_cache_stats s = { 0 };

	quiesce__init();
	if (!is_missing(fast, "kmem_cache_get_stats"))
		get_stats(quiesce__cache_of(fast), &s);
	memset(ret_stats, 0, bytes);
	memcpy(ret_stats, &s, bytes < sizeof s ? bytes : sizeof s);
}

/* ---- fork ---- */

void quiesce__caches_fork_prepare(void)
{
	quiesce__lock(&caches.lock);
	for (struct quiesce__cache *cache = caches.all; cache; cache = cache->next)
		quiesce__lock(&cache->lock);
	caches.held_by_fork = true;
}

void quiesce__caches_fork_parent(void)
{
	caches.held_by_fork = false;
	for (struct quiesce__cache *cache = caches.all; cache; cache = cache->next)
		quiesce__unlock(&cache->lock);
	quiesce__unlock(&caches.lock);
}

void quiesce__caches_fork_child(void)
{
	quiesce__lock_reset(&caches.lock, false);
	for (struct quiesce__cache **at = &caches.all, *cache; (cache = *at); at = &cache->next) {
		if (!QUIESCE_MUTANT(slab_link_kept))
			cache->link = at; /* I4 */
		/* Relaxed: the child has one thread. */
		if (!caches.held_by_fork && quiesce_load_relaxed(&cache->lock.word))
			quiesce__slabs_rebuild(cache);
		quiesce__lock_reset(&cache->lock, false);
		quiesce__sheaves_fork_child(cache);
	}
	caches.held_by_fork = false;
}
