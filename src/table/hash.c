/* SPDX-License-Identifier: MIT */
/* hash.c - hash of byte strings: xxHash, compiled in. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <quiesce/ds/hash.h>

uint64_t quiesce_hash_bytes(const void *start, size_t length, uint64_t seed)
{
	return XXH3_64bits_withSeed(start, length, seed);
}
