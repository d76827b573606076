/* SPDX-License-Identifier: MIT */
/* calls_slab.c - object caches, each made and destroyed by the call. */
#include "world.h"

#include <quiesce/slab.h>

#define NR 300

struct held {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	int value;
};

static struct kmem_cache *cache_new(struct world *w, unsigned int flags)
{
	struct kmem_cache *cache = KMEM_CACHE(held, flags);

	if (!cache && !w->memory_fails)
		abort();
	return cache;
}

/* True if an allocation keeps its promise: it may fail without memory only. */
static bool promised(const struct world *w, const void *object)
{
	return object || w->memory_fails;
}

static bool nothing_left(struct kmem_cache *cache)
{
	struct kmem_cache_stats s;

	kmem_cache_get_stats(cache, &s);
	return s.objects == 0;
}

static bool call_slab_use(struct world *w)
{
	struct kmem_cache *cache = cache_new(w, SLAB_TYPESAFE_BY_RCU);
	struct held *h[NR];
	bool ok = true;

	if (!cache)
		return w->memory_fails;
	for (int i = 0; i < NR; i++) {
		h[i] = i & 1 ? kmem_cache_zalloc(cache) : kmem_cache_alloc(cache);
		ok = ok && promised(w, h[i]) && (!h[i] || !(i & 1) || !h[i]->value);
		if (h[i])
			h[i]->value = i;
	}
	for (int i = 0; i < NR; i++) {
		ok = ok && (!h[i] || h[i]->value == i);
		if (i & 2)
			kfree(h[i]);
		else
			kmem_cache_free(cache, h[i]);
	}
	ok = ok && nothing_left(cache) && kmem_cache_size(cache) == sizeof *h[0];
	kmem_cache_destroy(cache);
	return ok;
}

static bool call_slab_rows(struct world *w)
{
	struct kmem_cache *cache = cache_new(w, 0);
	void *row[NR];
	size_t nr;
	bool ok;

	if (!cache)
		return w->memory_fails;
	nr = kmem_cache_alloc_bulk(cache, NR, row);
	ok = nr == NR || (!nr && w->memory_fails);
	kmem_cache_free_bulk(cache, nr, row);
	ok = ok && kmem_cache_shrink(cache) == 0 && nothing_left(cache);
	kmem_cache_destroy(cache);
	return ok;
}

/* Objects are retired, so the end of the cache waits for them. */
static bool call_slab_end(struct world *w)
{
	struct kmem_cache *cache = cache_new(w, 0);
	struct held *a, *b;

	if (!cache)
		return w->memory_fails;
	a = kmem_cache_alloc(cache);
	b = kmem_cache_alloc(cache);
	if (a)
		kfree_rcu(a, rcu);
	if (b)
		kfree_hazptr(b, hazptr);
	kmem_cache_destroy(cache);
	return promised(w, a) && promised(w, b);
}

enum { ANYWHERE = IN_READER | IN_CALLBACK | AT_THREAD_END };

const struct call calls_slab[] = {
	CALL(slab_use, "KMEM_CACHE kmem_cache_create kmem_cache_alloc kmem_cache_zalloc kmem_cache_free kmem_cache_size"
	     " kmem_cache_get_stats kfree", ANYWHERE | MAY_FAIL),
	CALL(slab_rows, "kmem_cache_alloc_bulk kmem_cache_free_bulk kmem_cache_shrink", ANYWHERE | MAY_FAIL),
	CALL(slab_end, "kmem_cache_destroy", WAITS | FOR_CALLBACKS | NOT_IN_READER | MAY_FAIL),
	END_OF_CALLS,
};
