/* SPDX-License-Identifier: MIT */
/* perturb.h - the torture back end of quiesce/atomic.h (QUIESCE_PERTURB).
 *
 * The operations are the native ones; before each of them the thread may be delayed for a random time, so
 * that rare interleavings become common, and each labelled operation may be weakened at run time
 * (src/platform/mutants.h).  With quiesce_perturb_rate 0 the cost is one load and one branch.
 */
#ifndef QUIESCE_PERTURB_H
#define QUIESCE_PERTURB_H

#include "platform/mutants.h"

/* Number of operations in 65536 that are delayed, on average.  May be set at any time: it orders nothing. */
extern unsigned int quiesce_perturb_rate;

void quiesce__perturb_now(void);

static inline void quiesce__perturb(void)
{
	if (__builtin_expect(__atomic_load_n(&quiesce_perturb_rate, __ATOMIC_RELAXED) != 0, 0))
		quiesce__perturb_now();
}

/* Number of iterations to stay inside a restartable sequence; at least one. */
int quiesce__perturb_stay(void);

#define QUIESCE_PERTURBED(operation) ({ quiesce__perturb(); operation; })
/* The order must be a compile-time constant, so both forms are present. */
#define QUIESCE_PERTURBED_EITHER(label, kind, weak, strong) \
	({ quiesce__perturb(); quiesce_weakened(label, kind) ? (weak) : (strong); })

#define quiesce_load_relaxed(p) QUIESCE_PERTURBED(__atomic_load_n((p), __ATOMIC_RELAXED))
#define quiesce_load_consume(label, p) quiesce_load_acquire(label, p)
#define quiesce_load_acquire(label, p)                                                        \
	QUIESCE_PERTURBED_EITHER(label, ACQUIRE, __atomic_load_n((p), __ATOMIC_RELAXED),      \
				 __atomic_load_n((p), __ATOMIC_ACQUIRE))
#define quiesce_store_relaxed(p, v) QUIESCE_PERTURBED(__atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define quiesce_store_release(label, p, v)                                                    \
	({                                                                                    \
		quiesce__perturb();                                                           \
		if (quiesce_weakened(label, RELEASE))                                         \
			__atomic_store_n((p), (v), __ATOMIC_RELAXED);                         \
		else                                                                          \
			__atomic_store_n((p), (v), __ATOMIC_RELEASE);                         \
	})
#define quiesce_xchg(label, p, v)                                                             \
	QUIESCE_PERTURBED_EITHER(label, RMW, __atomic_exchange_n((p), (v), __ATOMIC_RELAXED), \
				 quiesce__fenced(__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)))
#define quiesce_fetch_add(label, p, v)                                                        \
	QUIESCE_PERTURBED_EITHER(label, RMW, __atomic_fetch_add((p), (v), __ATOMIC_RELAXED),  \
				 quiesce__fenced(__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)))
#define quiesce_fetch_add_relaxed(p, v) QUIESCE_PERTURBED(__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define quiesce_cmpxchg(label, p, expected, n)                                                \
	QUIESCE_PERTURBED_EITHER(                                                             \
		label, RMW,                                                                   \
		__atomic_compare_exchange_n((p), (expected), (n), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED), \
		quiesce__fenced(__atomic_compare_exchange_n((p), (expected), (n), 0, __ATOMIC_SEQ_CST,    \
							    __ATOMIC_RELAXED)))
#define quiesce_cmpxchg_relaxed(p, expected, n) \
	QUIESCE_PERTURBED(__atomic_compare_exchange_n((p), (expected), (n), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))

/* Labelled read-modify-write operations are full fences.  A locked instruction is one;
 * elsewhere a sequentially consistent operation alone need not be. */
#if defined(__x86_64__)
#define quiesce__fenced(operation) (operation)
#define QUIESCE_PERTURB_FENCE() __asm__ __volatile__("lock; orl $0, -4(%%rsp)" ::: "memory", "cc")
#else
#define quiesce__fenced(operation)                           \
	({                                                   \
		__typeof__(operation) result_ = (operation); \
		__atomic_thread_fence(__ATOMIC_SEQ_CST);     \
		result_;                                     \
	})
#define QUIESCE_PERTURB_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* A compiler fence that is weakened at run time would still be one for the compiler; the simulator tests that
 * mutant. */
#define quiesce_fence_light(label)                    \
	do {                                          \
		__asm__ __volatile__("" ::: "memory"); \
		quiesce__perturb();                   \
	} while (0)
#define quiesce_fence_full(label)                     \
	do {                                          \
		quiesce__perturb();                   \
		if (!quiesce_weakened(label, FULL))   \
			QUIESCE_PERTURB_FENCE();      \
	} while (0)

/* Restartable sequences of quiesce/arch/: a random stay inside, and the mutant that leaves them without
 * protection.  On x86-64 a stay ends at zero, so that the flags say again that the slot was empty. */
#define QUIESCE_RSEQ_INPUTS , [stay] "r"(quiesce__perturb_stay()), [bare] "r"(QUIESCE_MUTANT(claim_unprotected))
#if defined(__aarch64__)
#define QUIESCE_RSEQ_STAY "mov w14, %w[stay]\n6: subs w14, w14, #1\nb.gt 6b\n"
#define QUIESCE_RSEQ_GUARD "cbz %w[bare], 7f\nstr xzr, [%[area], #8]\n7:\n"
#define QUIESCE_RSEQ_CLOBBERS , "x14", "cc"
#else
#define QUIESCE_RSEQ_STAY "movl %k[stay], %%ecx\n6: decl %%ecx\njg 6b\n"
#define QUIESCE_RSEQ_GUARD "testl %k[bare], %k[bare]\nje 7f\nmovq $0, %%fs:8(%[area])\n7:\n"
#define QUIESCE_RSEQ_CLOBBERS , "rcx"
/* Counts in two steps with a stay between them, so that the mutant without protection loses counts. */
#define QUIESCE_COUNT(word)                                 \
	"leaq " word ", %%rax\n"                            \
	"movq (%%rax), %%rdx\n" QUIESCE_RSEQ_STAY           \
	"leaq 1(%%rdx), %%rdx\n"                            \
	"movq %%rdx, (%%rax)\n"
#define QUIESCE_COUNT_CLOBBERS , "rdx"
#endif

#endif
