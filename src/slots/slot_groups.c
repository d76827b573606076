/* SPDX-License-Identifier: MIT */
/* slot_groups.c - the owners of lines of hazard slots: a line is taken, left by its owner, and taken by the next one.
 *
 * Of the numbers S1 to S9, slots.c has S1 and S3 to S6, shazptr.c has S2, and this file has S7 to S9.  S4 holds for lines: a line, and a
 * slot of it, are counted before the slot is claimed for the first time (SH6).
 *
 * S7. Each counted line without an owner has its bit in @vacant set, or a thread is about to set it; the thread that clears the bit
 *     takes the line.  Each word of @vacant that is not 0 has its bit in @summary set, or a thread is about to set it.  So a thread finds
 *     a free line by the words of @summary, one for 4096 lines, and one word of @vacant.  After a fork in the midst of a change a bit
 *     may be set although the line has an owner: the owner word decides.
 *
 * S8. A thread that ends leaves its lines; a thread that a raw system call ends does not.  So a thread that adds a line probes the
 *     owners of a few other lines, in turn; not more, because it is a reader on its first claim.  All N lines are probed while
 *     N / PROBES lines are added: so at most a quarter of all lines belong to dead threads, and these get new owners before more
 *     lines are added.
 *
 * S9. Only a line's owner changes the line's bit in @live.  The bit is set before a slot of the line is claimed, and cleared when the
 *     owner has found all slots empty and no thread claims there any more: so a scan that finds the bit clear has missed no guard that
 *     it must see, and the accesses under former guards of the line happened before the end of the scan.
 *
 * SH4  the line as its owner leaves it, then let go               | taken, then claimed in
 *      line marked as vacant, then its word in the summary        | word unmarked in the summary, then read again
 * SH6  group and slot counted, then claimed                       | fence, counts read
 * SH9  line live, then claimed in; found empty, then no more live | fence, then live read
 * SH2  see shazptr.c
 */
#include "slot_groups.h"

#define PROBES 4u
#define SURE_LINES 2048u /* the address space of so many lines is guaranteed from the beginning */
#define MAX_OWNERS ((1u << 29) - 1)
#define NO_LINE UINT32_MAX

static void place_lines(struct quiesce__lines *lines, char *start, uint32_t max)
{
	lines->live = (uint64_t *)(void *)start;
	lines->vacant = (uint64_t *)(void *)(start + QUIESCE_LINE_BITS(max) / 2);
	lines->first = (uintptr_t *)(void *)(start + QUIESCE_LINE_BITS(max));
	lines->capacity = max;
}

void quiesce__set_fixed_lines(struct quiesce__lines *lines, void *start, uint32_t nr)
{
	*lines = (struct quiesce__lines){ .nr = 0 };
	place_lines(lines, start, nr);
}

void *quiesce__reserve_lines(struct quiesce__lines *lines, size_t before, uint32_t max)
{
	size_t bits = before, sure;

	before += QUIESCE_LINE_BITS(max);
	sure = before + (max < SURE_LINES ? max : SURE_LINES) * QUIESCE_LINE_BYTES;
	*lines = (struct quiesce__lines){ .nr = 0 };
	if (!quiesce__arena_init(&lines->arena, sure, before + max * QUIESCE_LINE_BYTES))
		return NULL;
	/* The bytes before the lines and the first line become usable now, the other lines when they are needed. */
	for (size_t at = 0; at <= before; at += QUIESCE_ARENA_INCREMENT)
		if (!quiesce__arena_extend(&lines->arena, at))
			return NULL;
	place_lines(lines, lines->arena.start + bits, max);
	return lines->arena.start;
}

void quiesce__raise_to(uint32_t *count, uint32_t nr)
{
	uint32_t old = quiesce_load_relaxed(count); /* Relaxed: the exchange decides. */

	while (old < nr)
		/* SH6: full, pairs with SH6 in quiesce__slots_ranges() */
		if (quiesce_cmpxchg(SH6, count, &old, nr))
			return;
}

void quiesce__raise_used(uintptr_t *group, uint32_t words, uint32_t k)
{
	uintptr_t *used = group + words - 1, old = quiesce_load_relaxed(used); /* Relaxed: as above. */

	while (old <= k && !(k && QUIESCE_MUTANT(slots_extra_uncounted)))
		/* SH6: full, pairs with SH6 in quiesce__slots_used() */
		if (quiesce_cmpxchg(SH6, used, &old, (uintptr_t)k + 1))
			return;
}

/* Set or clear the bit in @live of line @i, which the caller owns (S9). */
static void set_live(struct quiesce__lines *lines, size_t i, bool on)
{
	uint64_t bit = 1ull << i % 64, *word = &lines->live[i / 64];

	/* Relaxed: the owner's own bit, and the last owner's change came with the line. */
	if (!(quiesce_load_relaxed(word) & bit) == on)
		/* SH9: full, pairs with SH9 in quiesce__live_groups() */
		quiesce_fetch_add(SH9, word, on ? bit : -bit);
}

static bool is_empty(const struct quiesce__lines *lines, const uintptr_t *line)
{
	/* Relaxed: the line is the caller's. */
	for (uint32_t k = 0, nr = (uint32_t)quiesce_load_relaxed(&line[QUIESCE_LINE_SLOTS]); k < nr; k++)
		/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release(), hazptr_free() and quiesce__hazptr_free_slow() */
		if (quiesce_load_acquire(SH2, line + k) != lines->empty)
			return false;
	return true;
}

/* ---- vacant lines: S7 ---- */

static void set_bit(uint64_t *word, uint64_t bit)
{
	uint64_t old = quiesce_load_relaxed(word); /* Relaxed: the exchange decides; the thread that has set the bit publishes it. */

	while (!(old & bit))
		/* SH4: full, pairs with SH4 in clear_bit() */
		if (quiesce_cmpxchg(SH4, word, &old, old | bit))
			return;
}

/* Clear @bit; false: it was clear already. */
static bool clear_bit(uint64_t *word, uint64_t bit)
{
	uint64_t old = quiesce_load_relaxed(word); /* Relaxed: the exchange decides. */

	while (old & bit)
		/* SH4: full, pairs with SH4 in set_bit() */
		if (quiesce_cmpxchg(SH4, word, &old, old & ~bit))
			return true;
	return false;
}

void quiesce__mark_vacant(struct quiesce__lines *lines, uint32_t i)
{
	set_bit(&lines->vacant[i / 64], 1ull << i % 64);
	set_bit(&lines->summary[i / 64 / 64], 1ull << i / 64 % 64);
}

/* Word @w of @vacant was found to be 0: clear its bit in the summary.  A thread that sets a bit in the word either finds the summary's bit
 * clear, and sets it, or has set its own bit before the word is read again here. */
static void clear_summary(struct quiesce__lines *lines, uint32_t w)
{
	uint64_t *summary = &lines->summary[w / 64], bit = 1ull << w % 64;

	clear_bit(summary, bit);
	/* Relaxed: after the exchange. */
	if (quiesce_load_relaxed(&lines->vacant[w]) && !QUIESCE_MUTANT(slots_left_lost))
		set_bit(summary, bit);
}

/* Returns the bits of word @w that stand for lines from @from to below @to. */
static uint64_t bits_between(uint32_t w, uint32_t from, uint32_t to)
{
	uint64_t above = from > w * 64 ? UINT64_MAX << (from - w * 64) : UINT64_MAX;

	return to < (w + 1) * 64 ? above & ((1ull << (to - w * 64)) - 1) : above;
}

/* Find a line without an owner.  Relaxed throughout: the words are hints, and the exchange of the owner word decides. */
static uint32_t find_vacant(struct quiesce__lines *lines, uint32_t from, uint32_t to)
{
	for (uint32_t s = 0; s * 64 * 64 < to; s++)
		for (uint64_t words = quiesce_load_relaxed(&lines->summary[s]); words; words &= words - 1) {
			uint32_t w = s * 64 + (uint32_t)__builtin_ctzll(words);
			uint64_t all = quiesce_load_relaxed(&lines->vacant[w]), bits;

			if (w * 64 >= to)
				return NO_LINE;
			bits = all & bits_between(w, from, to);
			if (bits)
				return w * 64 + (uint32_t)__builtin_ctzll(bits);
			if (!all)
				clear_summary(lines, w);
		}
	return NO_LINE;
}

/* If the owner of @line is a thread that has died without leaving the line, leave it on behalf of the thread. */
static void reap_dead_owner(struct quiesce__lines *lines, uintptr_t *line)
{
	uint64_t found = quiesce_load_relaxed(quiesce__line_owner(line)); /* Relaxed: the exchange decides. */

	if (!quiesce__owner_is_thread(found) || (found & QUIESCE_OWNER_INHERITED) || platform_thread_alive((uint32_t)found))
		return;
	/* SH4: full, pairs with SH4 in take() */
	if (quiesce_cmpxchg(SH4, quiesce__line_owner(line), &found, quiesce__new_owner()))
		quiesce__leave_line(lines, line);
}

/* Probe the owners of a few lines (S8).  Relaxed throughout: two threads that probe the same line do no harm. */
static void probe_some(struct quiesce__lines *lines)
{
	uint32_t nr = quiesce_load_relaxed(&lines->nr), at = quiesce_load_relaxed(&lines->probe);

	for (uint32_t n = 0; n < PROBES && n < nr; n++, at++) {
		at = at < nr ? at : 0;
		reap_dead_owner(lines, quiesce__line(lines, at));
	}
	quiesce_store_relaxed(&lines->probe, at);
}

/* Make the memory of line @nr usable; false: there is none, or the array has no more lines. */
static bool commit_line(struct quiesce__lines *lines, uint32_t nr)
{
	uintptr_t *line = quiesce__line(lines, nr);
	size_t offset;

	if (nr >= lines->capacity)
		return false;
	if (!lines->arena.start)
		return true;
	/* The first increment of memory is usable already. */
	offset = (size_t)((char *)line - lines->arena.start);
	return !offset || offset % QUIESCE_ARENA_INCREMENT || quiesce__arena_extend(&lines->arena, offset);
}

uint64_t quiesce__new_owner(void)
{
	static uint32_t owners;

	/* Relaxed: a number. */
	return (uint64_t)(quiesce_fetch_add_relaxed(&owners, 1u) & MAX_OWNERS) << 32 | quiesce__recorded_tid();
}

static uintptr_t *take(struct quiesce__lines *lines, uint32_t i, uint64_t owner)
{
	uintptr_t *line = quiesce__line(lines, i);
	uint64_t none = 0;

	/* Relaxed: the exchange decides. */
	if (quiesce_load_relaxed(quiesce__line_owner(line)))
		return NULL;
	/* SH4: full, pairs with SH4 in quiesce__leave_line() */
	if (!quiesce_cmpxchg(SH4, quiesce__line_owner(line), &none, owner))
		return NULL;
	if (!QUIESCE_MUTANT(slots_taken_unlive))
		set_live(lines, i, true);
	return line;
}

/* Take a line that a former owner has left. */
static uintptr_t *take_vacant(struct quiesce__lines *lines, uint64_t owner, uint32_t from, uint32_t limit)
{
	uint32_t nr = quiesce_load_relaxed(&lines->nr), i; /* Relaxed: lines that are not counted yet have no bits. */
	uintptr_t *line = NULL;

	while (!line && (i = find_vacant(lines, from, nr < limit ? nr : limit)) != NO_LINE) {
		if (!clear_bit(&lines->vacant[i / 64], 1ull << i % 64))
			continue;
		if (!quiesce_load_relaxed(&lines->vacant[i / 64])) /* Relaxed: as in clear_summary(). */
			clear_summary(lines, i / 64);
		line = take(lines, i, owner);
	}
	return line;
}

/* Take a line that never had an owner.  New lines before @from are left to other callers. */
static uintptr_t *take_new(struct quiesce__lines *lines, uint64_t owner, uint32_t from, uint32_t limit)
{
	uint32_t i = quiesce_load_relaxed(&lines->nr); /* Relaxed: the exchange decides. */
	uintptr_t *line;

	while (i < limit) {
		if (!commit_line(lines, i))
			return NULL;
		/* SH6: full, pairs with SH6 in quiesce__slots_ranges() */
		if (!quiesce_cmpxchg(SH6, &lines->nr, &i, i + 1))
			continue;
		line = i < from ? NULL : take(lines, i, owner);
		if (line)
			return line;
		if (i < from)
			quiesce__mark_vacant(lines, i);
		i = quiesce_load_relaxed(&lines->nr); /* Relaxed: as above. */
	}
	return NULL;
}

uintptr_t *quiesce__take_line(struct quiesce__lines *lines, uint64_t owner, uint32_t from, uint32_t limit)
{
	uintptr_t *line = take_vacant(lines, owner, from, limit);

	if (line || quiesce_load_relaxed(&lines->nr) >= limit) /* Relaxed: take_new() decides. */
		return line;
	probe_some(lines);
	line = take_vacant(lines, owner, from, limit);
	return line ? line : take_new(lines, owner, from, limit);
}

void quiesce__leave_line(struct quiesce__lines *lines, uintptr_t *line)
{
	if (is_empty(lines, line) || QUIESCE_MUTANT(slots_left_held))
		set_live(lines, quiesce__line_index(lines, line), false);
	/* The exchange of the bit in @vacant orders this, too, except where a fork has left that bit set. */
	/* SH4: release, pairs with SH4 in take() */
	quiesce_store_release(SH4, quiesce__line_owner(line), (uint64_t)0);
	quiesce__mark_vacant(lines, (uint32_t)quiesce__line_index(lines, line));
}

uint64_t quiesce__owner_at(struct quiesce__lines *lines, const uintptr_t *slot)
{
	size_t line = quiesce__line_index(lines, slot);

	if (line >= quiesce_load_relaxed(&lines->nr)) /* Relaxed: a report. */
		return 0;
	return quiesce_load_relaxed(quiesce__line_owner(quiesce__line(lines, line))); /* Relaxed: as above. */
}
