/* SPDX-License-Identifier: MIT */
/* quiesce/ds/hash.h - seeded hashes for the tables.
 *
 * A table draws its seed at random, so that a sender of keys cannot prepare a set of them that all
 * fall into one bucket.  Neither hash is cryptographic: an attacker that can measure the time of
 * single lookups for long may learn enough to do so.  Against that, give the table a keyed hash
 * made for the purpose (SipHash, HighwayHash); see hashtable.h. */
#ifndef QUIESCE_DS_HASH_H
#define QUIESCE_DS_HASH_H

#include <quiesce/base.h>

#include <string.h>

QUIESCE_BEGIN_DECLS

__extension__ typedef unsigned __int128 quiesce__u128;

/* Fold a 128-bit product into 64 bits, each of which depends on many bits of the factors. */
QUIESCE_FAST uint64_t quiesce__fold(uint64_t x, uint64_t odd)
{
	quiesce__u128 product = (quiesce__u128)x * odd;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/** quiesce_hash_u64 - return a 64-bit hash of a 64-bit key, inline: two multiplications.
 *
 * One would not be enough for keys that differ in their upper bits only, or in few bits.
 * Programs and the library have it compiled in, so it does not change without QUIESCE_LAYOUT.
 * Context: any. */
QUIESCE_FAST uint64_t quiesce_hash_u64(uint64_t key, uint64_t seed)
{
	/* The factors are odd and have no pattern: they are the fractions of the golden ratio and
	 * of the square root of 2. */
	return quiesce__fold(quiesce__fold(key ^ seed, 0x9e3779b97f4a7c15ull) ^ seed, 0x6a09e667f3bcc909ull);
}

/** quiesce_hash_bytes - return a 64-bit hash of @length bytes at @start: XXH3 of the xxHash
 * library, with a seed.
 *
 * Context: any.
 * Cost: a call; a few nanoseconds for short keys, then about 0.1 ns for each 8 bytes. */
QUIESCE_API uint64_t quiesce_hash_bytes(const void *start, size_t length, uint64_t seed);

/** quiesce_hash - return a hash of @length bytes at @start, by the cheaper of the two functions.
 * @length should be a constant. */
QUIESCE_FAST uint64_t quiesce_hash(const void *start, size_t length, uint64_t seed)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;

	if (length == sizeof(wide)) {
		memcpy(&wide, start, sizeof(wide));
		return quiesce_hash_u64(wide, seed);
	}
	if (length == sizeof(narrow)) {
		memcpy(&narrow, start, sizeof(narrow));
		return quiesce_hash_u64(narrow, seed);
	}
	return quiesce_hash_bytes(start, length, seed);
}

QUIESCE_END_DECLS

#endif
