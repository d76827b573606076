/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hashmap.h - a hash table from 64-bit keys to 64-bit values, one cache miss for a
 * lookup.
 *
 * Use for numbers, handles and pointers that are found by a 64-bit key.  Key and value are in the
 * bucket itself, so a lookup reads one cache line.  For longer keys, or several objects with one
 * key, use quiesce/ds/hashtable.h.
 *
 *	struct hashmap ports;
 *	hashmap_init(&ports);
 *	hashmap_set(&ports, address, port, NULL);       // updater, any thread
 *
 *	rcu_read_lock();                                // reader
 *	port = hashmap_lookup(&ports, address);         // 0: there is none
 *	rcu_read_unlock();
 *
 * A value is never 0, which means none; a key is any number.  A value may be a pointer: then
 * the updater retires its target when the value has been replaced or removed (kfree_rcu()), and a
 * reader uses the target only inside its section.
 *
 * Ordering.  Everything written before a value was stored is visible to a reader that finds the
 * value.  Operations on one key are linearizable, also during a resize; iterations are not.
 * Context.  Lookups and iterations: inside a read-side section of RCU; also in signal handlers.
 * Updates: any thread, also in sections, not in signal handlers; updates of one bucket exclude each
 * other, and wait for the holder of its lock.
 * Resizing.  By powers of two; a callback of call_rcu() completes it (without a worker, updates do,
 * and rcu_barrier() or rcu_throttle()).  No lookup waits for it.  If memory is short the map keeps
 * its size, with longer buckets.
 * Fork.  In the child of a process with several threads a map may be searched, iterated and counted;
 * it may be updated if no other thread was updating it at the fork.
 * Flooding.  See quiesce/ds/hash.h.
 * Cost.  A lookup: one cache miss, no locked instruction; one more miss if the bucket is full (at
 * most one lookup in 7; in 4 after many removals) or has moved.  An update: a lock of
 * the bucket, and a cache miss as a lookup has.
 * Memory for each key: 41 to 100 bytes while the map grows, up to 400 before it shrinks, that of
 * both arrays during a resize; at least 384 bytes after the first insertion, nothing before.
 * Proof: docs/design/hashtable.md; docs/ordering.md, BK1 to BK9, HM1, HM2.
 */
#ifndef QUIESCE_DS_HASHMAP_H
#define QUIESCE_DS_HASHMAP_H

#include <quiesce/detail/hashmap.h>
#include <quiesce/ds/hash.h>

QUIESCE_BEGIN_DECLS

/* A map; the caller allocates its 64 bytes. */
struct hashmap {
	struct quiesce__table table;
};

struct hashmap_iter {
	struct quiesce__table_iter iter;
};

struct hashmap_walk {
	struct quiesce__table_walk walk;
};

/* ---- set-up ---- */

/** HASHMAP_INIT - initialise statically: struct hashmap map = HASHMAP_INIT.
 * As hashmap_init(); the first insertion draws the seed.  In an all-zero map lookups find nothing,
 * and updates are reported and change nothing. */
#define HASHMAP_INIT { QUIESCE__TABLE_INIT(quiesce__hashmap_kind, NULL) }

/** hashmap_init - initialise an empty map with a random seed.
 * Allocates nothing.
 * Return: 0. */
QUIESCE_PLAIN int hashmap_init(struct hashmap *map) { return quiesce_hashmap_init(map); }

/** hashmap_init_seeded - initialise an empty map with the caller's seed, for repeatable runs. */
QUIESCE_PLAIN int hashmap_init_seeded(struct hashmap *map, uint64_t seed) { return quiesce_hashmap_init_seeded(map, seed); }

/* ---- lookups and updates ---- */

/** hashmap_lookup - return the value of @key; 0 if there is none.
 *
 * Context: a read-side section (the debug build reports others); signal handlers.  Never waits; it
 *   searches again if a key was written into the same line meanwhile. */
QUIESCE_FAST uint64_t hashmap_lookup(const struct hashmap *map, uint64_t key)
{
	uint64_t hash = quiesce_hash_u64(key, quiesce__seed_of(&map->table)), header;
	const struct quiesce__buckets *array = quiesce__buckets_of(&map->table);
	const struct quiesce__bucket *line;
	uint64_t i;

	QUIESCE_IN_SECTION("hashmap_lookup()");
	/* Rare cases are out of line: see quiesce/detail/tagged.h. */
	if (quiesce_unlikely(!array))
		return quiesce__hashmap_search(array, hash, key);
	line = quiesce__bucket_read(array, hash, &header);
	if (quiesce_unlikely(header & QUIESCE_BUCKET_MOVED))
		return quiesce__hashmap_search(array, hash, key);
	i = quiesce__map_index(line, key);
	/* HM1: acquire, pairs with HM1 in write_key() */
	if (quiesce_likely(quiesce_load_acquire(HM1, &line->word[i]) == key)) {
		/* HM2: acquire, pairs with HM2 in set_value() */
		uint64_t value = quiesce_load_acquire(HM2, &line->word[i + 1]);

		/* HM1: acquire, pairs with HM1 in write_key() */
		uint64_t changed = quiesce_load_acquire(HM1, &line->word[0]) ^ header;

		if (quiesce_likely(changed <= QUIESCE_BUCKET_FLAGS && value != 0))
			return value;
	/* HM2: acquire, pairs with HM2 in put_behind() and rebuild() */
	} else if (quiesce_likely(!quiesce_load_acquire(HM2, &line->word[QUIESCE_MAP_LINK]))) {
		/* If a key had moved from an overflow line to this line in between, the count
		 * would differ. */
		/* HM1: acquire, pairs with HM1 in write_key() */
		if (quiesce_likely((quiesce_load_acquire(HM1, &line->word[0]) ^ header) <= QUIESCE_BUCKET_LOCKED))
			return 0;
	}
	return quiesce__hashmap_search(array, hash, key);
}

/** hashmap_lookup_many - do hashmap_lookup() for @nr keys, and wait for their cache lines together.
 * @ret_values: set to the value of each key, 0 if there is none.
 *
 * Each key is looked up by itself, in the order of @keys: the values are not a snapshot.
 * Context: as hashmap_lookup().
 * Cost: for a large map about half of that many lookups, if @nr is 16 or more; for one in the
 *   first-level cache a sixth more.
 * Return: the number of keys that have a value. */
QUIESCE_PLAIN size_t hashmap_lookup_many(const struct hashmap *map, const uint64_t *keys, size_t nr, uint64_t *ret_values)
{
	QUIESCE_IN_SECTION("hashmap_lookup_many()");
	return quiesce_hashmap_lookup_many(map, keys, nr, ret_values);
}

/** hashmap_insert - give @key the value @value if it has none.
 * @ret_existing: if not NULL, set to the value that it has, or to 0.
 *
 * Return: 0; -EEXIST; -ENOMEM, and the map is unchanged; -EINVAL: @value is 0, or the map is not
 *   initialised. */
QUIESCE_PLAIN int hashmap_insert(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_existing)
{
	return quiesce_hashmap_insert(map, key, value, ret_existing);
}

/** hashmap_set - give @key the value @value.
 * @ret_old: if not NULL, set to the value that it had, or to 0.
 *
 * A lookup finds the old value or the new one, never none.
 * Return: 0; -ENOMEM; -EINVAL: @value is 0, or the map is not initialised. */
QUIESCE_PLAIN int hashmap_set(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_old)
{
	return quiesce_hashmap_set(map, key, value, ret_old);
}

/** hashmap_replace - give @key the value @value if it has the value @old.
 *
 * Return: 0; -ENOENT: it has another value or none; -EINVAL: a value is 0. */
QUIESCE_PLAIN int hashmap_replace(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value)
{
	return quiesce_hashmap_replace(map, key, old, value);
}

/** hashmap_remove - remove @key.
 * Return: the value that it had; 0: none. */
QUIESCE_PLAIN uint64_t hashmap_remove(struct hashmap *map, uint64_t key) { return quiesce_hashmap_remove(map, key); }

/** hashmap_remove_value - remove @key if it has the value @value.
 * Return: 0; -ENOENT. */
QUIESCE_PLAIN int hashmap_remove_value(struct hashmap *map, uint64_t key, uint64_t value)
{
	return quiesce_hashmap_remove_value(map, key, value);
}

/** hashmap_update - set a value that depends on the present one: a counter, or insert or modify.
 * @fn: called with the value, 0 if there is none, and @arg, under the bucket's lock: no other
 *   update of the key is in progress.  Returns the new value; 0: none.  It may be called again
 *   after an allocation for a new key, and then only its last result counts.  It must not use the
 *   map, sleep, wait for readers, throw, jump out, or end the thread.
 * @ret_old: if not NULL, set to the value before, or to 0.
 *
 * Return: 0; -ENOMEM, and nothing has changed: there was no value, and no memory for one, or for
 *   the map's first; -EINVAL: the map is not initialised. */
QUIESCE_PLAIN int hashmap_update(struct hashmap *map, uint64_t key, uint64_t (*fn)(uint64_t value, void *arg), void *arg,
				 uint64_t *ret_old)
{
	return quiesce_hashmap_update(map, key, fn, arg, ret_old);
}

/** hashmap_remove_if - remove the keys that @match chooses.
 * @match: called with each key, its value and @arg, under the bucket's lock: no other update of the
 *   key comes between its answer and the removal.  It must not use the map, sleep, wait for readers,
 *   throw, jump out, or end the thread.
 *
 * Keys that are in the map throughout the call are judged, once; keys that are inserted or removed
 * meanwhile may be judged or not, and again if they are inserted again.  Each removal is an update of
 * its own.  If values are pointers, @match may collect those of the keys that it removes, to be
 * retired when the call has returned.
 * Context, cost: as hashmap_clear().
 * Return: the number of removed keys. */
QUIESCE_PLAIN size_t hashmap_remove_if(struct hashmap *map, bool (*match)(uint64_t key, uint64_t value, void *arg), void *arg)
{
	return quiesce_hashmap_remove_if(map, match, arg);
}

/** hashmap_clear - remove all keys; the targets of the values belong to the caller.
 * Keys that were in the map at the call are removed, by this call or by another; keys that are
 * inserted meanwhile may stay.
 * Context: any thread, also in a section; enters a section for each bucket, so no grace period
 *   waits for the whole.
 * Cost: as an iteration, and a lock for each bucket that was ever used; the map shrinks afterwards,
 *   but not below what was reserved. */
QUIESCE_PLAIN void hashmap_clear(struct hashmap *map) { quiesce_hashmap_clear(map); }

/** hashmap_reserve - allocate memory for @nr keys, and keep it.
 * Context: may take as long as moving all pairs; not in a section beside other updaters.
 * Return: 0; -ENOMEM: the map is usable, and keeps its size; -EINVAL: it is not initialised. */
QUIESCE_PLAIN int hashmap_reserve(struct hashmap *map, size_t nr) { return quiesce__table_reserve(&map->table, nr); }

/** hashmap_count - return the number of keys that have a value; exact while no thread updates the
 * map. */
QUIESCE_PLAIN size_t hashmap_count(const struct hashmap *map) { return quiesce__table_count(&map->table); }

/** hashmap_stats - return statistics of the map.
 * Cost: reads all buckets. */
QUIESCE_PLAIN void hashmap_stats(const struct hashmap *map, struct quiesce_table_stats *ret)
{
	quiesce__table_stats(&map->table, ret);
}

/** hashmap_destroy - end the use of a map; the targets of its values belong to the caller.
 * Context: no thread updates the map any more; readers may still be inside, and find its keys or
 *   nothing.  Does not sleep; may be called in a section.
 * The struct itself may be reused or freed when its readers are gone. */
QUIESCE_PLAIN void hashmap_destroy(struct hashmap *map) { quiesce_hashmap_destroy(map); }

/** hashmap_for_each - iterate over all keys, in no order.
 * @k: a uint64_t variable, for the key.
 * @v: a uint64_t variable, for the value.
 * @it: a struct hashmap_iter.
 *
 * Context: a section from before to after the loop; the body may update the map.
 * A key that is in the map throughout is visited once, also during a resize; one that is inserted
 * or removed meanwhile, by the body too, may be missed or visited, and again if it is inserted
 * again. */
#define hashmap_for_each(k, v, it, map) \
	for (QUIESCE_IN_SECTION("hashmap_for_each()"), quiesce__iter_begin(&(it)->iter); \
	     quiesce_hashmap_next((map), (it), &(k), &(v));)

/** hashmap_walk_enter - begin an iteration over all keys in several sections, so that no grace
 * period waits for the whole.
 *
 *	struct hashmap_walk walk;
 *	for (hashmap_walk_enter(&map, &walk); hashmap_walk_start(&walk); hashmap_walk_stop(&walk))
 *		while (hashmap_walk_next(&walk, &key, &value))
 *			use(key, value);
 *
 * Each section visits 64 buckets.  Between two of them only the position is kept, and the caller
 * may sleep.  The guarantees of hashmap_for_each() hold for the whole; but if a section ends before
 * hashmap_walk_next() has returned false, some of its last keys are visited again.
 * Context: any thread, not in a section; the map must not be destroyed meanwhile.  Leave with
 *   break only after hashmap_walk_stop(). */
QUIESCE_PLAIN void hashmap_walk_enter(const struct hashmap *map, struct hashmap_walk *walk)
{
	quiesce__walk_enter(&walk->walk, &map->table);
}

/** hashmap_walk_start - enter a section.  False: the iteration is over, and no section is entered. */
QUIESCE_PLAIN bool hashmap_walk_start(struct hashmap_walk *walk) { return quiesce__walk_start(&walk->walk); }

/** hashmap_walk_next - return the next key and its value.
 * Return: false: leave the section, and start again. */
QUIESCE_PLAIN bool hashmap_walk_next(struct hashmap_walk *walk, uint64_t *ret_key, uint64_t *ret_value)
{
	return quiesce_hashmap_walk_next(walk, ret_key, ret_value);
}

/** hashmap_walk_stop - leave the section. */
QUIESCE_PLAIN void hashmap_walk_stop(struct hashmap_walk *walk)
{
	(void)walk;
	rcu_read_unlock();
}

QUIESCE_END_DECLS

#endif
