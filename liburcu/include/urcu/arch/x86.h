/* SPDX-License-Identifier: MIT */
/* urcu/arch/x86.h - definitions that are better on x86-64 than those of urcu/arch/generic.h. */
#ifndef QUIESCE_URCU_ARCH_X86_H
#define QUIESCE_URCU_ARCH_X86_H

#include <urcu/compiler.h>

#include <stdint.h>

#define CONFIG_RCU_HAVE_FENCE 1

#define CAA_CACHE_LINE_SIZE 128 /* the prefetcher loads lines in pairs */

/* Also orders non-temporal stores and accesses to devices. */
#define cmm_mb() __asm__ __volatile__("mfence" : : : "memory")
#define cmm_rmb() __asm__ __volatile__("lfence" : : : "memory")
#define cmm_wmb() __asm__ __volatile__("sfence" : : : "memory")

/* Between CPUs the only reordering is that of a load with earlier stores. */
#define cmm_smp_rmb() cmm_barrier()
#define cmm_smp_wmb() cmm_barrier()

/* A read-modify-write is a locked instruction, a full fence whatever its order.  The strongest order, which costs
 * nothing, makes it one for the compiler, too, as cmm_smp_mb__before_uatomic_add() requires.  ThreadSanitizer, which
 * distinguishes orders, gets the real one. */
#ifndef CMM_SANITIZE_THREAD
#define quiesce_urcu__rmw_order(mo) (QUIESCE_CAST(int, (mo)) * 0 + __ATOMIC_SEQ_CST)
#endif
#define quiesce_urcu__after_rmw(mo) QUIESCE_CAST(void, 0)
#define quiesce_urcu__after_cmpxchg(succeeded, mos, mof) QUIESCE_CAST(void, succeeded)
#define quiesce_urcu__beside_rmw() cmm_barrier()
/* A sequentially consistent store contains the fence already. */
#define quiesce_urcu__after_store(mo) QUIESCE_CAST(void, 0)

/* Stores the CPU's time stamp to the lvalue @val. */
#define rdtscll(val) QUIESCE_CAST(void, ((val) = __builtin_ia32_rdtsc()))

typedef uint64_t caa_cycles_t;
#define HAS_CAA_GET_CYCLES

QUIESCE_BEGIN_DECLS
static inline caa_cycles_t caa_get_cycles(void) { return __builtin_ia32_rdtsc(); }
QUIESCE_END_DECLS

#include <urcu/arch/generic.h>

#endif
