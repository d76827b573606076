/* SPDX-License-Identifier: MIT */
/* sizes.c - the caches of C++'s classes: one for each size, shared by the process.
 *
 * Classes of the same size share a cache.  So the code of a class finds the same cache in each shared object, of which each may
 * have a copy of the class' variables, and an object may be freed in another one than that which allocated it.
 *
 * I1. A slab begins at a multiple of its size, so objects whose distance is a multiple of a power of two are aligned to it:
 *     the size, rounded up to the alignment, determines the cache.
 * I2. A word goes from NULL to a cache, once, and the cache is never destroyed: objects may live as long as the process.
 *
 * RU3  cache made, then entered | entry loaded, then the cache used
 */
#include "slab.h"

#include <stdio.h>

static struct kmem_cache *of_size[QUIESCE_SLAB_SIZE_MAX / 8 + 1];

static struct kmem_cache *enter(struct kmem_cache **entry, struct kmem_cache *fresh)
{
	struct kmem_cache *found = NULL;

	/* RU3: full, pairs with RU3 in quiesce__kmem_cache_of_size() */
	if (quiesce_cmpxchg(RU3, entry, &found, fresh))
		return fresh;
	quiesce_kmem_cache_destroy(fresh);
	return found;
}

struct kmem_cache *quiesce__kmem_cache_of_size(uint32_t layout, size_t size, size_t align)
{
	size_t stride = (size + 7) & ~(size_t)7, natural = stride & -stride;
	struct kmem_cache **entry, *cache;
	char name[24];

	if (align > natural || stride > QUIESCE_SLAB_SIZE_MAX)
		return NULL;
	entry = &of_size[stride / 8];
	cache = quiesce_load_acquire(RU3, entry); /* RU3: acquire, pairs with RU3 in enter() */
	if (cache)
		return cache;
	snprintf(name, sizeof name, "C++ %zu", stride);
	if (natural > QUIESCE_SLAB_ALIGN_MAX)
		natural = QUIESCE_SLAB_ALIGN_MAX;
	cache = quiesce_kmem_cache_create(layout, name, stride, natural, 0, NULL);
	return cache ? enter(entry, cache) : NULL;
}
