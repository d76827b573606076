/* SPDX-License-Identifier: MIT */
/* quiesce/arch/riscv64.h - the definitions of arch.h for riscv64. */
#ifndef QUIESCE_ARCH_RISCV64_H
#define QUIESCE_ARCH_RISCV64_H

/* The asm is volatile, so its result is neither kept across a call nor moved across one. */
#define quiesce__thread_at(offset)                                                              \
	__extension__({                                                                         \
		char *quiesce__place;                                                           \
		__asm__ __volatile__("add\t%0, %1, tp" : "=r"(quiesce__place) : "r"(offset));   \
		quiesce__place;                                                                 \
	})
#define quiesce__tls_offset(variable)                                           \
	__extension__({                                                         \
		int64_t quiesce__offset;                                        \
		__asm__("la.tls.ie\t%0, " #variable : "=r"(quiesce__offset));   \
		quiesce__offset;                                                \
	})

#endif
