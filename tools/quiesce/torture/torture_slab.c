/* SPDX-License-Identifier: MIT */
/* torture_slab.c - type-safe objects: freed and reused at once, while their memory stays one of their cache until all sections have ended.
 *
 * Readers find an object under RCU, delay, try to get a reference, and compare its key then, because it may be another object by now.
 * Whatever it is, its memory has the words that the constructor wrote, as long as the section lasts.  An object with a reference
 * keeps its key; it may be handed over.  Writers replace objects, and their memory is allocated again at once.  The shrinker
 * returns slabs to the system, and another cache takes them and fills them with a word of its own.
 */
#include <stdlib.h>

#include <quiesce/rcu.h>

#include "types/quiesce/torture_ops.h"

#include "torture.h"

#define KEYS 4
#define WRITERS 2
#define SHRINKER WRITERS /* index among the threads that make progress */
#define OBJECT_BYTES 16384
#define WORDS (OBJECT_BYTES / sizeof(uint64_t))
#define BURST 24   /* most objects that are allocated at once, so that slabs become empty and come back */
#define TAKEN 16   /* objects of the other cache */
#define TYPE_WORD 0x74797065736166ull
#define OTHER_WORD 0x6f74686572ull
#define SLABS 4096 /* number of slabs at which two share an entry of @was_ours */

/* Relaxed accesses to all fields. */
struct object {
	uint64_t type;  /* TYPE_WORD, by the constructor */
	uint64_t users; /* 0, by the constructor, and whenever the object is free */
	uint64_t key, serial; /* written while @users is 0 */
	uint64_t rest[WORDS - 5];
	uint64_t tail; /* TYPE_WORD, by the constructor */
};

static struct object *current[KEYS];
static struct kmem_cache *cache, *other_cache;
static uint8_t was_ours[SLABS]; /* 1: the slab with this number was one of @cache */
static uint64_t serials;

enum { REFUSED, BECAME_ANOTHER, SHRUNK, TAKEN_OVER, OTHER_TYPE, CHANGED, NOT_FREE };
static struct torture_figure figure[] = {
	[REFUSED] = { .what = "free when found", .idle = "no reader found a free object" },
	[BECAME_ANOTHER] = { .what = "another when found", .idle = "no object became another one" },
	[SHRUNK] = { .what = "shrunk", .idle = "the cache was not shrunk" },
	[TAKEN_OVER] = { .what = "slabs that the other cache took", .idle = "no memory went to the other cache" },
	[OTHER_TYPE] = { .what = "memory of another type", .error = true },
	[CHANGED] = { .what = "changed in use", .error = true },
	[NOT_FREE] = { .what = "allocated in use", .error = true },
	{ .what = NULL },
};

static void construct(void *memory)
{
	struct object *o = memory;

	quiesce_store_relaxed(&o->users, (uint64_t)0);
	quiesce_store_relaxed(&o->type, TYPE_WORD);
	quiesce_store_relaxed(&o->tail, TYPE_WORD);
}

/* ---- references ---- */

static bool get_not_zero(struct object *o)
{
	uint64_t users = quiesce_load_relaxed(&o->users);

	/* raw: acquire, with the releases in publish() and put(). */
	while (users && !__atomic_compare_exchange_n(&o->users, &users, users + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		;
	return users;
}

/* The last user frees the object, which is allocated again at once. */
static void put(struct object *o)
{
	/* raw: orders all accesses by its users before the free. */
	if (__atomic_fetch_sub(&o->users, 1, __ATOMIC_ACQ_REL) == 1)
		kmem_cache_free(cache, o);
}

/* ---- readers ---- */

/* Checks the memory of an object that was found in the section of the caller. */
static void check_type(const struct object *o)
{
	if (quiesce_load_relaxed(&o->type) != TYPE_WORD || quiesce_load_relaxed(&o->tail) != TYPE_WORD)
		torture_count_together(figure[OTHER_TYPE].n);
}

static void check_held(const struct hold *h)
{
	const struct object *o = h->object;

	check_type(o);
	if (quiesce_load_relaxed(&o->key) != h->key || quiesce_load_relaxed(&o->serial) != h->serial)
		torture_count_together(figure[CHANGED].n);
}

static void let_go(struct hold *h, struct tally *t)
{
	check_held(h);
	put(h->object);
	torture_count(t->n[TALLY_READS]);
}

static void end_section(struct hold *h, struct tally *t)
{
	check_type(h->object);
	rcu_read_unlock();
	torture_count(t->n[TALLY_READS]);
}

/* A signal handler may not free, so it gets no reference: its hold is the section. */
static bool hold_section(struct hold *h)
{
	check_type(h->object);
	h->end = end_section;
	return true;
}

/* Returns whether the object that was found is the one with the key of the hold, which has a reference to it then. */
static bool validate(struct hold *h)
{
	struct object *o = h->object;

	if (!get_not_zero(o)) {
		torture_count_together(figure[REFUSED].n);
		return false;
	}
	h->serial = quiesce_load_relaxed(&o->serial);
	if (quiesce_load_relaxed(&o->key) == h->key)
		return true;
	put(o);
	torture_count_together(figure[BECAME_ANOTHER].n);
	return false;
}

static bool hold(struct hold *h, uint64_t *random, bool at_once)
{
	uint64_t key = (random_next(random) >> 9) % KEYS;
	bool valid;

	rcu_read_lock();
	*h = (struct hold){ .object = rcu_dereference(current[key]), .key = key, .end = let_go };
	if (at_once)
		return hold_section(h);
	check_type(h->object);
	torture_delay(random);
	valid = validate(h);
	check_type(h->object);
	torture_delay(random);
	check_type(h->object);
	rcu_read_unlock();
	return valid;
}

static void use(struct hold *h, uint64_t *random)
{
	check_held(h);
	torture_delay(random);
	check_held(h);
}

/* ---- writers ---- */

static struct object *allocate(void)
{
	struct object *o = kmem_cache_alloc(cache);

	if (!o)
		abort();
	if (quiesce_load_relaxed(&o->users))
		torture_count_together(figure[NOT_FREE].n);
	check_type(o);
	quiesce_store_relaxed(&was_ours[((uintptr_t)o >> 16) % SLABS], (uint8_t)1);
	return o;
}

/* Allocates a few objects, and frees all but the one that it returns. */
static struct object *allocate_among(uint64_t nr)
{
	struct object *o[BURST];

	for (uint64_t i = 0; i < nr; i++)
		o[i] = allocate();
	for (uint64_t i = 1; i < nr; i++)
		kmem_cache_free(cache, o[i]);
	return o[0];
}

/* Each key has one writer. */
static void publish(struct object *o, uint64_t key)
{
	struct object *old = current[key];

	quiesce_store_relaxed(&o->key, key);
	quiesce_store_relaxed(&o->serial, quiesce_fetch_add_relaxed(&serials, (uint64_t)1));
	/* raw: release, with the acquire in get_not_zero(). */
	__atomic_store_n(&o->users, 1, __ATOMIC_RELEASE);
	rcu_assign_pointer(current[key], o);
	if (old)
		put(old);
	torture_count_together(torture.version);
}

static void writer(uint32_t index)
{
	uint64_t random = 2246822519u + index;

	while (!torture_stopped()) {
		uint64_t r = random_next(&random) >> 7;

		torture_stutter();
		publish(allocate_among(r % 8 ? 1 : 1 + r / 8 % BURST), index + r / 256 % (KEYS / WRITERS) * WRITERS);
		torture_count(torture.progress[index]);
		if (r >> 20 & 1)
			torture_spin(r >> 21 & 1023);
		else if ((r >> 20) % 64 == 0)
			sleep_ns((r >> 26) % 100000);
	}
}

/* ---- memory that goes to another cache ---- */

static void take_over(void)
{
	void *taken[TAKEN];

	if (!kmem_cache_alloc_bulk(other_cache, TAKEN, taken))
		abort();
	for (int i = 0; i < TAKEN; i++) {
		uint64_t *words = taken[i];

		if (quiesce_load_relaxed(&was_ours[((uintptr_t)words >> 16) % SLABS]))
			torture_count(figure[TAKEN_OVER].n);
		quiesce_store_relaxed(&words[0], OTHER_WORD);
		quiesce_store_relaxed(&words[WORDS - 1], OTHER_WORD);
	}
	torture_spin(1000);
	kmem_cache_free_bulk(other_cache, TAKEN, taken);
	kmem_cache_shrink(other_cache);
}

static void shrinker(uint32_t index)
{
	uint64_t random = 3266489917u + index;

	while (!torture_stopped()) {
		torture_stutter();
		kmem_cache_shrink(cache);
		torture_count(figure[SHRUNK].n);
		take_over();
		torture_count(torture.progress[SHRINKER]);
		sleep_ns(random_next(&random) % 200000);
	}
}

/* ---- the kind ---- */

static void set_up(void)
{
	const struct torture_slab_ops *ops = torture.kind->calls;

	cache = ops->create(OBJECT_BYTES, construct);
	other_cache = kmem_cache_create("another type", OBJECT_BYTES, 0, 0, NULL);
	if (!cache || !other_cache)
		abort();
	for (uint64_t key = 0; key < KEYS; key++)
		publish(allocate(), key);
}

static const struct torture_role roles[] = {
	{ writer, WRITERS }, { shrinker, 1 }, { torture_collector, 1 }, { torture_exits, 1 }, { torture_signals, 1 }, { NULL, 0 },
};

#define KIND(functions)													\
	{														\
		.set_up = set_up, .calls = &(functions), .section = torture_hold_section, .begin = hold, .use = use,	\
		.leaves = true, .roles = roles, .figures = figure,							\
		.writers = (1u << WRITERS) - 1 + (1u << SHRINKER),							\
	}
const struct torture_kind torture_slab = KIND(torture_slab_ops), torture_busted_slab = KIND(torture_busted_slab_ops);
