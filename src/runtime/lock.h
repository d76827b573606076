/* SPDX-License-Identifier: MIT */
/* lock.h - a futex lock whose holder inherits the priority of who waits for it.
 *
 * The word is 0, or the number of the thread that holds the lock, and QUIESCE_LOCK_WAITERS if somebody may sleep: what the kernel
 * expects of a futex with priority inheritance.  Where it has none, and in the simulator, who waits sleeps on the word, and the
 * lock is as good but for that.
 *
 * Guards short critical sections; not held while sleeping for readers, allocating, or running foreign code, except pass.lock
 * and those of who runs callbacks.  Order: pass.lock, the reclaimers', queues.lock, scan.lock, a scanner's in readers.c.
 */
#ifndef QUIESCE_LOCK_H
#define QUIESCE_LOCK_H

#include <quiesce/detail/tls.h>

#include "platform/owned.h"
#include "platform/platform.h"

#define QUIESCE_LOCK_WAITERS 0x80000000u

void quiesce__lock_slow(struct quiesce__lock *lock, uint32_t tid);
void quiesce__lock_lent(struct quiesce__lock *lock, uint32_t tid);
void quiesce__unlock_slow(struct quiesce__lock *lock);

/* An attempt has succeeded. */
static inline void quiesce__lock_taken(const struct quiesce__lock *lock)
{
	sim__lock_step(lock, SIM_LOCK_WANTED);
	sim__lock_step(lock, SIM_LOCK_TAKEN);
}

uint32_t quiesce__tid_slow(struct quiesce_tls_v1 *self);

/* The number of the calling thread: the same all its life in this process, even where the process is restored under others. */
static inline uint32_t quiesce__tid(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	return quiesce_likely(self->tid != 0) ? self->tid : quiesce__tid_slow(self);
}

/* By which it may be judged whether the thread is there; 0: by none. */
static inline uint32_t quiesce__noted_tid(void)
{
	quiesce__tid();
	return quiesce__self()->tid;
}

/* For reports: who holds @lock; 0: nobody. */
static inline uint32_t quiesce__lock_holder(const struct quiesce__lock *lock)
{
	return quiesce_load_relaxed(&lock->word) & 0x3fffffffu; /* Relaxed: a snapshot. */
}

static inline void quiesce__lock(struct quiesce__lock *lock)
{
	uint32_t free = 0, tid = quiesce__tid();

	sim__lock_step(lock, SIM_LOCK_WANTED);
	/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
	if (quiesce_unlikely(!quiesce_cmpxchg(LK1, &lock->word, &free, tid)))
		quiesce__lock_slow(lock, tid);
	sim__lock_step(lock, SIM_LOCK_TAKEN);
}

/* The same for a caller that has waited for long already: the holder has its priority at once. */
static inline void quiesce__lock_and_lend(struct quiesce__lock *lock)
{
	sim__lock_step(lock, SIM_LOCK_WANTED);
	quiesce__lock_lent(lock, quiesce__tid());
	sim__lock_step(lock, SIM_LOCK_TAKEN);
}

static inline bool quiesce__trylock(struct quiesce__lock *lock)
{
	uint32_t free = 0;

	/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
	if (!quiesce_cmpxchg(LK1, &lock->word, &free, quiesce__tid()))
		return false;
	quiesce__lock_taken(lock);
	return true;
}

static inline void quiesce__unlock(struct quiesce__lock *lock)
{
	uint32_t tid = quiesce__tid();

	sim__lock_step(lock, SIM_LOCK_RETURNED);
	/* LK1: release, pairs with LK1 in quiesce__lock() */
	if (quiesce_unlikely(!quiesce_cmpxchg(LK1, &lock->word, &tid, 0u)))
		quiesce__unlock_slow(lock);
	sim__lock_step(lock, SIM_LOCK_LEFT);
}

/* Forget the holder; for a forked child, where it does not exist.  @mine: the calling thread goes on holding it. */
static inline void quiesce__lock_reset(struct quiesce__lock *lock, bool mine)
{
	sim__lock_reset(lock, mine);
	quiesce_store_relaxed(&lock->word, mine ? quiesce__tid() : 0); /* Relaxed: the child has one thread. */
}

#endif
