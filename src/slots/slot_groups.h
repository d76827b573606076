/* SPDX-License-Identifier: MIT */
/* slot_groups.h - lines of hazard slots, owned by threads and contexts, or shared between all; never freed.
 *
 *   a line:  | 7 slots, how many were ever used | the scan's words, owner |
 *
 * The owner word names the owner of a line.  Slots that are taken when the owner leaves the line stay taken, and
 * the next owner finds them taken.  So a protection may outlive its thread.
 *
 * A bit for each line says whether a scan must read the line: it is set while the line has an owner, and stays set if
 * the owner leaves a slot taken.  So a scan reads the lines in use, not all lines that were ever used.  Another bit says
 * that the line has no owner.
 */
#ifndef QUIESCE_SLOT_GROUPS_H
#define QUIESCE_SLOT_GROUPS_H

#include "runtime/arena.h"

#define QUIESCE_LINE_WORDS 8u
#define QUIESCE_LINE_SLOTS (QUIESCE_LINE_WORDS - 1)
#define QUIESCE_LINE_BYTES (2 * QUIESCE_LINE_WORDS * sizeof(uintptr_t))
#define QUIESCE_MAX_LINES (38u << 12) /* lines of one array: about a million slots */
/* The bits of @nr lines, two for each, take so many bytes in front of the lines. */
#define QUIESCE_LINE_BITS(nr) (2 * QUIESCE_LINE_BYTES * (((nr) + 8 * QUIESCE_LINE_BYTES - 1) / (8 * QUIESCE_LINE_BYTES)))

/* An owner word is 0 if the line has no owner.  The owner word of a thread is its id, in the low half, below a count of
 * 29 bits.  Other owner words have the following bits. */
#define QUIESCE_OWNER_CONTEXT ((uint64_t)1 << 63) /* a context; the low half is the id of the thread that made it */
/* The line is shared for good: all threads claim there by compare-and-exchange.  slot_pool.c uses the low half. */
#define QUIESCE_OWNER_ALL ((uint64_t)3 << 62)

/* A forked child adds this bit to owners that are threads of the parent, or contexts that those made, until the child
 * knows which thread survives. */
#define QUIESCE_OWNER_INHERITED ((uint64_t)1 << 61)

/* This represents the ring of shared lines; slot_pool.c has the theory. */
struct quiesce__pool {
	uintptr_t *hand; /* a line of the ring; NULL: the ring is empty */
	uint32_t nr;     /* number of lines in the ring, estimated */
	uint32_t paid;   /* number of lines that a search may pass, estimated */
};

struct quiesce__lines {
	uintptr_t *first;
	uint64_t *live;     /* one bit for each line: scans must read the line */
	uint64_t *vacant;   /* one bit for each line: the line has no owner */
	uintptr_t empty;    /* value of a free slot */
	uint32_t capacity;
	uint32_t nr;        /* number of lines that were ever owned; only grows */
	uint32_t probe;     /* the next line whose owner is probed, as it may have died */
	uint64_t summary[QUIESCE_MAX_LINES / 64 / 64]; /* one bit for each word of @vacant: the word is not 0 */
	struct quiesce__pool pool;
	struct quiesce__arena arena; /* memory for more lines; not initialised: all lines are usable from the beginning */
};

static inline uintptr_t *quiesce__line(const struct quiesce__lines *lines, size_t index)
{
	return lines->first + index * 2 * QUIESCE_LINE_WORDS;
}

/* Returns the index of the line that @word is in; a huge number if @word is in none of these lines. */
static inline size_t quiesce__line_index(const struct quiesce__lines *lines, const void *word)
{
	return (uintptr_t)((const char *)word - (const char *)lines->first) / QUIESCE_LINE_BYTES;
}

static inline uint64_t *quiesce__line_owner(uintptr_t *line)
{
	return (uint64_t *)line + 2 * QUIESCE_LINE_WORDS - 1;
}

/* Reserve address space for @max lines after @before bytes; no line has an owner.  Returns the address of the bytes, zeroed;
 * NULL: not even address space can be had. */
void *quiesce__reserve_lines(struct quiesce__lines *lines, size_t before, uint32_t max);
/* Place @nr lines in zeroed memory at @start, which has QUIESCE_LINE_BITS(@nr) bytes in front of them. */
void quiesce__set_fixed_lines(struct quiesce__lines *lines, void *start, uint32_t nr);
/* Raise @count to @nr, unless it is higher. */
void quiesce__raise_to(uint32_t *count, uint32_t nr);
/* Count slot @k of a group of @words words, before it is used. */
void quiesce__raise_used(uintptr_t *group, uint32_t words, uint32_t k);
/* Take a free line, of index @from to below @limit, for @owner; NULL: there is none, or no memory. */
uintptr_t *quiesce__take_line(struct quiesce__lines *lines, uint64_t owner, uint32_t from, uint32_t limit);
/* Record that line @i, which is counted, has no owner; recording it twice does no harm. */
void quiesce__mark_vacant(struct quiesce__lines *lines, uint32_t i);
/* Returns a new owner word for the calling thread.  Thread ids are used again; owner words are not. */
uint64_t quiesce__new_owner(void);
void quiesce__leave_line(struct quiesce__lines *lines, uintptr_t *line);
/* Returns the owner of the line that @slot is in; 0: it has none, or @slot is in none of these lines. */
uint64_t quiesce__owner_at(struct quiesce__lines *lines, const uintptr_t *slot);

/* A pool is described by the array of its lines, a call that takes a new line, and a call that claims slots in a line
 * and returns the first of them, or NULL.  @what: a guard's address, or the number of adjacent slots. */
struct quiesce__pool_type {
	struct quiesce__lines *lines;
	uintptr_t *(*take_line)(uint64_t owner);
	uintptr_t *(*claim)(uintptr_t *line, uintptr_t what);
};
/* Claim a slot of the pool, or a row of them; NULL: a short search found none, and there is no memory for more. */
uintptr_t *quiesce__pool_claim(const struct quiesce__pool_type *type, uintptr_t what);
/* Claim a slot of the pool, or a row of them; without memory for more, search the whole pool before returning NULL. */
uintptr_t *quiesce__pool_claim_any(const struct quiesce__pool_type *type, uintptr_t what);
/* Add @line, which the caller owns, to the pool; slots that are taken in it stay taken. */
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
