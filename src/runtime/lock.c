/* SPDX-License-Identifier: MIT */
/* lock.c - the sleeping halves of lock.h. */
#include "lock.h"

#if defined(QUIESCE_SIM)
#define NR_SLEEPS 0u
#else
#define NR_SLEEPS 4u
#endif
#define SPINS 100u    /* a critical section takes no longer, */
#define SLEEP_NS 50000u /* unless its thread is preempted: give it the CPU */

/* A child that shares our memory borrows the thread's block; its number is not kept there. */
QUIESCE_COLD uint32_t quiesce__tid_slow(struct quiesce_tls_v1 *self)
{
	uint32_t tid = platform_tid();

	if (platform_in_process())
		self->tid = tid;
	return tid;
}

/* Without inheritance.  Who takes the lock after sleeping leaves the mark, because it cannot know whether others sleep too. */
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
	for (uint32_t i = 0; i < SPINS; i++) {
		uint32_t word = quiesce_load_relaxed(&lock->word); /* Relaxed: the exchange decides. */

		/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
		if (!word && quiesce_cmpxchg(LK1, &lock->word, &word, tid))
			return true;
		quiesce_cpu_relax();
	}
	return false;
}

void quiesce__lock_lent(struct quiesce__lock *lock, uint32_t tid)
{
	if (platform_lock_pi(&lock->word, tid))
		sleep_for(lock, tid);
	else
		/* The kernel has changed the word.  It is a fence, but tools that look for races see only our own accesses. */
		/* LK1: acquire, pairs with LK1 in quiesce__unlock_slow() */
		quiesce_fetch_add(LK1, &lock->word, 0u);
}

/* With inheritance a lock goes from hand to hand, at the price of two changes of threads each time; so only those who have
 * waited for long ask for that, and the others try again now and then. */
void quiesce__lock_slow(struct quiesce__lock *lock, uint32_t tid)
{
	for (uint32_t i = NR_SLEEPS; i; i--) {
		uint32_t never = 0;

		if (spin_for(lock, tid))
			return;
		platform_futex_wait(&never, 0, SLEEP_NS);
	}
	quiesce__lock_lent(lock, tid);
}

void quiesce__unlock_slow(struct quiesce__lock *lock)
{
	/* LK1: release, pairs with LK1 in quiesce__lock_lent() */
	quiesce_fetch_add(LK1, &lock->word, 0u); /* as there */
	if (!platform_unlock_pi(&lock->word))
		return;
	/* LK1: release, pairs with LK1 in sleep_for() */
	quiesce_xchg(LK1, &lock->word, 0);
	platform_futex_wake(&lock->word, 1);
}
