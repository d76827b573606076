/* SPDX-License-Identifier: MIT */
/* hashtable_erase.c - removal of all objects with one key, and of all that a function chooses.
 *
 * A pass over a bucket under its lock removes objects to an array on the caller's stack; they are dropped after the lock
 * has been released, as the program's function may do anything there that updates do.  If the array is too short for a
 * bucket, the pass counts the objects that it has not judged, and a second one has memory for all of them: so the time is
 * linear in the length of a bucket, also if most of its objects stay.  Without memory there are as many passes as it takes.
 *
 * The key may be in one of the objects, which are dropped between two passes.  So the first pass of two keeps an object, whose
 * key is used from then on, and which is dropped last.
 *
 * An object in a bucket is judged and removed under one lock: no update of its key comes between.
 */
#include "hashtable.h"

#include <quiesce/ds/hashtable_erase.h>

#include "platform/platform.h"
#include "runtime/run.h"

#if defined(QUIESCE_SIM)
#define ERASE_AT_ONCE 2
#else
#define ERASE_AT_ONCE 64
#endif

/* A call in progress; the program's function that drops objects is called in a section. */
struct erase_run {
	struct quiesce__run run;
	struct hashtable *ht;
	const void *key; /* key of the objects to remove, until there is @kept; NULL: @match chooses them */
	void *kept;      /* an object with the key, removed and not dropped yet */
	bool (*match)(void *object, void *arg);
	void (*drop)(void *object, void *arg);
	void *arg;
	struct quiesce__table_iter iter; /* the position of @match */
	size_t nr;       /* number of objects in @taken */
	size_t room;     /* length of @taken */
	size_t removed;  /* number of objects that earlier passes removed */
	void **taken;
	void *some[ERASE_AT_ONCE];
};

static void erase_begin(struct erase_run *e)
{
	e->taken = e->some;
	e->room = ERASE_AT_ONCE;
}

static void erase_end(struct erase_run *e)
{
	if (e->taken != e->some)
		platform_block_put(e->taken, e->room * sizeof(void *));
	erase_begin(e);
}

/* Make room for @nr objects, unless memory is short. */
static void make_room(struct erase_run *e, size_t nr)
{
	void **more = nr > e->room ? platform_block_get(nr * sizeof(void *)) : NULL;

	if (!more)
		return;
	erase_end(e);
	e->taken = more;
	e->room = nr;
}

static bool may_match(const struct erase_run *e, const struct quiesce__update *u, const struct quiesce__bucket *line, unsigned int i)
{
	return is_object(word_at(line, i)) && (!e->key || tag_at(line, i) == quiesce__table_tag(u->hash));
}

static const void *key_of(const struct erase_run *e)
{
	return e->kept ? type_of(&e->ht->table)->key(e->kept) : e->key;
}

static bool matches(const struct erase_run *e, void *object)
{
	const struct quiesce__table *table = &e->ht->table;

	if (e->key)
		return type_of(table)->equal(object, key_of(e));
	/* In a bucket that several smaller ones are moving to, the objects of other positions have their turn later. */
	return (!e->iter.partly || quiesce__iter_covers(&e->iter, hash_of(table, object))) && e->match(object, e->arg);
}

/* Remove objects of the locked bucket, as many as there is room for.  Returns the number of those that were not judged. */
static size_t take_matching(struct erase_run *e, const struct quiesce__update *u)
{
	size_t left = 0;

	e->nr = 0;
	for (struct quiesce__bucket *line = u->line; line; line = (struct quiesce__bucket *)line_behind(line))
		for (unsigned int i = 1; i <= HASHTABLE_SLOTS; i++) {
			void *object = (void *)(uintptr_t)word_at(line, i);

			if (!may_match(e, u, line, i))
				continue;
			if (e->nr == e->room) {
				left++;
			} else if (matches(e, object)) {
				e->taken[e->nr++] = object;
				take_out(&line->word[i]);
			}
		}
	return QUIESCE_MUTANT(table_erase_some) ? 0 : left;
}

static void drop_taken(struct quiesce__run *run)
{
	struct erase_run *e = (struct erase_run *)run;

	for (size_t i = 0; i < e->nr; i++)
		if (e->taken[i] != e->kept)
			e->drop(e->taken[i], e->arg);
}

static void drop_kept(struct quiesce__run *run)
{
	struct erase_run *e = (struct erase_run *)run;

	e->drop(e->kept, e->arg);
}

/* @drop has ended its thread: end the section.  Objects that were removed and not yet dropped are leaked. */
static void drop_ended(struct quiesce__run *run)
{
	erase_end((struct erase_run *)run);
	rcu_read_unlock();
}

/* One pass over the bucket that @u has locked, in two sections, which it leaves.  False: objects are left, and there is room
 * for them now if memory is not short. */
static bool erase_pass(struct erase_run *e, struct quiesce__update *u)
{
	size_t left = take_matching(e, u);

	if (e->nr)
		quiesce__bucket_shorten_all(&e->ht->table, u);
	if (!left)
		quiesce__iter_leave(&e->iter);
	quiesce__update_end(&e->ht->table, u, -(int)e->nr);
	e->removed += e->nr;
	if (left && e->key && !e->kept && e->nr)
		e->kept = e->taken[0];
	if (e->nr && e->drop)
		quiesce__run(&e->run, drop_taken, drop_ended);
	rcu_read_unlock();
	quiesce__update_done(&e->ht->table, u);
	if (left)
		make_room(e, left + e->nr);
	return !left;
}

size_t quiesce_hashtable_remove_all(struct hashtable *ht, const void *key, void (*drop)(void *object, void *arg), void *arg)
{
	struct erase_run e = {
		.run = { .call = "hashtable_remove_all()", .func = (uintptr_t)drop }, .ht = ht, .key = key, .drop = drop, .arg = arg,
	};
	struct quiesce__update u;
	bool done = false;

	if (!quiesce__table_usable(&ht->table, "hashtable_remove_all()") || quiesce__table_is_empty(&ht->table))
		return 0;
	for (erase_begin(&e); !done; done = erase_pass(&e, &u)) {
		u = (struct quiesce__update){ .nr_spare = 0 };
		rcu_read_lock(); /* the inner section is the update's; objects are dropped after it */
		if (quiesce__update_begin(&ht->table, &u, type_of(&ht->table)->hash(key_of(&e), quiesce__seed_of(&ht->table)))) {
			rcu_read_unlock();
			break;
		}
	}
	if (e.kept && drop) {
		rcu_read_lock();
		quiesce__run(&e.run, drop_kept, drop_ended);
		rcu_read_unlock();
	}
	erase_end(&e);
	return e.removed;
}

/* Remove the objects of the bucket of the position, or some of them; false if there are no more buckets. */
static bool erase_some(struct erase_run *e)
{
	struct quiesce__update u = { .nr_spare = 0 };

	quiesce__iter_skip_unused(&e->ht->table, &e->iter);
	rcu_read_lock();
	rcu_read_lock(); /* the inner section is the update's; objects are dropped after it */
	if (!quiesce__iter_lock(&e->ht->table, &e->iter, &u)) {
		rcu_read_unlock();
		rcu_read_unlock();
		return false;
	}
	erase_pass(e, &u);
	return true;
}

size_t quiesce_hashtable_remove_if(struct hashtable *ht, bool (*match)(void *object, void *arg), void (*drop)(void *object, void *arg),
				   void *arg)
{
	struct erase_run e = {
		.run = { .call = "hashtable_remove_if()", .func = (uintptr_t)drop }, .ht = ht, .match = match, .drop = drop, .arg = arg,
	};

	if (!quiesce__table_usable(&ht->table, "hashtable_remove_if()"))
		return 0;
	quiesce__iter_begin(&e.iter);
	erase_begin(&e);
	while (erase_some(&e))
		;
	erase_end(&e);
	return e.removed;
}
