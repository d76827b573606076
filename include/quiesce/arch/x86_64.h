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

/* quiesce__saving_call(thunk, a, b) calls a function of two pointer-sized arguments without a result,
 * which changes no general register but r11: so the caller need not be able to call.  It keeps its
 * variables in registers that calls may change, saves none, and needs no stack frame.
 *
 * Nothing is pushed, because the caller may use the red zone, and because unwinders know only the
 * stack pointer that the compiler left.  r11 has the address at which the caller goes on.  The
 * arguments are in whichever registers the compiler has them in; the instruction before that address,
 * which is never executed, names these two to @thunk (src/platform/saving.h), which saves all.  A
 * cmpxchg of two registers, as this has a single encoding.  Other registers are as after a call.
 * {A|B} is A, or B with -masm=intel. */
#if defined(__OPTIMIZE__) && defined(__LP64__) && defined(__SSE__) && !defined(_SOFT_FLOAT)
#define QUIESCE_HAVE_SAVING_CALL 1
#if defined(__AVX512F__)
#define QUIESCE__CALL_CLOBBERS_AVX512                                                                           \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",    \
		"xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define QUIESCE__CALL_CLOBBERS_AVX512
#endif
#if defined(__APX_F__)
#define QUIESCE__CALL_CLOBBERS_APX                                                                             \
	, "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define QUIESCE__CALL_CLOBBERS_APX
#endif
#define quiesce__saving_call(thunk, a, b)                                                                       \
	__asm__ __volatile__(                                                                                   \
		"lea{q 2f(%%rip), %%r11| r11, [rip+2f]}\n"                                                      \
		"jmp{\t*" #thunk "@GOTPCREL(%%rip)|\tQWORD PTR " #thunk "@GOTPCREL[rip]}\n"                     \
		"cmpxchg{q %[second], %[first]| %[first], %[second]}\n"                                         \
		"2:\n"                                                                                          \
		:                                                                                               \
		: [first] "r"((uint64_t)(a)), [second] "r"((uint64_t)(b))                                       \
		: "memory", "cc", "r11", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",   \
		  "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "xmm0", "xmm1", "xmm2", "xmm3",       \
		  "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",  \
		  "xmm15" QUIESCE__CALL_CLOBBERS_AVX512 QUIESCE__CALL_CLOBBERS_APX)
#endif

#define QUIESCE_HAVE_RSEQ 1
#if defined(__GLIBC_PREREQ)
#define QUIESCE_RSEQ_OFFSET __GLIBC_PREREQ(2, 35)
#endif

#endif
