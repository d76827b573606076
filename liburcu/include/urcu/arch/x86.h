/* SPDX-License-Identifier: MIT */
/* urcu/arch/x86.h - what is better on x86-64 than urcu/arch/generic.h has it. */
#ifndef QUIESCE_URCU_ARCH_X86_H
#define QUIESCE_URCU_ARCH_X86_H

#include <urcu/compiler.h>

#include <stdint.h>

#define CONFIG_RCU_HAVE_FENCE 1

#define CAA_CACHE_LINE_SIZE 128 /* the prefetcher takes lines in pairs */

/* Also for non-temporal stores and devices. */
#define cmm_mb() __asm__ __volatile__("mfence" : : : "memory")
#define cmm_rmb() __asm__ __volatile__("lfence" : : : "memory")
#define cmm_wmb() __asm__ __volatile__("sfence" : : : "memory")

/* Between CPUs only a load passes what is before it, and only stores. */
#define cmm_smp_rmb() cmm_barrier()
#define cmm_smp_wmb() cmm_barrier()

/* A read-modify-write is a locked instruction, a full fence whatever its order.  So that it is one for the compiler too, as
 * cmm_smp_mb__before_uatomic_add() relies on, the order is the strongest, which costs nothing; ThreadSanitizer, which can
 * tell them apart, is told the real one. */
#ifndef CMM_SANITIZE_THREAD
#define quiesce_urcu__rmw_order(mo) (QUIESCE_CAST(int, (mo)) * 0 + __ATOMIC_SEQ_CST)
#endif
#define quiesce_urcu__after_rmw(mo) QUIESCE_CAST(void, 0)
#define quiesce_urcu__after_cmpxchg(succeeded, mos, mof) QUIESCE_CAST(void, succeeded)
#define quiesce_urcu__beside_rmw() cmm_barrier()
/* That of a sequentially consistent store follows it already. */
#define quiesce_urcu__after_store(mo) QUIESCE_CAST(void, 0)

/* The CPU's time stamp, in the lvalue @val. */
#define rdtscll(val) QUIESCE_CAST(void, ((val) = __builtin_ia32_rdtsc()))

typedef uint64_t caa_cycles_t;
#define HAS_CAA_GET_CYCLES

QUIESCE_BEGIN_DECLS
static inline caa_cycles_t caa_get_cycles(void) { return __builtin_ia32_rdtsc(); }
QUIESCE_END_DECLS

#include <urcu/arch/generic.h>

#endif
