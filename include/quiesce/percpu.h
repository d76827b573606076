/* SPDX-License-Identifier: MIT */
/* quiesce/percpu.h - counters of one object, a set for each CPU that the process uses; private, for
 * srcu.h, percpu_rwsem.h and percpu_ref.h.
 *
 * A thread adds one to a word of the set of its id (concurrency id or CPU number) in a restartable
 * sequence: no fence, no locked instruction, no line that another CPU writes.  Words only grow, and
 * only sums over all sets mean anything: a thread may enter on one CPU and leave on another.
 * Two words, entered and left, and never one that goes both ways: of a thread that enters on one CPU and
 * leaves on another, a sum might see the second step and not the first, and be zero with a holder inside.
 *
 * Where there is no restartable sequence, or the process runs with full fences, a
 * locked instruction does it, which is a full fence too.
 */
#ifndef QUIESCE_PERCPU_H
#define QUIESCE_PERCPU_H

#include <quiesce/claim.h> /* compiler and perturbation spellings of restartable sequences */

QUIESCE_BEGIN_DECLS

/* The set of the next id is so far away, in bytes: sets of several objects share pages, not CPUs. */
#if defined(QUIESCE_SIM)
#define QUIESCE_PERCPU_SHIFT 7
#else
#define QUIESCE_PERCPU_SHIFT 12
#endif
#define QUIESCE_PERCPU_WORDS 4 /* of a set, at most */

struct quiesce_percpu {
	char *base;     /* the set of id 0; NULL: not yet allocated */
	int64_t rseq;   /* from the thread pointer to its rseq area; 0: the slow way */
	int64_t id;     /* from the thread pointer to its id */
	uint64_t limit; /* ids that have a set, in bytes */
};

/* Add one to the word at @offset in the set of this thread's id; false: not done, go the slow way.
 * A plain store, and nothing that the compiler knows passes it.  For x86 a store is a release. */
#define quiesce_count_relaxed(percpu, offset) quiesce__count_rseq((percpu), (offset), NULL) /* Relaxed: see above. */
#define quiesce_count_release(label, percpu, offset) quiesce__count_rseq((percpu), (offset), NULL)
/* The same unless *@closed, a uint64_t, is not zero: one step with looking at it, so a heavy fence that
 * restarts sequences divides those who saw it zero, and have counted, from those who will not.  An acquire of *@closed. */
#define quiesce_count_unless(label, percpu, offset, closed) quiesce__count_rseq((percpu), (offset), (closed))
/* The same with a release; the look at *@closed orders nothing. */
#define quiesce_count_release_unless(label, percpu, offset, closed) quiesce__count_rseq((percpu), (offset), (closed))

#if defined(QUIESCE_SIM)

#undef quiesce_count_release
#undef quiesce_count_unless
bool quiesce__count_sim(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed, bool acquire, bool release,
			const char *label);
#define quiesce__count_rseq(percpu, offset, closed) quiesce__count_sim(percpu, offset, closed, false, false, "")
#define quiesce_count_release(label, percpu, offset) \
	quiesce__count_sim(percpu, offset, NULL, false, !quiesce_weakened(label, RELEASE), #label)
#define quiesce_count_unless(label, percpu, offset, closed) \
	quiesce__count_sim(percpu, offset, closed, !quiesce_weakened(label, ACQUIRE), false, #label)
#undef quiesce_count_release_unless
#define quiesce_count_release_unless(label, percpu, offset, closed) \
	quiesce__count_sim(percpu, offset, closed, false, !quiesce_weakened(label, RELEASE), #label)

#elif defined(__x86_64__) && !QUIESCE_TSAN

#if defined(QUIESCE_PERTURB)
/* In two steps with a stay between them, so that the mutant without protection loses counts.  Neither
 * leaq nor decl touches the carry. */
#define QUIESCE_COUNT                              \
	"leaq (%[words], %[at]), %[at]\n"          \
	"movq (%[at]), %%rdx\n" QUIESCE_RSEQ_STAY  \
	"leaq 1(%%rdx), %%rdx\n"                   \
	"movq %%rdx, (%[at])\n"
#define QUIESCE_COUNT_CLOBBERS , "rdx"
#else
#define QUIESCE_COUNT                      \
	"leaq (%[words], %[at]), %[at]\n"  \
	"incq (%[at])\n"
#define QUIESCE_COUNT_CLOBBERS
#endif

/* From 1 to 2 the kernel sends the thread to 4 if it is preempted, moved or interrupted by a signal.
 * The carry of the comparison with the limit says whether the increment was done, which leaves it alone. */
#define QUIESCE_COUNT_RSEQ(look, ...)                                                          \
	__asm__ __volatile__(".pushsection __rseq_cs, \"aw?\"\n"                               \
			     ".balign 32\n"                                                    \
			     "3: .long 0, 0\n"                                                 \
			     ".quad 1f, 2f - 1f, 4f\n"                                         \
			     ".popsection\n"                                                   \
			     "0: leaq 3b(%%rip), %[at]\n"                                      \
			     "movq %[at], %%fs:8(%[area])\n"                                   \
			     "1:\n" QUIESCE_RSEQ_GUARD look                                    \
			     "movl %%fs:(%[id]), %k[at]\n"                                     \
			     "shlq %[shift], %[at]\n"                                          \
			     "cmpq %[limit], %[at]\n"                                          \
			     "jae 2f\n" QUIESCE_COUNT                                          \
			     "2:\n"                                                            \
			     ".pushsection __rseq_failure, \"ax?\"\n"                          \
			     ".byte 0x0f, 0xb9, 0x3d\n" /* the signature is an operand of ud1 */ \
			     ".long 0x53053053\n"                                              \
			     "4: jmp 0b\n"                                                     \
			     ".popsection\n"                                                   \
			     : [at] "=&r"(at), "=@ccc"(done)                                   \
			     : [area] "r"(rseq), [id] "r"(percpu->id), [limit] "m"(percpu->limit), \
			       [words] "r"(percpu->base + offset), [shift] "i"(QUIESCE_PERCPU_SHIFT) __VA_ARGS__ \
			       QUIESCE_RSEQ_INPUTS                                             \
			     : "memory" QUIESCE_RSEQ_CLOBBERS QUIESCE_COUNT_CLOBBERS)

QUIESCE_FAST bool quiesce__count_rseq(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	uintptr_t at;
	bool done;

	int64_t rseq = quiesce_load_acquire(PC1, &percpu->rseq);

	if (quiesce_unlikely(!rseq))
		return false;
	/* A comparison of something with zero never carries. */
	if (closed)
		QUIESCE_COUNT_RSEQ("cmpq $0, %[closed]\njne 2f\n", , [closed] "m"(*closed));
	else
		QUIESCE_COUNT_RSEQ("", );
	return done;
}

#else

QUIESCE_FAST bool quiesce__count_rseq(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	(void)percpu, (void)offset, (void)closed;
	return false;
}

#endif

QUIESCE_END_DECLS

#endif
