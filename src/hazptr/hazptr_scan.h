/* SPDX-License-Identifier: MIT */
/* hazptr_scan.h - the set of protected addresses that one scan of all slots finds.
 *
 *	quiesce__hazptr_scan_begin(&set, table, size);   // the heavy fence
 *	do                                               // once, unless more slots are in use than fit
 *		for each retired object
 *			if (quiesce__hazptr_scan_has(&set, address))
 *				keep it
 *	while (quiesce__hazptr_scan_next(&set));
 *
 * An object that no round contains may be reclaimed.  Nothing is allocated: M slots and N objects take M + N
 * steps with a table of twice as many words as slots in use, and M + N * M / QUIESCE_HAZARDS_SMALL without
 * one.
 */
#ifndef QUIESCE_HAZPTR_SCAN_H
#define QUIESCE_HAZPTR_SCAN_H

#include "slots/slots.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_HAZARDS_SMALL 2u
#else
#define QUIESCE_HAZARDS_SMALL 256u
#endif

struct quiesce__hazptr_scan {
	uint64_t filter[8]; /* hash values that may be in the table */
	uintptr_t *table;   /* open addressing; 0: empty */
	uint32_t mask;      /* mask of a table index */
	uint32_t nr, max;   /* number of entries of this round, and its maximum */
	uint64_t begin_ns;  /* when the scan began */
	uint32_t slots;     /* number of slots scanned so far */
	bool protects_all;  /* a wildcard or a fallback guard protects every address */
	/* These fields are the position of the next round. */
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uint32_t in, next, slot;
	uint64_t groups; /* groups still to scan of the 64 before @next */
	uintptr_t small[2 * QUIESCE_HAZARDS_SMALL];
};

/* Fence, and scan as many slots as fit.  @table: of @size words, a power of two, or NULL. */
void quiesce__hazptr_scan_begin(struct quiesce__hazptr_scan *set, uintptr_t *table, uint32_t size);
/* Scan the remaining slots; false: none remain.  The set then contains only what this round found. */
bool quiesce__hazptr_scan_next(struct quiesce__hazptr_scan *set);
/* True if slots remain for a further round. */
bool quiesce__hazptr_scan_incomplete(const struct quiesce__hazptr_scan *set);

static inline uint32_t quiesce__hash_address(uintptr_t address)
{
	return (uint32_t)((address >> 3) * 0x9e3779b97f4a7c15ull >> 32);
}

static inline bool quiesce__hazptr_scan_has(const struct quiesce__hazptr_scan *set, uintptr_t address)
{
	uint32_t hash;

	if (quiesce_unlikely(set->protects_all))
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
