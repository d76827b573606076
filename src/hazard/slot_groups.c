/* SPDX-License-Identifier: MIT */
/* slot_groups.c - letting lines of hazard slots.
 *
 * I1. A line, and a slot of it, are counted before the slot is claimed for the first time, so a scan
 *     whose heavy fence came before may do without it.
 *
 * I2. @nr_free counts every line that was left, a little late; so it is looked for.  The finder of a free line below nr subtracts one.
 *     That may be a line which another thread has just added and not taken yet: it then adds one, and takes another.
 *
 * I3. A thread that ends leaves its lines.  One that died without an end, by a system call of its own, does not: so whoever adds a
 *     line probes a few others, in turn, and no more, as it is a reader on its first claim.  All N lines are probed while N / PROBES
 *     are added; so those of the dead are a quarter of all at the most, and are let again before there are more.
 *
 * I4. Only its owner changes a line's bit in @live.  It is set before anything is claimed in the line, and cleared when the owner has
 *     found all slots empty, in which nobody claims any more: so a scan that finds it clear has missed no guard that it must see,
 *     and what was done under those that were there is before the scan's end.
 *
 * SH4  the line as its owner leaves it, then let go | taken, then claimed in
 * SH6  group and slot counted, then claimed          | fence, counts read
 * SH9  line live, then claimed in; found empty, then no more live | fence, then live read
 */
#include "slot_groups.h"

#define PROBES 4u
#define SURE_LINES 2048u /* addresses for so many are the library's from the beginning */
#define LIVE_PER_LINE (8 * QUIESCE_LINE_BYTES)
#define MOST_OWNERS ((1u << 29) - 1)

static size_t live_bytes(uint32_t nr)
{
	return (nr + LIVE_PER_LINE - 1) / LIVE_PER_LINE * QUIESCE_LINE_BYTES;
}

void *quiesce__reserve_lines(struct quiesce__lines *lines, size_t before, uint32_t max)
{
	size_t live = before, sure;

	before += live_bytes(max);
	sure = before + (max < SURE_LINES ? max : SURE_LINES) * QUIESCE_LINE_BYTES;
	*lines = (struct quiesce__lines){ .capacity = max };
	if (!quiesce__room_init(&lines->room, sure, before + max * QUIESCE_LINE_BYTES))
		return NULL;
	/* What comes before at once, and the first line; the others when they are needed. */
	for (size_t at = 0; at <= before; at += QUIESCE_ROOM_STEP)
		if (!quiesce__room_add(&lines->room, at))
			return NULL;
	lines->first = (uintptr_t *)(void *)(lines->room.start + before);
	lines->live = (uint64_t *)(void *)(lines->room.start + live);
	return lines->room.start;
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

/* I4.  The caller owns line @i. */
static void set_live(struct quiesce__lines *lines, size_t i, bool on)
{
	uint64_t bit = 1ull << i % 64, *word = lines->live ? &lines->live[i / 64] : NULL;

	/* Relaxed: the owner's own bit, and the last owner's change came with the line. */
	if (word && !(quiesce_load_relaxed(word) & bit) == on)
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

/* Take @line away from a thread that died without an end, and leave it in its place. */
static void evict_the_dead(struct quiesce__lines *lines, uintptr_t *line)
{
	uint64_t found = quiesce_load_relaxed(quiesce__line_owner(line)); /* Relaxed: the exchange decides. */

	if (!quiesce__owner_is_thread(found) || (found & QUIESCE_OWNER_INHERITED) || platform_thread_alive((uint32_t)found))
		return;
	/* SH4: full, pairs with SH4 in take() */
	if (quiesce_cmpxchg(SH4, quiesce__line_owner(line), &found, quiesce__new_owner()))
		quiesce__leave_line(lines, line);
}

/* I3.  Relaxed throughout: two threads that probe the same line do no harm. */
static void probe_some(struct quiesce__lines *lines)
{
	uint32_t nr = quiesce_load_relaxed(&lines->nr), at = quiesce_load_relaxed(&lines->probe);

	for (uint32_t n = 0; n < PROBES && n < nr; n++, at++) {
		at = at < nr ? at : 0;
		evict_the_dead(lines, quiesce__line(lines, at));
	}
	quiesce_store_relaxed(&lines->probe, at);
}

/* Is there room for a line beyond @nr, and memory? */
static bool has_room(struct quiesce__lines *lines, uint32_t nr)
{
	uintptr_t *line = quiesce__line(lines, nr);
	size_t offset;

	if (nr >= lines->capacity)
		return false;
	if (!lines->room.start)
		return true;
	/* The first bytes are there. */
	offset = (size_t)((char *)line - lines->room.start);
	return !offset || offset % QUIESCE_ROOM_STEP || quiesce__room_add(&lines->room, offset);
}

uint64_t quiesce__new_owner(void)
{
	static uint32_t owners;

	/* Relaxed: a number. */
	return (uint64_t)(quiesce_fetch_add_relaxed(&owners, 1u) & MOST_OWNERS) << 32 | quiesce__noted_tid();
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
	if (!QUIESCE_MUTANT(slots_let_unlive))
		set_live(lines, i, true);
	return line;
}

/* One that was left, from the hint on and then from the beginning. */
static uintptr_t *take_left(struct quiesce__lines *lines, uint64_t owner, uint32_t limit)
{
	/* Relaxed throughout: take() decides. */
	uint32_t nr = quiesce_load_relaxed(&lines->nr), at = quiesce_load_relaxed(&lines->hint);
	uintptr_t *line = NULL;

	if (nr > limit)
		nr = limit;
	for (uint32_t n = 0; n < nr && !line; n++, at++) {
		at = at < nr ? at : 0;
		line = take(lines, at, owner);
	}
	if (!line)
		return NULL;
	quiesce_store_relaxed(&lines->hint, at); /* just behind it */
	quiesce_fetch_add_relaxed(&lines->nr_free, (uint32_t)-1);
	return line;
}

/* One that nobody ever had. */
static uintptr_t *take_new(struct quiesce__lines *lines, uint64_t owner, uint32_t limit)
{
	uint32_t i = quiesce_load_relaxed(&lines->nr); /* Relaxed: the exchange decides. */
	uintptr_t *line;

	while (i < limit) {
		if (!has_room(lines, i))
			return NULL;
		/* SH6: full, pairs with SH6 in quiesce__slots_ranges() */
		if (!quiesce_cmpxchg(SH6, &lines->nr, &i, i + 1))
			continue;
		line = take(lines, i, owner);
		if (line)
			return line;
		if (!QUIESCE_MUTANT(slots_free_taken_twice))
			quiesce_fetch_add_relaxed(&lines->nr_free, 1u); /* Relaxed: I2. */
		i = quiesce_load_relaxed(&lines->nr); /* Relaxed: as above. */
	}
	return NULL;
}

uintptr_t *quiesce__take_line(struct quiesce__lines *lines, uint64_t owner, uint32_t limit)
{
	uintptr_t *line = NULL;

	/* Relaxed throughout: hints; a line that is not counted yet is for somebody else. */
	if (!quiesce_load_relaxed(&lines->nr_free) && quiesce_load_relaxed(&lines->nr) < limit)
		probe_some(lines);
	if (quiesce_load_relaxed(&lines->nr_free))
		line = take_left(lines, owner, limit);
	return line ? line : take_new(lines, owner, limit);
}

void quiesce__leave_line(struct quiesce__lines *lines, uintptr_t *line)
{
	if (is_empty(lines, line) || QUIESCE_MUTANT(slots_left_held))
		set_live(lines, quiesce__line_index(lines, line), false);
	/* SH4: release, pairs with SH4 in take() */
	quiesce_store_release(SH4, quiesce__line_owner(line), (uint64_t)0);
	/* Relaxed: hints. */
	quiesce_store_relaxed(&lines->hint, (uint32_t)quiesce__line_index(lines, line));
	quiesce_fetch_add_relaxed(&lines->nr_free, 1u); /* Relaxed: as above. */
}

uint64_t quiesce__owner_at(struct quiesce__lines *lines, const uintptr_t *slot)
{
	size_t line = quiesce__line_index(lines, slot);

	if (line >= quiesce_load_relaxed(&lines->nr)) /* Relaxed: a report. */
		return 0;
	return quiesce_load_relaxed(quiesce__line_owner(quiesce__line(lines, line))); /* Relaxed: as above. */
}
