/* SPDX-License-Identifier: MIT */
/* urcu/arch/generic.h - definitions for all that the CPU's own file has not defined. */
#ifndef QUIESCE_URCU_ARCH_GENERIC_H
#define QUIESCE_URCU_ARCH_GENERIC_H

#include <quiesce/atomic.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/syscall-compat.h>

#include <stdint.h>
#include <time.h>

#ifndef CAA_CACHE_LINE_SIZE
#if defined(URCU_ARCH_PPC) || defined(URCU_ARCH_SPARC64)
#define CAA_CACHE_LINE_SIZE 256
#elif defined(URCU_ARCH_S390)
#define CAA_CACHE_LINE_SIZE 128
#else
#define CAA_CACHE_LINE_SIZE 64
#endif
#endif

/* ---- barriers ---- */

/* Barriers that also order accesses to devices. */
#ifndef cmm_mb
#define cmm_mb() __sync_synchronize()
#endif
#ifndef cmm_rmb
#define cmm_rmb() cmm_mb()
#endif
#ifndef cmm_wmb
#define cmm_wmb() cmm_mb()
#endif

/* Barriers between CPUs: full; loads with loads; stores with stores.  The compiler's fences order atomic accesses
 * only, these all accesses. */
#ifndef cmm_smp_mb
#define cmm_smp_mb() quiesce__arch_fence_full()
#endif
#ifndef cmm_smp_rmb
#define cmm_smp_rmb() quiesce_urcu__fence(__ATOMIC_ACQUIRE)
#endif
#ifndef cmm_smp_wmb
#define cmm_smp_wmb() quiesce_urcu__fence(__ATOMIC_RELEASE)
#endif
#define quiesce_urcu__fence(order)                                                                                     \
	__extension__({                                                                                                \
		cmm_barrier();                                                                                         \
		__atomic_thread_fence(order);                                                                          \
		cmm_barrier();                                                                                         \
	})

/* No CPU here reorders two loads of which the first gives the address of the second. */
#define cmm_read_barrier_depends() QUIESCE_CAST(void, 0)
#define cmm_smp_read_barrier_depends() QUIESCE_CAST(void, 0)

/* Caches are coherent: nothing has to be written back or dropped. */
#define CONFIG_HAVE_MEM_COHERENCY
#define cmm_mc() cmm_barrier()
#define cmm_rmc() cmm_barrier()
#define cmm_wmc() cmm_barrier()
#define cmm_smp_mc() cmm_barrier()
#define cmm_smp_rmc() cmm_barrier()
#define cmm_smp_wmc() cmm_barrier()

/* A pause in a waiting loop; the loop loads its condition again. */
#define caa_cpu_relax()                                                                                                \
	__extension__({                                                                                                \
		quiesce__arch_cpu_relax();                                                                             \
		cmm_barrier();                                                                                         \
	})

/* ---- for urcu/uatomic.h ---- */

/* Orders for the compiler's read-modify-writes, the fence that has to follow them, and the fences around one that
 * make it a full barrier. */
#ifndef quiesce_urcu__rmw_order
#define quiesce_urcu__rmw_order(mo) quiesce_urcu__order(mo)
#endif
#ifndef quiesce_urcu__after_rmw
#define quiesce_urcu__after_rmw(mo) quiesce_urcu__after(mo)
#endif
#ifndef quiesce_urcu__after_cmpxchg
#define quiesce_urcu__after_cmpxchg(succeeded, mos, mof)                                                               \
	((succeeded) ? quiesce_urcu__after(mos) : quiesce_urcu__after(mof))
#endif
#ifndef quiesce_urcu__beside_rmw
#define quiesce_urcu__beside_rmw() cmm_smp_mb()
#endif
#ifndef quiesce_urcu__after_store
#define quiesce_urcu__after_store(mo) quiesce_urcu__after(mo)
#endif

/* ---- clock ---- */

/* A clock of constant rate in the CPU's own unit; all bits are set if there is none. */
#ifndef HAS_CAA_GET_CYCLES
#define HAS_CAA_GET_CYCLES
typedef uint64_t caa_cycles_t;

QUIESCE_BEGIN_DECLS
static inline caa_cycles_t caa_get_cycles(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return UINT64_MAX;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
QUIESCE_END_DECLS
#endif

#endif
