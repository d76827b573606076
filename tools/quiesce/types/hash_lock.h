/* SPDX-License-Identifier: MIT */
/* hash_lock.h - small locks, one for each bucket of a table.
 * raw, whole file: the tool's own locks, whose acquire and release pair with each other. */
#ifndef QUIESCE_TOOL_HASH_LOCK_H
#define QUIESCE_TOOL_HASH_LOCK_H

#include <sched.h>
#include <stdint.h>

#include <quiesce/atomic.h>

#define HASH_LOCK_SPINS 1000 /* after so many the waiter yields: the owner may need its CPU */

static inline void hash_lock_pause(uint32_t *spins)
{
	if (++*spins < HASH_LOCK_SPINS)
		quiesce_cpu_relax();
	else
		sched_yield();
}

/* ---- a spinlock ---- */

static __attribute__((noinline, unused)) void hash_spin_wait(uint32_t *lock)
{
	uint32_t spins = 0;

	do {
		while (__atomic_load_n(lock, __ATOMIC_RELAXED))
			hash_lock_pause(&spins);
	} while (__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE));
}

static inline void hash_spin_lock(uint32_t *lock)
{
	if (quiesce_unlikely(__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE)))
		hash_spin_wait(lock);
}

static inline void hash_spin_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0u, __ATOMIC_RELEASE);
}

/* ---- a fair reader-writer lock: in the order of tickets; consecutive readers hold it together ---- */

struct hash_rwlock {
	uint16_t next;  /* the next ticket to be taken */
	uint16_t read;  /* the ticket that may enter, if its holder is a reader */
	uint16_t write; /* the ticket that may enter, if its holder is a writer */
	uint16_t unused;
};

static __attribute__((noinline, unused)) void hash_rwlock_wait(const uint16_t *turn, uint16_t ticket)
{
	uint32_t spins = 0;

	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != ticket)
		hash_lock_pause(&spins);
}

static inline void hash_read_lock(struct hash_rwlock *lock)
{
	uint16_t ticket = __atomic_fetch_add(&lock->next, (uint16_t)1, __ATOMIC_RELAXED);

	if (quiesce_unlikely(__atomic_load_n(&lock->read, __ATOMIC_ACQUIRE) != ticket))
		hash_rwlock_wait(&lock->read, ticket);
	/* A reader with the next ticket may enter, too.  No other thread writes this word now. */
	__atomic_store_n(&lock->read, (uint16_t)(ticket + 1), __ATOMIC_RELEASE);
}

static inline void hash_read_unlock(struct hash_rwlock *lock)
{
	(void)__atomic_fetch_add(&lock->write, (uint16_t)1, __ATOMIC_RELEASE);
}

static inline void hash_write_lock(struct hash_rwlock *lock)
{
	uint16_t ticket = __atomic_fetch_add(&lock->next, (uint16_t)1, __ATOMIC_RELAXED);

	if (quiesce_unlikely(__atomic_load_n(&lock->write, __ATOMIC_ACQUIRE) != ticket))
		hash_rwlock_wait(&lock->write, ticket);
}

/* @read advances first: no other writer can be inside as long as @write has not advanced. */
static inline void hash_write_unlock(struct hash_rwlock *lock)
{
	uint16_t turn = (uint16_t)(__atomic_load_n(&lock->write, __ATOMIC_RELAXED) + 1);

	__atomic_store_n(&lock->read, turn, __ATOMIC_RELEASE);
	(void)__atomic_fetch_add(&lock->write, (uint16_t)1, __ATOMIC_RELEASE);
}

/* ---- numbers of threads, for types with a line for each thread ---- */

#define HASH_MAX_THREADS 1100 /* more than the threads of any cell */

extern __thread int hash_thread_number __attribute__((tls_model("initial-exec"))); /* -1: no number yet */
void hash_thread_enter(void);
void hash_thread_exit(void);

#endif
