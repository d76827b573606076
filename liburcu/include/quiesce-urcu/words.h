/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/words.h - readers that nest, by a word of the thread and one of the flavour; private.
 *
 * The code that liburcu has inlined into programs built for it does the same: src/urcu/urcu_words.c waits for both.
 */
#ifndef QUIESCE_URCU_WORDS_H
#define QUIESCE_URCU_WORDS_H

#include <quiesce/detail/urcu_words.h>
#include <stdbool.h>

#define QUIESCE_URCU_NESTING 0xffffffffull

/* @light: the updater executes the fence for both. */
QUIESCE_FAST void quiesce__urcu_fence(bool light)
{
	if (light)
		/* UW1: pairs with UW1 in fence_before_scan() */
		quiesce_fence_light(UW1);
	else
		/* UW1: full, pairs with UW1 in fence_before_scan() */
		quiesce_fence_full(UW1);
}

/* The fence between the store to the word and the check for a sleeping waiter. */
QUIESCE_FAST void quiesce__urcu_fence_before_wake(bool light)
{
	if (light)
		/* UW4: pairs with UW4 in fence_before_sleep() */
		quiesce_fence_light(UW4);
	else
		/* UW4: full, pairs with UW4 in fence_before_sleep() */
		quiesce_fence_full(UW4);
}

QUIESCE_FAST void quiesce__urcu_lock(uint64_t *ctr, const uint64_t *gp, bool light)
{
	uint64_t word = quiesce_load_relaxed(ctr); /* Relaxed: the thread's own word. */

	if (quiesce_likely(!(word & QUIESCE_URCU_NESTING))) {
		quiesce_store_relaxed(ctr, quiesce_load_relaxed(gp)); /* Relaxed: an old number only makes an updater wait needlessly. */
		quiesce__urcu_fence(light);
	} else
		quiesce_store_relaxed(ctr, word + 1); /* Relaxed: nested. */
}

/* Returns true if it was the outermost unlock: then a waiter may need a wake-up. */
QUIESCE_FAST bool quiesce__urcu_unlock(uint64_t *ctr, bool light)
{
	uint64_t word = quiesce_load_relaxed(ctr); /* Relaxed: the thread's own word. */

	if (quiesce_unlikely((word & QUIESCE_URCU_NESTING) != 1)) {
		quiesce_store_relaxed(ctr, word - 1); /* Relaxed: nested. */
		return false;
	}
	/* UW2: release, pairs with UW2 in blocks() */
	quiesce_store_release(UW2, ctr, word - 1);
	quiesce__urcu_fence_before_wake(light);
	return true;
}

#endif
