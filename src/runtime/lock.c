/* SPDX-License-Identifier: MIT */
/* lock.c - slow paths of lock.h: spinning, sleeping, priority inheritance.
 *
 * I1. Without priority inheritance a thread sets the waiters bit before it sleeps on the word, and a release that finds the bit set wakes
 *     one waiter.  That waiter keeps the bit when it takes the lock, or sets it again if another thread was faster.  So while a thread
 *     sleeps, the bit is set, or a waiter was woken that will set it.
 * I2. Where the kernel has priority inheritance, it sets the bit itself, and the release of such a lock goes through the kernel, which
 *     chooses the next holder.
 * I3. A caller spins and sleeps NR_SLEEPS times before it asks for priority inheritance, and neither makes it a waiter that a release has
 *     to wake.  So a lock that is held for a short time is released without a system call.
 *
 * LK1  accesses under the lock, then released | lock taken, then accesses under it
 */
#include "lock.h"

#if defined(QUIESCE_SIM)
#define NR_SLEEPS 0u
#else
#define NR_SLEEPS 4u
#endif
#define SPINS 100u    /* pauses; about the length of a critical section */
#define MOST_PAUSES 8u /* from one load of the word to the next: each load of many CPUs moves the line that the holder needs */
#define SLEEP_NS 50000u /* a holder that takes longer is preempted: leave the CPU to it */

/* A child that shares memory with this process (vfork()) runs on this thread's block, so its own thread id is
 * not stored there. */
QUIESCE_COLD uint32_t quiesce__tid_slow(struct quiesce_tls_v1 *self)
{
	uint32_t tid = platform_tid();

	if (platform_in_process())
		self->tid = tid;
	return tid;
}

/* Wait without priority inheritance.  A waiter that takes the lock after a sleep leaves the waiters bit set,
 * because it cannot know whether other waiters sleep. */
static void sleep_for(struct quiesce__lock *lock, uint32_t tid)
{
	for (;;) {
		uint32_t word = quiesce_load_relaxed(&lock->word); /* Relaxed: the exchanges decide. */

		if (!word) {
			/* LK1: acquire, pairs with LK1 in quiesce__unlock_slow() */
			if (quiesce_cmpxchg(LK1, &lock->word, &word, tid | QUIESCE_LOCK_WAITERS))
				return;
			continue;
		}
		/* LK1: full, pairs with LK1 in quiesce__unlock() */
		if ((word & QUIESCE_LOCK_WAITERS) || quiesce_cmpxchg(LK1, &lock->word, &word, word | QUIESCE_LOCK_WAITERS))
			platform_futex_wait(&lock->word, word | QUIESCE_LOCK_WAITERS, PLATFORM_FOREVER);
	}
}

static bool spin_for(struct quiesce__lock *lock, uint32_t tid)
{
	for (uint32_t i = 0, pauses = 1; i < SPINS; i += pauses, pauses = pauses < MOST_PAUSES ? 2 * pauses : pauses) {
		uint32_t word = quiesce_load_relaxed(&lock->word); /* Relaxed: the exchange decides. */

		/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
		if (!word && quiesce_cmpxchg(LK1, &lock->word, &word, tid))
			return true;
		for (uint32_t k = 0; k < pauses; k++)
			quiesce_cpu_relax();
	}
	return false;
}

void quiesce__lock_pi_slow(struct quiesce__lock *lock, uint32_t tid)
{
	if (platform_lock_pi(&lock->word, tid))
		sleep_for(lock, tid);
	else
		/* The kernel has taken the lock for this thread, with a full fence; race detectors see only
		 * the library's own accesses, so one is repeated here. */
		/* LK1: acquire, pairs with LK1 in quiesce__unlock_slow() */
		quiesce_fetch_add(LK1, &lock->word, 0u);
}

/* With priority inheritance each unlock hands the lock to a waiter, at the price of two context switches.  So
 * only a caller that has waited for long asks for it; before that, callers spin and sleep alternately. */
void quiesce__lock_slow(struct quiesce__lock *lock, uint32_t tid)
{
	for (uint32_t i = NR_SLEEPS; i; i--) {
		uint32_t never = 0;

		if (spin_for(lock, tid))
			return;
		platform_futex_wait(&never, 0, SLEEP_NS);
	}
	quiesce__lock_pi_slow(lock, tid);
}

void quiesce__unlock_slow(struct quiesce__lock *lock)
{
	/* LK1: release, pairs with LK1 in quiesce__lock_pi_slow() */
	quiesce_fetch_add(LK1, &lock->word, 0u); /* visible to race detectors, as in quiesce__lock_pi_slow() */
	if (!platform_unlock_pi(&lock->word))
		return;
	/* LK1: release, pairs with LK1 in sleep_for() */
	quiesce_xchg(LK1, &lock->word, 0);
	platform_futex_wake(&lock->word, 1);
}
