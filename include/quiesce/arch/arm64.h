/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arm64.h - the definitions of arch.h for arm64. */
#ifndef QUIESCE_ARCH_ARM64_H
#define QUIESCE_ARCH_ARM64_H

/* "yield" does nothing on most of these CPUs. */
#define quiesce__arch_cpu_relax() __asm__ __volatile__("isb" ::: "memory")

/* The asm is volatile, so its result is neither kept across a call nor moved across one. */
#define quiesce__thread_at(offset)                                              \
	__extension__({                                                         \
		char *quiesce__tp;                                              \
		__asm__ __volatile__("mrs\t%0, tpidr_el0" : "=r"(quiesce__tp)); \
		quiesce__tp + (offset);                                         \
	})
#define quiesce__tls_offset(variable)                                   \
	__extension__({                                                 \
		int64_t quiesce__offset;                                \
		__asm__("adrp\t%0, :gottprel:" #variable "\n\t"         \
			"ldr\t%0, [%0, :gottprel_lo12:" #variable "]"   \
			: "=r"(quiesce__offset));                       \
		quiesce__offset;                                        \
	})

#define QUIESCE_HAVE_RSEQ 1
#if defined(__GLIBC_PREREQ)
#define QUIESCE_RSEQ_OFFSET __GLIBC_PREREQ(2, 35)
#endif

#endif
