/* SPDX-License-Identifier: MIT */
/* quiesce/arch/arm64.h - see arch.h. */
#ifndef QUIESCE_ARCH_ARM64_H
#define QUIESCE_ARCH_ARM64_H

/* "yield" does nothing on most of these CPUs. */
#define quiesce__arch_cpu_relax() __asm__ __volatile__("isb" ::: "memory")

#endif
