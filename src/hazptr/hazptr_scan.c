/* SPDX-License-Identifier: MIT */
/* hazptr_scan.c - gather the protected addresses.
 *
 *   reader                               reclaimer
 *   slot = address   (light fence)       unlink                            (by the retirer)
 *   load the pointer again: same?        heavy fence                  HP1
 *   ... use the object ...               load every slot in use       SH2
 *   slot = 0 or another  (release)       reclaim objects that no slot holds
 *
 * I1. Every object was retired before the fence, and every slot is loaded after it.
 * I2. A set is built for one reclaim, so it contains no address that a slot held before.
 * I3. An address that is copied to another slot is no protection of its own, so each slot is loaded once.
 *
 * HP1  slot set, then the pointer loaded again | unlinked, then slots read
 * SH1  see shazptr_wait.c
 * SH6, SH8  see shazptr.c
 * HP4  see hazptr_retire.c
 */
#include "hazptr_scan.h"

#include <string.h>

static void add(struct quiesce__hazptr_scan *set, uintptr_t address)
{
	uint32_t hash = quiesce__hash_address(address), i = hash & set->mask;

	if (!set->nr)
		memset(set->table, 0, ((size_t)set->mask + 1) * sizeof *set->table);
	set->filter[hash >> 29] |= 1ull << (hash >> 23 & 63);
	while (set->table[i] && set->table[i] != address)
		i = (i + 1) & set->mask;
	set->table[i] = address;
	set->nr++;
}

static void check_slot(struct quiesce__hazptr_scan *set, const uintptr_t *slot)
{
	uintptr_t address = quiesce__slot_read(slot) & ~QUIESCE_SLOT_TAG;

	if (quiesce_likely(!address))
		return;
	if (quiesce_unlikely(address == (uintptr_t)SHAZPTR_WILDCARD))
		set->protects_all = true;
	else
		add(set, address);
}

/* Scan a group from slot @set->slot on; false: the table is full. */
static bool scan_group(struct quiesce__hazptr_scan *set, const uintptr_t *group, uint32_t words)
{
	uint32_t used = quiesce__slots_used(group, words);

	for (; set->slot < used; set->slot++, set->slots++) {
		if (set->nr == set->max)
			return false;
		check_slot(set, group + set->slot);
	}
	set->slot = 0;
	return true;
}

/* The next group of this round; NULL: none is left in this range. */
static const uintptr_t *next_group(struct quiesce__hazptr_scan *set)
{
	const struct quiesce__slot_range *range = &set->range[set->in];

	for (; !set->groups; set->next += 64) {
		if (set->next >= range->nr)
			return NULL;
		set->groups = quiesce__live_groups(range, set->next);
	}
	return quiesce__first_group(range, set->next - 64, set->groups);
}

static void scan_all(struct quiesce__hazptr_scan *set)
{
	const uintptr_t *group;

	memset(set->filter, 0, sizeof set->filter);
	set->nr = 0;
	for (; set->in < QUIESCE_NR_RANGES; set->in++, set->next = 0)
		for (; (group = next_group(set)); set->groups &= set->groups - 1)
			if (!scan_group(set, group, set->range[set->in].words))
				return;
}

void quiesce__hazptr_scan_begin(struct quiesce__hazptr_scan *set, uintptr_t *table, uint32_t size)
{
	set->begin_ns = platform_now_ns();
	set->table = table ? table : set->small;
	set->mask = (table ? size : 2 * QUIESCE_HAZARDS_SMALL) - 1;
	set->max = (set->mask + 1) / 2;
	set->in = set->next = set->slot = set->slots = 0;
	set->groups = 0;
	/* If a slot was filled too late to be seen below, its reader sees what was unlinked before this call,
	 * and gives the slot up; if the reader misses that, this scan sees the slot. */
	/* SH1: pairs with SH1 in quiesce__shazptr_claim() and quiesce__claim_cas() */
	/* SH6: pairs with SH6 in take_new(), quiesce__raise_to() and quiesce__raise_used() */
	/* SH8: pairs with SH8 in claim_fallback() */
	/* HP4: pairs with HP4 in queue() */
	/* HP1: pairs with HP1 in quiesce__hazptr_set_fast(), quiesce__hazptr_set() and quiesce__hazptr_set_slow() */
	quiesce_fence_heavy_shared(HP1);
	set->protects_all = quiesce__slots_fallback(0) || quiesce__slots_fallback(1);
	quiesce__slots_ranges(set->range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES && QUIESCE_MUTANT(hazptr_scan_skips_last_line); i++)
		set->range[i].nr -= set->range[i].nr != 0;
	quiesce__count(hazptr_scans);
	scan_all(set);
}

bool quiesce__hazptr_scan_incomplete(const struct quiesce__hazptr_scan *set)
{
	return set->in < QUIESCE_NR_RANGES;
}

bool quiesce__hazptr_scan_next(struct quiesce__hazptr_scan *set)
{
	if (!quiesce__hazptr_scan_incomplete(set))
		return false;
	scan_all(set);
	return true;
}
