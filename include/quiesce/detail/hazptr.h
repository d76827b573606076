/* SPDX-License-Identifier: MIT */
/* quiesce/detail/hazptr.h - the inline code of slots: protections, and slots in a row; private, for
 * hazptr.h, which is the manual.
 *
 * The ledger of its labels is at the head of src/hazptr/hazptr.c.
 */
#ifndef QUIESCE_DETAIL_HAZPTR_H
#define QUIESCE_DETAIL_HAZPTR_H

#include <quiesce/control.h>
#include <quiesce/detail/claim.h>
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

struct hazptr_slot {
	uintptr_t value; /* the address that is protected, or 0, or QUIESCE_HAZPTR_FREE */
};

struct hazptr_context;

/* Number of slots of a thread or context, which share a cache line. */
#define HAZPTR_SLOT_PER_CTX 7

/* Value of a free slot: bit 63 without an address.  0: the slot is taken, and protects nothing. */
#define QUIESCE_HAZPTR_FREE ((uintptr_t)1 << 63)

QUIESCE_API int quiesce_init_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API void quiesce_cleanup_hazptr_context(struct hazptr_context *ctx);
QUIESCE_API struct hazptr_slot *quiesce__hazptr_alloc_slow(uint32_t layout, struct hazptr_context *ctx);
QUIESCE_API struct hazptr_slot *quiesce_hazptr_alloc_detached(void);
QUIESCE_API void quiesce__hazptr_free_slow(struct hazptr_slot *slot);
QUIESCE_API void quiesce__hazptr_set_slow(struct hazptr_slot *slot, uintptr_t value);
QUIESCE_API void quiesce__hazptr_set_saving(void); /* quiesce__hazptr_set_slow() by quiesce__saving_call() */
QUIESCE_API void *quiesce__hazptr_protect_slow(struct hazptr_slot *slot, void **where, size_t offset, uintptr_t marks);
QUIESCE_API struct hazptr_slot *quiesce__hazptr_alloc_array_slow(uint32_t layout, struct hazptr_context *ctx, size_t nr);
QUIESCE_API bool quiesce_hazptr_alloc_batch(struct hazptr_context *ctx, struct hazptr_slot **ret_slots, size_t nr);
QUIESCE_API void quiesce_hazptr_protect_batch(struct hazptr_slot *const *batch, void **const *where, void **ret_ptrs, size_t nr);

/* This bit of quiesce_shazptr_v1.hazptr_slow stands beside QUIESCE_SLOTS_WAIT and QUIESCE_SLOTS_YIELD:
 * the fence mode is full. */
#define QUIESCE_HAZPTR_FULL ((uint64_t)4)

/* True if a store and a light fence set a slot: not with full fences, nor while a waiter waits. */
QUIESCE_FAST bool quiesce__hazptr_fast_allowed(void)
{
	/* Relaxed: fixed before first use; a scan repeats the request for a slot that misses it. */
	return QUIESCE__LIGHT_PROMISED || quiesce_likely(!quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr_slow));
}

/* Let @slot protect @value; its former protection ends. */
QUIESCE_FAST void quiesce__hazptr_set_fast(struct hazptr_slot *slot, uintptr_t value)
{
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, value);
	/* Either the scan after the heavy fence sees the slot, or this thread's next load sees what was unlinked before that fence. */
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_light(HP1);
}

/* A loop that sets slots keeps its variables in registers, and a function around it needs no frame,
 * if the call for a waiter changes no registers. */
#if QUIESCE_HAVE_SAVING_CALL && !QUIESCE_TSAN && !defined(QUIESCE_SIM)
#define QUIESCE__SET_SAVES 1
#define quiesce__hazptr_set_call(slot, value) quiesce__saving_call(quiesce__hazptr_set_saving, slot, value)
#else
#define QUIESCE__SET_SAVES 0
#define quiesce__hazptr_set_call(slot, value) quiesce__hazptr_set_slow(slot, value)
#endif

QUIESCE_FAST void quiesce__hazptr_set(struct hazptr_slot *slot, uintptr_t value)
{
	if (quiesce_likely(quiesce__hazptr_fast_allowed()))
		quiesce__hazptr_set_fast(slot, value);
	/* Full fences, and no waiter.  Relaxed: a scan repeats the request for a slot that misses it. */
	else if (quiesce_likely(quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr_slow) == QUIESCE_HAZPTR_FULL))
		/* HP1: full, pairs with HP1 in quiesce__hazptr_scan_begin() */
		(void)quiesce_xchg(HP1, &slot->value, value);
	else
		quiesce__hazptr_set_call(slot, value);
}

QUIESCE_FAST void quiesce__hazptr_clear(struct hazptr_slot *slot)
{
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, (uintptr_t)0);
}

/* The value that protects @found: the address of the field at @offset, without the bits of @marks. */
QUIESCE_FAST uintptr_t quiesce__hazptr_value(uintptr_t found, size_t offset, uintptr_t marks)
{
	found &= ~marks;
	return found || !offset ? found + offset : 0;
}

/* Make one attempt to protect: true if the pointer did not change meanwhile; *@ret_ptr is its value. */
QUIESCE_FAST bool quiesce__hazptr_attempt(struct hazptr_slot *slot, void **where, size_t offset, uintptr_t marks, bool inline_only,
					  void **ret_ptr)
{
	/* Relaxed: only the second load is used.  A number, as the object may have been freed. */
	uintptr_t first = (uintptr_t)quiesce_load_relaxed(where);

	if (inline_only)
		quiesce__hazptr_set_fast(slot, quiesce__hazptr_value(first, offset, marks));
	else
		quiesce__hazptr_set(slot, quiesce__hazptr_value(first, offset, marks));
	/* SH3: acquire, pairs with the caller */
	*ret_ptr = quiesce_load_acquire(SH3, where);
	return quiesce_likely((uintptr_t)*ret_ptr == first);
}

QUIESCE_FAST void *quiesce__hazptr_tryprotect(struct hazptr_slot *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	if (!QUIESCE__SLOT_USED(slot, "hazptr_tryprotect()"))
		return NULL;
	if (quiesce__hazptr_attempt(slot, where, offset, marks, false, &ptr))
		return ptr;
	quiesce__hazptr_clear(slot);
	return NULL;
}

/* Where the slow path of a set changes registers that of the loop is a tail call after everything
 * else, so a function around this one needs no frame, and a loop around it keeps its variables in
 * registers. */
QUIESCE_FAST void *quiesce__hazptr_protect(struct hazptr_slot *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	if (!QUIESCE__SLOT_USED(slot, "hazptr_protect()"))
		return NULL;
	if (quiesce__hazptr_fast_allowed() && quiesce__hazptr_attempt(slot, where, offset, marks, true, &ptr))
		return ptr;
	while (QUIESCE__LIGHT_PROMISED || QUIESCE__SET_SAVES)
		if (quiesce__hazptr_attempt(slot, where, offset, marks, QUIESCE__LIGHT_PROMISED, &ptr))
			return ptr;
	return quiesce__hazptr_protect_slow(slot, where, offset, marks);
}

#define QUIESCE__HAZPTR_3(fn, slot, where, field) \
	QUIESCE_CAST(quiesce__type_at(where), fn((slot), quiesce__untyped(where), offsetof(__typeof__(**(where)), field), 0))
#define QUIESCE__HAZPTR_2(fn, slot, where) QUIESCE_CAST(quiesce__type_at(where), fn((slot), quiesce__untyped(where), 0, 0))
#define QUIESCE__HAZPTR_PICK(a, b, c, name, ...) name
#define QUIESCE__HAZPTR(fn, ...) QUIESCE__HAZPTR_PICK(__VA_ARGS__, QUIESCE__HAZPTR_3, QUIESCE__HAZPTR_2, 0)(fn, __VA_ARGS__)

#define QUIESCE__HAZPTR_MASKED_4(slot, where, marks, field)                             \
	QUIESCE_CAST(quiesce__type_at(where),                                           \
		     quiesce__hazptr_protect((slot), quiesce__untyped(where), offsetof(__typeof__(**(where)), field), (marks)))
#define QUIESCE__HAZPTR_MASKED_3(slot, where, marks) \
	QUIESCE_CAST(quiesce__type_at(where), quiesce__hazptr_protect((slot), quiesce__untyped(where), 0, (marks)))
#define QUIESCE__HAZPTR_MASKED_PICK(a, b, c, d, name, ...) name

/* Take the first @nr slots of a line that no other thread or context owns, all or none. */
QUIESCE_FAST bool quiesce__hazptr_take_row(struct hazptr_slot *row, size_t nr)
{
	if (nr - 1 >= HAZPTR_SLOT_PER_CTX)
		return false;
	for (size_t i = 0; i < nr; i++)
		/* SH2: acquire, pairs with SH2 in hazptr_free() */
		if (quiesce_unlikely(quiesce_load_acquire(SH2, &row[i].value) != QUIESCE_HAZPTR_FREE))
			return false;
	for (size_t i = 0; i < nr; i++)
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &row[i].value, (uintptr_t)0);
	return true;
}

QUIESCE_END_DECLS

#endif
