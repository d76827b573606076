/* SPDX-License-Identifier: MIT */
/* quiesce/shazptr.h - simple hazard pointers: wait for the readers of one object, and disturb nobody else.
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
 * A guard is a pair of words: a slot, and the address that is in it.  There are slots
 * for each of the first threads, for each CPU that the process uses (found by rseq),
 * and a shared pool for the rest; an updater looks through those in use: their number
 * grows with CPUs and with guards held off the CPU, not with threads.
 *
 * Ordering.  If a guard protects an object, then synchronize_shazptr() of its address, called
 * after the object was unlinked, returns only after the guard has been cleared, and everything
 * that its holder did before the clear happens before the return.  A guard that is set later
 * and that the call does not wait for finds the object unlinked.
 * Proof: docs/design/shazptr.md; tests/litmus/SH*.litmus; docs/ordering.md.
 *
 * In C++ an object of several bases has several addresses.  A guard holds the one that the pointer had, so the updater waits by a
 * pointer of that type: the one that it has taken out, or by quiesce::shazptr<T>::synchronize() (shazptr.hpp), which converts.
 *
 * Fibers and coroutines (docs/fibers.md) may hold guards over a switch, and clear them in any thread; the debug build takes a guard
 * for one of the thread that acquired it until shazptr_detach().
 *
 * The top bit of an address is not compared, and an address that has it set may be waited for longer.
 *
 * A plug-in that uses these calls stays loaded after dlclose(), because the kernel keeps a pointer to the last
 * restartable sequence of each thread.
 *
 * Source: B. Feng, "Introduce simple hazard pointers for lockdep", LKML, June 2025, for the
 * interface and the self-scan; the slots, claims, tags and waits are ours (docs/design/shazptr.md).
 */
#ifndef QUIESCE_SHAZPTR_H
#define QUIESCE_SHAZPTR_H

#include <quiesce/control.h>
#include <quiesce/detail/claim.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* The address that blocks every updater: none that a processor knows, and none that programs mark something with, as they do
 * with (void *)-1. */
#define SHAZPTR_WILDCARD QUIESCE_AS_POINTER(void *, UINTPTR_MAX / 3)

/* A protection.  A value: it may be copied and handed to another thread, and is cleared once. */
struct shazptr_guard {
	uintptr_t *slot; /* private */
	void *ptr;       /* what it protects; NULL: nothing */
};

QUIESCE_API uintptr_t *quiesce__shazptr_claim_slow(uint32_t layout, uintptr_t value) __attribute__((__returns_nonnull__));
QUIESCE_API void quiesce__shazptr_clear_slow(uintptr_t *slot);
QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire_detached(const void *ptr);
QUIESCE_API struct shazptr_guard quiesce__shazptr_acquire_debug(const void *ptr);
QUIESCE_API void quiesce__shazptr_clear_debug(struct shazptr_guard guard);
QUIESCE_API void quiesce__shazptr_note_debug(struct shazptr_guard guard);
QUIESCE_API void quiesce_synchronize_shazptr(const void *ptr);

/* Where the thread has no line of its own; NULL: by the slow way. */
QUIESCE_FAST uintptr_t *quiesce__shazptr_claim_cached(struct quiesce__own_block self, uintptr_t value)
{
	uintptr_t *slot;

	/* A plain load, once for this test and for the sequence: fixed before first use. */
	if (quiesce_likely(quiesce_shazptr_v1.rseq))
		/* SH2: pairs with SH2 in quiesce__slot_read() and quiesce__shazptr_release() */
		return QUIESCE_SEQUENCES_INLINE ? quiesce_claim_own(SH2, self, value) : NULL;
	/* Relaxed: the thread's own; an old slot is as good for a compare-and-exchange. */
	if (quiesce_unlikely((uint64_t)quiesce__claim_id() != quiesce_own_load_relaxed(self, shazptr_cached.id)))
		return NULL;
	slot = quiesce_own_load_relaxed(self, shazptr_cached.slot); /* Relaxed: as above. */
	/* SH1: pairs with SH1 in cache_slot() */
	quiesce_fence_light(SH1);
	/* A handler may have been the library's first user, and now sequences claim there.  Relaxed: fixed since. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_shazptr_v1.rseq)))
		return NULL;
	return quiesce__claim_cas(slot, value);
}

QUIESCE_FAST uintptr_t *quiesce__shazptr_claim(uintptr_t value)
{
	struct quiesce__own_block self = quiesce__own();
	/* Relaxed: the thread's own. */
	uintptr_t *slot = quiesce_own_load_relaxed(self, shazptr_own);

	if (quiesce_unlikely(!slot) || quiesce_unlikely(!quiesce__claim_own(slot, value))) {
		slot = quiesce__shazptr_claim_cached(self, value);
		if (quiesce_unlikely(!slot))
			slot = quiesce__shazptr_claim_slow(QUIESCE_LAYOUT, value);
	}
	/* If the caller's next load misses what was unlinked before the heavy fence, the scan after it sees the slot; if the scan
	 * misses the slot, the load sees what was unlinked. */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_light(SH1);
	return slot;
}

/* A caller waits: for another address, as a rule, and then the slot has no tag. */
QUIESCE_FAST bool quiesce__shazptr_is_asked(const uintptr_t *slot)
{
	/* Relaxed: a request that is missed is made again; the bit of fallback guards was there before the guard that is cleared. */
	return (quiesce_load_relaxed(&quiesce_shazptr_v1.attention) & ~(QUIESCE_SLOTS_WAIT | QUIESCE_SLOTS_FALLBACK)) ||
	       (quiesce_load_relaxed(slot) & QUIESCE_SLOT_TAG); /* Relaxed: as above. */
}

QUIESCE_FAST void quiesce__shazptr_release(uintptr_t *slot)
{
	/* Relaxed: as above. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_shazptr_v1.attention)) && quiesce__shazptr_is_asked(slot))
		quiesce__shazptr_clear_slow(slot);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, slot, (uintptr_t)0);
}

/* A claim of NULL leaves the slot as it is; a guard of NULL is not cleared. */
QUIESCE_FAST struct shazptr_guard quiesce__shazptr_acquire(const void *ptr)
{
	struct shazptr_guard guard = { quiesce__shazptr_claim((uintptr_t)ptr), (void *)(uintptr_t)ptr };

	return guard;
}

QUIESCE_FAST void quiesce__shazptr_clear(struct shazptr_guard guard)
{
	if (quiesce_likely(guard.ptr))
		quiesce__shazptr_release(guard.slot);
}

/** shazptr_acquire - protect an address that the caller knows by other means.
 * @ptr: the address, or SHAZPTR_WILDCARD to block every updater.  NULL: the guard is empty.
 *
 * The caller must find the object again after the call, because an updater may have unlinked it
 * just before: load the pointer again, look the key up again, or protect a list head that is never
 * freed itself.  Where a pointer says where the object is, use shazptr_protect().
 *
 * Context: any thread, no registration; does not sleep.  Guards nest and overlap in any order, each
 *   in a slot of its own, and may be held across sleep.  Signal handlers, which must clear the guard
 *   before they return; a guard that is to stay is for shazptr_acquire_detached().
 * Cost: light fences: no fence, no shared write, six instructions for the first sixteen threads, about
 *   fifteen for others; full fences: one locked instruction.  A call where the slot of this
 *   thread or CPU is taken: nested guards, or a holder that was preempted.
 * Return: the guard; cannot fail.  Where memory for slots is exhausted the guard blocks every updater.
 * Orders: what follows in program order happens after the protection is visible; see "Ordering".
 * A guard held across fork() protects in the parent only; the child may clear it.  So does one that is being
 *   acquired when a signal handler forks.  In a child that was made without fork handlers (_Fork(), clone()) the thread
 *   that made it calls any function that waits, such as synchronize_rcu(), before its first guard, because what it takes
 *   in line before that protects nothing.  Other threads of the child need not.
 */
#ifdef QUIESCE_DEBUG
static inline struct shazptr_guard shazptr_acquire(const void *ptr) { return quiesce__shazptr_acquire_debug(ptr); }
#else
QUIESCE_FAST struct shazptr_guard shazptr_acquire(const void *ptr) { return quiesce__shazptr_acquire(ptr); }
#endif

/** shazptr_acquire_detached - the same in a slot that is not the thread's own.
 *
 * For a signal handler that does not clear the guard before it returns, but hands it over.
 * (The code that it interrupted may be between finding the slot of its thread empty and filling it.)
 * Cost: a call, and a restartable sequence or a locked instruction.
 */
static inline struct shazptr_guard shazptr_acquire_detached(const void *ptr)
{
	return quiesce_shazptr_acquire_detached(ptr);
}

#ifdef QUIESCE_DEBUG
QUIESCE_API void quiesce__shazptr_detach_debug(struct shazptr_guard guard);
#endif

/** shazptr_detach - tell that @guard will be cleared by another thread.
 *
 * Nothing happens, except that the debug build no longer takes the guard for one of the calling thread.
 */
static inline void shazptr_detach(struct shazptr_guard guard)
{
#ifdef QUIESCE_DEBUG
	quiesce__shazptr_detach_debug(guard);
#else
	(void)guard;
#endif
}

/** shazptr_clear - end a protection.
 * @guard: from any of the calls here, not yet cleared.  An empty guard is left alone.
 *
 * Context: any thread: the one that acquired the guard, or one that it was handed to through
 *   anything that orders (a lock, a queue, a release store and an acquire load); signal handlers.
 * Cost: a store and a test; two tests more while a caller waits, or once a guard of the process has found no memory for a slot; a system
 *   call if a caller waits for this guard.
 * Misuse: a guard cleared twice may end the protection of another; the debug build reports it.
 * Orders: release.
 */
#ifdef QUIESCE_DEBUG
static inline void shazptr_clear(struct shazptr_guard guard) { quiesce__shazptr_clear_debug(guard); }
#else
QUIESCE_FAST void shazptr_clear(struct shazptr_guard guard) { quiesce__shazptr_clear(guard); }
#endif

/* One attempt on the pointer at @where: true if it did not change meanwhile. */
QUIESCE_FAST bool quiesce__shazptr_attempt(void **where, struct shazptr_guard *ret_guard)
{
	/* Relaxed: only the second load is used. */
	void *first = quiesce_load_relaxed(where);

	ret_guard->slot = quiesce__shazptr_claim((uintptr_t)first);
	/* SH3: acquire, pairs with the caller */
	ret_guard->ptr = quiesce_load_acquire(SH3, where);
	/* As numbers: the first pointer may be one to an object that is gone. */
	if (quiesce_likely((uintptr_t)ret_guard->ptr == (uintptr_t)first))
		return true;
	if (first)
		quiesce__shazptr_release(ret_guard->slot);
	ret_guard->ptr = NULL;
	return false;
}

QUIESCE_FAST struct shazptr_guard quiesce__shazptr_tryprotect(void **where)
{
	struct shazptr_guard guard;

	quiesce__shazptr_attempt(where, &guard);
#ifdef QUIESCE_DEBUG
	quiesce__shazptr_note_debug(guard);
#endif
	return guard;
}

QUIESCE_FAST struct shazptr_guard quiesce__shazptr_protect(void **where)
{
	struct shazptr_guard guard;

	while (quiesce_unlikely(!quiesce__shazptr_attempt(where, &guard)))
		;
#ifdef QUIESCE_DEBUG
	quiesce__shazptr_note_debug(guard);
#endif
	return guard;
}

/** shazptr_protect - fetch a pointer and protect what it points to.
 * @where: address of the pointer variable.
 *
 * Tries again as long as the pointer changes.  Context, cost: as shazptr_acquire(), and two loads.
 * Return: a guard whose pointer is the current one; empty only if the pointer was NULL.
 * Orders: everything written before the pointer was published (by a release operation, such as
 *   rcu_assign_pointer()) is visible through the guard's pointer.
 */
#define shazptr_protect(where) quiesce__shazptr_protect(quiesce__untyped(where))

/** shazptr_tryprotect - the same, one attempt.
 * Return: the guard; empty if the pointer was NULL or changed meanwhile. */
#define shazptr_tryprotect(where) quiesce__shazptr_tryprotect(quiesce__untyped(where))

QUIESCE_FAST struct shazptr_guard quiesce__shazptr_protect_detached(void **where)
{
	for (;;) {
		/* Relaxed: only the second load is used. */
		struct shazptr_guard guard = quiesce_shazptr_acquire_detached(quiesce_load_relaxed(where));
		/* SH3: acquire, pairs with the caller */
		void *again = quiesce_load_acquire(SH3, where);

		if (quiesce_likely((uintptr_t)again == (uintptr_t)guard.ptr)) {
			guard.ptr = again;
			return guard;
		}
		quiesce__shazptr_clear(guard);
	}
}

/** shazptr_protect_detached - shazptr_protect() as shazptr_acquire_detached(): in a signal handler that hands
 * the guard over. */
#define shazptr_protect_detached(where) \
	quiesce__shazptr_protect_detached(quiesce__untyped(where))

/** shazptr_ptr - what @guard protects; NULL if it is empty. */
QUIESCE_FAST void *shazptr_ptr(struct shazptr_guard guard)
{
	return guard.ptr;
}

QUIESCE_FAST void quiesce__shazptr_cleanup(struct shazptr_guard *guard)
{
	shazptr_clear(*guard);
}

/** shazptr_scoped - in front of the declaration of a guard: it is cleared where its scope ends.
 *	shazptr_scoped struct shazptr_guard guard = shazptr_acquire(key); */
#define shazptr_scoped __attribute__((__cleanup__(quiesce__shazptr_cleanup)))

/** quiesce_shazptr_slot - which kind of slot a guard has; for measurements.  Any context. */
QUIESCE_API enum quiesce_slots quiesce_shazptr_slot(struct shazptr_guard guard);

/** synchronize_shazptr - wait until no guard that was there before the call protects @ptr.
 * @ptr: an address that readers can no longer find: the very one that they protect.  NULL: returns at once.
 *   SHAZPTR_WILDCARD: waits for every guard.
 *
 * A guard that is set on @ptr during the call, or again and again, is not waited for: each slot
 * needs to be seen without an older protection once.
 * Context: may sleep; not in a signal handler; not while the caller holds a guard of @ptr or a wildcard
 *   (a deadlock: the debug build reports it and does not wait; else the stall report tells of it; guards
 *   that were handed over do not count if shazptr_detach() said so).
 *   In an RCU section it delays every updater of RCU.  Any number of callers.  A signal handler that
 *   interrupts it does not fork.
 * Cost: nobody holds @ptr: light fences: one membarrier, which callers at the same time may share;
 *   full fences: one fence; and a look at each slot in use, and at a line for each thread and context that has slots of
 *   hazptr.h, whether they protect anything or not, as they may begin to without a word: some 2 ns each, where
 *   the lines are in the cache.  Else the scan thread takes over and the caller sleeps; if it cannot be started the caller
 *   does its work.
 * Orders: full fence before; everything before a clear that was waited for happens before the return.
 */
static inline void synchronize_shazptr(const void *ptr) { quiesce_synchronize_shazptr(ptr); }

QUIESCE_END_DECLS

#endif
