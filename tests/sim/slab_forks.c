/* SPDX-License-Identifier: MIT */
/* slab_forks.c - scenarios: the child of a fork has whole caches, whatever the parent's threads were doing to them. */
#include "world.h"

#include "runtime/core.h"
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

/* ---- the list of caches ---- */

#define NR_CACHES 4

static struct kmem_cache *made[NR_CACHES];
static uint32_t forked;

static void make(int i)
{
	struct kmem_cache *cache = kmem_cache_create("one of some", 64, 0, 0, NULL);

	sim_assert(cache);
	quiesce_store_relaxed(&made[i], cache);
}

static void end(int i)
{
	struct kmem_cache *cache = quiesce_load_relaxed(&made[i]);

	quiesce_store_relaxed(&made[i], NULL);
	kmem_cache_destroy(cache);
}

/* A cache of this thread comes and goes before and between those that stay. */
static void makes_and_ends(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		end(NR_CACHES - 1 - i % 2);
		make(NR_CACHES - 1 - i % 2);
	}
}

/* The child ends all caches that it knows of: then none is in the list, whose memory the library would load at the next fork. */
static void forks(void *announced)
{
	world_stay(60);
	if (announced)
		quiesce__fork_prepare();
	sim_fork();
	if (announced)
		quiesce__fork_child();
	for (int i = 0; i < NR_CACHES; i++)
		if (quiesce_load_relaxed(&made[i]))
			end(i);
	make(0);
	quiesce__fork_prepare();
	quiesce__fork_parent();
	kmem_cache_free(made[0], kmem_cache_alloc(made[0]));
	end(0);
	quiesce_store_relaxed(&forked, 1);
	sim_saw();
}

static void begin_forks(void *announced)
{
	world_configure(ANY);
	quiesce__init();
	for (int i = 0; i < NR_CACHES; i++)
		make(i);
	sim_spawn(makes_and_ends, NULL, "maker");
	sim_spawn(forks, announced, "forker");
}

static void setup_fork(void)
{
	begin_forks(&forked);
}

static void setup_fork_unannounced(void)
{
	begin_forks(NULL);
}

static void finish_fork(void)
{
	sim_assert(forked);
}

extern const struct sim_scenario slab_fork_scenarios[];
const struct sim_scenario slab_fork_scenarios[] = {
	{ "rebuilt", "the lists of a cache are made anew from its slabs", setup_rebuilt, NULL, "a free object" },
	{ "fork", "caches are made and destroyed when the process forks", setup_fork, finish_fork, "a child that has ended" },
	{ "fork_unannounced", "... by a bare system call", setup_fork_unannounced, finish_fork, "a child that has ended" },
	{ NULL },
};
