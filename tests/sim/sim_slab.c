/* SPDX-License-Identifier: MIT */
/* sim_slab.c - object caches on the simulated machine.
 *
 * Checks: an object has one holder at a time, whose stores no earlier holder's store follows; no object is lost; the
 * memory of a type-safe object keeps its constructed word while a reader that found it is in its section.
 */
#include "world.h"

#include "slab/slab.h"

#include <quiesce/slab.h>

#define NR_LAPS 4
#define GOOD 0x600dull

struct thing {
	uint64_t stamp;
	uint64_t good;
	uint64_t rest[6];
};

static struct kmem_cache *cache;
static struct thing *published;
static uint32_t nr_done;

static void hold(struct thing *t, uint64_t stamp)
{
	quiesce_store_relaxed(&t->stamp, stamp);
	world_stay(3);
	if (quiesce_load_relaxed(&t->stamp) != stamp)
		sim_fail("object %p has two holders", (void *)t);
}

static void trader(void *unused)
{
	struct thing *kept[3] = { NULL };

	(void)unused;
	for (uint64_t i = 0; i < NR_LAPS; i++) {
		struct thing **t = &kept[sim_random(3)];

		if (*t) {
			hold(*t, (uint64_t)sim_self() << 32 | i << 8 | 1);
			kmem_cache_free(cache, *t);
			*t = NULL;
			continue;
		}
		*t = kmem_cache_alloc(cache);
		if (!*t)
			sim_fail("no memory");
		hold(*t, (uint64_t)sim_self() << 32 | i << 8);
	}
	for (int i = 0; i < 3; i++)
		kmem_cache_free(cache, kept[i]);
	world_add(&nr_done);
}

static void shrinker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		world_stay(8);
		kmem_cache_shrink(cache);
	}
	sim_saw();
	world_add(&nr_done);
}

static void begin(enum world_mode mode, unsigned int flags, void (*ctor)(void *object))
{
	world_configure(mode);
	quiesce__init();
	cache = kmem_cache_create("sim", sizeof(struct thing), 64, flags, ctor);
	sim_assert(cache);
}

static void finish(void)
{
	struct kmem_cache_stats s;

	kmem_cache_get_stats(cache, &s);
	if (s.objects)
		sim_fail("%llu objects are lost", (unsigned long long)s.objects);
}

static void setup_trade(void)
{
	begin(ANY, 0, NULL);
	spawn_each(driver_readers + 1, trader, "trader");
}

static void setup_shrink(void)
{
	begin(ANY, 0, NULL);
	spawn_each(driver_readers + 1, trader, "trader");
	sim_spawn(shrinker, NULL, "shrinker");
}

static void setup_shrink_light(void)
{
	begin(LIGHT, 0, NULL);
	spawn_each(driver_readers + 1, trader, "trader");
	sim_spawn(shrinker, NULL, "shrinker");
}

static void setup_shrink_two(void)
{
	begin(LIGHT, 0, NULL);
	spawn_each(driver_readers + 1, trader, "trader");
	spawn_each(2, shrinker, "shrinker");
}

/* ---- objects that another thread frees, in rows ---- */

#define ROW 3

static struct thing *mailbox[ROW];

static void sender(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < NR_LAPS / 2; i++) {
		void *row[ROW];

		if (kmem_cache_alloc_bulk(cache, ROW, row) != ROW)
			sim_fail("no memory");
		for (int k = 0; k < ROW; k++) {
			hold(row[k], (uint64_t)sim_self() << 32 | i << 8 | (uint64_t)k);
			row[k] = quiesce_xchg(RU3, &mailbox[k], row[k]);
		}
		for (int k = 0; k < ROW; k++)
			kmem_cache_free(cache, row[k]);
	}
	world_add(&nr_done);
}

static void receiver(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < NR_LAPS / 2; i++) {
		void *row[ROW];
		size_t nr = 0;

		for (int k = 0; k < ROW; k++) {
			struct thing *t = quiesce_xchg(RU3, &mailbox[k], (struct thing *)NULL);

			if (!t)
				continue;
			hold(t, (uint64_t)sim_self() << 32 | i << 8 | (uint64_t)k);
			row[nr++] = t;
			sim_saw();
		}
		kmem_cache_free_bulk(cache, nr, row);
	}
	world_add(&nr_done);
}

static void finish_handed(void)
{
	for (int k = 0; k < ROW; k++)
		kmem_cache_free(cache, mailbox[k]);
	finish();
}

static void setup_handed(void)
{
	begin(ANY, 0, NULL);
	spawn_each(driver_readers, sender, "sender");
	sim_spawn(receiver, NULL, "receiver");
}

/* ---- the range of objects, whose beginning an object of the heap may meet ---- */

static void first_user(void *unused)
{
	(void)unused;
	kmem_cache_free(cache, kmem_cache_alloc(cache));
}

static void classifier(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		if (quiesce__object_is_cached((void *)64))
			sim_fail("an object of the heap is one of a cache");
		world_stay(8);
	}
	sim_saw();
}

static void setup_range(void)
{
	begin(ANY, 0, NULL);
	spawn_each(driver_readers, classifier, "classifier");
	sim_spawn(first_user, NULL, "user");
}

/* ---- type-safe memory ---- */

static void construct(void *object)
{
	quiesce_store_relaxed(&((struct thing *)object)->good, GOOD);
}

static void reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct thing *t;

		rcu_read_lock();
		t = quiesce_load_acquire(RU3, &published);
		if (t) {
			world_stay(4);
			if (quiesce_load_relaxed(&t->good) != GOOD)
				sim_fail("the memory of %p is of its type no more", (void *)t);
			sim_saw();
		}
		rcu_read_unlock();
	}
}

static void updater(void *unused)
{
	struct thing *t = kmem_cache_alloc(cache);

	(void)unused;
	sim_assert(t);
	quiesce_store_release(RU3, &published, t);
	world_stay(4);
	quiesce_store_relaxed(&published, NULL);
	kmem_cache_free(cache, t);
	kmem_cache_shrink(cache);
}

static void setup_type_safe(void)
{
	begin(ANY, SLAB_TYPESAFE_BY_RCU, construct);
	spawn_each(driver_readers, reader, "reader");
	sim_spawn(updater, NULL, "updater");
}

/* ---- the end of a cache, beside the thread that frees its last objects ---- */

#define MANY 24 /* objects, each with a slab for itself: some of the slabs are surplus */

static uint32_t filled, nr_found, destroyed;

/* It stays in its section until the cache is destroyed. */
static void reader_of_the_last(void *unused)
{
	struct thing *t;

	(void)unused;
	world_await(&filled, 1);
	rcu_read_lock();
	t = quiesce_load_acquire(RU3, &published);
	world_add(&nr_found);
	for (int i = 0; i < 100 && !quiesce_load_relaxed(&destroyed); i++)
		platform_yield();
	world_stay(8);
	if (quiesce_load_relaxed(&t->good) != GOOD)
		sim_fail("the memory of %p is of its type no more", (void *)t);
	sim_saw();
	rcu_read_unlock();
}

static void last_user(void *unused)
{
	void *row[MANY];

	(void)unused;
	if (kmem_cache_alloc_bulk(cache, MANY, row) != MANY)
		sim_fail("no memory");
	quiesce_store_release(RU3, &published, row[MANY - 8]); /* Its slab is surplus, and is not released first. */
	world_set(&filled, 1);
	world_await(&nr_found, driver_readers);
	kmem_cache_free_bulk(cache, MANY, row);
}

static void destroyer(void *unused)
{
	struct kmem_cache_stats s;

	(void)unused;
	world_await(&filled, 1);
	for (kmem_cache_get_stats(cache, &s); s.objects; kmem_cache_get_stats(cache, &s))
		platform_yield();
	kmem_cache_destroy(cache);
	quiesce_store_relaxed(&destroyed, 1);
}

static void setup_destroy(void)
{
	world_configure(ANY);
	quiesce__init();
	cache = kmem_cache_create("sim", QUIESCE_SLAB_BYTES, 0, SLAB_TYPESAFE_BY_RCU, construct);
	sim_assert(cache);
	spawn_each(driver_readers, reader_of_the_last, "reader");
	sim_spawn(last_user, NULL, "user");
	sim_spawn(destroyer, NULL, "destroyer");
}

static void finish_destroy(void)
{
	if (!destroyed)
		sim_fail("the cache was not destroyed");
}

static const struct sim_scenario scenarios[] = {
	{ "trade", "threads allocate and free, in any computer", setup_trade, finish },
	{ "handed", "rows of objects that another thread frees", setup_handed, finish_handed, "an object that was handed over" },
	{ "shrink", "a thread empties the sheaves meanwhile", setup_shrink, finish, "a shrink" },
	{ "shrink_light", "the same, where sequences and their restarts work", setup_shrink_light, finish, "a shrink" },
	{ "shrink_two", "two threads empty the sheaves of one cache", setup_shrink_two, finish, "a shrink" },
	{ "range", "the heap of an object is found while the first slab is made", setup_range, finish, "a search" },
	{ "type_safe", "a reader loads an object that is freed, and whose slab is given back", setup_type_safe, finish,
	  "a reader with an object" },
	{ "destroy", "a cache is destroyed beside the thread that has freed its last objects", setup_destroy, finish_destroy,
	  "a reader with an object" },
	{ NULL },
};

extern const struct sim_scenario slab_fork_scenarios[], slab_nulls_scenarios[];

int main(int argc, char **argv)
{
	return driver_main(argc, argv, (const struct sim_scenario *const[]){ scenarios, slab_fork_scenarios, slab_nulls_scenarios, NULL });
}
