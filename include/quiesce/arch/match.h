/* SPDX-License-Identifier: MIT */
/* quiesce/arch/match.h - find the bytes of a word that equal a tag; private, for detail/tagged.h.
 *
 * quiesce__match_tag() returns a mark for each such byte, from the low end on;
 * quiesce__match_index() returns the byte number of the first mark, and match & (match - 1) removes
 * it.  The tag is the upper byte of @hash with @bits set, which include the upper bit; the lowest
 * byte of @word is no tag, and less than any.  Marks of unequal bytes may follow the first correct
 * one.
 */
#ifndef QUIESCE_ARCH_MATCH_H
#define QUIESCE_ARCH_MATCH_H

#include <quiesce/base.h>

#if defined(__SSE2__)
#include <emmintrin.h>

QUIESCE_BEGIN_DECLS

typedef uint32_t quiesce__match_t;

/* The number of lookups of a large table that a CPU overlaps is limited by its registers: each
 * instruction that writes a general register occupies one until all earlier instructions are
 * complete, for a cache miss or two.  So the tag is built in a vector register, and the index is
 * not extended to 64 bits once more, as compilers do after __builtin_ctz().  (Old CPUs decode tzcnt
 * as bsf, which does the same where a bit is set.) */
QUIESCE_FAST size_t quiesce__match_index(quiesce__match_t match)
{
	size_t index;

	__asm__("tzcnt{	%1, %k0|	%k0, %1}" : "=r"(index) : "r"(match) : "cc");
	return index;
}

QUIESCE_FAST quiesce__match_t quiesce__match_tag(uint64_t word, uint64_t hash, uint8_t bits)
{
	__m128i tag = _mm_cvtsi64_si128((long long)hash);

	tag = _mm_unpacklo_epi8(tag, tag);      /* the upper byte, doubled, is the upper pair of bytes; */
	tag = _mm_shufflehi_epi16(tag, 0xff);   /* now all of the upper half; */
	tag = _mm_unpackhi_epi64(tag, tag);     /* now of both; @word's upper half is 0, and so not equal */
	tag = _mm_or_si128(tag, _mm_set1_epi8((char)bits));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_cvtsi64_si128((long long)word), tag));
}

QUIESCE_END_DECLS
#else
QUIESCE_BEGIN_DECLS

typedef uint64_t quiesce__match_t;
#define quiesce__match_index(match) ((size_t)(unsigned int)__builtin_ctzll(match) / 8)

QUIESCE_FAST quiesce__match_t quiesce__match_tag(uint64_t word, uint64_t hash, uint8_t bits)
{
	/* An equal byte becomes 0, and the upper bit of the lowest such byte is set. */
	uint64_t differ = (word ^ (hash >> 56 | bits) * 0x0101010101010101ull) | 0xff;

	return (differ - 0x0101010101010101ull) & ~differ & 0x8080808080808080ull;
}

QUIESCE_END_DECLS
#endif

#endif
