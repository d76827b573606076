/* SPDX-License-Identifier: MIT */
/* slot_pool.c - slots that belong to no thread and no context: shared lines, in a ring.
 *
 *        hand
 *          |
 *   ... line --> line --> line --> line --> (the first)
 *
 * I1. A line in the ring stays there.  Its owner word has the distance to the next line of the ring, in lines of the array.
 * I2. The hand passes a line only if no slot was free in it, and a new line is added behind the hand: so the hand passes every line.
 * I3. A call pays for PAID_PER_CALL lines that it or a later call may search.  A line is added only if no slot was free in as many lines
 *     as were paid for.  Let F of the ring's N lines be full for a whole round of the hand.  The round passes N lines, finds at least N -
 *     F slots, and so pays for PAID_PER_CALL * (N - F) lines: where N exceeds F * PAID_PER_CALL / (PAID_PER_CALL - 1), no line is added
 *     in any later round. So the ring has at most twice the lines that were ever needed at one time, whatever the pattern, and a call
 *     searches PAID_PER_CALL lines on average, also while one thread claims a million slots.  A small ring is always searched whole.
 * I4. A signal handler may fork in the middle of a search, and the child may have another array.  The hand is an address, and links are
 *     distances: so the search ends in the parent's lines, which stay mapped, and leaves the child's hand alone.
 *
 * SH4  the next line's distance written, then linked | linked, then the distance read
 */
#include "slot_groups.h"

#define SMALL 64u /* a ring of at most so many lines is searched whole, whatever was paid for */
#define PAID_PER_CALL 2u  /* lines that each call pays for: I3 */

#define WORDS (2 * (ptrdiff_t)QUIESCE_LINE_WORDS)

static uintptr_t *next_of(uintptr_t *line, uint64_t owner)
{
	return line + (int32_t)owner * WORDS;
}

static uint64_t link_to(const uintptr_t *line, const uintptr_t *next)
{
	return QUIESCE_OWNER_ALL | (uint32_t)((next - line) / WORDS);
}

/* Claim a slot in a line of the ring, from the hand on, passing at most @max lines; @ret_passed is their number. */
static uintptr_t *search(const struct quiesce__pool_type *type, uintptr_t what, uint32_t max, uint32_t *ret_passed)
{
	uintptr_t **hand = &type->lines->pool.hand;
	/* SH4: pairs with SH4 in quiesce__pool_add() and search() */
	uintptr_t *begin = quiesce_load_consume(SH4, hand), *line = begin, *slot = NULL;
	uint32_t passed = 0;

	while (line && !(slot = type->claim(line, what)) && passed < max) {
		/* SH4: pairs with SH4 in quiesce__pool_add() */
		line = next_of(line, quiesce_load_consume(SH4, quiesce__line_owner(line)));
		passed++;
	}
	if (passed)
		/* SH4: full, pairs with SH4 in search() */
		quiesce_cmpxchg(SH4, hand, &begin, line);
	*ret_passed = passed;
	return slot;
}

void quiesce__pool_add(const struct quiesce__pool_type *type, uintptr_t *line)
{
	struct quiesce__pool *pool = &type->lines->pool;
	uint64_t *mine = quiesce__line_owner(line), linked;
	/* SH4: pairs with SH4 in quiesce__pool_add() and search() */
	uintptr_t *at = quiesce_load_consume(SH4, &pool->hand);

	quiesce_fetch_add_relaxed(&pool->nr, 1u); /* Relaxed: a guess. */
	quiesce_store_relaxed(mine, link_to(line, line)); /* Relaxed: the exchange publishes it. */
	/* SH4: full, pairs with SH4 in search() */
	if (!at && quiesce_cmpxchg(SH4, &pool->hand, &at, line))
		return;
	linked = quiesce_load_relaxed(quiesce__line_owner(at)); /* Relaxed: the exchange decides. */
	do
		quiesce_store_relaxed(mine, link_to(line, next_of(at, linked))); /* Relaxed: as above. */
	/* SH4: full, pairs with SH4 in search() */
	while (!quiesce_cmpxchg(SH4, quiesce__line_owner(at), &linked, link_to(at, line)));
}

static void pay_for(struct quiesce__pool *pool, uint32_t nr, uint32_t paid, uint32_t passed)
{
	uint32_t left = paid + PAID_PER_CALL > passed ? paid + PAID_PER_CALL - passed : 0;

	left = left < nr ? left : nr;
	if (left != paid)
		quiesce_store_relaxed(&pool->paid, left); /* Relaxed: as above. */
}

/* Add a new line, and claim a slot in it for the caller, unless a former owner has left all of them taken.  NULL: there is no memory.
 * Signals are blocked: a handler must not fork while the line is neither in the ring nor free (I4). */
static uintptr_t *grow(const struct quiesce__pool_type *type, uintptr_t what, uintptr_t **ret_slot)
{
	struct platform_sigmask mask;
	uintptr_t *line;

	platform_signals_block(&mask);
	line = type->take_line(QUIESCE_OWNER_ALL);
	if (line) {
		*ret_slot = type->claim(line, what);
		quiesce__pool_add(type, line);
	}
	platform_signals_restore(&mask);
	return line;
}

uintptr_t *quiesce__pool_claim(const struct quiesce__pool_type *type, uintptr_t what)
{
	struct quiesce__pool *pool = &type->lines->pool;
	uint32_t nr = quiesce_load_relaxed(&pool->nr), paid = quiesce_load_relaxed(&pool->paid), passed; /* Relaxed: guesses. */
	uintptr_t *slot = search(type, what, nr <= SMALL ? nr : paid, &passed);

	pay_for(pool, nr, paid, passed);
	while (!slot && grow(type, what, &slot))
		;
	return slot;
}

uintptr_t *quiesce__pool_claim_any(const struct quiesce__pool_type *type, uintptr_t what)
{
	uintptr_t *slot = quiesce__pool_claim(type, what);
	uint32_t passed;

	return slot ? slot : search(type, what, quiesce_load_relaxed(&type->lines->pool.nr), &passed); /* Relaxed: a guess. */
}
