/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hashmap.h - the inline code of lookups in a hashmap; private, for ds/hashmap.h, which
 * is the manual.
 *
 * The ledger of its labels is at the head of src/table/hashmap.c.
 */
#ifndef QUIESCE_DETAIL_HASHMAP_H
#define QUIESCE_DETAIL_HASHMAP_H

#include <quiesce/detail/buckets.h>

QUIESCE_BEGIN_DECLS

struct hashmap;
struct hashmap_iter;
struct hashmap_walk;

QUIESCE_API int quiesce_hashmap_init(struct hashmap *map);
QUIESCE_API int quiesce_hashmap_init_seeded(struct hashmap *map, uint64_t seed);
QUIESCE_API int quiesce_hashmap_insert(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_existing);
QUIESCE_API int quiesce_hashmap_set(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_old);
QUIESCE_API int quiesce_hashmap_replace(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value);
QUIESCE_API uint64_t quiesce_hashmap_remove(struct hashmap *map, uint64_t key);
QUIESCE_API int quiesce_hashmap_remove_value(struct hashmap *map, uint64_t key, uint64_t value);
QUIESCE_API void quiesce_hashmap_destroy(struct hashmap *map);
QUIESCE_API bool quiesce_hashmap_next(const struct hashmap *map, struct hashmap_iter *it, uint64_t *ret_key, uint64_t *ret_value);
QUIESCE_API int quiesce_hashmap_update(struct hashmap *map, uint64_t key, uint64_t (*fn)(uint64_t value, void *arg), void *arg,
				       uint64_t *ret_old);
QUIESCE_API void quiesce_hashmap_clear(struct hashmap *map);
QUIESCE_API size_t quiesce_hashmap_remove_if(struct hashmap *map, bool (*match)(uint64_t key, uint64_t value, void *arg), void *arg);
QUIESCE_API size_t quiesce_hashmap_lookup_many(const struct hashmap *map, const uint64_t *keys, size_t nr, uint64_t *ret_values);
QUIESCE_API bool quiesce_hashmap_walk_next(struct hashmap_walk *walk, uint64_t *ret_key, uint64_t *ret_value);

extern QUIESCE_DATA const struct quiesce__buckets_kind quiesce__hashmap_kind;

/* A line is 64 bytes of a bucket: the header, whose upper 56 bits count the keys that were written
 * into the line; three keys, each with its value, which is 0 if there is none; a link to the next
 * line, or 0. */
#define QUIESCE_MAP_PAIRS 3
#define QUIESCE_MAP_LINK 7

/* The index of the word of @line that may be the key: 5 if that word is equal, else 3, else 1.
 * Without a branch, because none could be predicted. */
QUIESCE_FAST uint64_t quiesce__map_index(const struct quiesce__bucket *line, uint64_t key)
{
	/* Relaxed: a hint where to load. */
	uint64_t is_3 = quiesce_load_relaxed(&line->word[3]) == key;
	/* Relaxed: a hint where to load. */
	uint64_t is_5 = quiesce_load_relaxed(&line->word[5]) == key;

	return 1 + 2 * (is_3 & ~is_5) + 4 * is_5;
}

/* The value of @key in @line, whose count was @header; 0 if it has none here. */
QUIESCE_FAST uint64_t quiesce__map_find_in(const struct quiesce__bucket *line, uint64_t header, uint64_t key)
{
	uint64_t i, value, again;

	for (;; header = again) {
		i = quiesce__map_index(line, key);
		/* HM1: acquire, pairs with HM1 in write_key() */
		if (quiesce_unlikely(quiesce_load_acquire(HM1, &line->word[i]) != key))
			return 0;
		/* HM2: acquire, pairs with HM2 in set_value() */
		value = quiesce_load_acquire(HM2, &line->word[i + 1]);
		/* HM1: acquire, pairs with HM1 in write_key() */
		again = quiesce_load_acquire(HM1, &line->word[0]);
		if (quiesce_likely((again ^ header) <= QUIESCE_BUCKET_FLAGS))
			return value;
	}
}

/* Search all lines: the key is not in the first line, a key was written into that line meanwhile,
 * or the bucket has moved.  The link is loaded before the words of the first line: a pair of an overflow
 * line may move to a hole of the first line, and is then found there, or in the lines of the link. */
QUIESCE_SLOW uint64_t quiesce__hashmap_search(const struct quiesce__buckets *array, uint64_t hash,
					      uint64_t key)
{
	const struct quiesce__bucket *line, *next;
	uint64_t header, value, link;

	do {
		line = quiesce__bucket_find(array, hash, &header);
		if (quiesce_unlikely(!line))
			return 0;
		/* HM2: acquire, pairs with HM2 in put_behind() and rebuild() */
		link = quiesce_load_acquire(HM2, &line->word[QUIESCE_MAP_LINK]);
		next = (const struct quiesce__bucket *)link;
		/* HM1: acquire, pairs with HM1 in write_key() */
		header = quiesce_load_acquire(HM1, &line->word[0]);
	} while (quiesce_unlikely(header & QUIESCE_BUCKET_MOVED));
	while (!(value = quiesce__map_find_in(line, header, key)) && next) {
		line = next;
		/* HM1: acquire, pairs with HM1 in write_key() */
		header = quiesce_load_acquire(HM1, &line->word[0]);
		/* HM2: acquire, pairs with HM2 in put_behind() */
		link = quiesce_load_consume(HM2, &line->word[QUIESCE_MAP_LINK]);
		next = (const struct quiesce__bucket *)link;
	}
	return value;
}

QUIESCE_END_DECLS

#endif
