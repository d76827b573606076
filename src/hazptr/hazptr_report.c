/* SPDX-License-Identifier: MIT */
/* hazptr_report.c - report retired objects when they become many. */
#include "hazptr_retired.h"

#include "shazptr/shazptr.h"

#define SMALL 64u /* assumed size of an object whose size is not known */
#define CHECK_NS 50000000u

static uint64_t next_check;

/* Returns the average size of a retired object, as far as callers passed sizes. */
static uint64_t average(uint64_t retired)
{
	uint64_t bytes = quiesce_load_relaxed(&quiesce__sweep.bytes) / (retired ? retired : 1); /* Relaxed: an estimate. */

	return bytes > SMALL ? bytes : SMALL;
}

void quiesce__hazptr_check_garbage(uintptr_t kept)
{
	struct quiesce_stats stats = { .readers = 0 };
	struct quiesce__report r;
	uint64_t nr, bytes, now = platform_now_ns();

	/* Relaxed: a rate limit, because the check reads all queues. */
	if (now < quiesce_load_relaxed(&next_check))
		return;
	quiesce_store_relaxed(&next_check, now + CHECK_NS); /* Relaxed: a rate limit. */
	quiesce__hazptr_stats(&stats);
	nr = stats.hazptr_retired - stats.hazptr_reclaimed;
	bytes = nr * average(stats.hazptr_retired);
	if (!quiesce__garbage_take_report(QUIESCE_GARBAGE_HAZPTR, bytes))
		return;
	quiesce__report_garbage(&r, "call_hazptr()", bytes, nr);
	r.reported.object = (const void *)kept;
	quiesce__report_add(&r, ", estimated; of those that are protected, one by ");
	if (!kept || !quiesce__shazptr_report_guard(&r, kept))
		quiesce__report_add(&r, "a guard that has gone");
	quiesce__report_end(&r);
}
