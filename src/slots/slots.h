/* SPDX-License-Identifier: MIT */
/* slots.h - the array of hazard slots, by CPU and by thread, and how scans walk over it. */
#ifndef QUIESCE_SLOTS_H
#define QUIESCE_SLOTS_H

#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>

#include "slot_groups.h"
#include "runtime/readers.h"
#include "runtime/yield.h"

/* This bit of quiesce_shazptr_v1.requests makes readers yield after each clear. */
#define QUIESCE_SLOTS_YIELD 2ull

/* A group begins with its slots, one word each, and one more word, the number of slots that were ever used.  As many
 * words of the scan follow; the last of them is the owner. */
#define QUIESCE_ID_WORDS (QUIESCE_BLOCK_WORDS / 2)

#if defined(QUIESCE_SIM)
#define QUIESCE_FIRST_THREADS 1u
#else
#define QUIESCE_FIRST_THREADS 16u     /* number of threads that get a line of their own, where claims are the shortest, at once */
#endif

struct quiesce__slots {
	uint32_t kind;     /* enum quiesce_slots; fixed before first use */
	uint32_t ids_used; /* blocks of lower ids may have been used */
	struct quiesce__lines lines; /* after the blocks of the ids */
	uintptr_t *fallback;     /* two counts of fallback guards, with a tag; each process has its own (slots.c) */
	uint32_t fallback_idx;   /* index of the count for new fallback guards; written by the scan */
};
extern struct quiesce__slots quiesce__slots;
extern struct quiesce__lines quiesce__hazptr_lines; /* lines of general hazard pointers, which src/hazptr fills */
extern struct quiesce__yield quiesce__slots_yield;

/* Reserve the array; at initialisation, and when a fence mode is chosen before first use. */
void quiesce__slots_init(void);
void quiesce__slots_fence_chosen(void);
void quiesce__slots_fork_child(void);

/* A scan reads three ranges of groups: blocks of ids, lines, and lines of general hazard pointers. */
#define QUIESCE_NR_RANGES 3
struct quiesce__slot_range {
	uintptr_t *first;
	uint32_t nr;
	uint32_t words; /* words of a group's first half; the next group begins twice as many words further */
	const uint64_t *live; /* one bit for each group: a slot of it may be in use; NULL: true of all groups */
};
void quiesce__slots_ranges(struct quiesce__slot_range range[QUIESCE_NR_RANGES]);

/* Returns a bit for each of the 64 groups from @first on that a scan must read.  A scan calls this once, after its fence. */
static inline uint64_t quiesce__live_groups(const struct quiesce__slot_range *range, uint32_t first)
{
	uint64_t there = range->nr - first < 64 ? (1ull << (range->nr - first)) - 1 : UINT64_MAX;

	/* SH9: acquire, pairs with SH9 in set_live() */
	return range->live ? there & quiesce_load_acquire(SH9, &range->live[first / 64]) : there;
}

static inline uintptr_t *quiesce__first_group(const struct quiesce__slot_range *range, uint32_t first, uint64_t bits)
{
	return range->first + (first + (size_t)__builtin_ctzll(bits)) * 2 * range->words;
}

#define quiesce__for_each_group(group, range) \
	for (uint32_t first_ = 0; first_ < (range)->nr; first_ += 64) \
		for (uint64_t bits_ = quiesce__live_groups(range, first_); \
		     bits_ && ((group) = quiesce__first_group(range, first_, bits_), true); bits_ &= bits_ - 1)
/* Returns the number of lines that a scan of all slots reads. */
uint32_t quiesce__slots_lines(void);
/* Returns count @index of fallback guards; while it is not 0 it blocks every waiter. */
uint32_t quiesce__slots_fallback(uint32_t index);

/* True if @slot is a count of fallback guards of this process. */
static inline bool quiesce__slot_is_count(const uintptr_t *slot)
{
	const uintptr_t *counts = quiesce_load_relaxed(&quiesce__slots.fallback); /* Relaxed: fixed. */

	return slot == counts || slot == counts + 1;
}

/* Returns the block of @id. */
static inline uintptr_t *quiesce__block_of_id(size_t id)
{
	return quiesce_load_relaxed(&quiesce_shazptr_v1.slot_array) + id * QUIESCE_BLOCK_WORDS; /* Relaxed: fixed. */
}

/* Returns the number of slots of a group that a scan must read, because they have been used at least once. */
static inline uint32_t quiesce__slots_used(const uintptr_t *group, uint32_t words)
{
	/* SH6: acquire, pairs with SH6 in quiesce__raise_used() */
	return (uint32_t)quiesce_load_acquire(SH6, &group[words - 1]);
}

/* Returns the value of @slot, tag included; what was done under earlier guards of the slot is visible to the caller. */
static inline uintptr_t quiesce__slot_read(const uintptr_t *slot)
{
	/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
	return quiesce_load_acquire(SH2, slot);
}

#endif
