/* SPDX-License-Identifier: MIT */
/* slots_report.c - which kind of slot, whose, and how many: for statistics and reports. */
#include "slots.h"

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
	return slot >= quiesce__block_of_id(0) && slot < quiesce__line_at(0);
}

/* Of the line of @slot. */
static uint64_t tenant_at(const uintptr_t *slot)
{
	size_t line = (size_t)(slot - quiesce__line_at(0)) / (2 * QUIESCE_LINE_WORDS);

	/* Relaxed: a report. */
	return line < quiesce_load_relaxed(&quiesce__slots.nr_lines) ? quiesce_load_relaxed(quiesce__tenant_of(quiesce__line_at(line))) : 0;
}

enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard)
{
	uint64_t tenant;

	if (in_block_of_id(guard.slot))
		return quiesce__slots.kind;
	tenant = tenant_at(guard.slot);
	return tenant && tenant != QUIESCE_TENANT_ALL ? QUIESCE_SLOTS_THREAD : QUIESCE_SLOTS_SHARED;
}

void quiesce__slots_describe(const uintptr_t *slot, char *text, size_t size)
{
	bool cid = quiesce__slots.kind == QUIESCE_SLOTS_MM_CID;
	uint64_t tenant;
	char name[16];

	if (in_block_of_id(slot)) {
		snprintf(text, size, "in a slot of %s %zu", cid ? "concurrency id" : "CPU",
			 (size_t)(slot - quiesce__block_of_id(0)) / QUIESCE_BLOCK_WORDS);
		return;
	}
	tenant = tenant_at(slot);
	if (!tenant || tenant == QUIESCE_TENANT_ALL) {
		snprintf(text, size, "in a shared slot");
		return;
	}
	platform_thread_name((uint32_t)tenant, name);
	snprintf(text, size, "in a slot of thread %u (%s)", (uint32_t)tenant, name);
}
