/* SPDX-License-Identifier: MIT */
/* hashmap_many.c - lookups of many keys at once.
 *
 * The lines of the keys of one step are requested while those of the step before are searched, so a step waits for its slowest line
 * and not for each.  A request is a hint: each lookup loads the array anew, and is hashmap_lookup().
 */
#include <quiesce/ds/hashmap.h>

#include "buckets.h"

#define AT_ONCE 16u /* lines that are requested at once; first-level caches have room for that many requests */

/* Request the lines of @nr keys, at most AT_ONCE. */
static void request(const struct hashmap *map, const uint64_t *keys, size_t nr)
{
	const struct quiesce__buckets *array = quiesce__buckets_of(&map->table);
	uint64_t seed = quiesce__seed_of(&map->table);

	for (size_t i = 0; array && i < nr && i < AT_ONCE; i++)
		__builtin_prefetch(quiesce__bucket_in(array, quiesce_hash_u64(keys[i], seed)));
}

size_t quiesce_hashmap_lookup_many(const struct hashmap *map, const uint64_t *keys, size_t nr, uint64_t *ret_values)
{
	size_t found = 0;

	request(map, keys, nr);
	for (size_t i = 0; i < nr; i++) {
		if (i % AT_ONCE == 0 && nr - i > AT_ONCE)
			request(map, keys + i + AT_ONCE, nr - i - AT_ONCE);
		ret_values[i] = hashmap_lookup(map, keys[i]);
		found += ret_values[i] != 0;
	}
	return found;
}
