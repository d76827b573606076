/* SPDX-License-Identifier: MIT */
/* urcu/uatomic.h - atomic operations on numbers and pointers of 1, 2, 4 or 8 bytes.
 *
 *	unsigned long owners;
 *
 *	uatomic_inc(&owners);
 *	if (uatomic_sub_return(&owners, 1, CMM_ACQ_REL) == 0)
 *		...
 *
 * Each operation takes a memory order as its last argument; without it the order is:
 *
 *   uatomic_xchg, uatomic_cmpxchg, uatomic_add_return, uatomic_sub_return    a full barrier before and after
 *   uatomic_and                                                              sequentially consistent
 *   all others                                                               relaxed
 *
 * CMM_SEQ_CST_FENCE is sequentially consistent, and a full barrier follows.  For uatomic_cmpxchg() this is the order of success; a
 * failure is relaxed or has the order of the fifth argument.  On x86 a read-modify-write is a full barrier whatever its order.
 *
 * The number that is added, compared or stored is converted to the object's type; a number added to a pointer counts bytes.
 * Context: any, signal handlers too.
 */
#ifndef QUIESCE_URCU_UATOMIC_H
#define QUIESCE_URCU_UATOMIC_H

#include <quiesce-urcu/word.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>

#include <stdlib.h> /* programs rely on this header to include it */

#define UATOMIC_HAS_ATOMIC_BYTE
#define UATOMIC_HAS_ATOMIC_SHORT
#define UATOMIC_HAS_ATOMIC_INT
#define UATOMIC_HAS_ATOMIC_LLONG

/* All but the last are the numbers of the compiler's builtins. */
enum cmm_memorder {
	CMM_RELAXED = __ATOMIC_RELAXED,
	CMM_CONSUME = __ATOMIC_CONSUME,
	CMM_ACQUIRE = __ATOMIC_ACQUIRE,
	CMM_RELEASE = __ATOMIC_RELEASE,
	CMM_ACQ_REL = __ATOMIC_ACQ_REL,
	CMM_SEQ_CST = __ATOMIC_SEQ_CST,
	CMM_SEQ_CST_FENCE = 6,
};

/* For an operation of order @mo: the compiler's order, and the barrier that may follow. */
#define quiesce_urcu__order(mo) (quiesce_urcu__fenced(mo) ? __ATOMIC_SEQ_CST : QUIESCE_CAST(int, (mo)))
#define quiesce_urcu__after(mo) (quiesce_urcu__fenced(mo) ? quiesce_urcu__full_barrier() : QUIESCE_CAST(void, 0))
#define quiesce_urcu__fenced(mo) (QUIESCE_CAST(int, (mo)) == QUIESCE_CAST(int, CMM_SEQ_CST_FENCE))
#define cmm_to_c11(mo) quiesce_urcu__order(mo)

QUIESCE_BEGIN_DECLS
QUIESCE_FAST void quiesce_urcu__full_barrier(void) { cmm_smp_mb(); }
static inline void cmm_seq_cst_fence_after_atomic(enum cmm_memorder mo) { quiesce_urcu__after(mo); }
QUIESCE_END_DECLS

/* ---- optional arguments ---- */

#define quiesce_urcu__third(a, b, c, ...) c
#define quiesce_urcu__sixth(a, b, c, d, e, f, ...) f
#define quiesce_urcu__first_two(a, b, ...) a, b
#define quiesce_urcu__call(macro, ...) macro(__VA_ARGS__)
/* The argument and @order; or both arguments, if there are two. */
#define quiesce_urcu__with(order, ...) quiesce_urcu__first_two(__VA_ARGS__, order, 0)

/* ---- load and store ---- */

#define uatomic_load_mo(addr, mo)                                                                                              \
	__extension__({                                                                                                        \
		quiesce_urcu__type(addr) quiesce_urcu__loaded = __atomic_load_n(quiesce_urcu__sized(addr), quiesce_urcu__order(mo)); \
		quiesce_urcu__after(mo);                                                                                       \
		quiesce_urcu__loaded;                                                                                          \
	})
#define uatomic_store_mo(addr, v, mo)                                                                                          \
	__extension__({                                                                                                        \
		quiesce_urcu__type(addr) quiesce_urcu__stored = (v);                                                           \
		__atomic_store_n(quiesce_urcu__sized(addr), quiesce_urcu__stored, quiesce_urcu__order(mo));                    \
		quiesce_urcu__after_store(mo);                                                                                 \
	})

/* uatomic_load(addr), uatomic_load(addr, order); and under its former name. */
#define uatomic_load(...) quiesce_urcu__third(__VA_ARGS__, uatomic_load_mo, quiesce_urcu__load, 0)(__VA_ARGS__)
#define uatomic_read(...) uatomic_load(__VA_ARGS__)
#define quiesce_urcu__load(addr) __atomic_load_n(quiesce_urcu__sized(addr), __ATOMIC_RELAXED)

/* uatomic_store(addr, v), uatomic_store(addr, v, order); and under its former name. */
#define uatomic_store(addr, ...) quiesce_urcu__call(uatomic_store_mo, addr, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))
#define uatomic_set(addr, ...) uatomic_store(addr, __VA_ARGS__)

/* ---- read-modify-write ---- */

#define quiesce_urcu__rmw(builtin, addr, v, mo)                                                                                \
	builtin(quiesce_urcu__at(addr), quiesce_urcu__number(addr, v), quiesce_urcu__rmw_order(mo))

/* An operation that returns a value, and one that does not. */
#define quiesce_urcu__rmw_object(builtin, addr, v, mo)                                                                         \
	quiesce_urcu__object(addr, __extension__({                                                                             \
		__typeof__(quiesce_urcu__number(addr, 0)) quiesce_urcu__returned = quiesce_urcu__rmw(builtin, addr, v, mo);    \
		quiesce_urcu__after_rmw(mo);                                                                                   \
		quiesce_urcu__returned;                                                                                        \
	}))
#define quiesce_urcu__rmw_void(builtin, addr, v, mo)                                                                           \
	__extension__({                                                                                                        \
		QUIESCE_CAST(void, quiesce_urcu__rmw(builtin, addr, v, mo));                                                   \
		quiesce_urcu__after_rmw(mo);                                                                                   \
	})

#define uatomic_xchg_mo(addr, v, mo) quiesce_urcu__rmw_object(__atomic_exchange_n, addr, v, mo)
#define uatomic_add_return_mo(addr, v, mo) quiesce_urcu__rmw_object(__atomic_add_fetch, addr, v, mo)
#define uatomic_sub_return_mo(addr, v, mo) quiesce_urcu__rmw_object(__atomic_sub_fetch, addr, v, mo)
#define uatomic_and_mo(addr, mask, mo) quiesce_urcu__rmw_void(__atomic_fetch_and, addr, mask, mo)
#define uatomic_or_mo(addr, mask, mo) quiesce_urcu__rmw_void(__atomic_fetch_or, addr, mask, mo)
#define uatomic_add_mo(addr, v, mo) quiesce_urcu__rmw_void(__atomic_fetch_add, addr, v, mo)
#define uatomic_sub_mo(addr, v, mo) quiesce_urcu__rmw_void(__atomic_fetch_sub, addr, v, mo)
#define uatomic_inc_mo(addr, mo) uatomic_add_mo(addr, 1, mo)
#define uatomic_dec_mo(addr, mo) uatomic_sub_mo(addr, 1, mo)

/* Return the old value, or the new one.  uatomic_xchg(addr, v), uatomic_xchg(addr, v, order), and so on. */
#define uatomic_xchg(addr, ...) quiesce_urcu__call(uatomic_xchg_mo, addr, quiesce_urcu__with(CMM_SEQ_CST_FENCE, __VA_ARGS__))
#define uatomic_add_return(addr, ...) quiesce_urcu__call(uatomic_add_return_mo, addr, quiesce_urcu__with(CMM_SEQ_CST_FENCE, __VA_ARGS__))
#define uatomic_sub_return(addr, ...) quiesce_urcu__call(uatomic_sub_return_mo, addr, quiesce_urcu__with(CMM_SEQ_CST_FENCE, __VA_ARGS__))

/* Return no value. */
#define uatomic_and(addr, ...) quiesce_urcu__call(uatomic_and_mo, addr, quiesce_urcu__with(CMM_SEQ_CST, __VA_ARGS__))
#define uatomic_or(addr, ...) quiesce_urcu__call(uatomic_or_mo, addr, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))
#define uatomic_add(addr, ...) quiesce_urcu__call(uatomic_add_mo, addr, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))
#define uatomic_sub(addr, ...) quiesce_urcu__call(uatomic_sub_mo, addr, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))
#define uatomic_inc(...) quiesce_urcu__call(uatomic_inc_mo, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))
#define uatomic_dec(...) quiesce_urcu__call(uatomic_dec_mo, quiesce_urcu__with(CMM_RELAXED, __VA_ARGS__))

/* Returns the old value: the call succeeded if that is @old.  @mos: order of success; @mof: order of failure. */
#define uatomic_cmpxchg_mo(addr, old, fresh, mos, mof)                                                                         \
	quiesce_urcu__object(addr, __extension__({                                                                             \
		__typeof__(quiesce_urcu__number(addr, 0)) quiesce_urcu__expected = quiesce_urcu__number(addr, old);            \
		quiesce_urcu__after_cmpxchg(                                                                                   \
			__atomic_compare_exchange_n(quiesce_urcu__at(addr), &quiesce_urcu__expected, quiesce_urcu__number(addr, fresh), 0, \
						    quiesce_urcu__rmw_order(mos), quiesce_urcu__rmw_order(mof)), mos, mof);    \
		quiesce_urcu__expected;                                                                                        \
	}))

/* uatomic_cmpxchg(addr, old, new), (addr, old, new, mos), (addr, old, new, mos, mof). */
#define uatomic_cmpxchg(...)                                                                                                   \
	quiesce_urcu__sixth(__VA_ARGS__, uatomic_cmpxchg_mo, quiesce_urcu__cmpxchg_success, quiesce_urcu__cmpxchg, 0)(__VA_ARGS__)
#define quiesce_urcu__cmpxchg_success(addr, old, fresh, mos) uatomic_cmpxchg_mo(addr, old, fresh, mos, CMM_RELAXED)
#define quiesce_urcu__cmpxchg(addr, old, fresh) uatomic_cmpxchg_mo(addr, old, fresh, CMM_SEQ_CST_FENCE, CMM_RELAXED)

/* ---- full barriers around operations that return no value ---- */

#define cmm_smp_mb__before_uatomic_and() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_and() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__before_uatomic_or() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_or() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__before_uatomic_add() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_add() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__before_uatomic_sub() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_sub() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__before_uatomic_inc() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_inc() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__before_uatomic_dec() quiesce_urcu__beside_rmw()
#define cmm_smp_mb__after_uatomic_dec() quiesce_urcu__beside_rmw()

#endif
