/* SPDX-License-Identifier: MIT */
/* quiesce/detail/claim.h - claims of hazard slots near the CPU; private, for shazptr.h and hazptr.h.
 *
 * A claim finds a slot empty and fills it.
 *   In the thread's own line it is a load and a store.  No other thread claims there; a signal
 *   handler may claim between the two, and must clear its slot before it returns.
 *   In the block of the thread's id (concurrency id or CPU number), in the slot that the thread
 *   claimed last, it is one step: a restartable sequence or a compare-and-exchange.
 */
#ifndef QUIESCE_DETAIL_CLAIM_H
#define QUIESCE_DETAIL_CLAIM_H

#include <quiesce/arch/rseq.h>
#include <quiesce/detail/tls.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* Both shazptr.h and hazptr.h declare a wait that is this call. */
QUIESCE_API void quiesce_synchronize_shazptr(const void *ptr);

/* The block of an id has slots in its first half, and the scan's words in the second; this is the
 * logarithm of its size in bytes. */
#define QUIESCE_BLOCK_SHIFT 10
#define QUIESCE_BLOCK_WORDS ((size_t)1 << (QUIESCE_BLOCK_SHIFT - 3))

/* A scan sets this tag in a slot that it waits for.  The holder clears the tag together with the
 * address, so a slot without the tag has been cleared since. */
#define QUIESCE_SLOT_TAG ((uintptr_t)1 << 63)
/* Bits of quiesce_shazptr_v1.requests.  WAIT: a scan has set tags.  FALLBACK: this process has had
 * guards without a slot, so a word with a tag may be a count of such guards.  While no other bit is
 * set, a slot without a tag is cleared by a store. */
#define QUIESCE_SLOTS_WAIT ((uint64_t)1)
#define QUIESCE_SLOTS_FALLBACK ((uint64_t)4)

/* Claim the slot of @cached; NULL: the thread does not have that id, or the slot is taken.  This is
 * an acquire of the empty slot and a release of the value.  quiesce_claim_own() claims the cached
 * slot in the thread's own block. */
#define quiesce_claim(label, cached, value) quiesce__claim_rseq((cached), (value))
#if QUIESCE_OWN_BY_SEGMENT
#define quiesce_claim_own(label, self, value) quiesce__claim_rseq_own((self), (value))
#else
#define quiesce_claim_own(label, self, value) quiesce__claim_rseq(&(self).at->shazptr_cached, (value))
#endif
#if defined(QUIESCE_SIM)

uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value);
int64_t quiesce__claim_id(void);

#else

/* Returns the calling thread's id, -1: none; a hint, because another thread may have it by now. */
QUIESCE_FAST int64_t quiesce__claim_id(void)
{
	/* Relaxed: fixed before first use; the id is the kernel's word to this thread. */
	int64_t offset = quiesce_load_relaxed(&quiesce_shazptr_v1.id);

	return offset ? (int64_t)quiesce_load_relaxed((uint32_t *)(void *)quiesce__thread_at(offset)) : -1;
}

#endif

/* Claim @slot by compare-and-exchange, which with full fences is the fence, too.  A load comes
 * first, because a failing exchange would take the cache line from its owner. */
QUIESCE_FAST uintptr_t *quiesce__claim_cas(uintptr_t *slot, uintptr_t value)
{
	uintptr_t none = 0;

	/* Relaxed: the exchange decides. */
	if (quiesce_unlikely(quiesce_load_relaxed(slot) != 0))
		return NULL;
	/* SH1: full, pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	return quiesce_likely(quiesce_cmpxchg(SH1, slot, &none, value)) ? slot : NULL;
}

/* Claim @slot of the thread's own line.  Acquire: another thread may have cleared a guard that was
 * handed over to it. */
QUIESCE_FAST bool quiesce__claim_own(uintptr_t *slot, uintptr_t value)
{
	/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
	if (quiesce_load_acquire(SH2, slot))
		return false;
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, slot, value);
	return true;
}

/* Debug builds record which thread has taken which slot of hazptr.h, and report a thread that exits
 * with a slot.  They report a free slot that is freed or used: SLOT_RELEASED() and SLOT_USED() are
 * false then.  SLOT_REPEATED() is true, and reports, if slot @nr of @array is also before it in
 * @array. */
QUIESCE_API void quiesce__slot_taken_debug(const void *slot);
QUIESCE_API bool quiesce__slot_given_back_debug(const void *slot);
QUIESCE_API bool quiesce__slot_used_debug(const void *slot, const char *call);
QUIESCE_API bool quiesce__slot_repeated_debug(const void *array, size_t nr);
#ifdef QUIESCE_DEBUG
#define QUIESCE__SLOT_TAKEN(slot) quiesce__slot_taken_debug(slot)
#define QUIESCE__SLOT_RELEASED(slot) quiesce__slot_given_back_debug(slot)
#define QUIESCE__SLOT_USED(slot, call) quiesce__slot_used_debug(slot, call)
#define QUIESCE__SLOT_REPEATED(array, nr) quiesce__slot_repeated_debug(array, nr)
#else
#define QUIESCE__SLOT_TAKEN(slot) ((void)(slot))
#define QUIESCE__SLOT_RELEASED(slot) true
#define QUIESCE__SLOT_USED(slot, call) true
#define QUIESCE__SLOT_REPEATED(array, nr) false
#endif

QUIESCE_END_DECLS

#endif
