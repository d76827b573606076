/* SPDX-License-Identifier: MIT */
/* hashmap.h - words of a line, shared by hashmap.c, hashmap_erase.c and hashmap_walk.c. */
#ifndef QUIESCE_DS_HASHMAP_PRIVATE_H
#define QUIESCE_DS_HASHMAP_PRIVATE_H

#include <quiesce/ds/hashmap.h>

#include "buckets.h"

static inline const struct quiesce__bucket *follow(const struct quiesce__bucket *line)
{
	/* HM2: acquire, pairs with HM2 in put_behind() */
	return (const struct quiesce__bucket *)(uintptr_t)quiesce_load_consume(HM2, &line->word[QUIESCE_MAP_LINK]);
}

/* A word of a line, for the holder of the bucket's lock; a key or a link, also for an update that checks under the lock whether it has
 * changed since (I4). */
static inline uint64_t word_at(const struct quiesce__bucket *line, unsigned int i)
{
	return quiesce_load_relaxed(&line->word[i]); /* Relaxed: it changes under the lock only. */
}

static inline struct quiesce__bucket *linked(const struct quiesce__bucket *line)
{
	return (struct quiesce__bucket *)(uintptr_t)word_at(line, QUIESCE_MAP_LINK);
}

static inline void set_value(struct quiesce__bucket *line, unsigned int i, uint64_t value)
{
	/* HM2: release, pairs with HM2 in hashmap_lookup() and quiesce__hashmap_search() and read_pair() */
	quiesce_store_release(HM2, &line->word[i + 1], value);
}

static inline uint64_t hash_of(const struct quiesce__table *table, uint64_t key)
{
	return quiesce_hash_u64(key, quiesce__seed_of(table));
}

#endif
