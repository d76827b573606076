/* SPDX-License-Identifier: MIT */
/* slots_report.c - which kind of slot, whose, and how many: for statistics and reports. */
#include "hazptr.h"

#include <stdio.h>

uint32_t quiesce__slots_lines(void)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uint32_t lines = 0;

	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++)
		for (uint32_t n = 0; n < range[i].nr; n++) {
			uint32_t used = quiesce__slots_used(range[i].first + n * 2 * range[i].words, range[i].words);

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
	return slot >= quiesce__block_of_id(0) && slot < quiesce__slots.lines.first;
}

enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard)
{
	if (in_block_of_id(guard.slot))
		return quiesce__slots.kind;
	if (quiesce__owner_is_thread(quiesce__owner_at(&quiesce__slots.lines, guard.slot)))
		return QUIESCE_SLOTS_THREAD;
	return QUIESCE_SLOTS_SHARED;
}

void quiesce__slots_describe(const uintptr_t *slot, char *text, size_t size)
{
	bool cid = quiesce__slots.kind == QUIESCE_SLOTS_MM_CID;
	uint64_t owner;
	char name[16];
	bool context;

	if (in_block_of_id(slot)) {
		snprintf(text, size, "in a slot of %s %zu", cid ? "concurrency id" : "CPU",
			 (size_t)(slot - quiesce__block_of_id(0)) / QUIESCE_BLOCK_WORDS);
		return;
	}
	owner = quiesce__owner_at(&quiesce__slots.lines, slot);
	if (!owner)
		owner = quiesce__owner_at(&quiesce__hazptr_lines, slot);
	if (!owner || quiesce__owner_is_all(owner)) {
		snprintf(text, size, "in a shared slot");
		return;
	}
	platform_thread_name((uint32_t)owner, name);
	context = !quiesce__owner_is_thread(owner);
	snprintf(text, size, "in a slot of %sthread %u (%s)", context ? "a context of " : "", (uint32_t)owner, name);
}
