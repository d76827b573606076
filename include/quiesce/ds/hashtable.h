/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashtable.h - a hash table of objects: lookups that never wait, beside updates and resizing.
 *
 * Use for objects of any kind that are found by a key in them.  The table keeps only pointers: an object needs no
 * field for it, and may be in several tables.  For a 64-bit key and a 64-bit value quiesce/ds/hashmap.h
 * is faster: a cache miss for a lookup, not two.
 *
 *	struct flow { uint64_t id; int port; struct rcu_head rcu; };
 *	HASHTABLE_TYPE(flow, struct flow, id);          // flow_type, flow_lookup()
 *	struct hashtable flows;
 *	hashtable_init(&flows, &flow_type);
 *
 *	rcu_read_lock();                                // reader
 *	flow = flow_lookup(&flows, &id);
 *	use(flow);
 *	rcu_read_unlock();
 *
 *	old = hashtable_remove_key(&flows, &id);        // updater, any thread
 *	if (old)
 *		kfree_rcu(old, rcu);
 *
 * Ordering.  What was written to an object before it was put into the table is visible to whoever finds it there.
 *   Lookups and updates of one key are linearizable, also while the table is being resized; iterations are not.
 * Context.  Lookups and iterations: inside a read-side section of RCU, which must last as long as the object is used; also
 *   in signal handlers.  Updates: any thread, also in sections, not in signal handlers; they exclude each other bucket
 *   by bucket, and may be held up by the holder of a bucket.  The functions of a type run under a bucket's lock and in the
 *   worker thread: they must not use the table, sleep, wait for readers, throw, jump out, or end the thread (no
 *   cancellation point, where it may be cancelled).
 * Cost.  A lookup: one cache miss for the bucket, one for the object, no locked instruction; one more miss where the bucket
 *   is full (at most one lookup in 20; in 16 where much came and went) or has moved.  An update: a lock in the bucket, and a count:
 *   of the table, or of the CPU where it is large; while it is being resized, the moving of some buckets.  Memory for each
 *   object: 17 to 41 bytes while the table grows, up to 164 before it shrinks, both arrays' while it is being resized; 384
 *   bytes at least once something was put in, nothing before.
 * Resizing.  By powers of two; a callback of call_rcu() completes it, so a table's functions are also called by
 *   the worker thread (where none can be had, by updates, and by rcu_barrier() or rcu_throttle()).  No lookup waits for it.
 *   Where memory is short the table goes on as it is, with longer buckets.  Lines that a bucket has left are used again after a
 *   grace period; while readers stay for longer, or two threads meet at such lines, buckets may be longer than they need.
 * Fork.  In the child of a process with several threads a table may be looked up, gone over and counted; it may be updated
 *   if no other thread was updating it when the process forked.  Until it is, what was left of a resize waits.
 * Flooding.  See quiesce/ds/hash.h; equal hashes make one bucket slow, never the whole table large.
 * Proof: docs/design/hashtable.md; docs/ordering.md, BK1 to BK8, HT1.
 */
#ifndef QUIESCE_DS_HASHTABLE_H
#define QUIESCE_DS_HASHTABLE_H

#include <quiesce/ds/hash.h>
#include <quiesce/detail/tagged.h>

QUIESCE_BEGIN_DECLS

struct hashtable_iter {
	struct quiesce__table_iter iter;
};

struct hashtable_walk {
	struct quiesce__table_walk walk;
};

/* ---- lookups ---- */

/** hashtable_lookup - the object with @key, NULL: there is none.
 * @type: what the table was made with.
 *
 * Context: a read-side section (the debug build reports anything else); signal handlers.  Wait-free.  Of several with the same
 *   key, any. */
QUIESCE_FAST void *hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key)
{
	struct quiesce__hashtable_lookup_state lookup;

	QUIESCE_IN_SECTION("hashtable_lookup()");
	if (quiesce_likely(quiesce__hashtable_try(ht, type, key, &lookup)))
		return lookup.object;
	return quiesce__hashtable_search(lookup.array, lookup.hash, type, key);
}

/** hashtable_lookup_hazptr - the same, and the object is protected by a hazard pointer.
 * @slot: of the caller, see hazptr.h; @offset: of the struct hazptr_head in an object.
 *
 * Use where an object is kept for longer than a section should last.  All objects of such a table are retired with
 * call_hazptr() or kfree_hazptr(), and found by this function only: hashtable_lookup(), iterations beside updates and
 * ret_existing of hashtable_insert_unique() would not protect them.
 * Context: any thread; it has a section of its own, for the table's memory.  Cost: 3 ns more.
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

/* ---- types ---- */

/** HASHTABLE_TYPE - define name_type and name_lookup() for objects of @T with the key @field.
 *
 * The key is compared and hashed byte by byte: an integer, or a struct without padding.
 * name_lookup(ht, &key) takes a pointer to what the field is; name_insert(), name_insert_unique(), name_set(),
 * name_remove() and name_remove_key() are those of any table, with the types of this one. */
#define HASHTABLE_TYPE(name, T, field)                                                                                     \
	HASHTABLE_TYPE_HASHED(name, T, field, quiesce_hash(key, sizeof(QUIESCE_NULL(T)->field), seed))

/** HASHTABLE_TYPE_HASHED - the same with another hash.
 * @hash: an expression of uint64_t with const void *key and uint64_t seed.  Its bits from 6 on choose the bucket, the upper 8 are
 *   a tag in it: each is to depend on all of the key (on the seed, too: see hash.h).  A number as it is will not do. */
#define HASHTABLE_TYPE_HASHED(name, T, field, hash)                                                                        \
	QUIESCE__HASHTABLE_TYPE(name, T, field, const __typeof__(QUIESCE_NULL(T)->field) *, hash,                          \
				memcmp(&QUIESCE_CAST(const T *, object)->field, key, sizeof(QUIESCE_NULL(T)->field)) == 0, \
				&QUIESCE_CAST(const T *, object)->field, QUIESCE__COPY(QUIESCE_NULL(T)->field),            \
				QUIESCE__IS_SMALL(QUIESCE_NULL(T)->field) ? QUIESCE_CAST(const void *, copy)               \
									  : QUIESCE_CAST(const void *, key))

/* Only a small key is in registers. */
#define QUIESCE__IS_SMALL(field) (sizeof(field) <= 16)
#define QUIESCE__COPY(field)                                                                                               \
	char copy[QUIESCE__IS_SMALL(field) ? sizeof(field) : 1] __attribute__((aligned(__alignof__(field))));              \
	memcpy(copy, key, sizeof(copy))

/** HASHTABLE_TYPE_STRING - the same where @field is a string, an array or a pointer.  name_lookup(ht, "text"). */
#define HASHTABLE_TYPE_STRING(name, T, field)                                                                              \
	QUIESCE__HASHTABLE_TYPE(name, T, field, const char *,                                                              \
				quiesce_hash_bytes(key, strlen(QUIESCE_CAST(const char *, key)), seed),                    \
				strcmp(QUIESCE_CAST(const T *, object)->field, QUIESCE_CAST(const char *, key)) == 0,      \
				QUIESCE_CAST(const T *, object)->field, (void)0, key)

#define QUIESCE__HASHTABLE_TYPE(name, T, field, K, HASH, EQUAL, KEY, COPY, COPIED)                                                \
	QUIESCE_FAST uint64_t name##_hash(const void *key, uint64_t seed) { return HASH; }                                 \
	QUIESCE_FAST bool name##_equal(const void *object, const void *key) { return EQUAL; }                              \
	static inline __attribute__((unused)) const void *name##_key(const void *object) { return KEY; }                  \
	static const struct hashtable_type name##_type __attribute__((unused)) = { name##_hash, name##_key, name##_equal }; \
	QUIESCE_FAST T *name##_lookup(const struct hashtable *ht, K key)                                                   \
	{                                                                                                                  \
		struct quiesce__hashtable_lookup_state lookup;                                                                         \
		QUIESCE_IN_SECTION(#name "_lookup()");                                                                             \
		if (quiesce_likely(quiesce__hashtable_try(ht, &name##_type, key, &lookup)))                                   \
			return QUIESCE_CAST(T *, lookup.object); \
		COPY; /* so that the key itself may stay in a register */                                                  \
		return QUIESCE_CAST(T *, quiesce__hashtable_search(lookup.array, lookup.hash, &name##_type, COPIED)); \
	}                                                                                                                  \
	static inline __attribute__((unused)) int name##_insert(struct hashtable *ht, T *object)                           \
	{                                                                                                                  \
		return QUIESCE__HASHTABLE_INSERT(ht, object);                                                               \
	}                                                                                                                  \
	static inline __attribute__((unused)) int name##_insert_unique(struct hashtable *ht, T *object, T **ret_existing)  \
	{                                                                                                                  \
		void *existing = NULL;                                                                                     \
		int err = quiesce_hashtable_insert_unique(ht, object, &existing);                                          \
		if (ret_existing)                                                                                          \
			*ret_existing = QUIESCE_CAST(T *, existing);                                                                     \
		return err;                                                                                                \
	}                                                                                                                  \
	static inline __attribute__((unused)) int name##_set(struct hashtable *ht, T *object, T **ret_old)                 \
	{                                                                                                                  \
		void *old = NULL;                                                                                          \
		int err = quiesce_hashtable_set(ht, object, &old);                                                         \
		if (ret_old)                                                                                               \
			*ret_old = QUIESCE_CAST(T *, old);                                                                               \
		return err;                                                                                                \
	}                                                                                                                  \
	static inline __attribute__((unused)) int name##_remove(struct hashtable *ht, T *object)                           \
	{                                                                                                                  \
		return quiesce_hashtable_remove(ht, object);                                                               \
	}                                                                                                                  \
	static inline __attribute__((unused)) T *name##_remove_key(struct hashtable *ht, K key)                            \
	{                                                                                                                  \
		return QUIESCE_CAST(T *, quiesce_hashtable_remove_key(ht, key));                                                         \
	}                                                                                                                  \
	struct quiesce__swallow_semicolon

/* ---- updates ---- */

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

/* The debug build looks whether the object is in the table already. */
QUIESCE_API int quiesce__hashtable_insert_debug(struct hashtable *ht, void *object);
#ifdef QUIESCE_DEBUG
#define QUIESCE__HASHTABLE_INSERT quiesce__hashtable_insert_debug
#else
#define QUIESCE__HASHTABLE_INSERT quiesce_hashtable_insert
#endif

/* static struct hashtable ht = HASHTABLE_INIT(&people_type): as hashtable_init().  The seed is drawn when something is put in
 * for the first time.  In a table that is zero instead lookups find nothing, and updates report it and change nothing. */
#define HASHTABLE_INIT(type) { QUIESCE__TABLE_INIT(quiesce__hashtable_kind, (type)) }

/** hashtable_init - an empty table with a random seed.  @type stays where it is as long as the table is used.
 *
 * Allocates nothing.  Return: 0. */
static inline int hashtable_init(struct hashtable *ht, const struct hashtable_type *type)
{
	return quiesce_hashtable_init(ht, type);
}

/** hashtable_init_seeded - the same with a seed of the caller's, for what has to be repeatable. */
static inline int hashtable_init_seeded(struct hashtable *ht, const struct hashtable_type *type, uint64_t seed)
{
	return quiesce_hashtable_init_seeded(ht, type, seed);
}

/** hashtable_insert - put @object in, whether or not there is one with its key.
 * @object: at an even address; not in the table already (the debug build reports it, QUIESCE_MISUSE_TWICE).
 *
 * Return: 0; -ENOMEM, and the table is as before; -EINVAL: @object is NULL or at an odd address. */
static inline int hashtable_insert(struct hashtable *ht, void *object) { return QUIESCE__HASHTABLE_INSERT(ht, object); }

/** hashtable_insert_unique - put @object in if there is none with its key.
 * @ret_existing: if not NULL, the one that is there, or NULL; in a section, to use it.
 *
 * Return: 0; -EEXIST; -ENOMEM. */
static inline int hashtable_insert_unique(struct hashtable *ht, void *object, void **ret_existing)
{
	return quiesce_hashtable_insert_unique(ht, object, ret_existing);
}

/** hashtable_set - put @object in, in the place of the one with its key if there is one.
 * @ret_old: if not NULL, what was replaced, the caller's to retire, or NULL; @object, if it was there itself: then nothing is to be
 *   retired.
 *
 * A lookup finds the old or the new one, never none.  Return: 0; -ENOMEM; -EINVAL as insert. */
static inline int hashtable_set(struct hashtable *ht, void *object, void **ret_old)
{
	return quiesce_hashtable_set(ht, object, ret_old);
}

/** hashtable_replace - put @fresh, which has the same key, in the place of @old.
 *
 * In the section in which @old was found, as its key is read first.
 * Return: 0, and @old is the caller's to retire; -ENOENT: it is not in the table; -EINVAL: the keys differ, it is in
 *   the table and both are the same object, or as insert. */
static inline int hashtable_replace(struct hashtable *ht, void *old, void *fresh)
{
	return quiesce_hashtable_replace(ht, old, fresh);
}

/** hashtable_remove - take this very object out.
 *
 * Its key is read first: where others may remove it too, in the section in which it was found.
 * Return: 0, and it is the caller's to retire; -ENOENT: it is not in; -EINVAL: NULL, or at an odd address. */
static inline int hashtable_remove(struct hashtable *ht, void *object) { return quiesce_hashtable_remove(ht, object); }

/** hashtable_remove_key - take an object with @key out.  Return: it, the caller's to retire; NULL: there was none. */
static inline void *hashtable_remove_key(struct hashtable *ht, const void *key)
{
	return quiesce_hashtable_remove_key(ht, key);
}

/** hashtable_update - put in, change, replace or take out, in one step with looking what is there.
 * @fn: called with an object that has @key, or NULL, and @arg, under the bucket's lock: no other update of the key is under way.  Returns
 *   what is to be there: the same, which it may have changed; another one with the key, whose place is the same; NULL.  It may be
 *   called again, where memory has to be fetched for a new object, and then only its last result counts.
 * @ret_old: if not NULL, the object that is not there any more, the caller's to retire, or NULL.
 *
 * Readers beside it see fields that @fn changes, at any time.  @fn must not use the table, sleep, wait for readers, throw, jump out,
 * or end the thread.
 * Return: 0; -ENOMEM, and nothing is changed: there was no object, and no memory for one, or for the table's first; -EINVAL, and
 *   nothing is changed: @fn returned an object with another key, or one as insert refuses. */
static inline int hashtable_update(struct hashtable *ht, const void *key, void *(*fn)(void *object, void *arg), void *arg, void **ret_old)
{
	return quiesce_hashtable_update(ht, key, fn, arg, ret_old);
}

/** hashtable_clear - take all objects out.
 * @drop: called for each, with @arg, out of the bucket's lock and in a section; NULL: nothing to do.  It retires, as readers may be there.
 *
 * Beside updates: what was in when it was called is taken out, by somebody; what is put in meanwhile may stay.
 * Context: any thread, also in a section; a section of its own for each bucket, so no grace period waits for the whole.
 * Cost: as an iteration, and a lock for each bucket; the table shrinks afterwards, unless room was reserved. */
static inline void hashtable_clear(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	quiesce_hashtable_clear(ht, drop, arg);
}

/** hashtable_reserve - room for @nr objects, and never less.
 *
 * Context: may take as long as moving all that is in the table; not in a section, if others update the table.
 * Return: 0; -ENOMEM: the table works, and is as large as it could be made. */
static inline int hashtable_reserve(struct hashtable *ht, size_t nr) { return quiesce__table_reserve(&ht->table, nr); }

/** hashtable_count - how many objects are in the table; exact while nobody updates it.
 *
 * Beside updates it may have what was put in and taken out again while it was counting.
 * Cost: some loads; for tables of more than about 1000 objects two for each CPU. */
static inline size_t hashtable_count(const struct hashtable *ht) { return quiesce__table_count(&ht->table); }

/** hashtable_stats - what the table looks like.  Cost: goes over all of it. */
static inline void hashtable_stats(const struct hashtable *ht, struct quiesce_table_stats *ret)
{
	quiesce__table_stats(&ht->table, ret);
}

/** hashtable_destroy - the end of a table.
 * @drop: called for each object that is still in it, with @arg; NULL: nothing to do.  It retires, as readers may be there.
 *
 * Context: nobody updates the table any more; readers may still be inside, and find what was there or nothing.  Does not sleep;
 *   may be called in a section, and is one itself: @drop must not wait for readers, and grace periods wait for the whole.
 * The struct itself may be reused or freed when its readers are gone. */
static inline void hashtable_destroy(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	quiesce_hashtable_destroy(ht, drop, arg);
}

/** hashtable_for_each - go over all objects, in no order.
 * @object: the cursor, a pointer; @it: a struct hashtable_iter.
 *
 * Context: a section from before to after the loop; the body may update the table.
 * An object that is in the table all the time is seen once, also if the table is resized; one that is put in or taken
 * out meanwhile, by the body too, may be missed or seen, and one that is put in again seen again.  So ask a removal for its result. */
#define hashtable_for_each(object, it, ht)                                                                                 \
	for (QUIESCE_IN_SECTION("hashtable_for_each()"), quiesce__iter_begin(&(it)->iter);                                 \
	     ((object) = QUIESCE_CAST(__typeof__(object), quiesce_hashtable_next((ht), (it))));)

/** hashtable_walk_enter - begin to go over all objects in several sections, so that no grace period waits for all of it.
 *
 *	struct hashtable_walk walk;
 *	for (hashtable_walk_enter(&flows, &walk); hashtable_walk_start(&walk); hashtable_walk_stop(&walk))
 *		while ((flow = hashtable_walk_next(&walk)))
 *			use(flow);
 *
 * Each section is as long as 64 buckets take.  Between two of them nothing is kept but the place in the table, and the caller may sleep.
 * What hashtable_for_each() says of objects that come and go is true of the whole; but who stops before hashtable_walk_next() has
 * returned NULL is shown some of the last objects again.
 * Context: any thread, not in a section; the table must not be destroyed meanwhile.  Leave with break only after hashtable_walk_stop(). */
static inline void hashtable_walk_enter(const struct hashtable *ht, struct hashtable_walk *walk)
{
	quiesce__walk_enter(&walk->walk, &ht->table);
}

/** hashtable_walk_start - enter a section.  False: there was nothing more, and no section is entered. */
static inline bool hashtable_walk_start(struct hashtable_walk *walk) { return quiesce__walk_start(&walk->walk); }

/** hashtable_walk_next - the next object; NULL: leave the section, and start again. */
static inline void *hashtable_walk_next(struct hashtable_walk *walk) { return quiesce_hashtable_walk_next(walk); }

/** hashtable_walk_stop - leave the section. */
static inline void hashtable_walk_stop(struct hashtable_walk *walk)
{
	(void)walk;
	rcu_read_unlock();
}

/** hashtable_for_each_match - go over all objects with the key at @k.  As above. */
#define hashtable_for_each_match(object, it, ht, k)                                                                        \
	for (QUIESCE_IN_SECTION("hashtable_for_each_match()"), quiesce__iter_begin(&(it)->iter);                           \
	     ((object) = QUIESCE_CAST(__typeof__(object), quiesce_hashtable_next_match((ht), (it), (k))));)

QUIESCE_END_DECLS

#endif
