/* SPDX-License-Identifier: MIT */
/* waitq.c - a hashed wait queue; waitq.h has the protocol.
 *
 * WQ1  left counted, then the word read | the word made odd, then counts read
 */
#include "waitq.h"

#define NR_WORDS 64u

static struct {
	uint32_t word;
} __attribute__((aligned(QUIESCE_CACHELINE))) table[NR_WORDS];

uint32_t *quiesce__waitq_of(const void *object)
{
	return &table[((uintptr_t)object >> 6 ^ (uintptr_t)object >> 12) % NR_WORDS].word;
}

void quiesce__waitq_wake(uint32_t *word)
{
	uint32_t value = quiesce_load_relaxed(word); /* Relaxed: the exchange decides. */

	while (value & 1)
		/* WQ1: full, pairs with WQ1 in quiesce__waitq_prepare() */
		if (quiesce_cmpxchg(WQ1, word, &value, value + 1)) {
			quiesce__count(wakeups);
			platform_futex_wake(word, INT32_MAX);
			return;
		}
}

uint32_t quiesce__waitq_prepare(uint32_t *word)
{
	uint32_t value = quiesce_load_relaxed(word); /* Relaxed: the exchange decides. */

	/* A compare-and-exchange even where another sleeper has made the word odd already: it is this
	 * caller's full fence. */
	/* WQ1: full, pairs with WQ1 in quiesce__waitq_wake() */
	while (!quiesce_cmpxchg(WQ1, word, &value, value | 1))
		;
	return value | 1;
}
