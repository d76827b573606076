/* SPDX-License-Identifier: MIT */
/* caches.h - a cache is made, grows, shrinks and ends; without memory, as far as that goes. */
#ifndef CACHES_H
#define CACHES_H

#include <quiesce/slab.h>

static void caches_use(void)
{
	static void *objects[400]; /* in so many slabs that the cache returns some by itself */
	struct kmem_cache *cache = kmem_cache_create("filtered", 4096, 0, 0, NULL);
	size_t nr = 0;

	while (cache && nr < 400 && (objects[nr] = kmem_cache_alloc(cache)))
		nr++;
	while (nr)
		kmem_cache_free(cache, objects[--nr]);
	if (cache)
		kmem_cache_shrink(cache);
	kmem_cache_destroy(cache);
}

#endif
