/* SPDX-License-Identifier: MIT */
/* quiesce/hazptr.h - hazard pointers: readers own slots, updaters defer their frees, garbage is bounded.
 *
 * Use instead of a reference count on objects that many threads read: a reader writes to a line of its
 * own, and a reader that stays delays the free of what it protects, nothing else.  Use shazptr.h where
 * an updater only waits; use RCU where readers traverse many objects.
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
 * What is protected is an address, its top bit aside.  call_hazptr() waits for protections of the address of the
 * hazptr_head, so where that is not the first member readers protect by field:
 * hazptr_protect(slot, &config, hazptr).  In C++ an object of several bases has several addresses: give hazptr_retire(), and a
 * wait, a pointer of the type that readers load, such as the one that was taken out.  hazptr.hpp has no such trap.
 *
 * Ordering.  If a reader protects an object by hazptr_protect(), then the callback of a call_hazptr() that
 * came after the object was unlinked runs only after the slot has been cleared (or given another
 * address), and everything the reader did before that happens before the callback.  A reader that is
 * not waited for finds the object unlinked.
 * Proof: docs/design/hazptr.md; tests/litmus/HP*.litmus; docs/ordering.md.
 *
 * Fibers and coroutines (docs/fibers.md) may hold slots and contexts over a switch, and free them in any thread; the debug build takes
 * a slot of hazptr_alloc(NULL) for one of the thread that took it until it is freed, and others for nobody's.
 *
 * Fork.  In the child the forking thread's slots and those of contexts that it initialised keep protecting, and so do
 * slots from the pool (more than HAZPTR_SLOT_PER_CTX of one thread, and detached ones), whoever had them;
 * what other threads had retired is reclaimed there too; their slots and contexts protect nothing, so a slot that
 * was handed over protects in the parent only.  A cohort that another thread was just using stays locked.
 *
 * Who runs callbacks.  call_hazptr() leaves them to a thread of the library, the helper: never to its caller, so that
 * may hold any lock.  call_hazptr_inline() runs them in the caller, in batches; kfree_hazptr() frees there.
 *
 * Bound.  Of kfree_hazptr() and call_hazptr_inline() at most HAZPTR_BATCH_MAX objects or, if that is less, about
 * HAZPTR_BATCH_BYTES bytes for each thread that retires, and as many objects as there are slots in use, have been retired
 * and not yet reclaimed, however long a reader stays.  Not covered: wildcards (shazptr.h), because while one is held
 * nothing is reclaimed; and what does not fit, which is left to the helper: where callbacks retire several objects each,
 * slots protect thousands of objects of one thread, or a cohort is retired into from callbacks only.  Of call_hazptr()
 * there is none where the helper cannot keep up with those who retire, as nobody waits: quiesce_get_stats() has
 * hazptr_retired less hazptr_reclaimed.  A reader that stays, of hazard pointers or of RCU, delays the reclaiming of
 * nothing but what it protects.
 * Source: B. Feng, P. McKenney, N. Upadhyay, "Hazard pointers in the Linux kernel", RFC of September 2024, for
 * contexts and names; M. Michael, "Hazard pointers", 2004; the slots, batches and scan are ours.
 */
#ifndef QUIESCE_HAZPTR_H
#define QUIESCE_HAZPTR_H

#include <quiesce/control.h>
#include <quiesce/detail/claim.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/* A slot: opaque.  Whoever has the pointer owns it; to hand a protection over is to hand over the pointer,
 * through anything that orders (a lock, a queue, a release store and an acquire load). */
typedef struct hazptr_slot {
	uintptr_t value; /* private */
} hazptr_t;

#define HAZPTR_SLOT_PER_CTX 7

/* A group of slots of the caller's, for a thread, a reader, a structure.  Its memory may move. */
struct hazptr_context {
	hazptr_t *slots; /* private */
};

/* What a slot holds that nobody has: the scan's tag without an address, which no pointer is.  NULL: somebody has
 * it, and it protects nothing. */
#define QUIESCE_HAZPTR_FREE ((uintptr_t)1 << 63)

QUIESCE_API int quiesce_init_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API void quiesce_cleanup_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API hazptr_t *quiesce__hazptr_alloc_slow(uint32_t layout, struct hazptr_context *ctx);
QUIESCE_API hazptr_t *quiesce_hazptr_alloc_detached(void);
QUIESCE_API void quiesce__hazptr_free_slow(hazptr_t *slot);
QUIESCE_API void quiesce__hazptr_set_slow(hazptr_t *slot, uintptr_t value);
QUIESCE_API void *quiesce__hazptr_protect_slow(hazptr_t *slot, void **where, size_t offset, uintptr_t marks);
QUIESCE_API hazptr_t *quiesce__hazptr_alloc_array_slow(uint32_t layout, struct hazptr_context *ctx, size_t nr);
QUIESCE_API bool quiesce_hazptr_alloc_batch(struct hazptr_context *ctx, hazptr_t **ret_slots, size_t nr);
QUIESCE_API void quiesce_hazptr_protect_batch(hazptr_t *const *slots, void **const *where, void **ret_ptrs, size_t nr);

/** init_hazptr_context - make @ctx a group of HAZPTR_SLOT_PER_CTX slots.
 *
 * Contexts are used by one thread at a time, and there may be any number.  A program that does not care
 * passes NULL instead of one everywhere: the calling thread's own, which needs no set-up.
 * Context: any thread; not in a signal handler.  Cost: about a store where the thread has cleaned up one
 *   before, else a look for a free line of slots.
 * Return: 0, -ENOMEM.
 */
static inline int init_hazptr_context(struct hazptr_context *ctx) { return quiesce_init_hazptr_context(ctx); }

/** cleanup_hazptr_context - the opposite.
 *
 * Every slot has been freed before.  Else that is reported, and by default aborts; if a misuse hook returns,
 * the slots keep protecting until they are freed, and their memory stays. */
static inline void cleanup_hazptr_context(struct hazptr_context *ctx) { quiesce_cleanup_hazptr_context(ctx); }

/** hazptr_alloc - take a slot.
 * @ctx: the context, NULL: the calling thread's own.
 *
 * The slot stays taken until hazptr_free(): use it for many protections.  The debug build reports a thread, or
 * a process in whichever thread it exits, that ends with slots of its own.
 * Context: any thread, no registration; does not sleep.  Signal handlers, which must free the slot before they
 *   return; one that is to stay is for hazptr_alloc_detached().
 * Cost: five instructions if the first slot is free; else a call.
 * Return: a slot that protects nothing; NULL if all slots of @ctx are in use, or, for the thread's own, which
 *   borrow from a pool, if memory is exhausted (nearly a million slots).
 */
QUIESCE_FAST hazptr_t *hazptr_alloc(struct hazptr_context *ctx)
{
	/* Relaxed: the thread's own. */
	hazptr_t *slot = ctx ? ctx->slots : (hazptr_t *)quiesce_own_load_relaxed(quiesce__own(), hazptr);

	/* SH2: acquire, pairs with SH2 in hazptr_free() */
	if (quiesce_unlikely(!slot) || quiesce_unlikely(quiesce_load_acquire(SH2, &slot->value) != QUIESCE_HAZPTR_FREE))
		slot = quiesce__hazptr_alloc_slow(QUIESCE_LAYOUT, ctx);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &slot->value, (uintptr_t)0);
	QUIESCE__SLOT_TAKEN(ctx ? NULL : slot);
	return slot;
}

/** hazptr_alloc_detached - take a slot from a pool that belongs to nobody.
 *
 * For a signal handler that hands the slot over: what it interrupted may have found one free, and be about to take it.
 * Cost: a call, a locked instruction.  Return: as hazptr_alloc(NULL). */
static inline hazptr_t *hazptr_alloc_detached(void) { return quiesce_hazptr_alloc_detached(); }

/** hazptr_free - give a slot back; what it protected is protected no more.
 * @ctx: what hazptr_alloc() was given.  @slot: NULL is ignored.
 *
 * Context: any thread that owns the slot; signal handlers.
 * Cost: a store and a test; a call while a caller waits, or once a guard of shazptr.h has found no memory for a slot; a system call if a
 *   caller waits for this slot.
 * Misuse: a slot that was freed may be somebody else's by now, whose protection then ends.  The debug build reports one that is
 *   free when it is freed again, or when a protection is put into it or cleared: QUIESCE_MISUSE_UNBALANCED_UNLOCK, _NOT_HELD.
 * Orders: release.
 */
QUIESCE_FAST void hazptr_free(struct hazptr_context *ctx, hazptr_t *slot)
{
	(void)ctx;
	if (quiesce_unlikely(!slot) || !QUIESCE__SLOT_GIVEN_BACK(slot))
		return;
	/* Relaxed: a request that is missed is made again. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_shazptr_v1.attention)))
		quiesce__hazptr_free_slow(slot);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() and hazptr_alloc() */
		quiesce_store_release(SH2, &slot->value, QUIESCE_HAZPTR_FREE);
}

/* May slots be set without a call?  Not with full fences, nor while somebody waits. */
QUIESCE_FAST bool quiesce__hazptr_quiet(void)
{
	/* Relaxed: fixed before first use; who comes late is looked for again. */
	return QUIESCE__LIGHT_PROMISED || quiesce_likely(!quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr));
}

/* From now on @slot protects @value, and what it protected before no more. */
QUIESCE_FAST void quiesce__hazptr_set_quietly(hazptr_t *slot, uintptr_t value)
{
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, value);
	/* Either the scan after the heavy fence sees the slot, or this thread's next load sees what was unlinked before that fence. */
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_light(HP1);
}

QUIESCE_FAST void quiesce__hazptr_set(hazptr_t *slot, uintptr_t value)
{
	if (quiesce_likely(quiesce__hazptr_quiet()))
		quiesce__hazptr_set_quietly(slot, value);
	else
		quiesce__hazptr_set_slow(slot, value);
}

/** hazptr_set - protect an address that is known by other means.
 * @slot: the caller's; what it protected before is protected no more.
 * @ptr: the address; of the hazptr_head if that is not the object's first member.  NULL: as hazptr_clear().
 *
 * The object is protected if it had not been unlinked yet: so the caller looks afterwards whether it can still be found, as
 * hazptr_protect() does.  That another slot protects it is not enough: see there.
 * Context: any.  Cost: a store and a test; full fences: a fence and a call.
 * Orders: what the caller loads afterwards shows what was unlinked before a scan that misses the protection. */
QUIESCE_FAST void hazptr_set(hazptr_t *slot, const void *ptr)
{
	if (QUIESCE__SLOT_USED(slot, "hazptr_set()"))
		quiesce__hazptr_set(slot, (uintptr_t)ptr);
}

/** hazptr_clear - end the protection; the slot stays the caller's.
 *
 * Context: any thread that owns the slot; signal handlers.  Cost: a store.
 * A synchronize_hazptr() that waits for it is woken by the next protection in the slot or its free, else
 * it looks again within 8 ms.
 * Orders: release.
 */
QUIESCE_FAST void hazptr_clear(hazptr_t *slot)
{
	if (!QUIESCE__SLOT_USED(slot, "hazptr_clear()"))
		return;
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, (uintptr_t)0);
}

/* What protects @found: the address of the field at @offset, without the bits of @marks. */
QUIESCE_FAST uintptr_t quiesce__hazptr_value(uintptr_t found, size_t offset, uintptr_t marks)
{
	found &= ~marks;
	return found || !offset ? found + offset : 0;
}

/* One attempt: true if the pointer did not change meanwhile; in any case *@ret_ptr is what it was found to be. */
QUIESCE_FAST bool quiesce__hazptr_attempt(hazptr_t *slot, void **where, size_t offset, uintptr_t marks, bool quiet, void **ret_ptr)
{
	/* Relaxed: only the second load is used.  As numbers: it may be a pointer to an object that is gone. */
	uintptr_t first = (uintptr_t)quiesce_load_relaxed(where);

	if (quiet)
		quiesce__hazptr_set_quietly(slot, quiesce__hazptr_value(first, offset, marks));
	else
		quiesce__hazptr_set(slot, quiesce__hazptr_value(first, offset, marks));
	/* SH3: acquire, pairs with the caller */
	*ret_ptr = quiesce_load_acquire(SH3, where);
	return quiesce_likely((uintptr_t)*ret_ptr == first);
}

QUIESCE_FAST void *quiesce__hazptr_tryprotect(hazptr_t *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	if (!QUIESCE__SLOT_USED(slot, "hazptr_tryprotect()"))
		return NULL;
	if (quiesce__hazptr_attempt(slot, where, offset, marks, false, &ptr))
		return ptr;
	hazptr_clear(slot);
	return NULL;
}

/* The call is the last thing that it does and comes after everything else, so a function around this one needs no frame, and
 * a loop around it keeps what it has in registers. */
QUIESCE_FAST void *quiesce__hazptr_protect(hazptr_t *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	if (!QUIESCE__SLOT_USED(slot, "hazptr_protect()"))
		return NULL;
	if (quiesce__hazptr_quiet() && quiesce__hazptr_attempt(slot, where, offset, marks, true, &ptr))
		return ptr;
	while (QUIESCE__LIGHT_PROMISED)
		if (quiesce__hazptr_attempt(slot, where, offset, marks, true, &ptr))
			return ptr;
	return quiesce__hazptr_protect_slow(slot, where, offset, marks);
}

/* With and without a field. */
#define QUIESCE__HAZPTR_3(fn, slot, where, field) \
	QUIESCE_CAST(quiesce__type_at(where), fn((slot), quiesce__untyped(where), offsetof(__typeof__(**(where)), field), 0))
#define QUIESCE__HAZPTR_2(fn, slot, where) QUIESCE_CAST(quiesce__type_at(where), fn((slot), quiesce__untyped(where), 0, 0))
#define QUIESCE__HAZPTR_PICK(a, b, c, name, ...) name
#define QUIESCE__HAZPTR(fn, ...) \
	QUIESCE__HAZPTR_PICK(__VA_ARGS__, QUIESCE__HAZPTR_3, QUIESCE__HAZPTR_2, 0)(fn, __VA_ARGS__)

/** hazptr_protect(slot, where) - fetch a pointer and protect what it points to.
 *  hazptr_protect(slot, where, field) - the same by the address of a field, its hazptr_head.
 * @slot: the caller's; what it protected before is protected no more.
 * @where: address of the pointer variable.
 *
 * Tries again as long as the pointer changes.
 * Context: any; the protection may be kept across sleep.
 * Cost: light fences: two loads, a store, two tests, and no call; full fences: a fence and a call.  In a loop keep what
 *   walks along in local variables: what is stored in memory comes back from there after each protection, some cycles later.
 * Return: the current pointer, of its own type; NULL only if the pointer was NULL, or after a misuse hook returned.
 * Orders: everything written before the pointer was published (by a release operation, such as
 *   rcu_assign_pointer()) is visible through the result.
 * To keep a protection keep the slot: an address that is only copied into another slot may be missed by a
 * scan that looked at that slot before and at this one after.
 */
#define hazptr_protect(...) QUIESCE__HAZPTR(quiesce__hazptr_protect, __VA_ARGS__)

/** hazptr_tryprotect - the same, one attempt.
 * Return: NULL if the pointer was NULL or changed meanwhile; then the slot protects nothing. */
#define hazptr_tryprotect(...) QUIESCE__HAZPTR(quiesce__hazptr_tryprotect, __VA_ARGS__)

/** hazptr_protect_masked(slot, where, marks) - hazptr_protect() of a pointer that has marks in its low bits.
 * @marks: the bits that may be set in it and are not part of the address, such as 1 in lists whose nodes are marked
 *   before they are unlinked.
 * Return: what is at @where, marks included; nothing is protected if nothing but marks is left of it. */
#define hazptr_protect_masked(slot, where, marks) \
	QUIESCE_CAST(quiesce__type_at(where), quiesce__hazptr_protect((slot), quiesce__untyped(where), 0, (marks)))

/* ---- several at once ---- */

/* All of the first @nr slots of a line that nobody else takes from, or none. */
QUIESCE_FAST bool quiesce__hazptr_take_row(hazptr_t *slots, size_t nr)
{
	if (nr - 1 >= HAZPTR_SLOT_PER_CTX)
		return false;
	for (size_t i = 0; i < nr; i++)
		/* SH2: acquire, pairs with SH2 in hazptr_free() */
		if (quiesce_unlikely(quiesce_load_acquire(SH2, &slots[i].value) != QUIESCE_HAZPTR_FREE))
			return false;
	for (size_t i = 0; i < nr; i++)
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &slots[i].value, (uintptr_t)0);
	return true;
}

/** hazptr_alloc_array - take @nr slots in a row: slot + 1 is the next one.
 * @nr: 1 to HAZPTR_SLOT_PER_CTX; of others there is no row.
 *
 * For walks that protect hand over hand: swap two indices, or two pointers, in place of copying a protection.  Each is a
 * slot as any other: it may be freed alone.
 * Context, cost: as hazptr_alloc(); a test for each slot.  Return: the first; NULL: there are not so many in a row. */
QUIESCE_FAST hazptr_t *hazptr_alloc_array(struct hazptr_context *ctx, size_t nr)
{
	/* Relaxed: the thread's own. */
	hazptr_t *slots = ctx ? ctx->slots : (hazptr_t *)quiesce_own_load_relaxed(quiesce__own(), hazptr);

	if (quiesce_unlikely(!slots || !quiesce__hazptr_take_row(slots, nr)))
		slots = quiesce__hazptr_alloc_array_slow(QUIESCE_LAYOUT, ctx, nr);
	for (size_t i = 0; i < nr && slots; i++)
		QUIESCE__SLOT_TAKEN(ctx ? NULL : slots + i);
	return slots;
}

/** hazptr_free_array - hazptr_free() for @nr slots in a row. */
QUIESCE_FAST void hazptr_free_array(struct hazptr_context *ctx, hazptr_t *slots, size_t nr)
{
	for (size_t i = 0; i < nr && slots; i++)
		hazptr_free(ctx, slots + i);
}

/** hazptr_alloc_batch - take @nr slots, or none.
 * Context, cost: as hazptr_alloc(), one call.  Return: true; false if there are not so many: then all of @ret_slots are NULL. */
static inline bool hazptr_alloc_batch(struct hazptr_context *ctx, hazptr_t **ret_slots, size_t nr)
{
	if (!quiesce_hazptr_alloc_batch(ctx, ret_slots, nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		QUIESCE__SLOT_TAKEN(ctx ? NULL : ret_slots[i]);
	return true;
}

/** hazptr_protect_batch - fetch and protect @nr pointers, each as hazptr_protect(slots[i], where[i]).
 *
 * The pointers are not of one moment.  Cost: in full-fence mode one fence for all of them, unless some change.
 * Misuse: a slot protects one pointer, so none stands there twice: the debug build reports it (QUIESCE_MISUSE_TWICE), and nothing is
 *   protected. */
static inline void hazptr_protect_batch(hazptr_t *const *slots, void **const *where, void **ret_ptrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!QUIESCE__SLOT_USED(slots[i], "hazptr_protect_batch()") || QUIESCE__SLOT_REPEATED(slots, i)) {
			while (nr)
				ret_ptrs[--nr] = NULL;
			return;
		}
	quiesce_hazptr_protect_batch(slots, where, ret_ptrs, nr);
}

/** hazptr_clear_batch - hazptr_clear() for each. */
static inline void hazptr_clear_batch(hazptr_t *const *slots, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		hazptr_clear(slots[i]);
}

/** hazptr_free_batch - hazptr_free() for each. */
static inline void hazptr_free_batch(struct hazptr_context *ctx, hazptr_t *const *slots, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		hazptr_free(ctx, slots[i]);
}

/* ---- waiting ---- */

QUIESCE_API void quiesce_synchronize_shazptr(const void *ptr);

/** synchronize_hazptr - wait until no slot that was set before the call protects @ptr.
 * @ptr: an address that readers can no longer find: the very one that they protect; of the hazptr_head where readers protect
 *   by field.  NULL: returns at once.
 *
 * The same wait as synchronize_shazptr(), which see: slots and guards are looked at by both. */
static inline void synchronize_hazptr(const void *ptr) { quiesce_synchronize_shazptr(ptr); }

QUIESCE_END_DECLS

#include <quiesce/hazptr_retire.h>
#include <quiesce/hazptr_cohort.h>

#endif
