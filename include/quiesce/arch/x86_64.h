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

/* The block begins with its own address.  Volatile here and below: not kept over a call, nor moved over one. */
#define quiesce__thread_at(offset)                                                                      \
	__extension__({                                                                                 \
		char *quiesce__tp;                                                                      \
		__asm__ __volatile__("mov{q\t%%fs:0, %0|\t%0, QWORD PTR fs:0}" : "=r"(quiesce__tp));    \
		quiesce__tp + (offset);                                                                 \
	})

/* Operands in memory may be relative to fs, which costs nothing; to add the thread pointer costs an instruction and a load.
 * Compilers make such operands of thread-local variables.  clang takes their addresses out of loops all the same.  gcc does so where
 * a sanitizer checks each address, or with -mno-tls-direct-seg-refs, for which it has no macro: else its own operands are as good,
 * and better, as calls in one function share the offset (tests/build/fibers.py). */
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
/* Of 4 bytes, as a number of 8, which is the same instruction. */
#define quiesce__segment_load_u32(offset, type, field)                                  \
	__extension__({                                                                 \
		uint64_t quiesce__value;                                                \
		__asm__ __volatile__("mov{l\t%%fs:%c2(%1), %k0|\t%k0, fs:[%1+%c2]}"     \
				     : "=r"(quiesce__value)                             \
				     : "r"(offset), "i"(offsetof(type, field)));        \
		quiesce__value;                                                         \
	})
/* Of 8 bytes.  A release, as all stores are here: the compiler moves nothing that comes before it to after it. */
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
