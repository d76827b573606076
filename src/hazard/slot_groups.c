/* SPDX-License-Identifier: MIT */
/* slot_groups.c - letting lines of hazard slots.
 *
 * I1. A line, and a slot of it, are counted before the slot is claimed for the first time, so a scan
 *     whose heavy fence came before may do without it.
 *
 * I2. @nr_free counts every line that was left, a little late; so it is looked for.  The finder of a free line below nr subtracts one.
 *     That may be a line which another thread has just added and not taken yet: it then adds one, and takes another.
 *
 * SH4  the line as its owner leaves it, then let go | taken, then claimed in
 * SH6  group and slot counted, then claimed          | fence, counts read
 */
#include "slot_groups.h"

#define REAP_EVERY 64u
#define SURE_LINES 2048u /* addresses for so many are the library's from the beginning */
#define MOST_OWNERS ((1u << 29) - 1)

void *quiesce__reserve_lines(struct quiesce__lines *lines, size_t before, uint32_t max)
{
	size_t sure = before + (max < SURE_LINES ? max : SURE_LINES) * QUIESCE_LINE_BYTES;

	*lines = (struct quiesce__lines){ .capacity = max };
	if (!quiesce__room_init(&lines->room, sure, before + max * QUIESCE_LINE_BYTES))
		return NULL;
	/* What comes before at once, and the first line; the others when they are needed. */
	for (size_t at = 0; at <= before; at += QUIESCE_ROOM_STEP)
		if (!quiesce__room_add(&lines->room, at))
			return NULL;
	lines->first = (uintptr_t *)(void *)(lines->room.start + before);
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

/* Threads that died without saying so. */
static void evict_the_dead(struct quiesce__lines *lines)
{
	uint32_t nr = quiesce_load_relaxed(&lines->nr); /* Relaxed: a sweep. */

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t *owner = quiesce__line_owner(quiesce__line(lines, i));
		uint64_t found = quiesce_load_relaxed(owner); /* Relaxed: as below. */

		if (quiesce__owner_is_thread(found) && !(found & QUIESCE_OWNER_INHERITED) && !platform_thread_alive((uint32_t)found))
			/* SH4: full, pairs with SH4 in take() */
			if (quiesce_cmpxchg(SH4, owner, &found, (uint64_t)0))
				quiesce_fetch_add_relaxed(&lines->nr_free, 1u); /* Relaxed: a hint. */
	}
}

/* Is there room for a line beyond @nr, and memory? */
static bool has_room(struct quiesce__lines *lines, uint32_t nr)
{
	uintptr_t *line = quiesce__line(lines, nr);
	size_t offset;

	if (nr % REAP_EVERY == REAP_EVERY - 1 || nr >= lines->capacity)
		evict_the_dead(lines);
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
	return quiesce_cmpxchg(SH4, quiesce__line_owner(line), &none, owner) ? line : NULL;
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
			return take_left(lines, owner, limit); /* the dead may have been evicted */
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
	/* Relaxed: a hint; a line that is not counted yet is found when there is no room for another. */
	uintptr_t *line = quiesce_load_relaxed(&lines->nr_free) ? take_left(lines, owner, limit) : NULL;

	return line ? line : take_new(lines, owner, limit);
}

void quiesce__leave_line(struct quiesce__lines *lines, uintptr_t *line)
{
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
