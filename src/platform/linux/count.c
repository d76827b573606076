/* SPDX-License-Identifier: MIT */
/* count.c - count in a restartable sequence, by a call. */
#include "platform/count.h"

struct quiesce__sequences quiesce__sequences;

#if QUIESCE_HAVE_RSEQ && !QUIESCE_TSAN && defined(__x86_64__)

#if defined(QUIESCE_PERTURB)
/* Counts in two steps, as in quiesce/detail/percpu.h.  Neither leaq nor decl changes the carry flag. */
#define COUNT                                         \
	"movq (%[at]), %%rdx\n" QUIESCE_RSEQ_STAY     \
	"leaq 1(%%rdx), %%rdx\n"                      \
	"movq %%rdx, (%[at])\n"
#define CLOBBERS , "rdx"
#else
#define COUNT "incq (%[at])\n"
#define CLOBBERS
#endif

/* The carry flag of the comparison with the limit is the result, which the increment does not change; a
 * comparison with zero never carries. */
bool quiesce__count_call(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	static const uint64_t open;
	uintptr_t at;
	bool done;

	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);

	if (quiesce_unlikely(!base))
		return false;
	if (!closed)
		closed = &open;
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]", "%[at]")
			     "1:\n" QUIESCE_RSEQ_GUARD
			     "cmpq $0, (%[closed])\n"
			     "jne 2f\n"
			     "5: movl %%fs:(%[id]), %k[at]\n" QUIESCE_RSEQ_UNCHANGED
			     "shlq %[shift], %[at]\n"
			     "cmpq %[limit], %[at]\n"
			     "jae 2f\n"
			     "leaq (%[words], %[at]), %[at]\n" COUNT
			     "2:\n"
			     : [at] "=&r"(at), "=@ccc"(done)
			     : [area] "r"(quiesce__sequences.area), [id] "r"(quiesce__sequences.id), [limit] "m"(quiesce__sequences.limit),
			       [closed] "r"(closed), [words] "r"(base + offset), [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS
			     : "memory" QUIESCE_RSEQ_CLOBBERS CLOBBERS);
	return done;
}

#elif QUIESCE_HAVE_RSEQ && !QUIESCE_TSAN && defined(__aarch64__)

/* Each check of *@closed is an acquire, and each count a release. */
bool quiesce__count_call(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	static const uint64_t open;
	char *thread = quiesce__thread_at(0);
	uint64_t at, count, done;

	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);

	if (quiesce_unlikely(!base))
		return false;
	if (!closed)
		closed = &open;
	__asm__ __volatile__(QUIESCE_RSEQ_ENTER("%[at]")
			     "1:\n" QUIESCE_RSEQ_GUARD
			     "mov %[done], #0\n"
			     QUIESCE_LOAD_ACQUIRE "%[at], [%[closed]]\n"
			     "cbnz %[at], 2f\n"
			     "ldr %w[at], [%[thread], %[id]]\n"
			     "lsl %[at], %[at], %[shift]\n"
			     "cmp %[at], %[limit]\n"
			     "b.hs 2f\n"
			     "add %[at], %[words], %[at]\n"
			     "ldr %[count], [%[at]]\n" QUIESCE_RSEQ_STAY
			     "add %[count], %[count], #1\n"
			     "mov %[done], #1\n"
			     "stlr %[count], [%[at]]\n"
			     "2:\n"
			     : [at] "=&r"(at), [count] "=&r"(count), [done] "=&r"(done)
			     : [area] "r"(thread + quiesce__sequences.area), [thread] "r"(thread), [id] "r"(quiesce__sequences.id),
			       [limit] "r"(quiesce__sequences.limit), [closed] "r"(closed), [words] "r"(base + offset),
			       [shift] "i"(QUIESCE_PERCPU_SHIFT) QUIESCE_RSEQ_INPUTS
			     : "memory", "cc" QUIESCE_RSEQ_CLOBBERS);
	return done;
}

#else

bool quiesce__count_call(const struct quiesce_percpu *percpu, size_t offset, const uint64_t *closed)
{
	(void)percpu, (void)offset, (void)closed;
	return false;
}

#endif
