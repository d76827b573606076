/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashtable.h - a hash table of objects whose lookups never wait, even during updates
 * and resizing.
 *
 * Use for objects of any kind that are found by a key in them.  The table stores only pointers: an
 * object needs no field for it, and may be in several tables.  For 64-bit keys and values
 * quiesce/ds/hashmap.h stores them in the table itself: a lookup visits one cache line, not two.
 *
 *	struct flow { uint64_t id; int port; struct rcu_head rcu; };
 *	HASHTABLE_TYPE(flow, struct flow, id);          // flow_type, flow_lookup()
 *	static struct hashtable flows = HASHTABLE_INIT(&flow_type);
 *
 *	if (flow_insert(&flows, fresh) != 0)            // updater, any thread
 *		free(fresh);                            // no memory, and no reader has found it
 *
 *	rcu_read_lock();                                // reader
 *	flow = flow_lookup(&flows, &id);
 *	if (flow)                                       // NULL: no object has the key
 *		use(flow);
 *	rcu_read_unlock();
 *
 *	old = flow_remove_key(&flows, &id);             // only one thread gets the object
 *	if (old)
 *		kfree_rcu(old, rcu);
 *
 * Ordering.  Everything written to an object before its insertion is visible to a reader that
 * finds it.  Lookups and updates of one key are linearizable, also during a resize; iterations are
 * not.
 * Context.  Lookups and iterations: inside a read-side section of RCU, which must last as long as
 * the object is used; also in signal handlers.  Updates: any thread, also in sections, not in
 * signal handlers; updates of one bucket exclude each other, and wait for the holder of its lock.
 * The functions of a type run under that lock and in the worker thread: they must not use the
 * table, sleep, wait for readers, throw, jump out, or end the thread (no cancellation point, if
 * the thread may be cancelled).
 * Cost.  A lookup: one cache miss for the bucket, one for the object, no locked instruction; one
 * more miss if the bucket is full (at most one lookup in 20; in 16 after many removals) or has
 * moved.  An update: a lock in the bucket, and a count, of the table, or of the CPU if the table
 * is large; during a resize, moving some buckets.  Memory for each object: 17 to 41 bytes while
 * the table grows, up to 164 before it shrinks, that of both arrays during a resize; at least 384
 * bytes after the first insertion, nothing before.
 * Resizing.  By powers of two; a callback of call_rcu() completes it, so the worker thread also
 * calls a type's functions (without a worker, updates do, and rcu_barrier() or rcu_throttle()).
 * No lookup waits for it.  If memory is short the table keeps its size, with longer buckets.
 * Overflow lines that a bucket has released are reused after a grace period; while readers stay
 * for longer, or two threads contend for such lines, buckets may be longer than they need to be,
 * but one of n objects has at most 1 + n lines; 17 + n while a thousand lines wait for readers.
 * Equal keys.  hashtable_insert() takes as long as ever, and so does the removal of the object that
 * a lookup of the key finds; to find another one among n takes a walk over up to n / 6 lines.
 * Fork.  In the child of a process with several threads a table may be searched, iterated and
 * counted; it may be updated if no other thread was updating it at the fork.  An unfinished resize
 * waits until then.
 * Flooding.  See quiesce/ds/hash.h; equal hashes make one bucket slow, never the whole table
 * large.
 * Proof: docs/design/hashtable.md; docs/ordering.md, BK1 to BK9, HT1.
 */
#ifndef QUIESCE_DS_HASHTABLE_H
#define QUIESCE_DS_HASHTABLE_H

#include <quiesce/ds/hash.h>
#include <quiesce/ds/hashtable_erase.h>
#include <quiesce/detail/many.h>
#include <quiesce/detail/tagged.h>

QUIESCE_BEGIN_DECLS

struct hashtable_iter {
	struct quiesce__table_iter iter;
};

struct hashtable_walk {
	struct quiesce__table_walk walk;
};

/* ---- private: the code that the calls below inline ---- */

QUIESCE_API int quiesce_hashtable_init(struct hashtable *ht, const struct hashtable_type *type);
QUIESCE_API int quiesce_hashtable_init_seeded(struct hashtable *ht, const struct hashtable_type *type, uint64_t seed);
QUIESCE_API int quiesce_hashtable_insert(struct hashtable *ht, void *object);
QUIESCE_API int quiesce_hashtable_insert_unique(struct hashtable *ht, void *object, void **ret_existing);
QUIESCE_API int quiesce_hashtable_set(struct hashtable *ht, void *object, void **ret_old);
QUIESCE_API int quiesce_hashtable_replace(struct hashtable *ht, void *old, void *fresh);
QUIESCE_API int quiesce_hashtable_remove(struct hashtable *ht, void *object);
QUIESCE_API void *quiesce_hashtable_remove_key(struct hashtable *ht, const void *key);
QUIESCE_API void quiesce_hashtable_destroy(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API int quiesce_hashtable_update(struct hashtable *ht, const void *key, void *(*fn)(void *object, void *arg), void *arg,
					 void **ret_old);
QUIESCE_API void quiesce_hashtable_clear(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg);
QUIESCE_API void *quiesce_hashtable_walk_next(struct hashtable_walk *walk);
QUIESCE_API void *quiesce_hashtable_next(const struct hashtable *ht, struct hashtable_iter *iter);
QUIESCE_API void *quiesce_hashtable_next_match(const struct hashtable *ht, struct hashtable_iter *iter, const void *key);

extern QUIESCE_DATA const struct quiesce__buckets_kind quiesce__hashtable_kind;

/* The debug build checks whether the object is in the table already. */
QUIESCE_API int quiesce__hashtable_insert_debug(struct hashtable *ht, void *object);
#ifdef QUIESCE_DEBUG
#define QUIESCE__HASHTABLE_INSERT quiesce__hashtable_insert_debug
#else
#define QUIESCE__HASHTABLE_INSERT quiesce_hashtable_insert
#endif

/* ---- types ---- */

/** HASHTABLE_TYPE - define name_type, and calls with its types, for objects @T with the key @field.
 *
 * The key is compared and hashed byte by byte: an integer, or a struct without padding.
 * name_lookup(), name_insert(), name_insert_unique(), name_set(), name_remove() and
 * name_remove_key() are hashtable_lookup() and so on, with an object of type @T, and a pointer to
 * the type of @field for the key.  name_type has name_hash(), name_key() and name_equal(); a type
 * without the macro is a static const struct hashtable_type of three functions:
 *   uint64_t (*hash)(const void *key, uint64_t seed): as @hash of HASHTABLE_TYPE_HASHED();
 *   const void *(*key)(const void *object): the address of the object's key;
 *   bool (*equal)(const void *object, const void *key): true if @key is that of @object. */
#define HASHTABLE_TYPE(name, T, field)                                                                                     \
	HASHTABLE_TYPE_HASHED(name, T, field, quiesce_hash(key, sizeof(QUIESCE_NULL(T)->field), seed))

/** HASHTABLE_TYPE_HASHED - do what HASHTABLE_TYPE() does, with another hash.
 * @hash: an expression of type uint64_t, with const void *key and uint64_t seed.  Its bits from 6
 *   on select the bucket, the upper 8 are a tag in it: each must depend on all of the key (and on
 *   the seed: see hash.h).  The key itself is no such hash. */
#define HASHTABLE_TYPE_HASHED(name, T, field, hash)                                                                        \
	QUIESCE__HASHTABLE_TYPE(name, T, field, const __typeof__(QUIESCE_NULL(T)->field) *, hash,                          \
				memcmp(&QUIESCE_CAST(const T *, object)->field, key, sizeof(QUIESCE_NULL(T)->field)) == 0, \
				&QUIESCE_CAST(const T *, object)->field, QUIESCE__COPY(QUIESCE_NULL(T)->field),            \
				QUIESCE__IS_SMALL(QUIESCE_NULL(T)->field) ? QUIESCE_CAST(const void *, copy)               \
									  : QUIESCE_CAST(const void *, key))

/** HASHTABLE_TYPE_STRING - do what HASHTABLE_TYPE() does, for a string in @field.
 * The field is an array or a pointer; the key that calls take is a string: name_lookup(ht, "x"). */
#define HASHTABLE_TYPE_STRING(name, T, field)                                                                              \
	QUIESCE__HASHTABLE_TYPE(name, T, field, const char *,                                                              \
				quiesce_hash_bytes(key, strlen(QUIESCE_CAST(const char *, key)), seed),                    \
				strcmp(QUIESCE_CAST(const T *, object)->field, QUIESCE_CAST(const char *, key)) == 0,      \
				QUIESCE_CAST(const T *, object)->field, (void)0, key)

/* ---- set-up ---- */

/** HASHTABLE_INIT - initialise statically: struct hashtable ht = HASHTABLE_INIT(&people_type).
 * As hashtable_init(); the first insertion draws the seed.  In an all-zero table lookups find
 * nothing, and updates are reported and change nothing. */
#define HASHTABLE_INIT(type) { QUIESCE__TABLE_INIT(quiesce__hashtable_kind, (type)) }

/** hashtable_init - initialise an empty table with a random seed, without an allocation.
 * @type: must exist as long as the table is used.
 * Return: 0. */
QUIESCE_PLAIN int hashtable_init(struct hashtable *ht, const struct hashtable_type *type)
{
	return quiesce_hashtable_init(ht, type);
}

/** hashtable_init_seeded - initialise an empty table with the caller's seed, for repeatable runs. */
QUIESCE_PLAIN int hashtable_init_seeded(struct hashtable *ht, const struct hashtable_type *type, uint64_t seed)
{
	return quiesce_hashtable_init_seeded(ht, type, seed);
}

/* ---- lookups ---- */

/** hashtable_lookup - return an object with @key; NULL if there is none.
 * @type: the type with which the table was initialised.
 *
 * Context: a read-side section (the debug build reports others); signal handlers.  Wait-free.
 * If several objects have the key, any of them may be returned. */
QUIESCE_FAST void *hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key)
{
	struct quiesce__hashtable_lookup_state lookup;

	QUIESCE_IN_SECTION("hashtable_lookup()");
	if (quiesce_likely(quiesce__hashtable_try(ht, type, key, &lookup)))
		return lookup.object;
	return quiesce__hashtable_search(lookup.array, lookup.hash, type, key);
}

/** hashtable_lookup_many - do hashtable_lookup() for @nr keys, and wait for their cache lines
 * together.
 * @keys: the address of each key.
 * @ret_objects: set to an object with each key, NULL if there is none.
 *
 * Each key is looked up by itself, in the order of @keys: the objects are not a snapshot.
 * Context: as hashtable_lookup(), in a section that lasts as long as the objects are used.
 * Cost: for a large table two thirds of that many lookups in a loop, if @nr is 32 or more; for one
 *   in the first-level cache twice.
 * Return: the number of keys that have an object. */
QUIESCE_FAST size_t hashtable_lookup_many(const struct hashtable *ht, const struct hashtable_type *type, const void *const *keys,
					  size_t nr, void **ret_objects)
{
	QUIESCE_IN_SECTION("hashtable_lookup_many()");
	return quiesce__many(ht, type, keys, nr, ret_objects);
}

/** hashtable_lookup_hazptr - return an object with @key, protected by a hazard pointer.
 * @slot: the caller's; see hazptr.h.
 * @offset: of the struct hazptr_head in an object.
 *
 * Use if an object is kept for longer than a section should last.  All objects of such a table are
 * retired with call_hazptr() or kfree_hazptr(), and found by this function only:
 * hashtable_lookup(), iterations beside updates and ret_existing of hashtable_insert_unique()
 * would not protect them.
 * Context: any thread; it enters a section of its own, for the table's memory.
 * Cost: 3 ns more than hashtable_lookup(); may repeat the search while the bucket is updated.
 * Return: the object, protected until hazptr_clear(slot); NULL, and the slot is clear. */
QUIESCE_FAST void *hashtable_lookup_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
					   hazptr_t *slot, size_t offset)
{
	void *object;
	bool found;

	if (!QUIESCE__SLOT_USED(slot, "hashtable_lookup_hazptr()"))
		return NULL;
	rcu_read_lock();
	found = quiesce__hashtable_try_hazptr(ht, type, key, slot, offset, &object);
	rcu_read_unlock();
	return quiesce_likely(found) ? object : quiesce__hashtable_search_hazptr(ht, type, key, slot, offset);
}

/* ---- updates ---- */

/** hashtable_insert - insert @object, whether or not another object has its key.
 * @object: at an even address; not in the table already (the debug build reports that,
 *   QUIESCE_MISUSE_TWICE).
 * Return: 0; -ENOMEM, and the table is unchanged; -EINVAL: @object is NULL or at an odd address. */
QUIESCE_PLAIN int hashtable_insert(struct hashtable *ht, void *object) { return QUIESCE__HASHTABLE_INSERT(ht, object); }

/** hashtable_insert_unique - insert @object if no object has its key.
 * @ret_existing: if not NULL, set to the object that has it, or to NULL; to be used in a section.
 * Return: 0; -EEXIST; -ENOMEM. */
QUIESCE_PLAIN int hashtable_insert_unique(struct hashtable *ht, void *object, void **ret_existing)
{
	return quiesce_hashtable_insert_unique(ht, object, ret_existing);
}

/** hashtable_set - insert @object, or replace an object that has its key.
 * @ret_old: if not NULL, set to the replaced object, which the caller retires, or to NULL; or to
 *   @object, if that was in the table itself: then nothing is to be retired.
 * A lookup finds the old object or the new one, never none.
 * Return: 0; -ENOMEM; -EINVAL as insert. */
QUIESCE_PLAIN int hashtable_set(struct hashtable *ht, void *object, void **ret_old)
{
	return quiesce_hashtable_set(ht, object, ret_old);
}

/** hashtable_replace - replace @old by @fresh, which has the same key.
 * Called in the section in which @old was found, because the key of @old is read first.
 * Return: 0, and the caller retires @old; -ENOENT: it is not in the table; -EINVAL: the keys
 *   differ, both are the same object and in the table, or as insert. */
QUIESCE_PLAIN int hashtable_replace(struct hashtable *ht, void *old, void *fresh)
{
	return quiesce_hashtable_replace(ht, old, fresh);
}

/** hashtable_remove - remove @object itself.
 * Its key is read first: if other threads may remove it, too, call this in the section in which it
 * was found.
 * Return: 0, and the caller retires it; -ENOENT: it is not in the table; -EINVAL: NULL, or at an
 *   odd address. */
QUIESCE_PLAIN int hashtable_remove(struct hashtable *ht, void *object) { return quiesce_hashtable_remove(ht, object); }

/** hashtable_remove_key - remove an object with @key.
 * Return: the object, which the caller retires; NULL: there was none. */
QUIESCE_PLAIN void *hashtable_remove_key(struct hashtable *ht, const void *key)
{
	return quiesce_hashtable_remove_key(ht, key);
}

/* hashtable_remove_all(), hashtable_remove_if(): hashtable_erase.h */

/** hashtable_update - insert, change, replace or remove the object with @key, in one step.
 * @fn: called with an object that has @key, or NULL, and @arg, under the bucket's lock: no other
 *   update of the key is in progress.  Returns the object that the table is to have: the same,
 *   which it may have changed; another one with the key, which replaces it; or NULL.  It may be
 *   called again after an allocation for a new object, and then only its last result counts.
 * @ret_old: if not NULL, set to the object that has left the table, which the caller retires, or
 *   to NULL.
 *
 * Concurrent readers may see fields that @fn changes at any time.  @fn must not use the table,
 * sleep, wait for readers, throw, jump out, or end the thread.
 * Return: 0; -ENOMEM: there was no object, and no memory for one, or for the table's first;
 *   -EINVAL: @fn returned an object with another key, or one that insert refuses.  After an error
 *   nothing has changed. */
QUIESCE_PLAIN int hashtable_update(struct hashtable *ht, const void *key, void *(*fn)(void *object, void *arg), void *arg, void **ret_old)
{
	return quiesce_hashtable_update(ht, key, fn, arg, ret_old);
}

/** hashtable_clear - remove all objects.
 * @drop: called for each, with @arg, in a section, without the bucket's lock; NULL: none.  It
 *   retires, as readers may use the object.
 * Objects that were in the table at the call are removed, by this call or by another; objects that
 * are inserted meanwhile may stay.
 * Context: any thread, also in a section; enters a section for each bucket, so no grace period
 *   waits for the whole.
 * Cost: as an iteration, and a lock for each bucket that was ever used; the table shrinks afterwards,
 *   but not below what was reserved. */
QUIESCE_PLAIN void hashtable_clear(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	quiesce_hashtable_clear(ht, drop, arg);
}

/** hashtable_reserve - allocate memory for @nr objects, and keep it.
 * Context: may take as long as moving all objects; not in a section beside other updaters.
 * Return: 0; -ENOMEM: the table is usable, and keeps its size; -EINVAL: it is not initialised. */
QUIESCE_PLAIN int hashtable_reserve(struct hashtable *ht, size_t nr) { return quiesce__table_reserve(&ht->table, nr); }

/** hashtable_count - return the number of objects; exact while no thread updates the table.
 * During updates it may include objects that are inserted and removed again while it counts.
 * Cost: some loads; for tables of more than about 1000 objects two for each CPU. */
QUIESCE_PLAIN size_t hashtable_count(const struct hashtable *ht) { return quiesce__table_count(&ht->table); }

/** hashtable_stats - return statistics of the table.
 * Cost: reads all buckets. */
QUIESCE_PLAIN void hashtable_stats(const struct hashtable *ht, struct quiesce_table_stats *ret)
{
	quiesce__table_stats(&ht->table, ret);
}

/** hashtable_destroy - end the use of a table.
 * @drop: called for each object that is still in it, with @arg; NULL: none.  It retires, as
 *   readers may use the object.
 * Context: no thread updates the table any more; readers may still be inside, and find its objects
 *   or nothing.  Does not sleep; may be called in a section, and is one itself: @drop must not
 *   wait for readers, and grace periods wait for the whole.
 * The struct itself may be reused or freed when its readers are gone. */
QUIESCE_PLAIN void hashtable_destroy(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	quiesce_hashtable_destroy(ht, drop, arg);
}

/* ---- iterations ---- */

/** hashtable_for_each - iterate over all objects, in no order.
 * @object: the cursor, a pointer.
 * @it: a struct hashtable_iter.
 *
 * Context: a section from before to after the loop; the body may update the table.
 * An object that is in the table throughout is visited once, also during a resize; one that is
 * inserted or removed meanwhile, by the body too, may be missed or visited, and again if it is
 * inserted again.  So check the result of a removal. */
#define hashtable_for_each(object, it, ht)                                                                                 \
	for (QUIESCE_IN_SECTION("hashtable_for_each()"), quiesce__iter_begin(&(it)->iter);                                 \
	     ((object) = QUIESCE_CAST(__typeof__(object), quiesce_hashtable_next((ht), (it))));)

/** hashtable_for_each_match - hashtable_for_each() of the objects with the key at @k. */
#define hashtable_for_each_match(object, it, ht, k)                                                                        \
	for (QUIESCE_IN_SECTION("hashtable_for_each_match()"), quiesce__iter_begin(&(it)->iter);                           \
	     ((object) = QUIESCE_CAST(__typeof__(object), quiesce_hashtable_next_match((ht), (it), (k))));)

/** hashtable_walk_enter - begin an iteration in several sections, so that no grace period waits for
 * the whole.
 *
 *	struct hashtable_walk walk;
 *	for (hashtable_walk_enter(&flows, &walk); hashtable_walk_start(&walk); hashtable_walk_stop(&walk))
 *		while ((flow = hashtable_walk_next(&walk)))
 *			use(flow);
 *
 * Each section visits 64 buckets.  Between two of them only the position is kept, and the caller
 * may sleep.  The guarantees of hashtable_for_each() hold for the whole; but if a section ends
 * before hashtable_walk_next() has returned NULL, some of its last objects are visited again.
 * Context: any thread, not in a section; the table must not be destroyed meanwhile.  Leave with
 *   break only after hashtable_walk_stop(). */
QUIESCE_PLAIN void hashtable_walk_enter(const struct hashtable *ht, struct hashtable_walk *walk)
{
	quiesce__walk_enter(&walk->walk, &ht->table);
}

/** hashtable_walk_start - enter a section.  False: the iteration is over, and none is entered. */
QUIESCE_PLAIN bool hashtable_walk_start(struct hashtable_walk *walk) { return quiesce__walk_start(&walk->walk); }

/** hashtable_walk_next - return the next object; NULL: leave the section, and start again. */
QUIESCE_PLAIN void *hashtable_walk_next(struct hashtable_walk *walk) { return quiesce_hashtable_walk_next(walk); }

/** hashtable_walk_stop - leave the section. */
QUIESCE_PLAIN void hashtable_walk_stop(struct hashtable_walk *walk)
{
	(void)walk;
	rcu_read_unlock();
}

QUIESCE_END_DECLS

#endif
