/* SPDX-License-Identifier: MIT */
/* quiesce/percpu_rwsem.h - a reader-writer lock whose readers share no cache line, for data that
 * are rarely written.
 *
 *	DEFINE_STATIC_PERCPU_RWSEM(config_lock);
 *
 *	percpu_down_read(&config_lock);          // reader: counts on its own CPU, no fence, no shared line
 *	use(config);
 *	percpu_up_read(&config_lock);
 *
 *	percpu_down_write(&config_lock);         // writer: makes readers slow, waits for those inside
 *	change(config);
 *	percpu_up_write(&config_lock);
 *
 * Both sides may sleep inside.  If there was no write for some 5 to 20 ms, readers are fast, and
 * the next writer pays for one membarrier.  In a burst of writes readers are slow, a locked
 * instruction each way, and writers pay for no membarrier (rcu_sync.h).
 *
 * Fairness.  Writers, and readers that find a writer, queue in the order in which they arrive.
 * When a writer leaves, all readers at the head of the queue get the lock together, and the writer
 * behind them waits for just these.  So a writer waits for the sections that were open when it
 * arrived, and for the waiters queued before it; a reader waits for the writers before it.
 * Neither side can starve the other.
 *
 * Not recursive: a thread that holds the lock for reading and acquires it again waits for ever if
 * a writer came in between (the debug build reports it).  Any thread may release a lock that
 * another thread acquired; the debug build attributes the lock to the thread that acquired it
 * until then.
 *
 * Fibers and coroutines (docs/fibers.md) may hold the lock over a switch, and release it in any
 * thread; a waiter blocks its thread with all fibers in it, and the debug build reports a fiber
 * that waits in the thread that acquired the lock.
 *
 * Ordering.  Everything done under the lock happens before the next holder that it excludes gets
 * the lock.
 * Proof: docs/design/percpu_rwsem.md; tests/model/rwsem.pml; tests/litmus/PW*.litmus;
 *   docs/ordering.md.
 *
 * Fork.  The child has the lock as it was: a reader or a writer in another thread holds it there
 * for ever.  Unless the program makes sure that no other thread uses the lock during fork(), the
 * child calls percpu_rwsem_after_fork_child().  If a thread ends, or is cancelled, with the lock
 * held, the lock stays held: the debug build reports it, and the stall report names the waiters.
 *
 * A plug-in that uses the inline calls stays loaded after dlclose(), because the kernel keeps a
 * pointer to the last restartable sequence of each thread.
 *
 * Source: the kernel's percpu-rwsem, and O. Nesterov's posting named in rcu_sync.h.  Differences:
 * readers check and count in one step that a writer can restart, counts never go down (percpu.h),
 * and no reader overtakes a queued writer, nor a writer a queued reader.
 */
#ifndef QUIESCE_PERCPU_RWSEM_H
#define QUIESCE_PERCPU_RWSEM_H

#include <quiesce/detail/percpu.h>
#include <quiesce/detail/percpu_rwsem_calls.h>
#include <quiesce/rcu_sync.h>

QUIESCE_BEGIN_DECLS

struct quiesce__rwsem_waiter; /* on the waiter's stack; private */

/* A lock.  All members are private; programs may use the size. */
struct percpu_rw_semaphore {
	/* Loaded by readers; changes with the first writer of a burst, and when the burst is over. */
	uint64_t open;                /* nonzero: readers count inline; see percpu.h */
	struct quiesce_percpu percpu; /* counters: words entered and left */
	uint64_t pad[6];
	/* Writers write the following members.  @rss is of the kind quiesce_rwsem_sync; in all-zero
	 * memory its kind is NULL until the first write. */
	struct rcu_sync rss;
	uint64_t shared[2];           /* counts of threads that have no set */
	const void *owner;            /* thread of the writer inside; for assertions */
	struct quiesce__rwsem_waiter *first, *last; /* queue of waiters */
	struct quiesce__lock lock;    /* guards the queue and @block */
	uint32_t block;               /* a writer is inside, or next */
	uint32_t wake_seq;            /* futex of queued readers; changes when some are admitted */
	uint32_t owner_tid;           /* thread id of the writer that owns @block; for reports */
	uint64_t woken_on;            /* a bit for each CPU, modulo 64, where an admitted reader had slept */
} __attribute__((__aligned__(QUIESCE_CACHELINE)));

/* ---- private: the code that the calls below inline ---- */

#define QUIESCE__ENTERED 0 /* byte offsets of the words in a set */
#define QUIESCE__LEFT 8

/* The check and the count are one step, which a writer restarts when it makes readers slow: so a
 * reader either sees the lock closed, or its count is seen. */
QUIESCE_FAST void quiesce__percpu_down_read(struct percpu_rw_semaphore *sem)
{
	/* PW2: acquire, pairs with PW2 in quiesce__rwsem_set_idle() */
	if (quiesce_unlikely(!quiesce_count_acquire(PW2, &sem->open, QUIESCE__ENTERED)))
		quiesce__percpu_down_read_slow(QUIESCE_LAYOUT, sem);
}

QUIESCE_FAST bool quiesce__percpu_down_read_trylock(struct percpu_rw_semaphore *sem)
{
	/* PW2: acquire, pairs with PW2 in quiesce__rwsem_set_idle() */
	return quiesce_likely(quiesce_count_acquire(PW2, &sem->open, QUIESCE__ENTERED)) ||
	       quiesce__percpu_down_read_until(QUIESCE_LAYOUT, sem, 0);
}

QUIESCE_FAST void quiesce__percpu_up_read(struct percpu_rw_semaphore *sem)
{
	/* The check and the count are one step, because the lock may be freed as soon as its last
	 * reader has left. */
	/* PC2: release, pairs with PC2 in sum() */
	if (quiesce_unlikely(!quiesce_count_release(PC2, &sem->open, QUIESCE__LEFT)))
		quiesce__percpu_up_read_slow(sem);
}

/* ---- set-up ---- */

#if defined(__cplusplus)
#define QUIESCE__RWSEM_SYNC { 0, 0, 0, { 0 }, &quiesce_rwsem_sync, nullptr, { nullptr, nullptr } }
#define PERCPU_RWSEM_INIT { 0, { nullptr }, { 0 }, QUIESCE__RWSEM_SYNC, { 0, 0 }, nullptr, nullptr, nullptr, { 0 }, 0, 0, 0, 0 }
#else
/** PERCPU_RWSEM_INIT - static initialiser of an unlocked lock; its counters are allocated at first
 * use.
 * All-zero memory is an unlocked lock, too. */
#define PERCPU_RWSEM_INIT { .rss = { .ops = &quiesce_rwsem_sync } }
#endif
#define DEFINE_PERCPU_RWSEM(name) struct percpu_rw_semaphore name = PERCPU_RWSEM_INIT
#define DEFINE_STATIC_PERCPU_RWSEM(name) static struct percpu_rw_semaphore name = PERCPU_RWSEM_INIT

/** percpu_init_rwsem - initialise a lock.
 * Context: any thread; not in a signal handler.
 * Return: 0; -ENOMEM: no memory for its counters: the lock works, but its readers share a line. */
QUIESCE_PLAIN int percpu_init_rwsem(struct percpu_rw_semaphore *sem) { return quiesce_percpu_init_rwsem(QUIESCE_LAYOUT, sem); }

/** percpu_rwsem_after_fork_child - in a child of fork(): make the lock free, without holders and
 * waiters.
 *
 * For locks that other threads of the parent may have used at the fork.  The lock's memory and
 * counters stay.
 * Context: the child, in a pthread_atfork() handler or later, before any thread uses the lock
 *   there; the caller did not hold it at the fork.
 * Cost: a read of the counters of all CPUs.
 * Misuse: in a process that is not a forked child: reported, and the lock stays as it is. */
QUIESCE_PLAIN void percpu_rwsem_after_fork_child(struct percpu_rw_semaphore *sem) { quiesce_percpu_rwsem_after_fork_child(sem); }

/** percpu_free_rwsem - end the use of a lock.
 * Context: may sleep until readers are fast again, after a recent write; allowed in callbacks.
 * Misuse: of a lock that is held or waited for: reported, and the lock stays as it is. */
QUIESCE_PLAIN void percpu_free_rwsem(struct percpu_rw_semaphore *sem) { quiesce_percpu_free_rwsem(sem); }

/* ---- readers ---- */

/** percpu_down_read - acquire the lock for reading.
 *
 * Context: may sleep, if a writer is inside or queued; not recursive; not in a signal handler,
 *   where percpu_down_read_trylock() may be used.  Spins for some microseconds before it sleeps.
 * Cost: while readers are fast, a restartable sequence of eight instructions; in a burst of writes
 *   a call, a sequence and a locked instruction; with full fences a call and a locked instruction.
 * Orders: everything that earlier writers did under the lock happens before what follows. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void percpu_down_read(struct percpu_rw_semaphore *sem) { quiesce__percpu_down_read_debug(sem); }
#else
QUIESCE_FAST void percpu_down_read(struct percpu_rw_semaphore *sem) { quiesce__percpu_down_read(sem); }
#endif

/** percpu_down_read_trylock - acquire the lock for reading, without waiting.
 * Context: any; signal handlers too, even if they interrupt a call on the same lock.
 * Return: true: acquired.  It fails while a writer is inside or next. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN bool percpu_down_read_trylock(struct percpu_rw_semaphore *sem) { return quiesce__percpu_down_read_until_debug(sem, 0); }
#else
QUIESCE_FAST bool percpu_down_read_trylock(struct percpu_rw_semaphore *sem) { return quiesce__percpu_down_read_trylock(sem); }
#endif

/** percpu_down_read_timeout - acquire the lock for reading, waiting at most @timeout_ns.
 * Context: as percpu_down_read().
 * Return: true: acquired. */
QUIESCE_PLAIN bool percpu_down_read_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
#ifdef QUIESCE_DEBUG
	return quiesce__percpu_down_read_until_debug(sem, timeout_ns);
#else
	return quiesce_percpu_down_read_timeout(sem, timeout_ns);
#endif
}

/** percpu_up_read - release a lock that was acquired for reading.
 * Context: any thread; signal handlers.  Does not sleep.
 * Cost: as percpu_down_read(); a system call if a writer waits for this reader.
 * Orders: release. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void percpu_up_read(struct percpu_rw_semaphore *sem) { quiesce__percpu_up_read_debug(sem); }
#else
QUIESCE_FAST void percpu_up_read(struct percpu_rw_semaphore *sem) { quiesce__percpu_up_read(sem); }
#endif

/* ---- writers ---- */

/** percpu_down_write - acquire the lock for writing.
 *
 * Context: may sleep; not in a signal handler, and not while the thread holds the lock (a
 *   deadlock, which the debug build reports).  In a section of RCU it delays every updater of RCU.
 * Cost: the first after 5 to 20 ms without a write: one membarrier (with full fences a fence), and
 *   a sum over all CPUs, which reads a line of each twice; later ones the sum only.  While readers
 *   are inside it repeats the sum for up to 50 us, then sleeps.
 * Orders: everything done under the lock earlier happens before what follows. */
QUIESCE_PLAIN void percpu_down_write(struct percpu_rw_semaphore *sem)
{
#ifdef QUIESCE_DEBUG
	quiesce__percpu_down_write_debug(sem);
#else
	quiesce_percpu_down_write(sem);
#endif
}

/** percpu_down_write_many - acquire @nr locks for writing, in the order of @sems, with one
 * membarrier for 1024 of them.
 *
 * Context: as percpu_down_write() of each; threads that acquire several locks do so in one order.
 *   Readers of all of them are slow from the beginning on.  Release each lock with
 *   percpu_up_write().
 * Misuse: a lock that is named twice: reported (QUIESCE_MISUSE_TWICE), acquired once, and to be
 *   released once; NULL: reported (QUIESCE_MISUSE_NULL).  The others are acquired. */
QUIESCE_PLAIN void percpu_down_write_many(struct percpu_rw_semaphore *const *sems, size_t nr)
{
#ifdef QUIESCE_DEBUG
	quiesce__percpu_down_write_many_debug(sems, nr);
#else
	quiesce_percpu_down_write_many(sems, nr);
#endif
}

/** percpu_down_write_timeout - acquire the lock for writing, waiting for other threads at most
 * @timeout_ns.
 * After a timeout the readers that queued behind the caller get the lock.  The time of the
 * membarrier, of the caller or of another writer, is not included.
 * Context: as percpu_down_write().
 * Return: true: acquired. */
QUIESCE_PLAIN bool percpu_down_write_timeout(struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
#ifdef QUIESCE_DEBUG
	return quiesce__percpu_down_write_until_debug(sem, timeout_ns);
#else
	return quiesce_percpu_down_write_timeout(sem, timeout_ns);
#endif
}

/** percpu_down_write_trylock - acquire the lock for writing, without waiting for readers or a
 * writer inside.
 * Context: not in a signal handler.
 * Cost: as percpu_down_write() if no reader is inside.
 * Return: true: acquired. */
QUIESCE_PLAIN bool percpu_down_write_trylock(struct percpu_rw_semaphore *sem)
{
	return percpu_down_write_timeout(sem, 0);
}

/** percpu_up_write - release a lock that was acquired for writing.
 * Context: any thread; does not sleep, except that the first call of a process starts a thread.
 * Cost: a lock, and one or two system calls if there are waiters.
 * Misuse: a lock that no writer holds: reported.
 * Orders: release. */
QUIESCE_PLAIN void percpu_up_write(struct percpu_rw_semaphore *sem)
{
#ifdef QUIESCE_DEBUG
	quiesce__percpu_up_write_debug(sem);
#else
	quiesce_percpu_up_write(sem);
#endif
}

/** percpu_is_read_locked - test whether a reader holds the lock or tries to acquire it.
 * Context: any; the result may be out of date, and is for assertions.
 * Orders: nothing. */
QUIESCE_PLAIN bool percpu_is_read_locked(const struct percpu_rw_semaphore *sem) { return quiesce_percpu_is_read_locked(sem); }

/** percpu_is_write_locked - test whether a writer is inside, or next.
 * Context: any; the result may be out of date, and is for assertions.
 * Orders: nothing. */
QUIESCE_PLAIN bool percpu_is_write_locked(const struct percpu_rw_semaphore *sem) { return quiesce_percpu_is_write_locked(sem); }

/** percpu_is_write_locked_by_me - test whether this thread acquired the lock for writing, and no
 * thread has released it since.
 * Context: any. */
QUIESCE_PLAIN bool percpu_is_write_locked_by_me(const struct percpu_rw_semaphore *sem)
{
	return quiesce_percpu_is_write_locked_by_me(sem);
}

/** percpu_rwsem_is_held - test whether this thread holds the lock, for reading or writing.
 * Release builds do not record readers: there it is true if any reader is inside.
 * Context: any. */
QUIESCE_PLAIN bool percpu_rwsem_is_held(const struct percpu_rw_semaphore *sem)
{
#ifdef QUIESCE_DEBUG
	return quiesce__percpu_rwsem_held_debug(sem, false) || quiesce__percpu_rwsem_held_debug(sem, true);
#else
	return percpu_is_write_locked_by_me(sem) || percpu_is_read_locked(sem);
#endif
}

/** percpu_rwsem_assert_held - report, and by default abort, unless percpu_rwsem_is_held(). */
QUIESCE_PLAIN void percpu_rwsem_assert_held(const struct percpu_rw_semaphore *sem)
{
	if (quiesce_unlikely(!percpu_rwsem_is_held(sem)))
		quiesce__percpu_rwsem_not_held(sem, "read or write");
}

/** percpu_rwsem_assert_held_write - report, and by default abort, unless this thread holds the lock
 * for writing. */
QUIESCE_PLAIN void percpu_rwsem_assert_held_write(const struct percpu_rw_semaphore *sem)
{
	if (quiesce_unlikely(!percpu_is_write_locked_by_me(sem)))
		quiesce__percpu_rwsem_not_held(sem, "write");
}

QUIESCE_END_DECLS

#endif
