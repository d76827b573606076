/* SPDX-License-Identifier: MIT */
/* lock.h - a futex lock whose holder inherits the priority of its waiters.
 *
 * The word is 0, or the thread id of the holder, with QUIESCE_LOCK_WAITERS if a waiter may sleep: the format
 * of the kernel's futexes with priority inheritance.  Where the kernel has none, and in the simulator,
 * waiters sleep on the word, and the holder inherits nothing.
 *
 * The lock guards short critical sections.  It is not held while sleeping for readers, allocating, or running
 * the program's code, except pass.lock and the locks of threads that run callbacks.  Order: pass.lock,
 * the lock of the reclaimers, queues.lock, scan.lock, the lock of a scanner entry in readers.c.
 */
#ifndef QUIESCE_LOCK_H
#define QUIESCE_LOCK_H

#include <quiesce/detail/tls.h>

#include "platform/owned.h"
#include "platform/platform.h"

#define QUIESCE_LOCK_WAITERS 0x80000000u

void quiesce__lock_slow(struct quiesce__lock *lock, uint32_t tid);
void quiesce__lock_pi_slow(struct quiesce__lock *lock, uint32_t tid);
void quiesce__unlock_slow(struct quiesce__lock *lock);

/* Report to the simulator that an attempt has taken the lock. */
static inline void quiesce__lock_taken(const struct quiesce__lock *lock)
{
	sim__lock_step(lock, SIM_LOCK_WANTED);
	sim__lock_step(lock, SIM_LOCK_TAKEN);
}

uint32_t quiesce__tid_slow(struct quiesce_tls_v1 *self);

/* The calling thread's id.  It stays the same for the thread's life in this process, even where the process
 * is restored from a checkpoint and the kernel's ids differ. */
static inline uint32_t quiesce__tid(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	return quiesce_likely(self->tid != 0) ? self->tid : quiesce__tid_slow(self);
}

/* The thread id by which platform_thread_alive() can check the calling thread; 0: it has none. */
static inline uint32_t quiesce__recorded_tid(void)
{
	quiesce__tid();
	return quiesce__self()->tid;
}

/* For reports: the thread id of the holder of @lock; 0: it is free. */
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

/* Take the lock for a caller that has already waited for long: the holder inherits the caller's priority at
 * once. */
static inline void quiesce__lock_pi(struct quiesce__lock *lock)
{
	sim__lock_step(lock, SIM_LOCK_WANTED);
	quiesce__lock_pi_slow(lock, quiesce__tid());
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

/* In a forked child: release the lock of a holder that does not exist there.  @mine: the calling thread is
 * the holder, and stays it. */
static inline void quiesce__lock_reset(struct quiesce__lock *lock, bool mine)
{
	sim__lock_reset(lock, mine);
	quiesce_store_relaxed(&lock->word, mine ? quiesce__tid() : 0); /* Relaxed: the child has one thread. */
}

#endif
