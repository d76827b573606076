/* SPDX-License-Identifier: MIT */
/* shazptr_report.c - reports of long waits for guards, and of the guards that block them. */
#include "shazptr.h"

/* ---- slots ---- */

static uint64_t owner_of(const uintptr_t *slot)
{
	uint64_t owner = quiesce__owner_at(&quiesce__slots.lines, slot);

	return owner ? owner : quiesce__owner_at(&quiesce__hazptr_lines, slot);
}

/* Report which thread, context or id @slot belongs to; returns the thread, 0: the slot belongs to none. */
static uint32_t report_place(struct quiesce__report *r, const uintptr_t *slot, uint32_t waiter)
{
	bool cid = quiesce__slots.kind == QUIESCE_SLOTS_MM_CID;
	uint64_t owner = owner_of(slot);

	if (slot >= quiesce__block_of_id(0) && slot < quiesce__slots.lines.first) {
		quiesce__report_add(r, ", in a slot of %s %zu", cid ? "concurrency id" : "CPU",
				    (size_t)(slot - quiesce__block_of_id(0)) / QUIESCE_BLOCK_WORDS);
		return 0;
	}
	if (!owner || quiesce__owner_is_all(owner)) {
		quiesce__report_add(r, ", in a shared slot");
		return 0;
	}
	quiesce__report_add(r, ", in a slot of %s", quiesce__owner_is_thread(owner) ? "" : "a context of ");
	quiesce__report_thread(r, (uint32_t)owner, waiter);
	return (uint32_t)owner;
}

static void report_slot(struct quiesce__report *r, const uintptr_t *slot, uint32_t waiter)
{
	struct quiesce__holder h = quiesce__shazptr_holder(slot);
	uint32_t owner = report_place(r, slot, waiter);

	if (h.nr && h.tid != owner) {
		quiesce__report_add(r, ", taken by ");
		quiesce__report_thread(r, h.tid, waiter);
	}
	quiesce__report_since(r, h.since, h.site);
}

static bool is_wildcard(const uintptr_t *slot)
{
	return quiesce__same_address(quiesce_load_relaxed(slot), (uintptr_t)SHAZPTR_WILDCARD); /* Relaxed: a report. */
}

/* Report the guard in @slot; NULL stands for fallback guards. */
static void report_guard(struct quiesce__report *r, const uintptr_t *slot, uintptr_t address, uint32_t waiter)
{
	if (!slot) {
		quiesce__report_add(r, "fallback guards, which protect everything: there is no memory for slots");
		return;
	}
	if (is_wildcard(slot))
		quiesce__report_add(r, "a guard of everything, SHAZPTR_WILDCARD");
	else
		quiesce__report_add(r, "a guard of %p", (void *)address);
	report_slot(r, slot, waiter);
}

static const uintptr_t *find_in_group(const uintptr_t *group, uint32_t words, uintptr_t address)
{
	for (uint32_t k = 0, nr = quiesce__slots_used(group, words); k < nr; k++) {
		uintptr_t value = quiesce_load_relaxed(group + k); /* Relaxed: a report. */

		if (!quiesce__same_address(value, 0) && (quiesce__same_address(value, address) || is_wildcard(group + k)))
			return group + k;
	}
	return NULL;
}

bool quiesce__shazptr_report_guard(struct quiesce__report *r, uintptr_t address)
{
	struct quiesce__slot_range range[QUIESCE_NR_RANGES];
	uintptr_t *group;
	const uintptr_t *slot = NULL;

	quiesce__slots_ranges(range);
	for (uint32_t i = 0; i < QUIESCE_NR_RANGES; i++)
		quiesce__for_each_group(group, &range[i])
			if (!slot)
				slot = find_in_group(group, range[i].words, address);
	if (!slot && !quiesce__slots_fallback(0) && !quiesce__slots_fallback(1))
		return false;
	report_guard(r, slot, address, 0);
	return true;
}

/* ---- waits ---- */

/* Copy the oldest waiter; returns the number of waiters, 0: none is left. */
static uint32_t find_oldest(struct quiesce__waiter *ret_copy)
{
	const struct quiesce__waiter *oldest;
	uint32_t nr = 0;

	quiesce__lock(&quiesce__shazptr_scan.lock);
	oldest = quiesce__shazptr_scan.scanned_for;
	for (const struct quiesce__waiter *w = oldest; w; w = w->next, nr++)
		if (w->start < oldest->start)
			oldest = w;
	if (oldest) {
		ret_copy->address = oldest->address;
		ret_copy->call = oldest->call;
		ret_copy->tid = oldest->tid;
		ret_copy->start = oldest->start;
		ret_copy->by = oldest->by;
	}
	quiesce__unlock(&quiesce__shazptr_scan.lock);
	return nr;
}

void quiesce__shazptr_report_stall(uint64_t now)
{
	struct quiesce__waiter oldest = { .call = NULL };
	struct quiesce__report r;
	uint32_t nr = find_oldest(&oldest);

	if (!nr)
		return;
	quiesce__report_stall(&r, oldest.call, (const void *)oldest.address, now - oldest.start);
	report_guard(&r, oldest.by, oldest.address, oldest.tid);
	quiesce__report_add(&r, "; %u more callers wait for guards", nr - 1);
	quiesce__report_end(&r);
}
