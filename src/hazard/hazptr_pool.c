/* SPDX-License-Identifier: MIT */
/* hazptr_pool.c - slots that belong to no thread and no context: lines that are everybody's, in a ring.
 *
 *        hand
 *          |
 *   ... line --> line --> line --> line --> (the first)
 *
 * I1. A line that has come into the ring stays.  Its owner word has the number of the next one.
 * I2. The hand passes a line only if no slot was free in it, and a new line comes behind the hand: so the hand goes round.
 * I3. A line is added only if no slot was free in as many lines as earlier calls have paid for: each pays for EARNS.
 *     Let F of the ring's N lines be full for a whole turn.  The turn passes N lines, finds N - F slots at least, and so
 *     pays for EARNS * (N - F): where N is more than F * EARNS / (EARNS - 1) nothing is added in any later turn.
 *     So the ring has about as many lines as were ever needed at one time, whatever the pattern, at EARNS looks a call.
 *
 * SH4  the next line's number written, then linked | linked, then the number read
 */
#include "hazptr.h"

#define SEARCH 64u /* lines, whatever was paid for */
#define EARNS 8u

static struct {
	uint32_t hand; /* a line's index, plus 1; 0: there is none */
	uint32_t nr;   /* lines; about */
	uint32_t paid; /* looks; about */
} pool;

static uintptr_t *line_of(uint32_t number)
{
	return quiesce__line(&quiesce__hazptr_lines, number - 1);
}

static uint32_t number_of(const uintptr_t *line)
{
	return (uint32_t)quiesce__line_index(&quiesce__hazptr_lines, line) + 1;
}

static bool take_shared(uintptr_t *slot)
{
	uintptr_t value = quiesce_load_relaxed(slot); /* Relaxed: the exchange decides. */

	/* SH2: full, pairs with SH2 in quiesce__hazptr_free_slow() and hazptr_free() */
	return value == QUIESCE_HAZPTR_FREE && quiesce_cmpxchg(SH2, slot, &value, (uintptr_t)0);
}

/* The first of @nr in a row. */
static hazptr_t *alloc_in(uintptr_t *line, uint32_t nr)
{
	uint32_t row = 0;

	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++) {
		if (take_shared(line + k)) {
			if (++row == nr)
				return (hazptr_t *)(line + k + 1 - nr);
			continue;
		}
		for (; row; row--)
			/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_shared() */
			quiesce_store_release(SH2, line + k - row, QUIESCE_HAZPTR_FREE);
	}
	for (; row; row--)
		/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_shared() */
		quiesce_store_release(SH2, line + QUIESCE_LINE_SLOTS - row, QUIESCE_HAZPTR_FREE);
	return NULL;
}

/* From the hand on, past at most @most lines.  Returns in @ret_passed how many it were. */
static hazptr_t *search(uint32_t most, uint32_t nr, uint32_t *ret_passed)
{
	uint32_t at = quiesce_load_relaxed(&pool.hand), passed = 0; /* Relaxed: any will do. */
	hazptr_t *slot = NULL;

	while (at && !(slot = alloc_in(line_of(at), nr)) && passed < most) {
		/* SH4: pairs with SH4 in quiesce__hazptr_pool_add() */
		at = (uint32_t)quiesce_load_consume(SH4, quiesce__line_owner(line_of(at)));
		passed++;
	}
	if (passed)
		quiesce_store_relaxed(&pool.hand, at); /* Relaxed: as above. */
	*ret_passed = passed;
	return slot;
}

void quiesce__hazptr_pool_add(uintptr_t *line)
{
	uint32_t me = number_of(line), at = quiesce_load_relaxed(&pool.hand); /* Relaxed: any will do. */
	uint64_t *mine = quiesce__line_owner(line), linked;

	quiesce_fetch_add_relaxed(&pool.nr, 1u); /* Relaxed: a guess. */
	quiesce_store_relaxed(mine, QUIESCE_OWNER_ALL | me); /* Relaxed: the exchange publishes it. */
	/* SH4: full, pairs with SH4 in search() */
	if (!at && quiesce_cmpxchg(SH4, &pool.hand, &at, me))
		return;
	linked = quiesce_load_relaxed(quiesce__line_owner(line_of(at))); /* Relaxed: the exchange decides. */
	do
		quiesce_store_relaxed(mine, linked); /* Relaxed: as above. */
	/* SH4: full, pairs with SH4 in search() */
	while (!quiesce_cmpxchg(SH4, quiesce__line_owner(line_of(at)), &linked, QUIESCE_OWNER_ALL | me));
}

static void pay(uint32_t paid, uint32_t passed)
{
	uint32_t most = quiesce_load_relaxed(&pool.nr); /* Relaxed: a guess. */
	uint32_t left = paid + EARNS > passed ? paid + EARNS - passed : 0;

	left = left < most ? left : most;
	if (left != paid)
		quiesce_store_relaxed(&pool.paid, left); /* Relaxed: as above. */
}

hazptr_t *quiesce__hazptr_pool_alloc(uint32_t nr)
{
	uint32_t paid = quiesce_load_relaxed(&pool.paid), passed; /* Relaxed: a guess. */
	hazptr_t *slot = search(SEARCH + paid, nr, &passed);
	uintptr_t *line;

	pay(paid, passed);
	while (!slot && (line = quiesce__hazptr_take_line(QUIESCE_OWNER_ALL))) {
		slot = alloc_in(line, nr);
		quiesce__hazptr_pool_add(line);
	}
	return slot ? slot : search(quiesce_load_relaxed(&pool.nr), nr, &passed); /* Relaxed: as above. */
}
