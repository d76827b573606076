/* SPDX-License-Identifier: MIT */
/* slab_nulls.c - scenarios: lookups in lists of type-safe objects, which are freed and used again at once.
 *
 * Entries come and go by the pattern of rculist_nulls.h.  The last reference frees the entry to its cache, also where it is a
 * reader's.  Meanwhile slabs without an entry are given back, and objects of another cache may get their memory.
 */
#include "world.h"

#include "runtime/core.h"
#include "runtime/lock.h"

#include <quiesce/ds/rculist_nulls.h>
#include <quiesce/rcu.h>
#include <quiesce/slab.h>

#define NR_CHAINS 2
#define GOOD 0x600dull
#define OTHER 0x07e2ull

struct entry {
	uint64_t good;       /* what the constructor made of it: never anything else */
	uint64_t refs;       /* 0 from the constructor, and whenever it is free */
	uint64_t key;
	struct hlist_nulls_node node;
	char rest[4096 - 40]; /* a slab has one, and is given back when it is freed */
};

static struct kmem_cache *entries, *others;
static struct hlist_nulls_head chain[NR_CHAINS];
static struct quiesce__lock updaters_lock;
static struct entry *always; /* stays in chain 0 */
static uint32_t nr_kept;

static void construct(void *object)
{
	struct entry *e = object;

	quiesce_store_relaxed(&e->good, GOOD);
	quiesce_store_relaxed(&e->refs, 0);
}

static uint64_t key_of(const struct entry *e)
{
	return quiesce_load_relaxed(&e->key); /* Relaxed: compared again under the reference. */
}

static bool is_of_type(const struct entry *e)
{
	bool is = quiesce_load_relaxed(&e->good) == GOOD;

	if (!is)
		sim_fail("a reader is at memory that is no entry any more");
	return is;
}

static bool tryget(struct entry *e)
{
	uint64_t refs = quiesce_load_relaxed(&e->refs); /* Relaxed: the exchange decides. */

	while (refs)
		if (quiesce_cmpxchg(RU3, &e->refs, &refs, refs + 1))
			return true;
	return false;
}

static void put(struct entry *e)
{
	if (quiesce_fetch_add(RU3, &e->refs, (uint64_t)-1) == 1)
		kmem_cache_free(entries, e);
}

static struct entry *enter(uint64_t key)
{
	struct entry *e = kmem_cache_alloc(entries);

	sim_assert(e && quiesce_load_relaxed(&e->refs) == 0);
	quiesce_store_relaxed(&e->key, key); /* Relaxed: the reference follows. */
	quiesce_store_release(RU3, &e->refs, 1);
	quiesce__lock(&updaters_lock);
	hlist_nulls_add_head_rcu(&e->node, &chain[key % NR_CHAINS]);
	quiesce__unlock(&updaters_lock);
	return e;
}

static void leave(struct entry *e)
{
	quiesce__lock(&updaters_lock);
	hlist_nulls_del_rcu(&e->node);
	quiesce__unlock(&updaters_lock);
	put(e);
}

/* ---- readers ---- */

static struct entry *find_once(uint64_t key, bool *again)
{
	struct hlist_nulls_node *pos;
	struct entry *e;

	*again = false;
	hlist_nulls_for_each_entry_rcu(e, pos, &chain[key % NR_CHAINS], node) {
		world_stay(4);
		if (!is_of_type(e))
			return NULL;
		if (key_of(e) != key)
			continue;
		*again = true;
		if (!tryget(e))
			return NULL;
		if (key_of(e) == key)
			return e;
		sim_saw();
		put(e);
		return NULL;
	}
	*again = hlist_nulls_strayed(pos, key % NR_CHAINS);
	return NULL;
}

static struct entry *find(uint64_t key)
{
	struct entry *e;
	bool again;

	rcu_read_lock();
	while (!(e = find_once(key, &again)) && again)
		platform_yield();
	rcu_read_unlock();
	return e;
}

static void reader(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t key = i == 2 ? 0 : 1 + sim_random(2);
		struct entry *e = find(key);

		if (!key)
			sim_assert(e == always);
		if (!e)
			continue;
		world_stay(3);
		sim_assert(key_of(e) == key);
		put(e);
	}
}

/* ---- updaters ---- */

/* An updater often gets the entry again that it freed, for the other key and the other chain. */
static void updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct entry *e = enter(1 + sim_random(2));

		world_stay(3);
		leave(e);
	}
	world_add(&nr_kept);
}

/* Give the slab of an entry back as soon as it is free, and use its memory for an object of another type. */
static void renter(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		struct entry *e = enter(1), *o;

		world_stay(6);
		leave(e);
		kmem_cache_shrink(entries);
		o = kmem_cache_alloc(others);
		sim_assert(o);
		quiesce_store_relaxed(&o->good, OTHER);
		world_stay(4);
		kmem_cache_free(others, o);
		kmem_cache_shrink(others);
	}
}

static void begin(enum world_mode mode)
{
	world_configure(mode);
	quiesce__init();
	for (unsigned long i = 0; i < NR_CHAINS; i++)
		INIT_HLIST_NULLS_HEAD(&chain[i], i);
	entries = kmem_cache_create("entries", sizeof(struct entry), 64, SLAB_TYPESAFE_BY_RCU, construct);
	others = kmem_cache_create("others", sizeof(struct entry), 64, 0, NULL);
	sim_assert(entries && others);
	always = enter(0);
}

static void setup_lookups(void)
{
	begin(ANY);
	spawn_each(driver_readers, reader, "reader");
	spawn_each(2, updater, "updater");
}

static void setup_rented(void)
{
	begin(ANY);
	spawn_each(driver_readers, reader, "reader");
	sim_spawn(updater, NULL, "updater");
	sim_spawn(renter, NULL, "renter");
}

static void finish(void)
{
	struct kmem_cache_stats s;

	leave(always);
	kmem_cache_get_stats(entries, &s);
	if (s.objects)
		sim_fail("%llu entries are lost", (unsigned long long)s.objects);
}

extern const struct sim_scenario slab_nulls_scenarios[];
const struct sim_scenario slab_nulls_scenarios[] = {
	{ "nulls_lookups", "lookups beside entries that are freed and used again at once", setup_lookups, finish,
	  "an entry that became another one" },
	{ "nulls_rented", "... and slabs whose memory goes to another cache", setup_rented, finish },
	{ NULL },
};
