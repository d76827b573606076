/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Simple hazard pointers: wait for the readers of one object.
 *
 * A reader that knows the address of an object protects it with a store and a
 * full barrier into the slot of its CPU; an updater waits until no slot holds
 * the address.  It waits for no other reader, and interrupts none.
 *
 *	preempt_disable();				// reader
 *	scoped_guard(shazptr, bucket)
 *		found = find_in(bucket, key);
 *	preempt_enable();
 *
 *	hlist_del_rcu(&item->node);			// updater
 *	synchronize_shazptr(bucket);
 *	kfree(item);
 *
 * Use it where the address is known before the access, the section is short
 * and one object is protected at a time; use hazptr.h where readers sleep, and
 * RCU where they traverse several objects.
 *
 * There is one slot for each CPU.  A nested guard stores the wildcard, which
 * every updater waits for, until the outermost guard ends: so sections may
 * interrupt sections, in hard interrupts and NMIs as well.
 *
 * Ordering: if an access under a guard found the object that an updater
 * unlinked before synchronize_shazptr(), then everything under the guard
 * happens before the return of that call.  Under a guard that the call does not
 * wait for, readers find the object unlinked.  Litmus tests: SK*.litmus.
 *
 * Source: B. Feng, "Introduce simple hazard pointers for lockdep", June 2025,
 * for the interface, the slot and the wildcard; marks and waits are ours.
 */
#ifndef _LINUX_SHAZPTR_H
#define _LINUX_SHAZPTR_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/types.h>
#include <linux/version.h>
#include <asm/barrier.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <linux/cleanup.h>
#endif

/*
 * Readers store to a slot while a scan may mark it.  A
 * compare-and-exchange that takes a lock, as these CPUs have it, loses the store.
 */
#if defined(CONFIG_SMP) && (defined(CONFIG_PARISC) || defined(CONFIG_SPARC32) || \
			    (defined(CONFIG_ARC) && !defined(CONFIG_ARC_HAS_LLSC)))
#error "hazard pointers need a compare-and-exchange in which no plain store of a CPU gets lost"
#endif

#ifdef QUIESCE_MUTANTS
#include "../../mutants.h"
#else
#define SHAZPTR_MUTANT(name) false
#endif

/** SHAZPTR_WILDCARD - the address that blocks every updater. */
#define SHAZPTR_WILDCARD ((void *)~0UL)

/*
 * The bit that the scan flips in a slot that a waiter waits for.  Two addresses
 * that differ only in this bit are treated as equal.
 */
#define SHAZPTR_MARK BIT(BITS_PER_LONG - 2)

/* Only its CPU stores a value; the scan flips the mark of that value. */
struct shazptr_slot {
	unsigned long value;
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU(struct shazptr_slot, shazptr_slots);

/**
 * struct shazptr_guard - a protection that lasts until shazptr_clear()
 * @slot: private: address of the slot; lowest bit set: shazptr_clear() leaves the slot as it is
 */
struct shazptr_guard {
	unsigned long slot;
};

#define SHAZPTR_GUARD_NESTED 1UL

/* True if @value is the wildcard, with or without a mark. */
static __always_inline bool __shazptr_is_wildcard(unsigned long value)
{
	return (value | SHAZPTR_MARK) == ~0UL;
}

static __always_inline void __shazptr_assert_pinned(void)
{
	lockdep_assert_preemption_disabled();
#ifdef QUIESCE_DEBUG
	WARN_ONCE(IS_ENABLED(CONFIG_PREEMPT_COUNT) && preemptible(),
		  "shazptr: a guard with preemption enabled\n");
#endif
}

/**
 * shazptr_acquire() - protect an address that the caller knows by other means
 * @ptr: the address, or SHAZPTR_WILDCARD to block every updater; NULL protects nothing
 *
 * The caller has to find the object again after the call, because an updater may
 * have unlinked it just before: it looks up the key again, loads the pointer
 * again, or protects a list head that is never freed.  Use shazptr_protect() if a
 * pointer leads to the object.
 *
 * Context: Any, also NMI.  Preemption stays disabled until shazptr_clear().
 * Guards nest like brackets: an interrupt handler clears its own before it returns.
 * Cost: a store and a full barrier, on a line of this CPU.
 * Return: the guard; cannot fail.
 */
static __always_inline struct shazptr_guard shazptr_acquire(const void *ptr)
{
	unsigned long *slot = &raw_cpu_ptr(&shazptr_slots)->value;
	struct shazptr_guard guard = { .slot = (unsigned long)slot };
	unsigned long held;

	__shazptr_assert_pinned();
	/*
	 * No atomic operation for the outermost guard: an interrupt between the
	 * test and the store leaves the slot empty again.
	 */
	held = READ_ONCE(*slot);
	if (likely(!held)) {
		/*
		 * A scan that reads this value, even if it missed the empty slot
		 * before it, concludes that the guard before this one has ended.
		 *
		 * SK2: release, pairs with SK2 in shazptr_slot_read()
		 */
		smp_store_release(slot, (unsigned long)ptr);
	} else {
		guard.slot |= SHAZPTR_GUARD_NESTED;
		/*
		 * A wildcard keeps its mark, on which the scan relies.  Since the
		 * test an interrupt may have stored the wildcard, and the scan may
		 * have marked it: hence the compare-and-exchange.
		 *
		 * SK2: full, pairs with SK2 in shazptr_slot_read()
		 */
		while (!__shazptr_is_wildcard(held) &&
		       !try_cmpxchg(slot, &held, (unsigned long)SHAZPTR_WILDCARD))
			;
	}
	/*
	 * Either the scan sees the slot, or the accesses that follow see what
	 * the updater unlinked.
	 */
	if (!SHAZPTR_MUTANT(no_reader_fence)) {
		/* SK1: full, pairs with SK1 in synchronize_shazptr() */
		smp_mb();
	}
	return guard;
}

/**
 * shazptr_clear() - end a protection
 * @guard: from shazptr_acquire() or shazptr_protect(), on this CPU, the innermost one
 *
 * A nested guard leaves the wildcard to the outermost one.  An empty guard is ignored.
 *
 * Context: Any; preemption has been disabled since @guard was acquired.
 */
static __always_inline void shazptr_clear(struct shazptr_guard guard)
{
	__shazptr_assert_pinned();
	if (SHAZPTR_MUTANT(inner_clear) && guard.slot != SHAZPTR_GUARD_NESTED)
		guard.slot &= ~SHAZPTR_GUARD_NESTED;
	if (likely(!(guard.slot & SHAZPTR_GUARD_NESTED))) {
#ifdef QUIESCE_DEBUG
		WARN_ONCE(guard.slot != (unsigned long)&raw_cpu_ptr(&shazptr_slots)->value,
			  "shazptr: a guard of another CPU cleared\n");
#endif
		/* SK2: release, pairs with SK2 in shazptr_slot_read() */
		smp_store_release((unsigned long *)guard.slot, 0UL);
	}
}

/*
 * Compares, but hides from the compiler that the two pointers are equal: see
 * shazptr_tryprotect().
 */
static __always_inline bool __shazptr_same(unsigned long a, unsigned long b)
{
	OPTIMIZER_HIDE_VAR(a);
	OPTIMIZER_HIDE_VAR(b);
	return a == b;
}

/**
 * shazptr_tryprotect() - load a pointer and protect its object, one attempt
 * @guard: address of the guard; empty if nothing is protected: to clear it has no effect
 * @gp: address of the pointer
 *
 * The pointer is loaded twice and the second value returned: the object may have
 * been freed, allocated and published again in between, and only the second load
 * is ordered after the stores that initialised it.  The comparison is hidden from
 * the compiler, which could otherwise use the first value instead.
 *
 * Context: as shazptr_acquire().
 * Return: the pointer; NULL if it was NULL or changed meanwhile.
 */
#define shazptr_tryprotect(guard, gp)							\
({											\
	struct shazptr_guard *__guard = (guard);					\
	typeof(gp) __gp = (gp);								\
	unsigned long __first = (unsigned long)READ_ONCE(*__gp);			\
	typeof(**__gp) __kernel *__second = NULL;					\
											\
	__guard->slot = SHAZPTR_GUARD_NESTED;						\
	if (__first) {									\
		*__guard = shazptr_acquire((const void *)__first);			\
		__second = (typeof(**__gp) __kernel __force *)READ_ONCE(*__gp);		\
		if (!__shazptr_same(__first, (unsigned long)__second)) {		\
			shazptr_clear(*__guard);					\
			__guard->slot = SHAZPTR_GUARD_NESTED;				\
			__second = NULL;						\
		}									\
	}										\
	__second;									\
})

/* shazptr_protect() takes the wildcard after so many attempts. */
#define SHAZPTR_ATTEMPTS 4

/* shazptr_protect() does this with SHAZPTR_ATTEMPTS. */
#define __shazptr_protect(guard, gp, attempts)						\
({											\
	struct shazptr_guard *__pguard = (guard);					\
	typeof(gp) __pgp = (gp);							\
	typeof(**__pgp) __kernel *__ptr;						\
	int __left = (attempts);							\
											\
	do {										\
		if (unlikely(!__left--)) {						\
			*__pguard = shazptr_acquire(SHAZPTR_WILDCARD);			\
			__ptr = (typeof(**__pgp) __kernel __force *)READ_ONCE(*__pgp);	\
			if (!__ptr) {							\
				shazptr_clear(*__pguard);				\
				__pguard->slot = SHAZPTR_GUARD_NESTED;			\
			}								\
			break;								\
		}									\
		__ptr = shazptr_tryprotect(__pguard, __pgp);				\
	} while (unlikely(!__ptr) && READ_ONCE(*__pgp));				\
	__ptr;										\
})

/**
 * shazptr_protect() - load a pointer and protect its object
 * @guard: address of the guard
 * @gp: address of the pointer
 *
 * Tries again if the pointer changes, but not without end, since preemption is
 * disabled: after some attempts it protects all objects by the wildcard.
 *
 * Context: as shazptr_acquire().
 * Return: the pointer; NULL only if it was NULL, and then the guard is empty.
 */
#define shazptr_protect(guard, gp) __shazptr_protect(guard, gp, SHAZPTR_ATTEMPTS)

void synchronize_shazptr(const void *ptr);

/**
 * struct shazptr_stats - counters, as debugfs shows them, for tests and monitors
 * @calls: calls of synchronize_shazptr()
 * @waits: calls that had to wait for a reader
 * @scans: scans for waiters
 * @marks: slots marked
 * @helped: scans by a waiter, because the scan thread was frozen or did not run
 * @longest_ns: the longest wait that has ended
 * @waiting: callers that wait now
 */
struct shazptr_stats {
	u64 calls;
	u64 waits;
	u64 scans;
	u64 marks;
	u64 helped;
	u64 longest_ns;
	u64 waiting;
};

void shazptr_get_stats(struct shazptr_stats *stats);

#ifdef DEFINE_CLASS
/*
 * guard(shazptr)(ptr) and scoped_guard(shazptr, ptr).  The class is not one of
 * cleanup.h's lock guards: their end of scope skips, by version of the kernel,
 * NULL and all that looks like an error, which SHAZPTR_WILDCARD does.
 */
DEFINE_CLASS(shazptr, struct shazptr_guard, shazptr_clear(_T), shazptr_acquire(ptr),
	     const void *ptr)

static __maybe_unused const bool class_shazptr_is_conditional;

/* It is not NULL, so that scoped_guard() always runs its body. */
static inline void *class_shazptr_lock_ptr(struct shazptr_guard *guard)
{
	return guard;
}
#endif

#endif /* _LINUX_SHAZPTR_H */
