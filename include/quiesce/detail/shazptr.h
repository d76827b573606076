/* SPDX-License-Identifier: MIT */
/* quiesce/detail/shazptr.h - the inline code of guards: attempts to protect a pointer's object; private,
 * for shazptr.h, which is the manual.
 *
 * The ledger of its labels is at the head of src/shazptr/shazptr.c.
 */
#ifndef QUIESCE_DETAIL_SHAZPTR_H
#define QUIESCE_DETAIL_SHAZPTR_H

#include <quiesce/detail/shazptr_slot.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* A protection.  The struct may be copied, and handed to another thread; it is cleared once. */
struct shazptr_guard {
	uintptr_t *slot; /* private */
	void *ptr;       /* protected address; NULL: the guard is empty */
};

QUIESCE_API struct shazptr_guard quiesce_shazptr_acquire_detached(const void *ptr);
QUIESCE_API struct shazptr_guard quiesce__shazptr_acquire_debug(const void *ptr);
QUIESCE_API void quiesce__shazptr_clear_debug(struct shazptr_guard guard);
QUIESCE_API void quiesce__shazptr_note_debug(struct shazptr_guard guard);
QUIESCE_API void quiesce__shazptr_detach_debug(struct shazptr_guard guard);

/* A claim of NULL does not change the slot, and a guard of NULL is not cleared. */
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

/* Make one attempt to protect the object that *@where points to: true if *@where did not change. */
QUIESCE_FAST bool quiesce__shazptr_attempt(void **where, struct shazptr_guard *ret_guard)
{
	/* Relaxed: only the second load is used. */
	void *first = quiesce_load_relaxed(where);

	ret_guard->slot = quiesce__shazptr_claim((uintptr_t)first);
	/* SH3: acquire, pairs with the caller */
	ret_guard->ptr = quiesce_load_acquire(SH3, where);
	/* Compared as numbers: the object of the first pointer may have been freed. */
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

QUIESCE_FAST void quiesce__shazptr_cleanup(struct shazptr_guard *guard)
{
#ifdef QUIESCE_DEBUG
	quiesce__shazptr_clear_debug(*guard);
#else
	quiesce__shazptr_clear(*guard);
#endif
}

QUIESCE_END_DECLS

#endif
