/* SPDX-License-Identifier: MIT */
/* quiesce/arch/generic.h - the definitions of arch.h that the CPU's own file leaves out. */
#ifndef QUIESCE_ARCH_GENERIC_H
#define QUIESCE_ARCH_GENERIC_H

#ifndef QUIESCE_NOPLT
#define QUIESCE_NOPLT
#endif

#ifndef QUIESCE_ARCH_TAG
#define QUIESCE_ARCH_TAG ""
#endif

#ifndef quiesce__after_rmw
#define quiesce__after_rmw(result)                                 \
	__extension__({                                            \
		__typeof__(result) quiesce__result = (result);      \
		__atomic_thread_fence(__ATOMIC_SEQ_CST);           \
		quiesce__result;                                    \
	})
#endif

#ifndef quiesce__arch_fence_full
#define quiesce__arch_fence_full() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#ifndef quiesce__arch_cpu_relax
#define quiesce__arch_cpu_relax() __asm__ __volatile__("" ::: "memory")
#endif

/* Compilers may keep this address across calls. */
#ifndef quiesce__thread_at
#define quiesce__thread_at(offset) ((char *)__builtin_thread_pointer() + (offset))
#endif

#ifndef QUIESCE_HAVE_SEGMENT
#define QUIESCE_HAVE_SEGMENT 0
#endif

#ifndef QUIESCE_HAVE_SAVING_CALL
#define QUIESCE_HAVE_SAVING_CALL 0
#endif

#ifndef QUIESCE_HAVE_RSEQ
#if defined(QUIESCE_SIM) /* the simulator has sequences of its own on every CPU */
#define QUIESCE_HAVE_RSEQ 1
#else
#define QUIESCE_HAVE_RSEQ 0
#endif
#endif

#ifndef QUIESCE_RSEQ_OFFSET
#define QUIESCE_RSEQ_OFFSET 0
#endif

#ifndef QUIESCE_TLS_DYNAMIC
#if defined(__GLIBC__)
#define QUIESCE_TLS_DYNAMIC 0
#else
#define QUIESCE_TLS_DYNAMIC 1
#endif
#endif

#endif
