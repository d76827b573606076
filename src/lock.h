/* SPDX-License-Identifier: MIT */
/* lock.h - a small futex lock, so that the simulator runs our locks as it runs the rest.
 *
 * Guards short critical sections of the ground floor; never held while sleeping for
 * readers, allocating, or running foreign code, except pass.lock, which is held for
 * just that.  Order: pass.lock, queues.lock, scan.lock, readers.lock.
 */
#ifndef QUIESCE_LOCK_H
#define QUIESCE_LOCK_H

#include "platform/platform.h"

void quiesce__lock_slow(struct quiesce__lock *lock);

/* The simulator stops nobody for good who holds one. */
#if defined(QUIESCE_SIM)
void sim__locks(int by);
#else
static inline void sim__locks(int by)
{
	(void)by;
}
#endif

static inline void quiesce__lock(struct quiesce__lock *lock)
{
	uint32_t free = 0;

	/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
	if (quiesce_unlikely(!quiesce_cmpxchg(LK1, &lock->word, &free, 1)))
		quiesce__lock_slow(lock);
	sim__locks(1);
}

static inline bool quiesce__trylock(struct quiesce__lock *lock)
{
	uint32_t free = 0;

	/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
	if (!quiesce_cmpxchg(LK1, &lock->word, &free, 1))
		return false;
	sim__locks(1);
	return true;
}

static inline void quiesce__unlock(struct quiesce__lock *lock)
{
	/* LK1: release, pairs with LK1 in quiesce__lock() */
	if (quiesce_unlikely(quiesce_xchg(LK1, &lock->word, 0) == 2))
		platform_futex_wake(&lock->word, 1);
	sim__locks(-1);
}

/* Forget the holder; for a forked child, where it does not exist. */
static inline void quiesce__lock_reset(struct quiesce__lock *lock)
{
	quiesce_store_relaxed(&lock->word, 0); /* Relaxed: the child has one thread. */
}

#endif
