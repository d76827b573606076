/* SPDX-License-Identifier: MIT */
/* hashmap.h - shared by hashmap.c and hashmap_walk.c. */
#ifndef QUIESCE_DS_HASHMAP_PRIVATE_H
#define QUIESCE_DS_HASHMAP_PRIVATE_H

#include <quiesce/ds/hashmap.h>

#include "buckets.h"

static inline const struct quiesce__bucket *follow(const struct quiesce__bucket *line)
{
	/* HM2: acquire, pairs with HM2 in put_behind() */
	return (const struct quiesce__bucket *)(uintptr_t)quiesce_load_consume(HM2, &line->word[QUIESCE_MAP_LINK]);
}

static inline uint64_t hash_of(const struct quiesce__table *table, uint64_t key)
{
	return quiesce_hash_u64(key, quiesce__seed_of(table));
}

#endif
