/* SPDX-License-Identifier: MIT */
/* segments.h - a queue of addresses, with one owner that appends, and one consumer at a time.
 *
 *         taken      ready            queued
 *          |          |                |
 *   ...    v          v                v
 *   [freed][ consume ][ still waiting ][ empty ...
 *   first ----> segment ----> segment ----> segment (the owner's)
 *
 * The queue has addresses instead of links, so that the consumer can prefetch objects, and touches an object for free() only in free().
 * The owner allocates a segment when it needs one, and the consumer frees a segment when it leaves it, so a queue that is
 * rarely used has one.
 *
 * I1. Nothing is appended while the owner allocates a segment: an append by an allocator that retires inside that allocation
 *     fails as if there were no memory.
 */
#ifndef QUIESCE_SEGMENTS_H
#define QUIESCE_SEGMENTS_H

#include "runtime/core.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_SEGMENT_SLOTS 2u
#else
#define QUIESCE_SEGMENT_SLOTS 115u /* less than a kilobyte, what allocators of the C library serve from small bins */
#endif
#define QUIESCE_PREFETCH 8u /* the consumer prefetches the object that is so many slots ahead */

struct quiesce__segment {
	struct quiesce__segment *next; /* written once, by the owner; CB1 publishes it */
	uint64_t base;                 /* @queued when it was appended */
	uintptr_t slot[QUIESCE_SEGMENT_SLOTS + QUIESCE_PREFETCH]; /* the last ones stay empty */
};

/* The owner appends at this end. */
struct quiesce__append {
	uint64_t queued; /* addresses ever appended; read by the consumer */
	uint64_t bytes;  /* bytes ever appended, and other bytes that the owner counts here; read by the consumer */
	uintptr_t *at, *end; /* free slots of the last segment */
	struct quiesce__segment *last;
	struct quiesce__segment *first; /* first segment that was ever appended; read by the consumer */
};

/* The consumer takes from this end. */
struct quiesce__consume {
	uint64_t taken;     /* addresses ever taken; read by the owner */
	uint64_t bytes_out; /* bytes ever reclaimed */
	struct quiesce__segment *head; /* the segment that @taken is in, or has just left; NULL: before the first */
};

/* A snapshot has the totals of a queue before a grace period. */
struct quiesce__snapshot {
	uint64_t nr, bytes; /* addresses and bytes ever appended */
};

/* Append a segment; false: there is no memory, or the allocator itself makes this call. */
bool quiesce__append_segment(struct quiesce__append *to);

/* True if the last segment has a free slot. */
static inline bool quiesce__append_fits(const struct quiesce__append *to)
{
	return quiesce_likely(to->at != to->end);
}

/* Append an address, which fits. */
static inline void quiesce__append_item(struct quiesce__append *to, uintptr_t item, size_t bytes)
{
	/* Relaxed: CB1 publishes both. */
	quiesce_store_relaxed(to->at++, item);
	quiesce_store_relaxed(&to->bytes, to->bytes + bytes);
	/* CB1: release, pairs with CB1 in quiesce__take_snapshot() */
	quiesce_store_release(CB1, &to->queued, to->queued + 1);
}

static inline void quiesce__take_snapshot(struct quiesce__snapshot *ret, const struct quiesce__append *end)
{
	/* CB1: acquire, pairs with CB1 in quiesce__append_item() */
	ret->nr = quiesce_load_acquire(CB1, &end->queued);
	/* Relaxed: because of CB1 these include the bytes of all addresses in the snapshot; bytes beyond them are not counted again. */
	ret->bytes = quiesce_load_relaxed(&end->bytes);
}

/* Return the slot of address number @taken, which is before @until; *@ret_nr is the number of addresses from there on that are contiguous
 * and before @until.  A segment that the consumer leaves is freed. */
uintptr_t *quiesce__consume_at(struct quiesce__consume *from, const struct quiesce__append *end, uint64_t until, uint32_t *ret_nr);

/* Free the segments of an empty queue whose owner has exited. */
void quiesce__segments_end(struct quiesce__consume *from, const struct quiesce__append *end);

#endif
