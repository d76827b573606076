/* SPDX-License-Identifier: MIT */
/* quiesce/arch/x86_64.h - the definitions of arch.h for x86-64. */
#ifndef QUIESCE_ARCH_X86_64_H
#define QUIESCE_ARCH_X86_64_H

#if !defined(__clang__)
#define QUIESCE_NOPLT __attribute__((__noplt__))
#endif

#if defined(__AVX512F__)
#define QUIESCE_ARCH_TAG "_avx512"
#elif defined(__AVX2__)
#define QUIESCE_ARCH_TAG "_avx2"
#elif defined(__BMI__)
#define QUIESCE_ARCH_TAG "_bmi"
#elif defined(__AVX__)
#define QUIESCE_ARCH_TAG "_avx"
#elif defined(__SSE4_1__) || defined(__POPCNT__)
#define QUIESCE_ARCH_TAG "_sse4"
#endif

/* A locked instruction is a full fence. */
#define quiesce__after_rmw(result) (result)
/* A locked instruction on the thread's stack costs a quarter of mfence. */
#define quiesce__arch_fence_full() __asm__ __volatile__("lock; or{l $0, -4(%%rsp)| DWORD PTR [rsp-4], 0}" ::: "memory", "cc")
#define quiesce__arch_cpu_relax() __builtin_ia32_pause()

/* The thread control block begins with its own address.  Volatile here and below: neither kept
 * across a call nor moved across one. */
#define quiesce__thread_at(offset)                                                                      \
	__extension__({                                                                                 \
		char *quiesce__tp;                                                                      \
		__asm__ __volatile__("mov{q\t%%fs:0, %0|\t%0, QWORD PTR fs:0}" : "=r"(quiesce__tp));    \
		quiesce__tp + (offset);                                                                 \
	})

/* Memory operands may be relative to fs at no cost; adding the thread pointer costs an instruction
 * and a load.  Compilers use such operands for thread-local variables.  clang moves their addresses
 * out of loops all the same.  gcc does so where a sanitizer checks each address, and with
 * -mno-tls-direct-seg-refs, for which it has no macro; otherwise its own operands are better,
 * because calls in one function share the offset (tests/build/fibers.py). */
#if defined(__clang__) || defined(QUIESCE_FIBERS) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define quiesce__tls_offset(variable)                                                                           \
	__extension__({                                                                                         \
		int64_t quiesce__offset;                                                                        \
		__asm__("mov{q\t" #variable "@gottpoff(%%rip), %0|\t%0, QWORD PTR " #variable "@gottpoff[rip]}" \
			: "=r"(quiesce__offset));                                                               \
		quiesce__offset;                                                                                \
	})

#define QUIESCE_HAVE_SEGMENT 1
#define quiesce__segment_load(offset, type, field)                                      \
	__extension__({                                                                 \
		__typeof__(QUIESCE_NULL(type)->field) quiesce__value;                   \
		__asm__ __volatile__("mov{\t%%fs:%c2(%1), %0|\t%0, fs:[%1+%c2]}"        \
				     : "=r"(quiesce__value)                             \
				     : "r"(offset), "i"(offsetof(type, field)));        \
		quiesce__value;                                                         \
	})
/* Loads a field of 4 bytes, which the same instruction extends to 8. */
#define quiesce__segment_load_u32(offset, type, field)                                  \
	__extension__({                                                                 \
		uint64_t quiesce__value;                                                \
		__asm__ __volatile__("mov{l\t%%fs:%c2(%1), %k0|\t%k0, fs:[%1+%c2]}"     \
				     : "=r"(quiesce__value)                             \
				     : "r"(offset), "i"(offsetof(type, field)));        \
		quiesce__value;                                                         \
	})
/* A field of 8 bytes.  A release, as every store is on x86: the compiler moves no earlier access
 * behind it. */
#define quiesce__segment_store(offset, type, field, value)                                              \
	__extension__({                                                                                 \
		__typeof__(QUIESCE_NULL(type)->field) quiesce__stored = (value);                        \
		(void)sizeof(char[sizeof(quiesce__stored) == 8 ? 1 : -1]);                              \
		__asm__ __volatile__("mov{q\t%1, %%fs:%c2(%0)|\tQWORD PTR fs:[%0+%c2], %1}"             \
				     :                                                                  \
				     : "r"(offset), "er"(quiesce__stored), "i"(offsetof(type, field))   \
				     : "memory");                                                       \
	})
#endif

#define QUIESCE_HAVE_RSEQ 1
#if defined(__GLIBC_PREREQ)
#define QUIESCE_RSEQ_OFFSET __GLIBC_PREREQ(2, 35)
#endif

#endif
