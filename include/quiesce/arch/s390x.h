/* SPDX-License-Identifier: MIT */
/* quiesce/arch/s390x.h - the definitions of arch.h for s390x. */
#ifndef QUIESCE_ARCH_S390X_H
#define QUIESCE_ARCH_S390X_H

/* The thread pointer is in two access registers, half in each.  Volatile: neither kept across a
 * call nor moved across one. */
#define quiesce__thread_at(offset)                              \
	__extension__({                                         \
		char *quiesce__tp;                              \
		__asm__ __volatile__("ear\t%0, %%a0\n\t"        \
				     "sllg\t%0, %0, 32\n\t"     \
				     "ear\t%0, %%a1"            \
				     : "=r"(quiesce__tp));      \
		quiesce__tp + (offset);                         \
	})
#define quiesce__tls_offset(variable)                           \
	__extension__({                                         \
		int64_t quiesce__offset;                        \
		__asm__("larl\t%0, " #variable "@indntpoff\n\t" \
			"lg\t%0, 0(%0)"                         \
			: "=a"(quiesce__offset));               \
		quiesce__offset;                                \
	})

#endif
