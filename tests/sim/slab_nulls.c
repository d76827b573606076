/* SPDX-License-Identifier: MIT */
/* slab_nulls.c - scenarios: lookups in lists of type-safe objects, which are freed and used again at once.
 *
 * Entries come and go by the pattern of rculist_nulls.h.  The last reference frees the entry to its cache, also where it is a
 * reader's.  Meanwhile slabs without an entry are given back, and objects of another cache may get their memory.
 */
#include "nulls_lookup.h"
#include "world.h"

#include "runtime/core.h"
#include "runtime/lock.h"

#include <quiesce/slab.h>

#define GOOD 0x600dull
#define OTHER 0x07e2ull

struct entry {
	uint64_t good;         /* what the constructor made of it: never anything else */
	struct nulls_entry in; /* without a reference from the constructor on, and whenever it is free */
	char rest[4096 - 40];  /* a slab has one, and is given back when it is freed */
};

static struct kmem_cache *entries, *others;
static struct quiesce__lock updaters_lock;
static struct entry *always; /* stays in chain 0 */
static uint32_t nr_kept;

static void construct(void *object)
{
	struct entry *e = object;

	quiesce_store_relaxed(&e->good, GOOD);
	quiesce_store_relaxed(&e->in.refs, 0);
}

static struct entry *entry_of(struct nulls_entry *in)
{
	return (struct entry *)(void *)((char *)in - offsetof(struct entry, in));
}

static bool is_of_type(struct nulls_entry *in)
{
	struct entry *e = entry_of(in);
	bool is;

	world_stay(4);
	is = quiesce_load_relaxed(&e->good) == GOOD;
	if (!is)
		sim_fail("a reader is at memory that is no entry any more");
	return is;
}

static void put(struct nulls_entry *in)
{
	if (nulls_drop(in))
		kmem_cache_free(entries, entry_of(in));
}

static void not_seen(void)
{
}

static const struct nulls_world world = { is_of_type, put, not_seen, sim_saw };

static struct entry *enter(uint64_t key)
{
	struct entry *e = kmem_cache_alloc(entries);

	sim_assert(e && quiesce_load_relaxed(&e->in.refs) == 0);
	nulls_begin_life(&e->in, key);
	quiesce__lock(&updaters_lock);
	hlist_nulls_add_head_rcu(&e->in.node, nulls_chain_of(key));
	quiesce__unlock(&updaters_lock);
	return e;
}

static void leave(struct entry *e)
{
	quiesce__lock(&updaters_lock);
	hlist_nulls_del_rcu(&e->in.node);
	quiesce__unlock(&updaters_lock);
	put(&e->in);
}

/* ---- readers ---- */

static void reader(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t key = i == 2 ? 0 : 1 + sim_random(2);
		struct nulls_entry *e = nulls_find(&world, key);

		if (!key)
			sim_assert(e == &always->in);
		if (!e)
			continue;
		world_stay(3);
		sim_assert(nulls_key_of(e) == key);
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
	nulls_begin();
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
