/* SPDX-License-Identifier: MIT */
/* oom_slab.c - for oom.py: a cache that cannot be made, or cannot grow, says so, loses nothing, and works when there is memory. */
#include <quiesce/slab.h>

#include <errno.h>
#include <unistd.h>

#define NR 3000 /* objects, of several slabs */

struct thing {
	struct rcu_head rcu;
	char rest[200];
};

static void *objects[NR];
static int ok = 1;

static void must(int condition)
{
	ok &= condition != 0;
}

static uint64_t in_use(const struct kmem_cache *cache)
{
	struct kmem_cache_stats s;

	kmem_cache_get_stats(cache, &s);
	return s.objects;
}

static void fill_and_empty(struct kmem_cache *cache)
{
	uint64_t nr = 0;

	for (int i = 0; i < NR; i++) {
		objects[i] = kmem_cache_alloc(cache);
		nr += objects[i] != NULL;
	}
	must(in_use(cache) == nr);
	for (int i = 0; i < NR; i++) {
		if (i % 2 && objects[i])
			kfree_rcu((struct thing *)objects[i], rcu);
		else
			kmem_cache_free(cache, objects[i]);
	}
	rcu_barrier();
	must(in_use(cache) == 0);
	nr = kmem_cache_alloc_bulk(cache, NR, objects);
	must(nr == 0 || nr == NR);
	must(in_use(cache) == nr);
	kmem_cache_free_bulk(cache, nr, objects);
	must(in_use(cache) == 0);
}

int main(void)
{
	alarm(25);
	for (unsigned int flags = 0; flags <= SLAB_TYPESAFE_BY_RCU; flags += SLAB_TYPESAFE_BY_RCU) {
		struct kmem_cache *cache = KMEM_CACHE(thing, flags);

		if (!cache) {
			must(errno == ENOMEM);
			continue;
		}
		fill_and_empty(cache);
		kmem_cache_shrink(cache);
		fill_and_empty(cache);
		kmem_cache_destroy(cache);
	}
	return !ok;
}
