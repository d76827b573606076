/* SPDX-License-Identifier: MIT */
/* region.c - memory for slabs: one range of addresses, divided into blocks of a slab's size.
 *
 * I1. The range begins when the first cache is made, and grows at its end (runtime/arena.h), up to MAX_BYTES.  So an address is
 *     an object of a cache exactly if it is in the range, and its slab's index is the distance from the start.
 * I2. The descriptions of slabs are in another arena: an object that is overrun, and a slab's memory that goes back to the
 *     system, do not touch them, and those of many slabs share a page.
 * I3. A slab without memory is in the list of free ones, and is used again before the range grows.  Each change of the list or of the
 *     number of slabs is one store, after the others: so the child of a fork at any moment has lost one slab at most.
 * I4. A caller has its object from an allocation, which followed the growth of the range; so its size need not be the newest.
 *
 * RU3  see object.h
 */
#include "slab.h"

#include "runtime/arena.h"

#include <errno.h>

#if defined(QUIESCE_SIM)
#define MAX_BYTES (QUIESCE_ARENA_INCREMENT * 4)
#define SURE_BYTES MAX_BYTES
#else
#define MAX_BYTES ((size_t)64 << 30)
#define SURE_BYTES QUIESCE_ARENA_INCREMENT
#endif
#define MAX_SLABS (MAX_BYTES / QUIESCE_SLAB_BYTES)

/* Arenas become usable in increments, each of which has whole slabs, and whole descriptions. */
_Static_assert(QUIESCE_ARENA_INCREMENT % QUIESCE_SLAB_BYTES == 0, "an increment has whole slabs");
_Static_assert(QUIESCE_ARENA_INCREMENT % sizeof(struct quiesce__slab) == 0, "an increment has whole descriptions");

static struct {
	struct quiesce__lock lock;
	bool ready;
	struct quiesce__arena memory, descriptions;
	struct quiesce__slab *free; /* slabs without memory */
	size_t nr;                  /* slabs that were ever used */
	size_t in_use;
} region;
struct quiesce__slab *quiesce__slabs; /* array in @descriptions */

struct quiesce__slab *quiesce__region_slab(size_t i)
{
	return i < region.nr ? &quiesce__slabs[i] : NULL;
}

uint64_t quiesce__region_bytes(void)
{
	return quiesce_load_relaxed(&region.in_use) * QUIESCE_SLAB_BYTES; /* Relaxed: a statistic. */
}

/* Reserve addresses, at the first slab.  If there are none now, the next attempt may find some. */
static bool begin(void)
{
	if (region.ready)
		return true;
	if (!region.descriptions.start) {
		if (!quiesce__arena_init(&region.descriptions, QUIESCE_ARENA_INCREMENT, MAX_SLABS * sizeof(struct quiesce__slab)))
			return false;
		quiesce__slabs = (struct quiesce__slab *)(void *)region.descriptions.start;
	}
	if (!quiesce__arena_init(&region.memory, SURE_BYTES, MAX_BYTES))
		return false;
	quiesce__object_range.free = quiesce__cached_objects_free;
	quiesce_store_relaxed(&quiesce__object_range.start, (uintptr_t)region.memory.start); /* Relaxed: RU3 follows. */
	region.ready = true;
	return true;
}

static bool is_usable(struct quiesce__arena *arena, size_t offset)
{
	return offset % QUIESCE_ARENA_INCREMENT || quiesce__arena_extend(arena, offset);
}

/* Take the next slab of the range. */
static struct quiesce__slab *extend(void)
{
	size_t i = region.nr;

	if (!begin() || i >= MAX_SLABS || !is_usable(&region.descriptions, i * sizeof(struct quiesce__slab)) ||
	    !is_usable(&region.memory, i << QUIESCE_SLAB_SHIFT))
		return NULL;
	/* RU3: release, pairs with RU3 in quiesce__object_is_cached() */
	quiesce_store_release(RU3, &quiesce__object_range.bytes, (i + 1) << QUIESCE_SLAB_SHIFT);
	region.nr = i + 1;
	return &quiesce__slabs[i];
}

struct quiesce__slab *quiesce__region_get(void)
{
	struct quiesce__slab *slab;

	quiesce__lock(&region.lock);
	slab = region.free;
	if (slab)
		region.free = slab->next;
	else
		slab = extend();
	if (slab)
		quiesce_store_relaxed(&region.in_use, region.in_use + 1); /* Relaxed: a statistic. */
	quiesce__unlock(&region.lock);
	if (slab)
		platform_objects_begin(quiesce__slab_memory(slab), QUIESCE_SLAB_BYTES);
	return slab;
}

void quiesce__region_put(struct quiesce__slab *slab)
{
	platform_objects_end(quiesce__slab_memory(slab), QUIESCE_SLAB_BYTES);
	quiesce__lock(&region.lock);
	quiesce_store_relaxed(&region.in_use, region.in_use - 1); /* Relaxed: a statistic. */
	slab->next = region.free;
	region.free = slab;
	quiesce__unlock(&region.lock);
}

void quiesce__region_fork_prepare(void)
{
	quiesce__lock(&region.lock);
}

void quiesce__region_fork_parent(void)
{
	quiesce__unlock(&region.lock);
}

void quiesce__region_fork_child(void)
{
	quiesce__lock_reset(&region.lock, false);
	quiesce__arena_fork_child(&region.memory);
	quiesce__arena_fork_child(&region.descriptions);
}
