/* SPDX-License-Identifier: MIT */
/* quiesce/claim.h - taking a hazard slot near the CPU; private, for shazptr.h.
 *
 * A claim finds a slot empty and fills it.
 *   In the thread's own line: a load and a store.  Nobody else claims there, but a signal handler may
 *   get between the two: it must clear what it claims before it returns.
 *   In the block of the thread's id (concurrency id or CPU number), where the thread last found
 *   room: in one step that nothing gets into, a restartable sequence or
 *   a compare-and-exchange.
 */
#ifndef QUIESCE_CLAIM_H
#define QUIESCE_CLAIM_H

#include <quiesce/rcu.h> /* the thread's block */

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

/* The block of an id, in bytes: slots in the first half, the scan's words in the second. */
#define QUIESCE_BLOCK_SHIFT 10
#define QUIESCE_BLOCK_WORDS ((size_t)1 << (QUIESCE_BLOCK_SHIFT - 3))

/* Set by the scan in a slot that it waits for.  A holder clears it together with the address, so a
 * slot without it has been cleared since. */
#define QUIESCE_SLOT_TAG ((uintptr_t)1 << 63)
/* A bit of attention, below: a scan has set tags.  While no other bit is set, who clears a slot without a tag has nothing to do. */
#define QUIESCE_SLOTS_WAIT ((uint64_t)1)

/* What claims and clears look at, on one line that changes only while somebody waits. */
struct quiesce_shazptr_v1 {
	uint64_t attention; /* not 0: look at the slot, or clear by quiesce__shazptr_clear_slow() */
	int64_t rseq;       /* from the thread pointer to its rseq area; 0: claim by compare-and-exchange */
	int64_t id;         /* from the thread pointer to its id; 0: there is none */
	uint64_t nr_ids;
	uintptr_t *slots;   /* private */
	uint64_t hazptr;    /* not 0: protect by quiesce__hazptr_set_slow() */
	uint64_t reserved[2];
};

#if defined(QUIESCE_SIM)
extern struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#else
extern QUIESCE_DATA struct quiesce_shazptr_v1 quiesce_shazptr_v1;
#endif

#if defined(__has_feature)
#define QUIESCE_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define QUIESCE_TSAN 1
#else
#define QUIESCE_TSAN 0
#endif

/* The slot of @cached if the thread has its id; NULL: it has not, or the slot is taken.  Acquire of the
 * empty slot, release of the value. */
#define quiesce_claim(label, cached, value) quiesce__claim_rseq((cached), (value))
#if defined(QUIESCE_SIM)

#define QUIESCE_HAVE_RSEQ 1
uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value);
int64_t quiesce__claim_id(void);

#else

#if defined(__x86_64__)
#define QUIESCE_HAVE_RSEQ 1

#if defined(QUIESCE_PERTURB)
/* A random stay inside the sequence, and the mutant that leaves it without its protection. */
#define QUIESCE_RSEQ_STAY "movl %k[stay], %%ecx\n6: decl %%ecx\njg 6b\n"
#define QUIESCE_RSEQ_GUARD "testl %k[bare], %k[bare]\nje 7f\nmovq $0, %%fs:8(%[area])\n7:\n"
#define QUIESCE_RSEQ_INPUTS , [stay] "r"(quiesce__perturb_stay()), [bare] "r"(QUIESCE_MUTANT(claim_unprotected))
#define QUIESCE_RSEQ_CLOBBERS , "rcx"
#else
#define QUIESCE_RSEQ_STAY
#define QUIESCE_RSEQ_GUARD
#define QUIESCE_RSEQ_INPUTS
#define QUIESCE_RSEQ_CLOBBERS
#endif

/* From 1 to 2 the kernel sends the thread to 4 if it is preempted, moved or interrupted by a
 * signal; the store before 2 is the last instruction and the claim.  Ordinary loads and stores are
 * acquire and release on x86.  Not "asm goto": it has a result, and some compilers lose labels then when they instrument code. */
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	uintptr_t *slot;

	__asm__ __volatile__(
		".pushsection __rseq_cs, \"aw?\"\n"
		".balign 32\n"
		"3: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"0: leaq 3b(%%rip), %[slot]\n"
		"movq %[slot], %%fs:8(%[area])\n"
		"1:\n" QUIESCE_RSEQ_GUARD
		"movl %%fs:(%[id]), %k[slot]\n"
		"cmpq %[cached_id], %[slot]\n"
		"jne 8f\n"
		"movq %[cached_slot], %[slot]\n" /* in here, so that both are of one time */
		"cmpq $0, (%[slot])\n"
		"jne 8f\n" QUIESCE_RSEQ_STAY
		"movq %[value], (%[slot])\n"
		"2:\n"
		".pushsection __rseq_failure, \"ax?\"\n"
		".byte 0x0f, 0xb9, 0x3d\n" /* the signature is an operand of ud1 */
		".long 0x53053053\n"
		"4: jmp 0b\n"
		"8: xorl %k[slot], %k[slot]\n" /* taken */
		"jmp 2b\n"
		".popsection\n"
		: [slot] "=&r"(slot)
		: [cached_slot] "m"(cached->slot), [cached_id] "m"(cached->id), [value] "r"(value), [area] "r"(quiesce_shazptr_v1.rseq),
		  [id] "r"(quiesce_shazptr_v1.id) QUIESCE_RSEQ_INPUTS
		: "memory", "cc" QUIESCE_RSEQ_CLOBBERS);
#if QUIESCE_TSAN
	/* ThreadSanitizer does not see what assembly acquires: the clear of whoever had the slot before. */
	if (slot)
		/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
		(void)quiesce_load_acquire(SH2, slot);
#endif
	return slot;
}
#else
#define QUIESCE_HAVE_RSEQ 0
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	(void)cached, (void)value;
	return NULL;
}
#endif

QUIESCE_FAST char *quiesce__thread_pointer(void)
{
#if defined(__x86_64__)
	char *self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (char *)__builtin_thread_pointer();
#endif
}

/* The calling thread's id, -1: none.  A hint: it may be another thread's by now. */
QUIESCE_FAST int64_t quiesce__claim_id(void)
{
	/* Relaxed: fixed before first use; the id is the kernel's word to this thread. */
	int64_t offset = quiesce_load_relaxed(&quiesce_shazptr_v1.id);

	return offset ? (int64_t)quiesce_load_relaxed((uint32_t *)(quiesce__thread_pointer() + offset)) : -1;
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
	/* SH2: release, pairs with SH2 in quiesce__slots_look() */
	quiesce_store_release(SH2, slot, value);
	return true;
}

/* Debug builds keep account of who has taken which slot of hazptr.h, and report who exits with one. */
QUIESCE_API void quiesce__slot_taken_debug(const void *slot);
QUIESCE_API void quiesce__slot_given_back_debug(const void *slot);
#ifdef QUIESCE_DEBUG
#define QUIESCE__SLOT_TAKEN(slot) quiesce__slot_taken_debug(slot)
#define QUIESCE__SLOT_GIVEN_BACK(slot) quiesce__slot_given_back_debug(slot)
#else
#define QUIESCE__SLOT_TAKEN(slot) ((void)(slot))
#define QUIESCE__SLOT_GIVEN_BACK(slot) ((void)0)
#endif

QUIESCE_END_DECLS

#endif
