/* SPDX-License-Identifier: MIT */
/* urcu/arch.h - barriers, clock and cache line of the CPU, and its name: URCU_ARCH_*.
 *
 * A CPU without a file in urcu/arch/ gets the definitions of urcu/arch/generic.h, which use the compiler's builtins,
 * whether it is named here or not.
 */
#ifndef QUIESCE_URCU_ARCH_H
#define QUIESCE_URCU_ARCH_H

#if defined(__x86_64__)
#define URCU_ARCH_X86 1
#define URCU_ARCH_AMD64 1
#include <urcu/arch/x86.h>
#elif defined(__aarch64__)
#define URCU_ARCH_AARCH64 1
#elif defined(__powerpc64__)
#define URCU_ARCH_PPC 1
#define URCU_ARCH_PPC64 1
#elif defined(__s390x__)
#define URCU_ARCH_S390 1
#elif defined(__sparc__)
#define URCU_ARCH_SPARC64 1
#elif defined(__mips__)
#define URCU_ARCH_MIPS 1
#elif defined(__riscv)
#define URCU_ARCH_RISCV 1
#elif defined(__loongarch__)
#define URCU_ARCH_LOONGARCH 1
#endif
#include <urcu/arch/generic.h>

/* The full barriers that the documentation of container operations promised before they took memory orders. */
#ifdef CONFIG_RCU_EMIT_LEGACY_MB
#define cmm_emit_legacy_smp_mb() cmm_smp_mb()
#else
#define cmm_emit_legacy_smp_mb() QUIESCE_CAST(void, 0)
#endif

#endif
