/* SPDX-License-Identifier: MIT */
/* quiesce/detail/percpu.h - per-CPU counters of an object; private, for srcu.h, percpu_rwsem.h and
 * percpu_ref.h.
 *
 * Each object has a set of counters (words) for each CPU that the process uses.  A thread adds one
 * to a word of the set of its concurrency id, in a restartable sequence: no fence, no locked
 * instruction, no line that another CPU writes.  Words only grow, and only sums over all sets mean
 * anything, as a thread may enter on one CPU and leave on another.
 * There are two words, entered and left, and never a single word that goes up and down: if a
 * thread enters on one CPU and leaves on another, a sum of such words might include the second
 * step but not the first, and be zero with a holder inside.
 *
 * The sequence loads one word of the object, "open": minus an address in the set of id 0, or 0 while
 * no thread may count inline.  A thread that stores 0, and then restarts all sequences by a fence,
 * divides the other threads into those that have counted and those that will not.  Nothing else is
 * loaded: the concurrency id, and the C library's word where the kernel stores it, are at constant
 * places, and there are counters for every id that the kernel can give.
 *
 * A thread that finds 0 calls the library, which counts in the same sets: in a sequence of its
 * own, by CPU number if the kernel has no concurrency ids (before 6.3), and by a locked
 * instruction where there are no sequences.  So does code that is compiled for a debugger, always.
 */
#ifndef QUIESCE_DETAIL_PERCPU_H
#define QUIESCE_DETAIL_PERCPU_H

#include <quiesce/detail/claim.h> /* compiler and perturbation spellings of restartable sequences */

#if QUIESCE_RSEQ_OFFSET && QUIESCE_SEQUENCES_INLINE && !QUIESCE_TSAN && !defined(QUIESCE_SIM)
#define QUIESCE_COUNTS_INLINE 1
/* Offset of the rseq area from the thread pointer, as <sys/rseq.h> declares it; compilers treat it
 * as a constant. */
extern const ptrdiff_t __rseq_offset;
#endif

QUIESCE_BEGIN_DECLS

/* log2 of the distance of two ids' sets, in bytes: objects share the pages of an id, CPUs do not. */
#if defined(QUIESCE_SIM)
#define QUIESCE_PERCPU_SHIFT 7
#else
#define QUIESCE_PERCPU_SHIFT 12
#endif

/* The address of the counters, for the library; it stays while the word "open" comes and goes. */
struct quiesce_percpu {
	char *base; /* address of the set of id 0; NULL: not yet allocated */
};

/* Add one to the word at @offset, 0 or 8, from the address of @open on, in the set of this thread's id;
 * false if *@open is 0.
 * The check of *@open and the addition are one step.  A plain store, which the compiler does not
 * reorder.
 * _acquire: the check is an acquire.  _release: the count is a release, and the check orders
 * nothing.  On x86 both are always both. */
#define quiesce_count_acquire(label, open, offset) QUIESCE__COUNT(offset)(open)
#define quiesce_count_release(label, open, offset) QUIESCE__COUNT_LEFT(offset)(open)
#define QUIESCE__COUNT(offset) QUIESCE__COUNT_OF(offset)
#define QUIESCE__COUNT_OF(offset) quiesce__count_##offset
#define QUIESCE__COUNT_LEFT(offset) QUIESCE__COUNT_LEFT_OF(offset)
#define QUIESCE__COUNT_LEFT_OF(offset) quiesce__count_release_##offset

#if defined(QUIESCE_SIM)

#undef quiesce_count_acquire
#undef quiesce_count_release
bool quiesce__count_sim(const uint64_t *open, size_t offset, bool acquire, bool release, const char *label);
#define quiesce_count_acquire(label, open, offset) \
	quiesce__count_sim(open, offset, !quiesce_weakened(label, ACQUIRE), false, #label)
#define quiesce_count_release(label, open, offset) \
	quiesce__count_sim(open, offset, false, !quiesce_weakened(label, RELEASE), #label)

#elif defined(QUIESCE_COUNTS_INLINE)

QUIESCE_FAST bool quiesce__count_0(const uint64_t *open)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD(0));
}

QUIESCE_FAST bool quiesce__count_8(const uint64_t *open)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD(8));
}

QUIESCE_FAST bool quiesce__count_release_0(const uint64_t *open)
{
	QUIESCE_COUNT_RELEASE_RSEQ(QUIESCE_COUNT_WORD(0));
}

QUIESCE_FAST bool quiesce__count_release_8(const uint64_t *open)
{
	QUIESCE_COUNT_RELEASE_RSEQ(QUIESCE_COUNT_WORD(8));
}

#else

#define quiesce__count_0(open) ((void)(open), false)
#define quiesce__count_8(open) ((void)(open), false)
#define quiesce__count_release_0(open) ((void)(open), false)
#define quiesce__count_release_8(open) ((void)(open), false)

#endif

QUIESCE_END_DECLS

#endif
