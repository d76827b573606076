/* SPDX-License-Identifier: MIT */
/* locks.h - the locks of the case: two spinlocks, and a sequence count.
 *
 * The kernel disables preemption under a spinlock, so the owner of a lock keeps its CPU.  A process cannot do that: the owner
 * may have been preempted, and then it is the waiting thread that keeps the CPU from it.  So these spin for a microsecond or
 * two and then offer their CPU to others, as a careful program does; a wait that only spins lasts until the scheduler ends it.
 */
#ifndef TIMERS_LOCKS_H
#define TIMERS_LOCKS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <quiesce/atomic.h>

#define SPINS 100

static inline void spin_or_yield(unsigned int *spins)
{
	if (++*spins < SPINS)
		quiesce_cpu_relax();
	else
		sched_yield();
}

/* ---- a spinlock without an order of its waiters ---- */

struct spin {
	uint32_t held;
};

static __attribute__((noinline, unused)) void spin_wait(struct spin *lock)
{
	unsigned int spins = 0;

	do
		while (quiesce_load_relaxed(&lock->held)) /* Relaxed: the exchange below decides. */
			spin_or_yield(&spins);
	/* TM1: full, pairs with TM1 in spin_unlock() */
	while (quiesce_xchg(TM1, &lock->held, 1u));
}

QUIESCE_FAST void spin_lock(struct spin *lock)
{
	/* TM1: full, pairs with TM1 in spin_unlock() */
	if (quiesce_unlikely(quiesce_xchg(TM1, &lock->held, 1u)))
		spin_wait(lock);
}

/* One store, and the last access: the next owner may free the lock. */
QUIESCE_FAST void spin_unlock(struct spin *lock)
{
	/* TM1: release, pairs with TM1 in spin_lock() and spin_wait() */
	quiesce_store_release(TM1, &lock->held, 0u);
}

/* ---- first come, first served: what the kernel's spinlock was in 2011 ---- */

struct ticket {
	uint32_t next, serving;
};

static __attribute__((noinline, unused)) void ticket_wait(struct ticket *lock, uint32_t mine)
{
	unsigned int spins = 0;

	/* TM2: acquire, pairs with TM2 in ticket_unlock() */
	while (quiesce_load_acquire(TM2, &lock->serving) != mine)
		spin_or_yield(&spins);
}

QUIESCE_FAST void ticket_lock(struct ticket *lock)
{
	/* Relaxed: a place in the queue; the load below orders. */
	uint32_t mine = quiesce_fetch_add_relaxed(&lock->next, 1u);

	/* TM2: acquire, pairs with TM2 in ticket_unlock() */
	if (quiesce_unlikely(quiesce_load_acquire(TM2, &lock->serving) != mine))
		ticket_wait(lock, mine);
}

QUIESCE_FAST void ticket_unlock(struct ticket *lock)
{
	uint32_t mine = quiesce_load_relaxed(&lock->serving); /* Relaxed: only the owner stores there. */

	/* TM2: release, pairs with TM2 in ticket_lock() and ticket_wait() */
	quiesce_store_release(TM2, &lock->serving, mine + 1);
}

/* ---- a sequence count: odd while a writer, which has a lock, is active ----
 *
 * No fences, but an order of each access to the data: it is read by load_acquire(TM3, ...) and written by store_release(TM3, ...).
 * So a reader that has read one new word has read it after the count became odd, and finds that when it reads the count again.
 */

struct sequence {
	uint32_t count;
};

QUIESCE_FAST void sequence_write_begin(struct sequence *s)
{
	/* Relaxed: the release of each word that is written follows. */
	quiesce_store_relaxed(&s->count, quiesce_load_relaxed(&s->count) + 1);
}

QUIESCE_FAST void sequence_write_end(struct sequence *s)
{
	uint32_t odd = quiesce_load_relaxed(&s->count); /* Relaxed: the writer's own. */

	/* TM3: release, pairs with TM3 in sequence_read_begin() and sequence_wait() */
	quiesce_store_release(TM3, &s->count, odd + 1);
}

static __attribute__((noinline, unused)) uint32_t sequence_wait(const struct sequence *s)
{
	unsigned int spins = 0;
	uint32_t count;

	/* TM3: acquire, pairs with TM3 in sequence_write_end() */
	while ((count = quiesce_load_acquire(TM3, &s->count)) & 1)
		spin_or_yield(&spins);
	return count;
}

QUIESCE_FAST uint32_t sequence_read_begin(const struct sequence *s)
{
	/* TM3: acquire, pairs with TM3 in sequence_write_end() */
	uint32_t count = quiesce_load_acquire(TM3, &s->count);

	return quiesce_likely(!(count & 1)) ? count : sequence_wait(s);
}

QUIESCE_FAST bool sequence_read_again(const struct sequence *s, uint32_t count)
{
	/* Relaxed: the acquire of each word that was read precedes. */
	return quiesce_unlikely(quiesce_load_relaxed(&s->count) != count);
}

#endif
