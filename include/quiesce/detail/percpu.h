/* SPDX-License-Identifier: MIT */
/* quiesce/detail/percpu.h - counters of one object, a set for each CPU that the process uses; private, for
 * srcu.h, percpu_rwsem.h and percpu_ref.h.
 *
 * A thread adds one to a word of the set of its concurrency id in a restartable sequence: no fence, no
 * locked instruction, no line that another CPU writes.  Words only grow, and only sums over all sets mean
 * anything: a thread may enter on one CPU and leave on another.
 * Two words, entered and left, and never one that goes both ways: of a thread that enters on one CPU and
 * leaves on another, a sum might see the second step and not the first, and be zero with a holder inside.
 *
 * The sequence looks at one word of the object, "open": minus the address of the counters, or 0 while nobody
 * may count here.  So whoever sets it to 0, and fences so that sequences begin anew, divides those who
 * have counted from those who will not.  Nothing else is loaded: the concurrency id, and the C library's word where the
 * kernel keeps it, are at constant places, and there are counters for every id that the kernel can give.
 *
 * Who finds 0 calls the library, which counts in the same sets: in a sequence of its own, by CPU number where the kernel
 * has no concurrency ids (before 6.3), and by a locked instruction where there are no sequences.
 */
#ifndef QUIESCE_DETAIL_PERCPU_H
#define QUIESCE_DETAIL_PERCPU_H

#include <quiesce/detail/claim.h> /* compiler and perturbation spellings of restartable sequences */

#if QUIESCE_RSEQ_OFFSET && !QUIESCE_TSAN && !defined(QUIESCE_SIM)
#define QUIESCE_COUNTS_INLINE 1
extern const ptrdiff_t __rseq_offset; /* of <sys/rseq.h>: from the thread pointer to the thread's rseq area; compilers know it constant */
#endif

QUIESCE_BEGIN_DECLS

/* The set of the next id is so far away, in bytes: sets of several objects share pages, not CPUs. */
#if defined(QUIESCE_SIM)
#define QUIESCE_PERCPU_SHIFT 7
#else
#define QUIESCE_PERCPU_SHIFT 12
#endif

/* For the library.  It stays while the word "open" comes and goes. */
struct quiesce_percpu {
	char *base; /* the set of id 0; NULL: not yet allocated */
};

/* Add one to the word at @offset, 0 or 8, in the set of this thread's id, unless *@open is 0: false.  One step with looking at
 * *@open.  A plain store, and nothing that the compiler knows passes it.
 * The look is an acquire; or the count a release, and the look orders nothing.  For x86 both are always both. */
#define quiesce_count_acquire(label, open, offset) QUIESCE__COUNT(offset)(open)
#define quiesce_count_release(label, open, offset) QUIESCE__COUNT(offset)(open)
/* The same for the word at 8 * @index, and at 16 + 8 * @index. */
#define quiesce_count_acquire_at(label, open, index) quiesce__count_at((open), (index))
#define quiesce_count_release_at(label, open, index) quiesce__count_at_16((open), (index))
#define QUIESCE__COUNT(offset) QUIESCE__COUNT_OF(offset)
#define QUIESCE__COUNT_OF(offset) quiesce__count_##offset

#if defined(QUIESCE_SIM)

#undef quiesce_count_acquire
#undef quiesce_count_release
#undef quiesce_count_acquire_at
#undef quiesce_count_release_at
bool quiesce__count_sim(const uint64_t *open, size_t offset, bool acquire, bool release, const char *label);
#define quiesce_count_acquire(label, open, offset) \
	quiesce__count_sim(open, offset, !quiesce_weakened(label, ACQUIRE), false, #label)
#define quiesce_count_release(label, open, offset) \
	quiesce__count_sim(open, offset, false, !quiesce_weakened(label, RELEASE), #label)
#define quiesce_count_acquire_at(label, open, index) quiesce_count_acquire(label, open, 8 * (index))
#define quiesce_count_release_at(label, open, index) quiesce_count_release(label, open, 16 + 8 * (index))

#elif defined(QUIESCE_COUNTS_INLINE)

QUIESCE_FAST bool quiesce__count_0(const uint64_t *open)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD(0), );
}

QUIESCE_FAST bool quiesce__count_8(const uint64_t *open)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD(8), );
}

QUIESCE_FAST bool quiesce__count_at(const uint64_t *open, uint64_t index)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD_AT(0), , [index] "r"(index));
}

QUIESCE_FAST bool quiesce__count_at_16(const uint64_t *open, uint64_t index)
{
	QUIESCE_COUNT_RSEQ(QUIESCE_COUNT_WORD_AT(16), , [index] "r"(index));
}

#else

#define quiesce__count_0(open) ((void)(open), false)
#define quiesce__count_8(open) ((void)(open), false)
#define quiesce__count_at(open, index) ((void)(open), (void)(index), false)
#define quiesce__count_at_16(open, index) ((void)(open), (void)(index), false)

#endif

QUIESCE_END_DECLS

#endif
