/* SPDX-License-Identifier: MIT */
/* segments.h - a queue of addresses with one owner, who appends, and one consumer at a time.
 *
 *      taken       ready            queued
 *        |           |                |
 *   ...  v           v                v
 *   [gone][ consume  ][ still waiting ][ free ...
 *   first ----> segment ----> segment ----> segment (the owner's)
 *
 * Addresses and no links, so that the consumer prefetches what it will touch and an object for free() is not touched before.
 * A segment is allocated by the owner as it gets there, and freed by the consumer as it leaves it, so a queue that is
 * rarely used has one.
 *
 * I1. Between the last address of a segment and the first of the next nothing is appended: an allocator that retires while the
 *     owner has a segment from it is told that there is no memory.
 */
#ifndef QUIESCE_SEGMENTS_H
#define QUIESCE_SEGMENTS_H

#include "runtime/core.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_SEGMENT_SLOTS 2u
#else
#define QUIESCE_SEGMENT_SLOTS 123u /* less than a kilobyte, what allocators of the C library serve from small bins */
#endif

struct quiesce__segment {
	struct quiesce__segment *next; /* written once, by the owner; CB1 publishes it */
	uint64_t base;                 /* @queued when it was appended */
	uintptr_t slot[QUIESCE_SEGMENT_SLOTS];
};

/* The owner's end. */
struct quiesce__append {
	uint64_t queued; /* addresses ever appended; read by who consumes */
	uint64_t bytes;  /* of them, and of what else the owner counts here; read by who consumes */
	uintptr_t *at, *end; /* free slots of the last segment */
	struct quiesce__segment *last;
	struct quiesce__segment *first; /* of all, ever; read by who consumes */
};

/* The other end. */
struct quiesce__consume {
	uint64_t taken;     /* addresses ever taken; read by the owner */
	uint64_t bytes_out; /* of what was reclaimed */
	struct quiesce__segment *head; /* the one that @taken is in, or has just left; NULL: before the first */
};

/* What was queued before a grace period. */
struct quiesce__snapshot {
	uint64_t nr, bytes; /* ever */
};

/* Another segment at the end; false: there is no memory, or this is a call by the allocator. */
bool quiesce__append_segment(struct quiesce__append *to);

/* False: there is no memory. */
static inline bool quiesce__append_item(struct quiesce__append *to, uintptr_t item, size_t bytes)
{
	if (quiesce_unlikely(to->at == to->end) && !quiesce__append_segment(to))
		return false;
	/* Relaxed: CB1 publishes both. */
	quiesce_store_relaxed(to->at++, item);
	quiesce_store_relaxed(&to->bytes, to->bytes + bytes);
	/* CB1: release, pairs with CB1 in quiesce__take_snapshot() */
	quiesce_store_release(CB1, &to->queued, to->queued + 1);
	return true;
}

static inline void quiesce__take_snapshot(struct quiesce__snapshot *ret, const struct quiesce__append *end)
{
	/* CB1: acquire, pairs with CB1 in quiesce__append_item() */
	ret->nr = quiesce_load_acquire(CB1, &end->queued);
	/* Relaxed: at least the bytes of what the snapshot covers, because of CB1; what is more is not counted again. */
	ret->bytes = quiesce_load_relaxed(&end->bytes);
}

/* Where the address of number @taken is; and how many follow each other there, it included, of those before @until.
 * There is one.  Gives back the segment that this leaves. */
uintptr_t *quiesce__consume_at(struct quiesce__consume *from, const struct quiesce__append *end, uint64_t until, uint32_t *ret_nr);

/* Give back what an empty queue that has no owner any more still has. */
void quiesce__segments_end(struct quiesce__consume *from, const struct quiesce__append *end);

#endif
