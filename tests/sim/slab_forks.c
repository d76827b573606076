/* SPDX-License-Identifier: MIT */
/* slab_forks.c - scenarios: the child of a fork has whole caches, whatever the parent's threads were doing to them. */
#include "world.h"

#include "slab/slab.h"

#include <quiesce/slab.h>

/* ---- lists and numbers made anew ---- */

#define NR_REBUILT 150 /* objects, of two slabs; a map of 102 bits ends in the middle of a word */

static void counts_again(void *unused)
{
	struct kmem_cache *filler = kmem_cache_create("filler", 1024, 0, 0, NULL), *fast = kmem_cache_create("sim", 40, 0, 0, NULL);
	struct quiesce__cache *cache = quiesce__cache_of(fast);
	void *object[NR_REBUILT];
	uint32_t nr_slabs, nr_empty;
	uint64_t nr_free;

	(void)unused;
	sim_assert(cache && cache->nr > 64 && cache->nr % 64);
	/* Slabs get memory that had other objects. */
	sim_assert(kmem_cache_alloc_bulk(filler, 16, object) == 16);
	kmem_cache_free_bulk(filler, 16, object);
	kmem_cache_shrink(filler);
	sim_assert(kmem_cache_alloc_bulk(fast, NR_REBUILT, object) == NR_REBUILT);
	for (uint32_t i = 0; i < NR_REBUILT; i += 1 + sim_random(3)) {
		kmem_cache_free(fast, object[i]);
		sim_saw();
	}
	nr_slabs = cache->nr_slabs;
	nr_empty = cache->nr_empty;
	nr_free = cache->nr_free;
	quiesce__slabs_rebuild(cache);
	if (cache->nr_slabs != nr_slabs || cache->nr_empty != nr_empty || cache->nr_free != nr_free)
		sim_fail("%u slabs, %u of them empty, and %llu free objects were %u, %u and %llu", cache->nr_slabs, cache->nr_empty,
			 (unsigned long long)cache->nr_free, nr_slabs, nr_empty, (unsigned long long)nr_free);
}

static void setup_rebuilt(void)
{
	world_configure(ANY);
	quiesce__init();
	sim_spawn(counts_again, NULL, "child");
}

extern const struct sim_scenario slab_fork_scenarios[];
const struct sim_scenario slab_fork_scenarios[] = {
	{ "rebuilt", "the lists of a cache are made anew from its slabs", setup_rebuilt, NULL, "a free object" },
	{ NULL },
};
