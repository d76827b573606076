/* SPDX-License-Identifier: MIT */
/* slots_report.c - the kind of a slot, and the number of lines in use, for statistics and programs. */
#include "slots.h"

uint32_t quiesce__slots_lines(void)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uintptr_t *group;
	uint32_t lines = 0;

	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++)
		quiesce__for_each_group(group, &range[i]) {
			uint32_t used = quiesce__slots_used(group, range[i].words);

			lines += (used + QUIESCE_LINE_WORDS - 1) / QUIESCE_LINE_WORDS;
		}
	return lines;
}

enum quiesce_slots quiesce_slots(void)
{
	quiesce__init();
	return quiesce__slots.kind;
}

static bool in_block_of_id(const uintptr_t *slot)
{
	return slot >= quiesce__block_of_id(0) && slot < quiesce__block_of_id(quiesce_shazptr_v1.nr_ids);
}

enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard)
{
	if (in_block_of_id(guard.slot))
		return quiesce__slots.kind;
	if (quiesce__owner_is_thread(quiesce__owner_at(&quiesce__slots.lines, guard.slot)))
		return QUIESCE_SLOTS_THREAD;
	return QUIESCE_SLOTS_SHARED;
}
