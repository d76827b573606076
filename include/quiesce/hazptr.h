/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr.h - hazard pointers: readers own slots, updaters defer frees, garbage is bounded.
 *
 * Use instead of a reference count on objects that many threads read: a reader writes to a cache
 * line of its own, and a reader that stays delays only the free of the object that it protects.
 * Use shazptr.h where an updater only waits; use RCU where readers traverse many objects.
 *
 *	hazptr_t *slot = hazptr_alloc(NULL);                    // reader; keep the slot for many reads
 *	p = hazptr_protect(slot, &config);
 *	if (p)
 *		use(p->limit);
 *	hazptr_clear(slot);
 *	hazptr_free(NULL, slot);
 *
 *	old = rcu_xchg_pointer(&config, fresh);                 // updater; does not wait
 *	kfree_hazptr(old, hazptr);                              // struct hazptr_head, the first member
 *
 * To reclaim retired objects the library scans: it loads all slots, and passes each object that is
 * in none of them to its callback.  Light and full fences are explained in rcu.h.
 *
 * A slot protects an address, whose top bit is ignored.  call_hazptr() waits for protections of the
 * address of the hazptr_head, so where that is not the first member readers protect by field:
 * hazptr_protect(slot, &config, hazptr).  In C++ an object of several bases has several addresses:
 * pass hazptr_retire(), and a wait, a pointer of the type that readers load, such as the one that
 * was unlinked.  hazptr.hpp takes care of that.
 *
 * Ordering.  If a reader protects an object by hazptr_protect(), then the callback of a
 * call_hazptr() that came after the object was unlinked runs only after the slot has been cleared
 * (or given another address), and everything the reader did before that happens before the
 * callback.  A reader that is not waited for finds the object unlinked (docs/design/hazptr.md).
 *
 * Fibers and coroutines (docs/fibers.md) may hold slots and contexts across a switch, and free them
 * in any thread.  The debug build counts a slot of hazptr_alloc(NULL) as held by the thread that
 * took it until it is freed, and other slots as held by no thread.
 *
 * Fork.  In the child the slots of the forking thread, of contexts that it initialised, and of the
 * pool (slots beyond HAZPTR_SLOT_PER_CTX of one thread, and detached ones, whichever thread held
 * them) keep protecting; objects that other threads had retired are reclaimed there, too.  Slots
 * and contexts of other threads protect nothing in the child, so a slot that was handed over
 * protects in the parent only.  A cohort (hazptr_cohort.h) that another thread was using at the
 * fork stays locked.
 *
 * Callbacks.  call_hazptr() leaves them to a thread of the library, the helper, and never runs them
 * in its caller, which may therefore hold any lock.  call_hazptr_inline() runs them in the caller,
 * a few at a time; kfree_hazptr() frees there.  These two are faster, and their garbage is bounded.
 *
 * Bound.  However long a reader stays, the objects that are retired and not yet reclaimed are at
 * most one for each slot in use, and:
 *  - kfree_hazptr(), call_hazptr_inline(), hazptr_retire(): for each thread that retires a batch
 *    (quiesce_set_hazptr_batch()), at most HAZPTR_BATCH_MAX objects, or about HAZPTR_BATCH_BYTES
 *    bytes if that is less;
 *  - call_hazptr_cohort(): about one batch for each cohort.
 * There is no bound for: call_hazptr() while the helper cannot keep up; kfree_hazptr(),
 * call_hazptr_inline() and hazptr_retire() while callbacks retire several objects each, or slots
 * protect thousands of objects of a thread; a cohort into which only callbacks retire; any of these
 * calls while a wildcard (shazptr.h) is held.
 * quiesce_get_stats() reports hazptr_retired and hazptr_reclaimed.
 * Source: B. Feng, P. McKenney, N. Upadhyay, "Hazard pointers in the Linux kernel", RFC, 09/2024, for
 * contexts and names; M. Michael, "Hazard pointers", 2004; slots, batches and scan are our own.
 */
#ifndef QUIESCE_HAZPTR_H
#define QUIESCE_HAZPTR_H

#include <quiesce/control.h>
#include <quiesce/detail/hazptr.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* A slot: opaque.  The holder of the pointer owns the slot, and may hand it over, with its
 * protection, by anything that orders (a lock, a queue, a release store and an acquire load). */
typedef struct hazptr_slot hazptr_t;

/* A context: HAZPTR_SLOT_PER_CTX (7) slots, for a thread, a reader or a structure.  The struct may be
 * moved. */
struct hazptr_context {
	hazptr_t *first; /* private */
};

/* ---- slots ---- */

/** init_hazptr_context - give @ctx HAZPTR_SLOT_PER_CTX slots.
 * A context is used by one thread at a time; there may be any number of contexts.  NULL in place of
 * a context always means the calling thread's own, which needs no set-up.
 * Context: any thread; not in a signal handler.
 * Cost: about a store if the thread has cleaned up a context before, else a search for a cache line
 *   whose slots no context has.
 * Return: 0, -ENOMEM. */
QUIESCE_PLAIN int init_hazptr_context(struct hazptr_context *ctx) { return quiesce_init_hazptr_context(ctx); }

/** cleanup_hazptr_context - release the slots of @ctx.
 * Every slot must have been freed.  A slot that was not is reported, and by default aborts; if a
 * misuse hook returns, the slots keep protecting until they are freed, and their memory stays.
 * Context: as init_hazptr_context(). */
QUIESCE_PLAIN void cleanup_hazptr_context(struct hazptr_context *ctx) { quiesce_cleanup_hazptr_context(ctx); }

/** hazptr_alloc - take a slot.
 * @ctx: the context, NULL: the calling thread's own.
 * The slot stays taken until hazptr_free(): use it for many protections.  The debug build reports
 * slots that a thread has when it ends, or when the process exits in it.
 * Context: any thread, no registration; does not sleep.  Signal handlers, which must free the slot
 *   before they return; a slot that is to stay comes from hazptr_alloc_detached().
 * Cost: two loads, two tests and a store if the first slot is free; else a call.
 * Return: a slot that protects nothing; NULL if all slots of @ctx are in use, or, for the thread's
 *   own, which borrow from a pool, if memory is exhausted (nearly a million slots). */
QUIESCE_FAST hazptr_t *hazptr_alloc(struct hazptr_context *ctx)
{
	/* Relaxed: the thread's own. */
	hazptr_t *slot = ctx ? ctx->first : (hazptr_t *)quiesce_own_load_relaxed(quiesce__own(), hazptr);

	/* SH2: acquire, pairs with SH2 in hazptr_free() */
	if (quiesce_unlikely(!slot) || quiesce_unlikely(quiesce_load_acquire(SH2, &slot->value) != QUIESCE_HAZPTR_FREE))
		slot = quiesce__hazptr_alloc_slow(QUIESCE_LAYOUT, ctx);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &slot->value, (uintptr_t)0);
	QUIESCE__SLOT_TAKEN(ctx ? NULL : slot);
	return slot;
}

/** hazptr_alloc_detached - take a slot from a pool that belongs to no thread.
 * For a signal handler that hands the slot over: the interrupted code may be about to take a slot of
 * its thread that it has found free.
 * Context: as hazptr_alloc().  Cost: a call, a locked instruction.  Return: as hazptr_alloc(NULL). */
QUIESCE_PLAIN hazptr_t *hazptr_alloc_detached(void) { return quiesce_hazptr_alloc_detached(); }

/** hazptr_free - free a slot, and end its protection.
 * @ctx: the context that hazptr_alloc() was given.
 * @slot: NULL is ignored.
 * Context: any thread that owns the slot; signal handlers.
 * Cost: a store and a test; a call while a waiter waits, or once a guard of shazptr.h has found no
 *   memory for a slot; a system call if a waiter waits for this slot.
 * Misuse: a slot that was freed may have another owner by now, whose protection then ends.  The
 *   debug build reports use of a free slot: QUIESCE_MISUSE_UNBALANCED_UNLOCK (free), _NOT_HELD.
 * Orders: release. */
QUIESCE_FAST void hazptr_free(struct hazptr_context *ctx, hazptr_t *slot)
{
	(void)ctx;
	if (quiesce_unlikely(!slot) || !QUIESCE__SLOT_RELEASED(slot))
		return;
	/* Relaxed: a scan waits again for a slot that misses it. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_shazptr_v1.requests)))
		quiesce__hazptr_free_slow(slot);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() and hazptr_alloc() */
		quiesce_store_release(SH2, &slot->value, QUIESCE_HAZPTR_FREE);
}

/* ---- protections ---- */

/** hazptr_protect(slot, where) - load a pointer and protect the object that it points to.
 *  hazptr_protect(slot, where, field) - protect by the address of a field, its hazptr_head.
 * @slot: the caller's; its former protection ends.
 * @where: address of the pointer variable.
 * The call retries while the pointer changes.
 * Context: any; the protection may be kept across sleep.
 * Cost: light fences: two loads, a store, two tests, and no call; full fences: an exchange.  On
 *   x86-64 a loop around it keeps its variables in registers, and needs no stack frame.
 *   A loop should keep its position and the address of its slot in local variables: what is in memory
 *   is loaded again after each protection, some cycles later.
 * Return: the current pointer, of its own type; NULL only if the pointer was NULL, or after a
 *   misuse hook returned.
 * Orders: everything written before the pointer was published (by a release operation, such as
 *   rcu_assign_pointer()) is visible through the result.
 * To keep a protection keep the slot, or hand its pointer over.  Do not copy an address to a second
 * slot and clear the first: a scan may load the second before the copy, the first after the clear. */
#define hazptr_protect(...) QUIESCE__HAZPTR(quiesce__hazptr_protect, __VA_ARGS__)

/** hazptr_tryprotect - hazptr_protect() with a single attempt.
 * Return: NULL if the pointer was NULL or changed meanwhile; then the slot protects nothing. */
#define hazptr_tryprotect(...) QUIESCE__HAZPTR(quiesce__hazptr_tryprotect, __VA_ARGS__)

/** hazptr_protect_masked(slot, where, marks) - hazptr_protect() of a pointer with marks in low bits.
 *  hazptr_protect_masked(slot, where, marks, field) - protect by the address of a field.
 * @marks: bits that may be set and are not part of the address, such as 1 in lists that mark nodes
 *   before they unlink them.
 * @where: a pointer to a pointer; if links are words of another type, such as uintptr_t, a variable:
 *   struct node **where = (struct node **)(void *)&node->link.
 * @field: a member of the object behind the address without marks, such as its hazptr_head.
 * Return: the value at @where, marks included; without an address nothing is protected (or, with a
 *   @field, an address that no object has). */
#define hazptr_protect_masked(...) \
	QUIESCE__HAZPTR_MASKED_PICK(__VA_ARGS__, QUIESCE__HAZPTR_MASKED_4, QUIESCE__HAZPTR_MASKED_3, 0, 0)(__VA_ARGS__)

/** hazptr_set - protect an address that is known by other means.
 * @slot: the caller's; its former protection ends.
 * @ptr: the address; that of the hazptr_head if it is not the object's first member.  NULL: clear.
 * The object is protected only if it had not been unlinked before: the caller then checks that it can
 * still be found, as hazptr_protect() does.  The protection of another slot does not replace that.
 * Context: any.  Cost: a store and a test; full fences: an exchange.  In a loop as hazptr_protect().
 * Orders: what the caller loads afterwards shows what was unlinked before a scan that misses the
 *   protection. */
QUIESCE_FAST void hazptr_set(hazptr_t *slot, const void *ptr)
{
	if (QUIESCE__SLOT_USED(slot, "hazptr_set()"))
		quiesce__hazptr_set(slot, (uintptr_t)ptr);
}

/** hazptr_clear - end the protection; the caller keeps the slot.
 * Context: any thread that owns the slot; signal handlers.  Cost: a store.
 * A synchronize_hazptr() that waits for the slot is woken when it is next set or freed, else it
 * checks again within 8 ms.
 * Orders: release. */
QUIESCE_FAST void hazptr_clear(hazptr_t *slot)
{
	if (QUIESCE__SLOT_USED(slot, "hazptr_clear()"))
		quiesce__hazptr_clear(slot);
}

/* ---- several at once ---- */

/** hazptr_alloc_array - take @nr adjacent slots: slot + 1 is the next one.
 * @nr: 1 to HAZPTR_SLOT_PER_CTX; other numbers fail.
 * For hand-over-hand walks, which swap two pointers instead of copying a protection.  Each slot may
 * also be freed alone.
 * Context, cost: as hazptr_alloc(), a test per slot.  Return: the first; NULL: @nr in a row are not free. */
QUIESCE_FAST hazptr_t *hazptr_alloc_array(struct hazptr_context *ctx, size_t nr)
{
	/* Relaxed: the thread's own. */
	hazptr_t *row = ctx ? ctx->first : (hazptr_t *)quiesce_own_load_relaxed(quiesce__own(), hazptr);

	if (quiesce_unlikely(!row || !quiesce__hazptr_take_row(row, nr)))
		row = quiesce__hazptr_alloc_array_slow(QUIESCE_LAYOUT, ctx, nr);
	for (size_t i = 0; i < nr && row; i++)
		QUIESCE__SLOT_TAKEN(ctx ? NULL : row + i);
	return row;
}

/** hazptr_free_array - hazptr_free() of @nr adjacent slots. */
QUIESCE_FAST void hazptr_free_array(struct hazptr_context *ctx, hazptr_t *row, size_t nr)
{
	for (size_t i = 0; i < nr && row; i++)
		hazptr_free(ctx, row + i);
}

/** hazptr_alloc_batch - take @nr slots, or none.
 * Context, cost: as hazptr_alloc(), one call.  Return: true; false: too few, all @ret_slots are NULL. */
QUIESCE_PLAIN bool hazptr_alloc_batch(struct hazptr_context *ctx, hazptr_t **ret_slots, size_t nr)
{
	if (!quiesce_hazptr_alloc_batch(ctx, ret_slots, nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		QUIESCE__SLOT_TAKEN(ctx ? NULL : ret_slots[i]);
	return true;
}

/** hazptr_protect_batch - load and protect @nr pointers, each as hazptr_protect(batch[i], where[i]).
 * The pointers are not loaded at one moment.
 * Context: any.  Cost: with full fences one fence for all, unless some pointers change.
 * Misuse: a slot protects one pointer, so it must not occur twice: the debug build reports that
 *   (QUIESCE_MISUSE_TWICE), and nothing is protected. */
QUIESCE_PLAIN void hazptr_protect_batch(hazptr_t *const *batch, void **const *where, void **ret_ptrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!QUIESCE__SLOT_USED(batch[i], "hazptr_protect_batch()") || QUIESCE__SLOT_REPEATED(batch, i)) {
			while (nr)
				ret_ptrs[--nr] = NULL;
			return;
		}
	quiesce_hazptr_protect_batch(batch, where, ret_ptrs, nr);
}

/** hazptr_clear_batch - hazptr_clear() of @nr slots. */
QUIESCE_PLAIN void hazptr_clear_batch(hazptr_t *const *batch, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		hazptr_clear(batch[i]);
}

/** hazptr_free_batch - hazptr_free() of @nr slots. */
QUIESCE_PLAIN void hazptr_free_batch(struct hazptr_context *ctx, hazptr_t *const *batch, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		hazptr_free(ctx, batch[i]);
}

/** synchronize_hazptr - wait until no slot that was set before the call protects @ptr.
 * @ptr: an address that readers can no longer find: the address that they protect, that of the
 *   hazptr_head where they protect by field.  NULL: returns at once.
 * The wait, its context and its cost are those of synchronize_shazptr(): both scan slots and guards. */
QUIESCE_PLAIN void synchronize_hazptr(const void *ptr) { quiesce_synchronize_shazptr(ptr); }

QUIESCE_END_DECLS

#include <quiesce/hazptr_retire.h>
#include <quiesce/hazptr_cohort.h>

#endif
