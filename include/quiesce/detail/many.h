/* SPDX-License-Identifier: MIT */
/* quiesce/detail/many.h - requests of the cache lines of many lookups at once; private, for hashtable.h.
 *
 * Keys pass three stages, a step of them at a time: the line of the bucket is requested; then the object
 * that has the key's tag there; then the key is looked up.  While one step is looked up the objects of the
 * next one and the buckets of the one behind it are on their way, so that a step waits for its slowest
 * line, and not for each.  A request is a hint: a lookup loads all that it uses itself. */
#ifndef QUIESCE_DETAIL_MANY_H
#define QUIESCE_DETAIL_MANY_H

#include <quiesce/detail/tagged.h>

QUIESCE_BEGIN_DECLS

#define QUIESCE_MANY_STEP 16u /* first-level caches have room for that many requests */
#define QUIESCE_MANY_HASHES 64u /* a power of two, of at least three steps */

QUIESCE_FAST size_t quiesce__many_end(size_t begin, size_t nr)
{
	return begin < nr && nr - begin > QUIESCE_MANY_STEP ? begin + QUIESCE_MANY_STEP : nr;
}

/* Request the buckets of the step that begins with key @begin of @nr. */
QUIESCE_FAST void quiesce__many_buckets(const struct hashtable *ht, const struct quiesce__buckets *array, const struct hashtable_type *type,
					const void *const *keys, size_t begin, size_t nr, uint64_t *hashes)
{
	uint64_t seed = quiesce__seed_of(&ht->table);

	for (size_t i = begin; array && i < quiesce__many_end(begin, nr); i++) {
		uint64_t hash = hashes[i % QUIESCE_MANY_HASHES] = type->hash(keys[i], seed);

		__builtin_prefetch(quiesce__bucket_in(array, hash));
	}
}

/* Request the objects of a step whose buckets were requested. */
QUIESCE_FAST void quiesce__many_objects(const struct quiesce__buckets *array, size_t begin, size_t nr, const uint64_t *hashes)
{
	for (size_t i = begin; array && i < quiesce__many_end(begin, nr); i++) {
		uint64_t hash = hashes[i % QUIESCE_MANY_HASHES];
		const struct quiesce__bucket *line = quiesce__bucket_in(array, hash);
		/* Relaxed: a hint; no object is accessed. */
		quiesce__table_match_t match = quiesce__table_match(quiesce_load_relaxed(&line->word[0]), hash);

		if (quiesce_likely(match)) {
			uintptr_t word = quiesce_load_relaxed(&line->word[quiesce__table_word(match)]); /* Relaxed: the same. */

			__builtin_prefetch((const void *)word);
		}
	}
}

/* Look up a step; return the number of keys that have an object. */
QUIESCE_FAST size_t quiesce__many_lookups(const struct hashtable *ht, const struct hashtable_type *type, const void *const *keys,
					  size_t begin, size_t nr, void **ret_objects)
{
	struct quiesce__hashtable_lookup_state lookup;
	size_t found = 0;

	for (size_t i = begin; i < quiesce__many_end(begin, nr); i++) {
		if (quiesce_unlikely(!quiesce__hashtable_try(ht, type, keys[i], &lookup)))
			lookup.object = quiesce__hashtable_search(lookup.array, lookup.hash, type, keys[i]);
		ret_objects[i] = lookup.object;
		found += lookup.object != NULL;
	}
	return found;
}

QUIESCE_FAST size_t quiesce__many(const struct hashtable *ht, const struct hashtable_type *type, const void *const *keys, size_t nr,
				  void **ret_objects)
{
	const struct quiesce__buckets *array = quiesce__buckets_of(&ht->table);
	uint64_t hashes[QUIESCE_MANY_HASHES];
	size_t found = 0;

	quiesce__many_buckets(ht, array, type, keys, 0, nr, hashes);
	quiesce__many_buckets(ht, array, type, keys, QUIESCE_MANY_STEP, nr, hashes);
	quiesce__many_objects(array, 0, nr, hashes);
	for (size_t begin = 0; begin < nr; begin += QUIESCE_MANY_STEP) {
		quiesce__many_buckets(ht, array, type, keys, begin + 2 * QUIESCE_MANY_STEP, nr, hashes);
		quiesce__many_objects(array, begin + QUIESCE_MANY_STEP, nr, hashes);
		found += quiesce__many_lookups(ht, type, keys, begin, nr, ret_objects);
	}
	return found;
}

QUIESCE_END_DECLS

#endif
