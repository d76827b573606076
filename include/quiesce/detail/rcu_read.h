/* SPDX-License-Identifier: MIT */
/* quiesce/detail/rcu_read.h - the inline code of RCU readers; for rcu.h and for liburcu's names. */
#ifndef QUIESCE_DETAIL_RCU_READ_H
#define QUIESCE_DETAIL_RCU_READ_H

#include <quiesce/detail/tls.h>

QUIESCE_BEGIN_DECLS

/* The word that readers load, on a cache line that changes only with grace periods. */
struct quiesce_rcu_v1 {
	/* Updaters write number << 16 | 1, and QUIESCE_RCU_SLOW while readers are to yield. */
	uint64_t gp;
	uint64_t reserved[7];
};

#if defined(QUIESCE_SIM)
extern struct quiesce_rcu_v1 quiesce_rcu_v1;
#else
extern QUIESCE_DATA struct quiesce_rcu_v1 quiesce_rcu_v1;
#endif

/* The slow paths: rare with light fences; with full fences every outermost lock and unlock
 * takes them. */
QUIESCE_API void quiesce__rcu_lock_slow(uint32_t layout);
QUIESCE_API void quiesce__rcu_unlock_slow(void);
QUIESCE_API void quiesce__rcu_lock_debug(uint32_t layout);
QUIESCE_API void quiesce__rcu_unlock_debug(void);
QUIESCE_API void quiesce__rcu_check_debug(int held, const char *what);
QUIESCE_API void quiesce__rcu_section_debug(const char *call);

/* The debug build reports @what if @held is false; other builds do not evaluate @held. */
#ifdef QUIESCE_DEBUG
#define QUIESCE_RCU_CHECK(held, what) quiesce__rcu_check_debug((held) ? 1 : 0, what)
#define QUIESCE_IN_SECTION(call) quiesce__rcu_section_debug(call)
#else
#define QUIESCE_RCU_CHECK(held, what) ((void)sizeof(!(held)))
#define QUIESCE_IN_SECTION(call) ((void)0)
#endif

/* Enter a section if that takes no call; 0 if it does. */
QUIESCE_FAST int quiesce__rcu_read_trylock(void)
{
	struct quiesce__own_block self = quiesce__own();
	/* Relaxed: the thread's own word. */
	uint64_t word = quiesce_own_load_relaxed(self, rcu_word);

	if (quiesce_likely((uint16_t)word == 0))
		/* Relaxed: an old number only makes an updater wait for this section needlessly. */
		quiesce_own_store_relaxed(self, rcu_word, quiesce_load_relaxed(&quiesce_rcu_v1.gp));
	else if (quiesce_likely((word & QUIESCE_RCU_DEPTH) - 1 < QUIESCE_RCU_DEPTH - 2))
		quiesce_own_store_relaxed(self, rcu_word, word + 1); /* Relaxed: nested, already protected. */
	else
		return 0;
	/* If the section misses an unlinking that precedes the updater's heavy fence, the updater
	 * sees this word, and waits; if the updater misses the word, the section sees the
	 * unlinking. */
	/* RU1: pairs with RU1 in gp_advance() */
	quiesce_fence_light(RU1);
	return 1;
}

QUIESCE_FAST void quiesce__rcu_read_lock(void)
{
	if (quiesce_likely(quiesce__rcu_read_trylock()))
		return;
	quiesce__rcu_lock_slow(QUIESCE_LAYOUT);
	/* RU1: pairs with RU1 in gp_advance() */
	quiesce_fence_light(RU1);
}

/* Leave the section if that takes no call; 0 if it does. */
QUIESCE_FAST int quiesce__rcu_read_tryunlock(void)
{
	struct quiesce__own_block self = quiesce__own();
	/* Relaxed: the thread's own word; an updater whose SLOW bit is lost sets it again. */
	uint64_t word = quiesce_own_load_relaxed(self, rcu_word);

	if (quiesce_likely((uint16_t)word == 1))
		/* RU2: release, pairs with RU2 in quiesce__rcu_blocks() */
		quiesce_own_store_release(RU2, self, rcu_word, 0);
	else if (quiesce_likely((word & QUIESCE_RCU_DEPTH) > 1))
		quiesce_own_store_relaxed(self, rcu_word, word - 1); /* Relaxed: nested, still protected. */
	else
		return 0;
	return 1;
}

QUIESCE_FAST void quiesce__rcu_read_unlock(void)
{
	if (quiesce_unlikely(!quiesce__rcu_read_tryunlock()))
		quiesce__rcu_unlock_slow();
}

QUIESCE_END_DECLS

#endif
