/* SPDX-License-Identifier: MIT */
/* quiesce/arch/match.h - which bytes of a word, but the lowest, are equal to a byte; private, for detail/tagged.h.
 *
 * quiesce__match_bytes() returns a mark for each such byte, from the low end on, which quiesce__match_index() gives the number of,
 * and match & (match - 1) takes off.  Marks of other bytes may come after the first right one where @byte is not 0.
 */
#ifndef QUIESCE_ARCH_MATCH_H
#define QUIESCE_ARCH_MATCH_H

#include <quiesce/base.h>

#if defined(__SSE2__)
#include <emmintrin.h>

QUIESCE_BEGIN_DECLS

typedef uint32_t quiesce__match_t;
#define quiesce__match_index(match) ((size_t)(unsigned int)__builtin_ctz(match))

QUIESCE_FAST quiesce__match_t quiesce__match_bytes(uint64_t word, uint64_t byte)
{
	__m128i bytes = _mm_cvtsi64_si128((long long)(byte * 0x0101010101010101ull));

	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_cvtsi64_si128((long long)word), bytes)) & 0xfe;
}

QUIESCE_END_DECLS
#else
QUIESCE_BEGIN_DECLS

typedef uint64_t quiesce__match_t;
#define quiesce__match_index(match) ((size_t)(unsigned int)__builtin_ctzll(match) / 8)

QUIESCE_FAST quiesce__match_t quiesce__match_bytes(uint64_t word, uint64_t byte)
{
	/* A byte that is equal becomes 0, and the upper bit of the lowest such byte is set. */
	uint64_t differ = (word ^ byte * 0x0101010101010101ull) | 0xff;

	return (differ - 0x0101010101010101ull) & ~differ & 0x8080808080808080ull;
}

QUIESCE_END_DECLS
#endif

#endif
