/* SPDX-License-Identifier: MIT */
/* slots.c - the array of hazard slots, by CPU and by thread; claims are in shazptr.c.
 *
 *   array:    | blocks of ids: concurrency ids or CPUs | two counts of fallback guards | bits of lines: live, vacant | lines |
 *   a block:  | 63 slots, count | the scan's words |
 *   a line:   | 7 slots, count | the scan's words, owner |
 *
 * Of the numbers S1 to S9, shazptr.c has S2, about the threads that may claim a slot, slot_groups.c has S7 to S9, about the owners of
 * lines, and this file has the others.
 *
 * S1. A slot is written by the thread that claims it and by the thread that clears it, and holds the guard's address in between.  A scan
 *     may add a tag to the address, by compare-and-exchange, and never changes an empty slot.
 * S3. A line is never freed, so a guard may outlive its thread.  A slot that is taken when its line gets
 *     another owner stays taken.
 * S4. A block or line, and a slot of it, are counted before the slot is claimed for the first time.  So if a
 *     scan does not count the slot, its guard was set after the scan's heavy fence, and does not matter.
 * S5. The child of a fork has a new array, so that it may clear guards of the parent, or of the parent's parent, without harm.  A
 *     fallback guard points to its count, so a claim or a clear that a signal handler interrupts to fork ends in the child on the count
 *     on which it began: the child's counts are those of its own guards.  The exception: where not one page can be mapped, two static
 *     arrays are used alternately, and a grandchild must not clear a guard of its grandparent.
 * S6. A fallback guard is in one of two counts from before it finds its object until after its last access.  Before the first one of
 *     the process is returned, @requests gets QUIESCE_SLOTS_FALLBACK for good: so such a guard is cleared by
 *     quiesce__shazptr_clear_slow(), and no thread stores to its count as to a slot.
 *
 * SH6  group and slot counted, then claimed          | fence, counts read
 * SH8  fallback guard counted, then its reads        | fence, count read
 *      its reads, then count lowered                 | count read, then free
 *      @requests is the child's, then the counts are | counts found, then @requests set
 */
#include "slots.h"

#include "runtime/settings.h"

#include <string.h>

#define BLOCK_BYTES (QUIESCE_BLOCK_WORDS * sizeof(uintptr_t))
#if defined(QUIESCE_SIM)
#define MAX_LINES 3u /* small, so that the simulator runs out of lines too */
#else
#define MAX_LINES QUIESCE_MAX_LINES /* a million guards at once, then fallback guards */
#endif

struct quiesce_shazptr_v1 quiesce_shazptr_v1 __attribute__((aligned(128)));
struct quiesce__slots quiesce__slots;
struct quiesce__lines quiesce__hazptr_lines;

/* ---- the array ---- */

/* The spare array, used if not even address space can be reserved, has the counts of fallback guards and so many lines. */
#define SPARE_LINES (QUIESCE_FIRST_THREADS + 8)
#define SPARE_BYTES (QUIESCE_LINE_BYTES + QUIESCE_LINE_BITS(SPARE_LINES) + SPARE_LINES * QUIESCE_LINE_BYTES)

static uintptr_t *make_spare_array(void)
{
	static uintptr_t spare[2][SPARE_BYTES / sizeof(uintptr_t)] __attribute__((aligned(128)));
	uintptr_t *start = platform_pages_get(sizeof spare[0]);

	if (!start) {
		start = spare[quiesce_shazptr_v1.slot_array == spare[0]]; /* the one that the parent does not use */
		memset(start, 0, sizeof spare[0]);
	}
	quiesce__slots.kind = QUIESCE_SLOTS_THREAD;
	quiesce__set_fixed_lines(&quiesce__slots.lines, start + 2 * QUIESCE_LINE_WORDS, SPARE_LINES);
	return start;
}

static void make_array(uint32_t nr_ids)
{
	struct quiesce_shazptr_v1 *v = &quiesce_shazptr_v1;
	struct quiesce__slots *s = &quiesce__slots;
	uintptr_t *start = quiesce__reserve_lines(&s->lines, nr_ids * BLOCK_BYTES + QUIESCE_LINE_BYTES, MAX_LINES), *counts;

	if (!start) {
		v->id = v->rseq = 0;
		nr_ids = 0;
		start = make_spare_array();
	}
	v->nr_ids = nr_ids;
	v->slot_array = start;
	s->ids_used = 0;
	counts = quiesce__block_of_id(nr_ids);
	counts[0] = counts[1] = QUIESCE_SLOT_TAG;
	/* A signal handler that forked may have interrupted a claim: if the claim finds these counts, it sets @requests afterwards. */
	/* SH8: full, pairs with SH8 in claim_fallback() */
	(void)quiesce_xchg(SH8, &s->fallback, counts);
}

static enum quiesce_slots kind_from_environment(enum quiesce_slots best)
{
	static const char *const words[] = { "auto", "mm_cid", "cpu_id", "thread" };
	static const enum quiesce_slots kind[] = { QUIESCE_SLOTS_SHARED, QUIESCE_SLOTS_MM_CID, QUIESCE_SLOTS_CPU_ID, QUIESCE_SLOTS_THREAD };
	uint32_t asked = quiesce__environment_word("QUIESCE_SLOTS", words, 4);

	if (!asked || kind[asked] <= best)
		return asked ? kind[asked] : best;
	quiesce__say("QUIESCE_SLOTS=%s is impossible here; using auto", words[asked]);
	return best;
}

void quiesce__slots_fence_chosen(void)
{
	struct quiesce_shazptr_v1 *v = &quiesce_shazptr_v1;

	v->rseq = 0;
	if (quiesce__fixed.light && v->id && QUIESCE_HAVE_RSEQ)
		v->rseq = platform_rseq_area();
}

void quiesce__slots_init(void)
{
	static const enum quiesce_slots best[] = {
		[PLATFORM_RSEQ_NONE] = QUIESCE_SLOTS_THREAD,
		[PLATFORM_RSEQ_CPU_ID] = QUIESCE_SLOTS_CPU_ID,
		[PLATFORM_RSEQ_MM_CID] = QUIESCE_SLOTS_MM_CID,
	};
	struct quiesce_shazptr_v1 *v = &quiesce_shazptr_v1;
	enum quiesce_slots kind = kind_from_environment(best[platform_rseq_kind()]);

	quiesce__slots.kind = kind;
	v->id = kind == QUIESCE_SLOTS_THREAD ? 0 : platform_rseq_id(kind == QUIESCE_SLOTS_MM_CID);
	make_array(v->id ? (uint32_t)platform_nr_possible_cpus() : 0);
	quiesce__slots_fence_chosen();
}

/* ---- scans ---- */

void quiesce__slots_ranges(struct quiesce__slot_range range[QUIESCE_NR_RANGES])
{
	struct quiesce__lines *l = &quiesce__slots.lines, *h = &quiesce__hazptr_lines;
	uint32_t *ids = &quiesce__slots.ids_used;

	/* SH6: acquire, pairs with SH6 in quiesce__raise_to() */
	range[0] = (struct quiesce__slot_range){ quiesce__block_of_id(0), quiesce_load_acquire(SH6, ids), QUIESCE_ID_WORDS, NULL };
	/* SH6: acquire, pairs with SH6 in take_new() */
	range[1] = (struct quiesce__slot_range){ l->first, quiesce_load_acquire(SH6, &l->nr), QUIESCE_LINE_WORDS, l->live };
	/* SH6: acquire, pairs with SH6 in take_new() */
	range[2] = (struct quiesce__slot_range){ h->first, quiesce_load_acquire(SH6, &h->nr), QUIESCE_LINE_WORDS, h->live };
}

uint32_t quiesce__slots_fallback(uint32_t index)
{
	const uintptr_t *counts = quiesce_load_relaxed(&quiesce__slots.fallback); /* Relaxed: fixed. */

	/* SH8: acquire, pairs with SH8 in clear_fallback() */
	return (uint32_t)quiesce_load_acquire(SH8, counts + index);
}

/* ---- fork ---- */

void quiesce__slots_fork_child(void)
{
	quiesce_shazptr_v1.requests = 0;
	quiesce__slots.fallback_idx = 0;
	make_array((uint32_t)quiesce_shazptr_v1.nr_ids);
}
