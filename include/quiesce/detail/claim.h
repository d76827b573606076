/* SPDX-License-Identifier: MIT */
/* quiesce/detail/claim.h - taking a hazard slot near the CPU; private, for shazptr.h and hazptr.h.
 *
 * A claim finds a slot empty and fills it.
 *   In the thread's own line: a load and a store.  Nobody else claims there, but a signal handler may
 *   get between the two: it must clear what it claims before it returns.
 *   In the block of the thread's id (concurrency id or CPU number), where the thread last found
 *   room: in one step that nothing gets into, a restartable sequence or
 *   a compare-and-exchange.
 */
#ifndef QUIESCE_DETAIL_CLAIM_H
#define QUIESCE_DETAIL_CLAIM_H

#include <quiesce/arch/rseq.h>
#include <quiesce/detail/tls.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* Both shazptr.h and hazptr.h declare a wait that is this call. */
QUIESCE_API void quiesce_synchronize_shazptr(const void *ptr);

/* The block of an id, in bytes: slots in the first half, the scan's words in the second. */
#define QUIESCE_BLOCK_SHIFT 10
#define QUIESCE_BLOCK_WORDS ((size_t)1 << (QUIESCE_BLOCK_SHIFT - 3))

/* Set by the scan in a slot that it waits for.  A holder clears it together with the address, so a
 * slot without it has been cleared since. */
#define QUIESCE_SLOT_TAG ((uintptr_t)1 << 63)
/* Bits of attention, below: a scan has set tags; and a guard of this process has gone without a slot, so that words with a tag may be
 * counts of such guards.  While no other bit is set, a slot without a tag is cleared by a store. */
#define QUIESCE_SLOTS_WAIT ((uint64_t)1)
#define QUIESCE_SLOTS_FALLBACK ((uint64_t)4)

/* The slot of @cached if the thread has its id; NULL: it has not, or the slot is taken.  Acquire of the
 * empty slot, release of the value.  quiesce_claim_own(): of what the thread keeps in its block. */
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

/* The calling thread's id, -1: none.  A hint: it may be another thread's by now. */
QUIESCE_FAST int64_t quiesce__claim_id(void)
{
	/* Relaxed: fixed before first use; the id is the kernel's word to this thread. */
	int64_t offset = quiesce_load_relaxed(&quiesce_shazptr_v1.id);

	return offset ? (int64_t)quiesce_load_relaxed((uint32_t *)(void *)quiesce__thread_at(offset)) : -1;
}

#endif

/* The same by compare-and-exchange, which is the fence of full-fence mode too.  Look first:
 * a failing exchange takes the line from its owner. */
QUIESCE_FAST uintptr_t *quiesce__claim_cas(uintptr_t *slot, uintptr_t value)
{
	uintptr_t none = 0;

	/* Relaxed: the exchange decides. */
	if (quiesce_unlikely(quiesce_load_relaxed(slot) != 0))
		return NULL;
	/* SH1: full, pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	return quiesce_likely(quiesce_cmpxchg(SH1, slot, &none, value)) ? slot : NULL;
}

/* In the thread's own line.  Acquire: a guard that was handed over may have been cleared by another thread. */
QUIESCE_FAST bool quiesce__claim_own(uintptr_t *slot, uintptr_t value)
{
	/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
	if (quiesce_load_acquire(SH2, slot))
		return false;
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, slot, value);
	return true;
}

/* Debug builds keep account of who has taken which slot of hazptr.h, and report who exits with one; and who frees or uses one
 * that is free: these are false then.  @array: of pointers to slots; is the one at @nr among those before it? */
QUIESCE_API void quiesce__slot_taken_debug(const void *slot);
QUIESCE_API bool quiesce__slot_given_back_debug(const void *slot);
QUIESCE_API bool quiesce__slot_used_debug(const void *slot, const char *call);
QUIESCE_API bool quiesce__slot_repeated_debug(const void *array, size_t nr);
#ifdef QUIESCE_DEBUG
#define QUIESCE__SLOT_TAKEN(slot) quiesce__slot_taken_debug(slot)
#define QUIESCE__SLOT_GIVEN_BACK(slot) quiesce__slot_given_back_debug(slot)
#define QUIESCE__SLOT_USED(slot, call) quiesce__slot_used_debug(slot, call)
#define QUIESCE__SLOT_REPEATED(array, nr) quiesce__slot_repeated_debug(array, nr)
#else
#define QUIESCE__SLOT_TAKEN(slot) ((void)(slot))
#define QUIESCE__SLOT_GIVEN_BACK(slot) true
#define QUIESCE__SLOT_USED(slot, call) true
#define QUIESCE__SLOT_REPEATED(array, nr) false
#endif

QUIESCE_END_DECLS

#endif
