/* SPDX-License-Identifier: MIT */
/* slot_groups.h - lines of hazard slots, owned by threads and contexts, or shared between all; never freed.
 *
 *   a line:  | 7 slots, how many were ever used | the scan's words, owner |
 *
 * The owner word says whose a line is.  What is still held in it when its owner goes stays held: the
 * next owner finds those slots taken.  So a protection may outlive its thread.
 *
 * A bit for each line says whether a scan must read it: while it has an owner, and as long as anything was held in it when its
 * owner went.  So a scan takes as many lines as there are, and not as there ever were.  Another bit says that it has no owner.
 */
#ifndef QUIESCE_SLOT_GROUPS_H
#define QUIESCE_SLOT_GROUPS_H

#include "runtime/room.h"

#define QUIESCE_LINE_WORDS 8u
#define QUIESCE_LINE_SLOTS (QUIESCE_LINE_WORDS - 1)
#define QUIESCE_LINE_BYTES (2 * QUIESCE_LINE_WORDS * sizeof(uintptr_t))
#define QUIESCE_MOST_LINES (38u << 12) /* of an array: about a million slots */
/* Bytes in front of @nr lines, for two bits each. */
#define QUIESCE_LINE_BITS(nr) (2 * QUIESCE_LINE_BYTES * (((nr) + 8 * QUIESCE_LINE_BYTES - 1) / (8 * QUIESCE_LINE_BYTES)))

/* Owners: 0 none; a thread's number in the low half, below a count of 29 bits; or: */
#define QUIESCE_OWNER_CONTEXT ((uint64_t)1 << 63) /* and the number of the thread that asked: kept until given back */
/* Shared for good: all threads claim there by compare-and-exchange.  The low half is the pool's, in slot_pool.c. */
#define QUIESCE_OWNER_ALL ((uint64_t)3 << 62)

/* Besides, of a thread of the parent's or a context that one asked for, in a child whose survivor has not come yet. */
#define QUIESCE_OWNER_INHERITED ((uint64_t)1 << 61)

/* Shared lines: slot_pool.c. */
struct quiesce__pool {
	uintptr_t *hand; /* a line of the ring; NULL: there is none */
	uint32_t nr;     /* lines; about */
	uint32_t paid;   /* lines that may be passed; about */
};

struct quiesce__lines {
	uintptr_t *first;
	uint64_t *live;     /* a bit for each line: it is to be scanned */
	uint64_t *left;     /* a bit for each line: it has no owner */
	uintptr_t empty;    /* what a slot holds that nobody has */
	uint32_t capacity;
	uint32_t nr;        /* lines that were ever owned; grows only */
	uint32_t probe;     /* the line whose owner is next to be probed: does that thread live? */
	uint64_t summary[QUIESCE_MOST_LINES / 64 / 64]; /* a bit for each word of @left: it is not 0 */
	struct quiesce__pool pool;
	struct quiesce__room room; /* where lines are added; none: they are all there */
};

static inline uintptr_t *quiesce__line(const struct quiesce__lines *lines, size_t index)
{
	return lines->first + index * 2 * QUIESCE_LINE_WORDS;
}

/* Of the line that @word is in; a huge number if @word is none of theirs. */
static inline size_t quiesce__line_index(const struct quiesce__lines *lines, const void *word)
{
	return (uintptr_t)((const char *)word - (const char *)lines->first) / QUIESCE_LINE_BYTES;
}

static inline uint64_t *quiesce__line_owner(uintptr_t *line)
{
	return (uint64_t *)line + 2 * QUIESCE_LINE_WORDS - 1;
}

/* Reserve room for @max lines after @before bytes; nothing of it is in use.
 * Returns where those bytes are; NULL: not even address space can be had. */
void *quiesce__reserve_lines(struct quiesce__lines *lines, size_t before, uint32_t max);
/* The same in memory that is there, zeroed: QUIESCE_LINE_BITS(@nr) bytes, and the lines. */
void quiesce__few_lines(struct quiesce__lines *lines, void *start, uint32_t nr);
/* Count @nr in, at least. */
void quiesce__raise_to(uint32_t *count, uint32_t nr);
/* Slot @k of a group of @words is about to be used. */
void quiesce__raise_used(uintptr_t *group, uint32_t words, uint32_t k);
/* A line from @from to below @limit that is free, for @owner; NULL: there is none, or no memory. */
uintptr_t *quiesce__take_line(struct quiesce__lines *lines, uint64_t owner, uint32_t from, uint32_t limit);
/* Line @i, which is counted, has no owner; may be said twice. */
void quiesce__note_left(struct quiesce__lines *lines, uint32_t i);
/* For the calling thread.  Thread numbers come again; owners do not. */
uint64_t quiesce__new_owner(void);
void quiesce__leave_line(struct quiesce__lines *lines, uintptr_t *line);
/* The owner of the line that @slot is in; 0: none, or not in these lines. */
uint64_t quiesce__owner_at(struct quiesce__lines *lines, const uintptr_t *slot);

/* A pool: the array of its lines, where a new line comes from, and how slots are claimed in a line (the first of them; NULL: none). */
struct quiesce__pool_type {
	struct quiesce__lines *lines;
	uintptr_t *(*take_line)(uint64_t owner);
	uintptr_t *(*claim)(uintptr_t *line, uintptr_t what);
};
/* A slot of the pool, or a row of them; NULL: none was found soon, and there is no memory for more. */
uintptr_t *quiesce__pool_claim(const struct quiesce__pool_type *type, uintptr_t what);
/* The same, but however long it takes to find one. */
uintptr_t *quiesce__pool_claim_any(const struct quiesce__pool_type *type, uintptr_t what);
/* @line, which is the caller's, becomes shared; slots that are taken in it stay taken. */
void quiesce__pool_add(const struct quiesce__pool_type *type, uintptr_t *line);

static inline bool quiesce__owner_is_all(uint64_t owner)
{
	return (owner & QUIESCE_OWNER_ALL) == QUIESCE_OWNER_ALL;
}

static inline bool quiesce__owner_is_thread(uint64_t owner)
{
	return owner && !(owner & QUIESCE_OWNER_CONTEXT);
}

#endif
