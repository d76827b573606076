/* SPDX-License-Identifier: MIT */
/* quiesce/detail/shazptr_slot.h - the inline code of guards: claims and releases of a slot; private,
 * for shazptr.h. */
#ifndef QUIESCE_DETAIL_SHAZPTR_SLOT_H
#define QUIESCE_DETAIL_SHAZPTR_SLOT_H

#include <quiesce/detail/claim.h>

QUIESCE_BEGIN_DECLS

QUIESCE_API uintptr_t *quiesce__shazptr_claim_slow(uint32_t layout, uintptr_t value) __attribute__((__returns_nonnull__));
QUIESCE_API void quiesce__shazptr_clear_slow(uintptr_t *slot);

/* Claim a slot for a thread without a line of its own; NULL: take the slow path. */
QUIESCE_FAST uintptr_t *quiesce__shazptr_claim_cached(struct quiesce__own_block self, uintptr_t value)
{
	uintptr_t *slot;

	/* A plain load, one for the test and the sequence: the word is fixed before first use. */
	if (quiesce_likely(quiesce_shazptr_v1.rseq))
		/* SH2: pairs with SH2 in quiesce__slot_read() and quiesce__shazptr_release() */
		return QUIESCE_SEQUENCES_INLINE ? quiesce_claim_own(SH2, self, value) : NULL;
	/* Relaxed: the thread's own; a compare-and-exchange in an outdated slot is correct, too. */
	if (quiesce_unlikely((uint64_t)quiesce__claim_id() != quiesce_own_load_relaxed(self, shazptr_cached.id)))
		return NULL;
	slot = quiesce_own_load_relaxed(self, shazptr_cached.slot); /* Relaxed: as above. */
	/* SH1: pairs with SH1 in cache_slot() */
	quiesce_fence_light(SH1);
	/* A signal handler may have made the first use of the library, and from then on sequences
	 * claim there.  Relaxed: fixed by now. */
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
	/* If the caller's next load misses an unlinking that precedes a heavy fence, the scan after
	 * that fence sees the slot; if the scan misses the slot, the load sees the unlinking. */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_light(SH1);
	return slot;
}

/* True if a clear has to notify a waiter, or to yield.  Most waiters wait for other addresses, and
 * then the slot has no tag. */
QUIESCE_FAST bool quiesce__shazptr_is_requested(const uintptr_t *slot)
{
	/* Relaxed: a missed request is made again; FALLBACK was set before the guard was returned. */
	return (quiesce_load_relaxed(&quiesce_shazptr_v1.requests) & ~(QUIESCE_SLOTS_WAIT | QUIESCE_SLOTS_FALLBACK)) ||
	       (quiesce_load_relaxed(slot) & QUIESCE_SLOT_TAG); /* Relaxed: as above. */
}

QUIESCE_FAST void quiesce__shazptr_release(uintptr_t *slot)
{
	/* Relaxed: as above. */
	if (quiesce_unlikely(quiesce_load_relaxed(&quiesce_shazptr_v1.requests)) && quiesce__shazptr_is_requested(slot))
		quiesce__shazptr_clear_slow(slot);
	else
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, slot, (uintptr_t)0);
}

QUIESCE_END_DECLS

#endif
