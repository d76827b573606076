/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arm64_rseq.h - the definitions of rseq.h for arm64.
 *
 * Orders.  A sequence is one step for threads of the same id, because a thread that takes over the
 * id has come through a context switch, which is a full fence.  For all others:
 *   acquire  ldar or ldapr.  Where the next load takes its address from the loaded word, that
 *            dependency orders the two, and only the second is an acquire.
 *   release  the store that commits is stlr.
 *   the heavy fence  needs nothing of a sequence.  A sequence that has committed before the interrupt
 *            has its store, plain or not, before the end of the heavy fence.  After any other one the
 *            light fence follows the interrupt, and so does all that it orders.  The heavy fence
 *            restarts no sequence, so what a sequence has loaded may be older than the interrupt; a
 *            word that sequences must not find open any more is closed by quiesce_fence_restart()
 *            (docs/ordering.md).
 */
#ifndef QUIESCE_ARCH_ARM64_RSEQ_H
#define QUIESCE_ARCH_ARM64_RSEQ_H

#include <quiesce/arch/pin.h>

#include <stdbool.h>

/* The torture build replaces these: it stays inside the sequence for a while, and can leave it
 * without protection. */
#ifndef QUIESCE_RSEQ_STAY
#define QUIESCE_RSEQ_STAY
#define QUIESCE_RSEQ_GUARD
#define QUIESCE_RSEQ_INPUTS
#define QUIESCE_RSEQ_CLOBBERS
#endif

/* Unlike ldar, ldapr does not wait until an earlier stlr is visible: that of the last section's end. */
#if defined(__ARM_FEATURE_RCPC)
#define QUIESCE_LOAD_ACQUIRE "ldapr "
#else
#define QUIESCE_LOAD_ACQUIRE "ldar "
#endif

/* A sequence is the code from 1 to 2.  If the thread is preempted, moved or interrupted by a signal
 * there, the kernel sends it to 4, which begins anew, and reads nothing but the inputs.
 * The kernel demands that a signature precedes 4: the instruction brk, whose bytes have the same
 * order on big-endian CPUs.  The branch leads around it, and around what else is in @skipped.  So 4
 * is in the middle of the function, with the same frame as the sequence, and a debugger, profiler
 * or sanitizer that gets the thread there finds its callers.  No indirect branch leads to 1 or 4,
 * so neither has to be a landing pad (bti). */
#define QUIESCE_RSEQ_ENTER_OR(skipped, scratch)         \
	".pushsection __rseq_cs, \"aw?\"\n"             \
	".balign 32\n"                                  \
	"3: .long 0, 0\n"                               \
	".quad 1f, 2f - 1f, 4f\n"                       \
	".popsection\n"                                 \
	"b 4f\n" skipped                                \
	".inst 0xd428bc00\n"                            \
	"4: adrp " scratch ", 3b\n"                     \
	"add " scratch ", " scratch ", :lo12:3b\n"      \
	"str " scratch ", [%[area], #8]\n"
#define QUIESCE_RSEQ_ENTER(scratch) QUIESCE_RSEQ_ENTER_OR("", scratch)

/* @missed is 0 if the slot was claimed: it is the difference of the ids, then what was in the slot.
 * The slot and its id are loaded inside the sequence, so that both fit. */
QUIESCE_FAST uintptr_t *quiesce__claim_rseq(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	char *thread = quiesce__thread_at(0);
	uintptr_t *slot;
	uint64_t missed, id;

	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[missed]")
			     "1:\n" QUIESCE_RSEQ_GUARD
			     "ldr %w[missed], [%[thread], %[id_at]]\n"
			     "ldp %[slot], %[id], [%[cached]]\n"
			     "sub %[missed], %[missed], %[id]\n"
			     "cbnz %[missed], 2f\n"
			     QUIESCE_LOAD_ACQUIRE "%[missed], [%[slot]]\n"
			     "cbnz %[missed], 2f\n" QUIESCE_RSEQ_STAY
			     "stlr %[held], [%[slot]]\n"
			     "2:\n"
			     : [slot] "=&r"(slot), [missed] "=&r"(missed), [id] "=&r"(id)
			     : [held] "r"(value), [area] "r"(thread + quiesce_shazptr_v1.rseq), [thread] "r"(thread),
			       [id_at] "r"(quiesce_shazptr_v1.id), [cached] "r"(cached) QUIESCE_RSEQ_INPUTS
			     : "memory" QUIESCE_RSEQ_CLOBBERS);
#if QUIESCE_TSAN
	/* ThreadSanitizer does not see that the assembly acquires the previous owner's clear. */
	if (!missed)
		/* SH2: acquire, pairs with SH2 in quiesce__shazptr_release() */
		(void)quiesce_load_acquire(SH2, slot);
#endif
	if (quiesce_unlikely(missed)) {
		quiesce__pin();
		return NULL;
	}
	if (!slot)
		__builtin_unreachable();
	return slot;
}

/* The sheaf, or the set of counters, of this thread's concurrency id, whose offset is 24.  The word
 * "open" is 0, or minus the address of that of id 0. */
#define QUIESCE_PLACE_OF_ID(place, open_word, id)               \
	"ldr " id ", [%[area], #24]\n"                          \
	"lsl " place ", " place ", %[shift]\n"                  \
	"sub " place ", " place ", " open_word "\n"

/* x16 and x17 are the registers that linkers, too, may change at a branch.  The branch to @call is
 * one that reaches as far as a call does, because compilers may put the unlikely code in another
 * section. */
#define QUIESCE__COUNT_BY(load, offset, commit)                                                        \
	__asm__ __volatile__ goto(                                                                     \
		QUIESCE_RSEQ_ENTER_OR("5: b %l[call]\n", "x16")                                        \
		"1:\n" QUIESCE_RSEQ_GUARD                                                              \
		load "x17, [%[open]]\n"                                                                \
		"cbz x17, 5b\n"                                                                        \
		QUIESCE_PLACE_OF_ID("x16", "x17", "w16")                                               \
		"ldr x17, [x16, #" #offset "]\n" QUIESCE_RSEQ_STAY                                     \
		"add x17, x17, #1\n" commit                                                            \
		"2:\n"                                                                                 \
		:                                                                                      \
		: [area] "r"(quiesce__thread_at((int64_t)__rseq_offset)), [open] "r"(open),            \
		  [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS                                \
		: "memory", "x16", "x17" QUIESCE_RSEQ_CLOBBERS                                         \
		: call);                                                                               \
	return true;                                                                                   \
call:                                                                                                  \
	quiesce__pin();                                                                                \
	return false

#define QUIESCE_COUNT_WORD(offset) offset
/* The load of "open" is an acquire, the count is not ordered. */
#define QUIESCE_COUNT_RSEQ(word) QUIESCE__COUNT_ACQUIRE(word)
#define QUIESCE__COUNT_ACQUIRE(offset) QUIESCE__COUNT_BY(QUIESCE_LOAD_ACQUIRE, offset, "str x17, [x16, #" #offset "]\n")
/* The count is a release, the load of "open" is not ordered. */
#define QUIESCE_COUNT_RELEASE_RSEQ(word) QUIESCE__COUNT_RELEASE(word)
#define QUIESCE__COUNT_RELEASE(offset)                                                \
	QUIESCE__COUNT_BY("ldr ", offset,                                              \
			  ".if " #offset "\nadd x16, x16, #" #offset "\n.endif\n"     \
			  "stlr x17, [x16]\n")

/* For detail/sheaf.h.  @nr_ is "open", then the number of objects, so it is 0 where no object is
 * taken.  The acquire of the number is one of "open" as well, whose value is in its address. */
#define QUIESCE_SHEAF_POP(open, ret_object, ret_done)                                                             \
	uintptr_t at_, nr_, less_;                                                                                \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]")                                                          \
			     "1:\n" QUIESCE_RSEQ_GUARD                                                            \
			     "ldr %[nr], [%[open_at]]\n"                                                          \
			     "cbz %[nr], 2f\n"                                                                    \
			     QUIESCE_PLACE_OF_ID("%[at]", "%[nr]", "%w[at]")                                      \
			     QUIESCE_LOAD_ACQUIRE "%[nr], [%[at]]\n"                                              \
			     "cbz %[nr], 2f\n"                                                                    \
			     "add %[object], %[at], %[nr], lsl #3\n"                                              \
			     "ldr %[object], [%[object], #8]\n"                                                   \
			     "sub %[less], %[nr], #1\n" QUIESCE_RSEQ_STAY                                         \
			     "str %[less], [%[at]]\n"                                                             \
			     "2:\n"                                                                               \
			     : [at] "=&r"(at_), [nr] "=&r"(nr_), [less] "=&r"(less_), [object] "=&r"(ret_object)  \
			     : [area] "r"(quiesce__thread_at((int64_t)__rseq_offset)), [open_at] "r"(open),       \
			       [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS                              \
			     : "memory" QUIESCE_RSEQ_CLOBBERS);                                                   \
	(ret_done) = nr_ != 0

/* @left_ is "open", then whether there is room. */
#define QUIESCE_SHEAF_PUSH(open, limit_at, pushed, ret_done)                                                      \
	uintptr_t at_, nr_, left_, place_;                                                                        \
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]")                                                          \
			     "1:\n" QUIESCE_RSEQ_GUARD                                                            \
			     "ldr %[left], [%[open_at]]\n"                                                        \
			     "cbz %[left], 2f\n"                                                                  \
			     QUIESCE_PLACE_OF_ID("%[at]", "%[left]", "%w[at]")                                    \
			     QUIESCE_LOAD_ACQUIRE "%[nr], [%[at]]\n"                                              \
			     "ldr %[place], [%[limit]]\n"                                                         \
			     "cmp %[nr], %[place]\n"                                                              \
			     "cset %[left], lo\n"                                                                 \
			     "b.hs 2f\n"                                                                          \
			     "add %[place], %[at], %[nr], lsl #3\n"                                               \
			     "str %[object], [%[place], #16]\n"                                                   \
			     "add %[nr], %[nr], #1\n" QUIESCE_RSEQ_STAY                                           \
			     "stlr %[nr], [%[at]]\n"                                                              \
			     "2:\n"                                                                               \
			     : [at] "=&r"(at_), [nr] "=&r"(nr_), [left] "=&r"(left_), [place] "=&r"(place_)       \
			     : [area] "r"(quiesce__thread_at((int64_t)__rseq_offset)), [open_at] "r"(open),       \
			       [limit] "r"(limit_at), [object] "r"(pushed), [shift] "i"(QUIESCE_PERCPU_SHIFT)     \
			       QUIESCE_RSEQ_INPUTS                                                                \
			     : "memory", "cc" QUIESCE_RSEQ_CLOBBERS);                                             \
	(ret_done) = left_ != 0

#endif
