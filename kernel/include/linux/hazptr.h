/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Hazard pointers: readers that may sleep, updaters that defer their frees.
 *
 * A reader owns a context of some slots.  It loads a pointer, stores it to a
 * slot and checks that the pointer is still the same: from then on the object
 * is kept, until the slot is cleared or reused.  An updater unlinks the object
 * and passes it to call_hazptr(), which runs a callback when no slot holds it.
 *
 *	init_hazptr_context(&ctx);				// reader
 *	slot = hazptr_alloc(&ctx);
 *	p = hazptr_protect(slot, &config, head);
 *	if (p)
 *		use(p->limit);
 *	hazptr_free(&ctx, slot);
 *	cleanup_hazptr_context(&ctx);
 *
 *	old = xchg(&config, fresh);				// updater
 *	call_hazptr(&old->head, free_config);
 *
 * A slot protects its object only, not the objects that it points to.  Set a
 * second slot for the same object by hazptr_protect(), too: a scan may miss both
 * slots if the first is copied and then cleared.  Use hazard pointers where
 * readers sleep or keep one object for long, or where many objects are retired
 * and readers protect few; use shazptr.h in short sections, RCU to traverse many
 * objects.
 *
 * Ordering: if hazptr_protect() returned an object that was unlinked before
 * call_hazptr(), then everything up to the clear happens before the callback.
 * A protection that the scan does not see finds the object unlinked.  Litmus
 * tests: HK*.litmus.
 *
 * Source: B. Feng, P. McKenney, N. Upadhyay, "Add hazard pointers to kernel",
 * September 2024, for the interface and for slots that hold the address of the
 * callback head; the scan is ours.
 */
#ifndef _LINUX_HAZPTR_H
#define _LINUX_HAZPTR_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/version.h>
#include <asm/barrier.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <linux/cleanup.h>
#endif

#ifdef QUIESCE_MUTANTS
#include "../../mutants.h"
#else
#define HAZPTR_MUTANT(name) false
#endif

#define HAZPTR_SLOT_PER_CTX 8

/* Private: value of a slot that is free; 0: taken, and protects nothing. */
#define HAZPTR_UNUSED 1UL

/**
 * typedef hazptr_t - a slot; the caller of hazptr_alloc() owns it
 */
typedef struct hazptr_slot {
	unsigned long value;	/* private: written by the owner, read by the scan */
} hazptr_t;

/**
 * struct hazptr_context - slots in memory of the caller, for a task, a CPU or a stack frame
 *
 * It must not move, nor be freed before cleanup_hazptr_context().
 */
struct hazptr_context {
	/* private: */
	hazptr_t slots[HAZPTR_SLOT_PER_CTX];
	struct list_head node;	/* in the list of @cpu, under its lock */
	int cpu;
	pid_t pid;		/* task that registered the context, for reports */
	unsigned long caller;	/* code that registered the context */
#ifdef QUIESCE_MUTANTS
	unsigned long seen[HAZPTR_SLOT_PER_CTX];
#endif
} ____cacheline_aligned_in_smp;

void init_hazptr_context(struct hazptr_context *ctx);
void cleanup_hazptr_context(struct hazptr_context *ctx);

/**
 * hazptr_alloc() - take a slot
 * @ctx: the context; tasks and interrupts may share it
 *
 * Context: Any, also NMI.
 * Return: the slot, which protects nothing; NULL if all are taken.
 */
static inline hazptr_t *hazptr_alloc(struct hazptr_context *ctx)
{
	int i;

	for (i = 0; i < HAZPTR_SLOT_PER_CTX; i++) {
		hazptr_t *slot = &ctx->slots[i];

		/*
		 * Relaxed: it continues the release sequence of hazptr_free(),
		 * so a scan that reads 0 is ordered after the accesses of the last owner.
		 */
		if (READ_ONCE(slot->value) == HAZPTR_UNUSED &&
		    cmpxchg_relaxed(&slot->value, HAZPTR_UNUSED, 0UL) == HAZPTR_UNUSED)
			return slot;
	}
	return NULL;
}

/**
 * hazptr_free() - end the protection of a slot and give the slot back
 * @ctx: the context of the slot
 * @slot: the slot; NULL is ignored
 *
 * Context: Any, also NMI; any task or CPU, not only that of hazptr_alloc().
 */
static inline void hazptr_free(struct hazptr_context *ctx, hazptr_t *slot)
{
	if (!slot)
		return;
#ifdef QUIESCE_DEBUG
	WARN_ONCE(slot < ctx->slots || slot >= ctx->slots + HAZPTR_SLOT_PER_CTX,
		  "hazptr: a slot given back to another context\n");
	WARN_ONCE(READ_ONCE(slot->value) == HAZPTR_UNUSED, "hazptr: a slot given back twice\n");
#endif
	/* HK2: release, pairs with HK2 in hazptr_slot_read() */
	smp_store_release(&slot->value, HAZPTR_UNUSED);
}

/**
 * hazptr_clear() - end a protection; the caller keeps the slot
 * @slot: the slot
 *
 * Context: Any, also NMI.
 */
static inline void hazptr_clear(hazptr_t *slot)
{
#ifdef QUIESCE_DEBUG
	WARN_ONCE(READ_ONCE(slot->value) == HAZPTR_UNUSED, "hazptr: a slot cleared that is not allocated\n");
#endif
	/* HK2: release, pairs with HK2 in hazptr_slot_read() */
	smp_store_release(&slot->value, 0UL);
}

/* Makes @slot protect the object with the callback head @head. */
static __always_inline void __hazptr_set(hazptr_t *slot, unsigned long head)
{
#ifdef QUIESCE_DEBUG
	WARN_ONCE(READ_ONCE(slot->value) == HAZPTR_UNUSED, "hazptr: a slot used that is not allocated\n");
#endif
#ifdef QUIESCE_MUTANTS
	/*
	 * The delay is long enough for a scan, which the second load of the
	 * pointer has to notice.
	 */
	if (HAZPTR_MUTANT(no_recheck))
		udelay(200);
#endif
	/*
	 * A scan that reads this value concludes that the protection by the value
	 * before has ended.
	 *
	 * HK2: release, pairs with HK2 in hazptr_slot_read()
	 */
	smp_store_release(&slot->value, head);
	/* Either the scan sees the slot, or the next load sees what was unlinked. */
	if (!HAZPTR_MUTANT(no_reader_fence)) {
		/* HK1: full, pairs with HK1 in hazptr_scan() */
		smp_mb();
	}
}

/* Compares, but hides from the compiler that the two pointers are equal. */
static __always_inline bool __hazptr_same(unsigned long a, unsigned long b)
{
	if (HAZPTR_MUTANT(no_recheck))
		return true;
	OPTIMIZER_HIDE_VAR(a);
	OPTIMIZER_HIDE_VAR(b);
	return a == b;
}

/**
 * hazptr_tryprotect() - load a pointer and protect its object, one attempt
 * @slot: a slot of the caller; its earlier protection ends
 * @gp: address of the pointer
 * @field: name of the struct callback_head (or rcu_head) in the object
 *
 * The pointer is loaded twice and the second value returned: the object may have
 * been freed, allocated and published again in between, and only the second load
 * is ordered after the stores that initialised it.  The comparison is hidden from
 * the compiler, which could otherwise use the first value instead.
 *
 * Context: Any, also NMI.  The protection lasts while the caller sleeps or migrates.
 * Cost: two loads, a store and a full barrier.
 * Return: the pointer; NULL, with the slot empty, if it was NULL or changed meanwhile.
 */
#define hazptr_tryprotect(slot, gp, field)						\
({											\
	hazptr_t *__slot = (slot);							\
	typeof(gp) __gp = (gp);								\
	unsigned long __first = (unsigned long)READ_ONCE(*__gp);			\
	typeof(**__gp) __kernel *__second = NULL;					\
											\
	if (__first) {									\
		__hazptr_set(__slot, __first + offsetof(typeof(**__gp), field));	\
		__second = (typeof(**__gp) __kernel __force *)				\
			(HAZPTR_MUTANT(no_recheck) ? (typeof(*__gp))__first :		\
						     READ_ONCE(*__gp));			\
		if (!__hazptr_same(__first, (unsigned long)__second))			\
			__second = NULL;						\
	}										\
	if (!__second)									\
		hazptr_clear(__slot);							\
	__second;									\
})

/**
 * hazptr_protect() - load a pointer and protect its object
 * @slot: a slot of the caller
 * @gp: address of the pointer
 * @field: name of the struct callback_head (or rcu_head) in the object
 *
 * Tries again as long as the pointer changes.
 *
 * Context: as hazptr_tryprotect().
 * Return: the pointer; NULL only if it was NULL.
 */
#define hazptr_protect(slot, gp, field)							\
({											\
	hazptr_t *__pslot = (slot);							\
	typeof(gp) __pgp = (gp);							\
	typeof(**__pgp) __kernel *__ptr;						\
											\
	do {										\
		__ptr = hazptr_tryprotect(__pslot, __pgp, field);			\
	} while (unlikely(!__ptr) && READ_ONCE(*__pgp));				\
	__ptr;										\
})

void call_hazptr(struct callback_head *head, rcu_callback_t func);
void hazptr_barrier(void);
void synchronize_hazptr(struct callback_head *head);

/**
 * kfree_hazptr() - kvfree() an object when no slot protects it
 * @ptr: the object; NULL is ignored
 * @field: name of its callback head, whose offset is less than 4096 bytes
 *
 * Context: as call_hazptr().
 */
#define kfree_hazptr(ptr, field)							\
do {											\
	typeof(ptr) __object = (ptr);							\
											\
	BUILD_BUG_ON(offsetof(typeof(*__object), field) >= HAZPTR_KFREE_OFFSETS);	\
	if (__object)									\
		call_hazptr(&__object->field, (rcu_callback_t)(unsigned long)		\
			    offsetof(typeof(*__object), field));			\
} while (0)

/* Private: no function has such a small address. */
#define HAZPTR_KFREE_OFFSETS 4096

/**
 * struct hazptr_stats - counters, as debugfs shows them, for tests and monitors
 * @calls: calls of call_hazptr() and kfree_hazptr()
 * @run: callbacks that have run
 * @scans: walks over all contexts
 * @slots: slots read in the last of these walks
 * @kept: callbacks whose objects were protected in the last scan
 * @waiting: callers that wait in synchronize_hazptr() now
 * @contexts: registered contexts
 */
struct hazptr_stats {
	u64 calls;
	u64 run;
	u64 scans;
	u64 slots;
	u64 kept;
	u64 waiting;
	u64 contexts;
};

void hazptr_get_stats(struct hazptr_stats *stats);

#ifdef DEFINE_CLASS
/* CLASS(hazptr, slot)(&ctx): a slot that is freed at the end of the scope. */
struct hazptr_scope {
	struct hazptr_context *ctx;
	hazptr_t *slot;
};

static inline struct hazptr_scope __hazptr_enter(struct hazptr_context *ctx)
{
	return (struct hazptr_scope){ ctx, hazptr_alloc(ctx) };
}

DEFINE_CLASS(hazptr, struct hazptr_scope, hazptr_free(_T.ctx, _T.slot),
	     __hazptr_enter(ctx), struct hazptr_context *ctx)
#endif

#endif /* _LINUX_HAZPTR_H */
