/* SPDX-License-Identifier: MIT */
/* quiesce/atomic.h - the one layer through which every shared access goes.
 *
 * The order is in the name of the operation.  Every operation stronger than relaxed takes a LABEL
 * first: the row of the barrier ledger (docs/ordering.md), the name of the litmus file, and the
 * switch that turns this operation into a weaker one, so that a test can show that the order is
 * needed.  In a normal build the preprocessor drops the label.
 *
 * Back ends, chosen when the library is built:
 *   native               the compiler's builtins
 *   QUIESCE_PERTURB      the builtins, with random delays before them and a weakening switch
 *   QUIESCE_SIM          every access is a scheduling point of the machine in tests/sim
 * ThreadSanitizer ignores fences; it needs no back end of its own because every scan of the library
 * loads with acquire, and every clear stores with release.
 */
#ifndef QUIESCE_ATOMIC_H
#define QUIESCE_ATOMIC_H

#include <quiesce/base.h>

/* quiesce__type_at() is the type of the variable at @where, a number or pointer, without
 * qualifiers; quiesce__untyped() is @where itself, for functions that take the address of any
 * pointer. */
#define quiesce__type_at(where) __typeof__(__atomic_load_n((where), __ATOMIC_RELAXED))
#define quiesce__untyped(where) (QUIESCE_CAST(void **, QUIESCE_UNTYPED(where)) + 0 * sizeof(*(where) == QUIESCE_NO_POINTER))

#if defined(QUIESCE_SIM)
#include "platform/sim/atomic-sim.h"
#elif defined(QUIESCE_PERTURB)
#include "platform/perturb.h"
#else

/* @v converted to the type of *@p. */
#define quiesce__value_for(p, v) QUIESCE_CONVERT(quiesce__type_at(p), v)

#define quiesce_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define quiesce_load_consume(label, p) __atomic_load_n((p), __ATOMIC_CONSUME)
#define quiesce_load_acquire(label, p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define quiesce_store_relaxed(p, v) __atomic_store_n((p), quiesce__value_for(p, v), __ATOMIC_RELAXED)
#define quiesce_store_release(label, p, v) __atomic_store_n((p), quiesce__value_for(p, v), __ATOMIC_RELEASE)

/* Read-modify-write operations are full fences, as in the kernel: none of them is on a reader's
 * fast path.  A sequentially consistent builtin is weaker where it is made of two instructions
 * (arm64 before its atomic extension: a later load may pass the store), so a fence follows it where
 * the CPU needs one (quiesce/arch/); tests/litmus/A64-rmw-llsc*.litmus. */
#define quiesce_xchg(label, p, v) quiesce__after_rmw(__atomic_exchange_n((p), quiesce__value_for(p, v), __ATOMIC_SEQ_CST))
#define quiesce_fetch_add(label, p, v) quiesce__after_rmw(__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST))
#define quiesce_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)

/* Compare-and-exchange: returns true and stores @n if *@p was *@expected, else stores the value
 * found into *@expected. */
#define quiesce_cmpxchg(label, p, expected, n)                                                                             \
	quiesce__after_rmw(__atomic_compare_exchange_n((p), QUIESCE_CONVERT(quiesce__type_at(p) *, expected),          \
						       quiesce__value_for(p, n), 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
#define quiesce_cmpxchg_relaxed(p, expected, n)                                                                            \
	__atomic_compare_exchange_n((p), QUIESCE_CONVERT(quiesce__type_at(p) *, expected), quiesce__value_for(p, n), 0,    \
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED)

/* The reader's half of the asymmetric fence: a compiler barrier only. */
#define quiesce_fence_light(label) __asm__ __volatile__("" ::: "memory")

#define quiesce_fence_full(label) quiesce__arch_fence_full()

#endif

/* Earlier stores come first for a signal handler, and for the child of a fork: a compiler barrier,
 * which orders nothing for other CPUs. */
#define quiesce_fence_compiler() __asm__ __volatile__("" ::: "memory")

/* A data-dependent pause inside a bounded spin. */
#if defined(QUIESCE_SIM)
#define quiesce_cpu_relax() ((void)0)
#else
#define quiesce_cpu_relax() quiesce__arch_cpu_relax()
#endif

#endif
