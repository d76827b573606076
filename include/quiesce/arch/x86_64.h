/* SPDX-License-Identifier: MIT */
/* quiesce/arch/x86_64.h - see arch.h. */
#ifndef QUIESCE_ARCH_X86_64_H
#define QUIESCE_ARCH_X86_64_H

#if !defined(__clang__)
#define QUIESCE_NOPLT __attribute__((noplt))
#endif

/* A locked instruction is a full fence. */
#define quiesce__after_rmw(result) (result)
/* A locked instruction on the own stack is a quarter of the price of mfence. */
#define quiesce__arch_fence_full() __asm__ __volatile__("lock; orl $0, -4(%%rsp)" ::: "memory", "cc")
#define quiesce__arch_cpu_relax() __builtin_ia32_pause()
#define quiesce__thread_pointer()                                  \
	__extension__({                                            \
		char *quiesce__tp;                                 \
		__asm__("movq %%fs:0, %0" : "=r"(quiesce__tp));    \
		quiesce__tp;                                       \
	})

#define QUIESCE_HAVE_RSEQ 1
#if defined(__GLIBC_PREREQ)
#define QUIESCE_RSEQ_OFFSET __GLIBC_PREREQ(2, 35)
#endif

#endif
