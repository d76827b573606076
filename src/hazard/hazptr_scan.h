/* SPDX-License-Identifier: MIT */
/* hazptr_scan.h - the set of addresses that are protected, as one look at all slots finds them.
 *
 *	quiesce__hazptr_scan_begin(&set, table, size);   // the heavy fence
 *	do                                           // once, unless there are more slots in use than room
 *		for each retired object
 *			if (quiesce__hazptr_scan_has(&set, address))
 *				keep it
 *	while (quiesce__hazptr_scan_next(&set));
 *
 * What no round has may be reclaimed.  Nothing is allocated: M slots and N objects take M + N steps if there is a
 * table of twice as many words as slots are in use, and M + N * M / QUIESCE_HAZARDS_SMALL without one.
 */
#ifndef QUIESCE_HAZPTR_SCAN_H
#define QUIESCE_HAZPTR_SCAN_H

#include "slots.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_HAZARDS_SMALL 2u
#else
#define QUIESCE_HAZARDS_SMALL 256u
#endif

struct quiesce__hazptr_scan {
	uint64_t filter[8]; /* which hash values may be there */
	uintptr_t *table;   /* open addressing; 0: empty */
	uint32_t mask;      /* of its index */
	uint32_t nr, room;  /* entries of this round */
	uint32_t fence_ns;  /* what the heavy fence took */
	uint32_t slots;     /* looked at so far */
	bool everything;    /* a wildcard, or a guard without a slot */
	/* where the next round goes on */
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uint32_t in, next, slot;
	uint64_t groups; /* of the 64 before the next ones */
	uintptr_t small[2 * QUIESCE_HAZARDS_SMALL];
};

/* Fence, and look at as many slots as there is room for.  @table: of @size words, a power of two, or NULL. */
void quiesce__hazptr_scan_begin(struct quiesce__hazptr_scan *set, uintptr_t *table, uint32_t size);
/* Look at the rest; false: there is none.  The set then has what this look found, and no more. */
bool quiesce__hazptr_scan_next(struct quiesce__hazptr_scan *set);
/* Does a look from here take more rounds? */
bool quiesce__hazptr_scan_more(const struct quiesce__hazptr_scan *set);

static inline uint32_t quiesce__hash_address(uintptr_t address)
{
	return (uint32_t)((address >> 3) * 0x9e3779b97f4a7c15ull >> 32);
}

static inline bool quiesce__hazptr_scan_has(const struct quiesce__hazptr_scan *set, uintptr_t address)
{
	uint32_t hash;

	if (quiesce_unlikely(set->everything))
		return true;
	if (!set->nr)
		return false;
	address &= ~QUIESCE_SLOT_TAG;
	hash = quiesce__hash_address(address);
	if (!(set->filter[hash >> 29] >> (hash >> 23 & 63) & 1))
		return false;
	for (uint32_t i = hash & set->mask; set->table[i]; i = (i + 1) & set->mask)
		if (set->table[i] == address)
			return true;
	return false;
}

#endif
