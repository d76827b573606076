/* SPDX-License-Identifier: MIT */
/* slabs.c - the slabs of a cache: which of their objects are free, and when their memory goes back.
 *
 *   region -> made, constructed -> empty <-> partial <-> full (in no list)
 *     ^                              |
 *     +---- (grace period) ----------+   surplus
 *
 * I1. A slab has a bit for each object that is free in it: so a free object is not written, keeps what the constructor made of
 *     it, and may be poisoned.  The lowest free object is taken first.
 * I2. Lists, bits and numbers change under the cache's lock, which is held for a row of objects, and never over the constructor, a
 *     report or call_rcu(), nor over a system call.
 * I3. An empty slab is surplus beyond KEEP and a fraction of the cache's slabs, so the memory of an idle process goes down with its
 *     objects.  The fraction falls with the cache: a load that goes and comes again has most of its memory returned and faulted in.
 * I4. The memory of a type-safe slab is returned a grace period after its last object was freed: a reader that had found
 *     the object before has left its section by then.  It is not used again meanwhile.
 * I5. A thread that puts the last object in use may meet the destruction of the cache: it loads nothing of the cache after it
 *     has dropped the lock.  The description of a slab has the flags on which its release depends.
 *
 * 256 CPUs that allocate as much as they free stay in their sheaves, and load nothing that is written here.  CPUs that only
 * allocate, or only free, take the lock once for half a sheaf, some 4 ns for each object of it.
 */
#include "slab.h"

#include <string.h>

#define KEEP 8u
#define KEEP_SHIFT 3 /* KEEP grows by an eighth of the slabs */
#define MAP_BITS 64u

static uint32_t map_words(const struct quiesce__cache *cache)
{
	return (cache->nr + MAP_BITS - 1) / MAP_BITS;
}

/* ---- lists; under the lock ---- */

static void link_slab(struct quiesce__slab **list, struct quiesce__slab *slab)
{
	slab->next = *list;
	slab->at = list;
	if (*list)
		(*list)->at = &slab->next;
	*list = slab;
}

static void unlink_slab(struct quiesce__slab *slab)
{
	*slab->at = slab->next;
	if (slab->next)
		slab->next->at = slab->at;
}

static void unlink_empty(struct quiesce__cache *cache, struct quiesce__slab *slab)
{
	unlink_slab(slab);
	cache->nr_empty--;
}

/* Remove an empty slab from the cache. */
static void drop(struct quiesce__cache *cache, struct quiesce__slab *slab, struct quiesce__slab **dropped)
{
	quiesce_store_relaxed(&slab->cache, NULL); /* Relaxed: no object of it is in use. */
	slab->flags = cache->flags;
	cache->nr_slabs--;
	cache->nr_free -= cache->nr;
	slab->next = *dropped;
	*dropped = slab;
}

static void add_empty(struct quiesce__cache *cache, struct quiesce__slab *slab)
{
	link_slab(&cache->empty, slab);
	cache->nr_empty++;
}

/* Remove surplus slabs: two for each that becomes empty, as fewer may stay when the cache has fewer. */
static void drop_surplus(struct quiesce__cache *cache, struct quiesce__slab **dropped)
{
	for (int i = 0; i < 2 && cache->nr_empty > KEEP + (cache->nr_slabs >> KEEP_SHIFT); i++) {
		struct quiesce__slab *slab = cache->empty;

		unlink_empty(cache, slab);
		drop(cache, slab, dropped);
	}
}

/* ---- taking ---- */

static uint32_t take_of_slab(struct quiesce__slab *slab, const struct quiesce__cache *cache, void **ret_row, uint32_t nr)
{
	char *memory = quiesce__slab_memory(slab);
	uint32_t taken = 0;

	while (taken < nr && slab->nr_free) {
		uint64_t *word = &slab->map[slab->first];
		uint32_t i;

		if (!*word) {
			slab->first++;
			continue;
		}
		i = slab->first * MAP_BITS + (uint32_t)__builtin_ctzll(*word);
		*word &= *word - 1;
		slab->nr_free--;
		ret_row[taken++] = memory + (size_t)i * cache->stride;
	}
	return taken;
}

static uint32_t take_locked(struct quiesce__cache *cache, void **ret_row, uint32_t nr)
{
	uint32_t taken = 0;

	while (taken < nr) {
		struct quiesce__slab *slab = cache->partial;

		if (!slab && (slab = cache->empty)) {
			unlink_empty(cache, slab);
			link_slab(&cache->partial, slab);
		}
		if (!slab)
			break;
		taken += take_of_slab(slab, cache, ret_row + taken, nr - taken);
		if (!slab->nr_free)
			unlink_slab(slab);
	}
	cache->nr_free -= taken;
	return taken;
}

/* Memory that was locked has its former content: so the rest of the last word is written, too. */
static void set_all(struct quiesce__slab *slab, uint32_t nr)
{
	uint32_t words = nr / MAP_BITS;

	memset(slab->map, 0xff, words * sizeof *slab->map);
	if (nr % MAP_BITS)
		slab->map[words] = (1ull << nr % MAP_BITS) - 1;
}

static uint64_t *map_of(const struct quiesce__cache *cache, struct quiesce__slab *slab, char *memory)
{
	if (cache->nr <= MAP_BITS)
		return &slab->word;
	return (uint64_t *)(void *)(memory + QUIESCE_SLAB_BYTES - map_words(cache) * sizeof(uint64_t));
}

/* Make a slab, whose objects are all free. */
static struct quiesce__slab *make(struct quiesce__cache *cache)
{
	struct quiesce__slab *slab = quiesce__region_get();
	char *memory;

	if (!slab)
		return NULL;
	memory = quiesce__slab_memory(slab);
	slab->map = map_of(cache, slab, memory);
	set_all(slab, cache->nr);
	slab->nr_free = cache->nr;
	slab->first = 0;
	for (uint32_t i = 0; cache->ctor && i < cache->nr; i++)
		cache->ctor(memory + (size_t)i * cache->stride);
	if (cache->poisons)
		platform_poison(memory, (size_t)cache->nr * cache->stride, true);
	return slab;
}

static uint32_t add_and_take(struct quiesce__cache *cache, struct quiesce__slab *slab, void **ret_row, uint32_t nr)
{
	uint32_t taken;

	quiesce__lock(&cache->lock);
	quiesce_store_relaxed(&slab->cache, cache); /* Relaxed: none of its objects was allocated yet. */
	cache->nr_slabs++;
	cache->nr_free += cache->nr;
	add_empty(cache, slab);
	taken = take_locked(cache, ret_row, nr);
	quiesce__unlock(&cache->lock);
	return taken;
}

uint32_t quiesce__slabs_take(struct quiesce__cache *cache, void **ret_row, uint32_t nr)
{
	struct quiesce__slab *slab;
	uint32_t taken;

	quiesce__lock(&cache->lock);
	taken = take_locked(cache, ret_row, nr);
	quiesce__unlock(&cache->lock);
	if (taken)
		return taken;
	slab = make(cache);
	return slab ? add_and_take(cache, slab, ret_row, nr) : 0;
}

/* ---- returning ---- */

/* True if @object is one of @slab, and not free there; *@ret_index: its number. */
static inline bool is_in_use(const struct quiesce__cache *cache, const struct quiesce__slab *slab, const void *object, uint32_t *ret_index)
{
	uint32_t offset = (uint32_t)((const char *)object - quiesce__slab_memory(slab));
	uint32_t i = (uint32_t)((uint64_t)offset * cache->reciprocal >> 32);

	*ret_index = i;
	return i < cache->nr && i * cache->stride == offset && !(slab->map[i / MAP_BITS] >> i % MAP_BITS & 1);
}

/* The slab of @object; NULL: it is in none of @cache. */
static inline struct quiesce__slab *slab_in(const struct quiesce__cache *cache, const void *object)
{
	struct quiesce__slab *slab = quiesce__object_is_cached(object) ? quiesce__slab_of(object) : NULL;

	/* Relaxed: it was written before the object was allocated. */
	return slab && quiesce_load_relaxed(&slab->cache) == cache ? slab : NULL;
}

static bool put_locked(struct quiesce__cache *cache, void *object, struct quiesce__slab **dropped)
{
	struct quiesce__slab *slab = slab_in(cache, object);
	uint32_t i;

	if (quiesce_unlikely(!slab || !is_in_use(cache, slab, object, &i)))
		return false;
	slab->map[i / MAP_BITS] |= 1ull << i % MAP_BITS;
	if (i / MAP_BITS < slab->first)
		slab->first = i / MAP_BITS;
	if (quiesce_unlikely(!slab->nr_free++))
		link_slab(&cache->partial, slab);
	cache->nr_free++;
	if (quiesce_unlikely(slab->nr_free == cache->nr)) {
		unlink_slab(slab);
		add_empty(cache, slab);
		drop_surplus(cache, dropped);
	}
	return true;
}

static QUIESCE_COLD void set_bad(struct quiesce__bad *bad, const struct quiesce__cache *cache, const void *object)
{
	bad->object = object;
	memcpy(bad->name, cache->name, sizeof bad->name);
}

struct quiesce__slab *quiesce__slabs_put(struct quiesce__cache *cache, void *const *row, uint32_t nr, struct quiesce__bad *bad)
{
	struct quiesce__slab *dropped = NULL;

	quiesce__lock(&cache->lock);
	for (uint32_t i = 0; i < nr; i++)
		if (quiesce_unlikely(!put_locked(cache, row[i], &dropped)))
			set_bad(bad, cache, row[i]);
	quiesce__unlock(&cache->lock);
	return dropped;
}

struct quiesce__slab *quiesce__slabs_take_empty(struct quiesce__cache *cache)
{
	struct quiesce__slab *dropped = NULL, *slab;

	quiesce__lock(&cache->lock);
	while ((slab = cache->empty)) {
		unlink_empty(cache, slab);
		drop(cache, slab, &dropped);
	}
	quiesce__unlock(&cache->lock);
	return dropped;
}

static void release_after_gp(struct rcu_head *head)
{
	quiesce__region_put((struct quiesce__slab *)(void *)((char *)head - offsetof(struct quiesce__slab, rcu)));
}

void quiesce__slabs_release(struct quiesce__slab *list)
{
	while (list) {
		struct quiesce__slab *slab = list;

		list = slab->next;
		platform_poison(quiesce__slab_memory(slab), QUIESCE_SLAB_BYTES, false);
		if (slab->flags & SLAB_TYPESAFE_BY_RCU && !QUIESCE_MUTANT(slab_released_now))
			quiesce_call_rcu(&slab->rcu, release_after_gp, QUIESCE_SLAB_BYTES); /* I4 */
		else
			quiesce__region_put(slab);
	}
}

/* ---- questions, and forks ---- */

bool quiesce__slabs_own(struct quiesce__cache *cache, const void *object)
{
	struct quiesce__slab *slab;
	uint32_t i;
	bool own;

	quiesce__lock(&cache->lock);
	slab = slab_in(cache, object);
	own = slab && is_in_use(cache, slab, object, &i);
	quiesce__unlock(&cache->lock);
	return own;
}

static uint32_t count_bits(const struct quiesce__slab *slab, uint32_t words)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < words; i++)
		nr += (uint32_t)__builtin_popcountll(slab->map[i]);
	return nr;
}

void quiesce__slabs_rebuild(struct quiesce__cache *cache)
{
	struct quiesce__slab *slab;

	cache->partial = cache->empty = NULL;
	cache->nr_slabs = cache->nr_empty = 0;
	cache->nr_free = 0;
	for (size_t i = 0; (slab = quiesce__region_slab(i)); i++) {
		if (slab->cache != cache)
			continue;
		slab->nr_free = count_bits(slab, map_words(cache));
		slab->first = 0;
		cache->nr_slabs++;
		cache->nr_free += slab->nr_free;
		if (slab->nr_free == cache->nr)
			add_empty(cache, slab);
		else if (slab->nr_free)
			link_slab(&cache->partial, slab);
	}
}
