/* SPDX-License-Identifier: MIT */
/* quiesce/shazptr.h - simple hazard pointers: an updater waits for the readers of one object, and
 * disturbs no other thread.
 *
 * Use when an updater must wait for the readers of the object that it has just
 * unlinked, often, or while readers of other objects stay long; use RCU when
 * readers traverse several objects.
 *
 *	shazptr_scoped struct shazptr_guard guard = shazptr_protect(&config);   // reader
 *	struct config *p = shazptr_ptr(guard);
 *	if (p)
 *		use(p->limit);
 *
 *	old = rcu_xchg_pointer(&config, fresh);                                 // updater
 *	synchronize_shazptr(old);
 *	free(old);
 *
 * A guard is two words: a slot, and the address that the slot holds.  Each protection claims (finds
 * empty, and fills) a slot: in a cache line of one of the first threads, in a block of the CPU, by a
 * restartable sequence (rseq), or in a shared pool.  An updater scans (loads) the slots in use: their
 * number grows with CPUs and with guards whose holders are preempted or asleep, not with threads.
 * Light and full fences are explained in rcu.h.
 *
 * Ordering.  If a guard protects an object, then synchronize_shazptr() of its address, called
 * after the object was unlinked, returns only after the guard has been cleared, and everything
 * that its holder did before the clear happens before the return.  A guard that is set later
 * and that the call does not wait for finds the object unlinked.
 * Proof: docs/design/shazptr.md; tests/litmus/SH*.litmus; docs/ordering.md.
 *
 * In C++ an object of several bases has several addresses.  A guard holds the address in the
 * pointer that readers load, so the updater passes a pointer of that type: the one that it has
 * unlinked.  quiesce::shazptr<T>::synchronize() (shazptr.hpp) converts other pointers to that type.
 *
 * Fibers and coroutines (docs/fibers.md) may hold guards across a switch, and clear them in any
 * thread; the debug build counts a guard as held by the thread that acquired it until
 * shazptr_detach().
 *
 * The top bit of an address is not compared; a wait for an address that has it set may take longer.
 *
 * A plug-in that uses these calls stays loaded after dlclose(), because the kernel keeps a pointer
 * to the last restartable sequence of each thread.
 *
 * Source: B. Feng, "Introduce simple hazard pointers for lockdep", LKML, June 2025, for the
 * interface and the scan by the caller; slots, claims and waits are our own (docs/design/shazptr.md).
 */
#ifndef QUIESCE_SHAZPTR_H
#define QUIESCE_SHAZPTR_H

#include <quiesce/control.h>
#include <quiesce/detail/shazptr.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* An address whose guard blocks every updater.  It is no valid address, and no value that programs
 * use as a mark, such as (void *)-1. */
#define SHAZPTR_WILDCARD QUIESCE_AS_POINTER(void *, UINTPTR_MAX / 3)

/* A guard is a struct shazptr_guard (quiesce/detail/shazptr.h), a protection of one object.  It may be
 * copied, and handed to another thread; it is cleared once. */

/* ---- readers ---- */

/** shazptr_protect - load a pointer and protect the object that it points to.
 * @where: address of the pointer variable.
 *
 * The call retries while the pointer changes.
 * Context: as shazptr_acquire().
 * Cost: as shazptr_acquire(), and two loads.
 * Return: a guard whose pointer is the current one; empty only if the pointer was NULL.
 * Orders: everything written before the pointer was published (by a release operation, such as
 *   rcu_assign_pointer()) is visible through the guard's pointer. */
#define shazptr_protect(where) quiesce__shazptr_protect(quiesce__untyped(where))

/** shazptr_tryprotect - shazptr_protect() with a single attempt.
 * Return: the guard; empty if the pointer was NULL or changed meanwhile. */
#define shazptr_tryprotect(where) quiesce__shazptr_tryprotect(quiesce__untyped(where))

/** shazptr_ptr - return the address that @guard protects; NULL if it is empty.
 * Context: any. */
QUIESCE_FAST void *shazptr_ptr(struct shazptr_guard guard)
{
	return guard.ptr;
}

/** shazptr_clear - end a protection.
 * @guard: from any of the calls here, not yet cleared.  For an empty guard the call has no effect.
 *
 * Context: the thread that acquired the guard, or a thread to which it was handed over through
 *   anything that orders (a lock, a queue, a release store and an acquire load); signal handlers.
 * Cost: a store and a test; two tests more while a caller waits, or once a guard of the process has
 *   found no memory for a slot; a system call if a caller waits for this guard.
 * Misuse: a second clear may end the protection of another guard; the debug build reports it.
 * Orders: release. */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN void shazptr_clear(struct shazptr_guard guard) { quiesce__shazptr_clear_debug(guard); }
#else
QUIESCE_FAST void shazptr_clear(struct shazptr_guard guard) { quiesce__shazptr_clear(guard); }
#endif

/** shazptr_scoped - attribute of the declaration of a guard, which is cleared where its scope ends.
 *	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(key); */
#define shazptr_scoped __attribute__((__cleanup__(quiesce__shazptr_cleanup)))

/** shazptr_acquire - protect an address that the caller knows by other means.
 * @ptr: the address, or SHAZPTR_WILDCARD to block every updater.  NULL: the guard is empty.
 *
 * The caller must find the object again after the call, because an updater may have unlinked it
 * just before: load the pointer again, look the key up again, or protect the head of a list, which
 * is never freed.  To protect the object that a pointer variable points to, use shazptr_protect().
 *
 * A guard held across fork() protects in the parent only, and so does a guard that is being
 * acquired when a signal handler forks; the child may clear it.  After _Fork() or clone(), which
 * run no fork handlers, the child's first thread calls a function that waits, such as
 * synchronize_rcu(), before its first guard: guards that it acquires inline before that protect
 * nothing.  Other threads of the child need no such call.
 *
 * Context: any thread, no registration; does not sleep.  Guards nest and overlap in any order, each
 *   in a slot of its own, and may be held across sleep.  Signal handlers, which must clear the guard
 *   before they return; a guard that is to stay comes from shazptr_acquire_detached().
 * Cost: light fences: no fence, no shared write, six instructions in the first sixteen threads,
 *   about fifteen in others; full fences: one locked instruction.  A call if the slot of this
 *   thread or CPU is taken: by an outer guard, or by a holder that was preempted.
 * Return: the guard; cannot fail.  If memory for slots is exhausted the guard blocks every updater.
 * Orders: what follows in program order happens after the protection is visible; see "Ordering". */
#ifdef QUIESCE_DEBUG
QUIESCE_PLAIN struct shazptr_guard shazptr_acquire(const void *ptr) { return quiesce__shazptr_acquire_debug(ptr); }
#else
QUIESCE_FAST struct shazptr_guard shazptr_acquire(const void *ptr) { return quiesce__shazptr_acquire(ptr); }
#endif

/* ---- guards that are handed over ---- */

/** shazptr_acquire_detached - shazptr_acquire() in a slot that is not the thread's own.
 *
 * For a signal handler that hands the guard over instead of clearing it before it returns: the
 * interrupted code may have found the slot of its thread empty, and be about to fill it.
 * Context: as shazptr_acquire().
 * Cost: a call, and a restartable sequence or a locked instruction. */
QUIESCE_PLAIN struct shazptr_guard shazptr_acquire_detached(const void *ptr)
{
	return quiesce_shazptr_acquire_detached(ptr);
}

/** shazptr_protect_detached - shazptr_protect() in a slot that is not the thread's own.
 * For a signal handler that hands the guard over, as shazptr_acquire_detached(). */
#define shazptr_protect_detached(where) quiesce__shazptr_protect_detached(quiesce__untyped(where))

/** shazptr_detach - declare that another thread will clear @guard.
 *
 * The debug build then no longer counts the guard as held by the calling thread; other builds do
 * nothing.
 * Context: any. */
QUIESCE_PLAIN void shazptr_detach(struct shazptr_guard guard)
{
#ifdef QUIESCE_DEBUG
	quiesce__shazptr_detach_debug(guard);
#else
	(void)guard;
#endif
}

/* ---- waiting ---- */

/** synchronize_shazptr - wait until no guard that was acquired before the call protects @ptr.
 * @ptr: an address that readers can no longer find, exactly as they protect it.  NULL: returns at
 *   once.  SHAZPTR_WILDCARD: waits for every guard.
 *
 * Guards of @ptr that are acquired during the call, or repeatedly, are not waited for: the call
 * returns once each slot has been seen without a guard of @ptr from before the call.
 * Context: may sleep; not in a signal handler.  Any number of callers.  In an RCU section the wait
 *   delays every updater of RCU.  Not while the caller holds a guard of @ptr or a wildcard: that is
 *   a deadlock, which the debug build reports instead of waiting, and which the stall report names;
 *   guards that were handed over do not count after shazptr_detach().  A signal handler that
 *   interrupts the call does not fork.
 * Cost: without a guard of @ptr: one membarrier, which concurrent callers may share (full fences:
 *   one fence), and a load of each slot in use, some 2 ns if the lines are in the cache.  The lines
 *   of hazptr.h's slots, one for each thread and context that has some, are loaded too, because
 *   these slots may protect at any time.  With a guard of @ptr the caller sleeps, and the scan
 *   thread of the library scans until the guard is cleared; if that thread cannot be started, the
 *   caller scans itself.
 * Orders: full fence before; everything before a clear that was waited for happens before the return.
 */
QUIESCE_PLAIN void synchronize_shazptr(const void *ptr) { quiesce_synchronize_shazptr(ptr); }

/* ---- measurements ---- */

/** quiesce_shazptr_slot - return the kind of slot that a guard has; for measurements.
 * Context: any. */
QUIESCE_API enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard);

QUIESCE_END_DECLS

#endif
