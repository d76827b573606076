/* SPDX-License-Identifier: MIT */
/* urcu/static/pointer.h - urcu/pointer.h under the names that are always inline. */
#ifndef QUIESCE_URCU_STATIC_POINTER_H
#define QUIESCE_URCU_STATIC_POINTER_H

#include <quiesce/atomic.h>
#include <urcu/annotate.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>
#include <urcu/uatomic.h>

/* Accesses through the pointer come after its load, because they depend on it.  Compilers implement "consume" as
 * "acquire".  With URCU_DEREFERENCE_USE_VOLATILE it is a plain load, which costs less on some CPUs; the program must
 * compare pointers that it returned by cmm_ptr_eq(), or the compiler may use the other pointer, which does not depend
 * on the load. */
#ifdef URCU_DEREFERENCE_USE_VOLATILE
#define _rcu_dereference(p)                                                                                            \
	__extension__({                                                                                                \
		__typeof__(p) *quiesce_urcu__place = &(p);                                                             \
		quiesce_urcu__type(quiesce_urcu__place) quiesce_urcu__pointer = uatomic_load(quiesce_urcu__place);     \
		cmm_smp_read_barrier_depends();                                                                        \
		cmm_annotate_mem_acquire(quiesce_urcu__place);                                                         \
		quiesce_urcu__pointer;                                                                                 \
	})
#else
#define _rcu_dereference(p) quiesce_load_consume(RU3, &(p)) /* RU3: acquire, pairs with the caller */
#endif

QUIESCE_BEGIN_DECLS
/* Compares without telling the compiler that the two pointers are equal. */
static inline int cmm_ptr_eq(const void *a, const void *b)
{
	_CMM_OPTIMIZER_HIDE_VAR(a);
	_CMM_OPTIMIZER_HIDE_VAR(b);
	return a == b;
}
QUIESCE_END_DECLS

#ifdef __cplusplus
extern "C++" {
/* Compares pointers of two types, of which one converts to the other, as == does. */
template <typename A, typename B> QUIESCE_LOCAL auto cmm_ptr_eq(A *a, B *b) -> decltype(static_cast<void>(a == b), 0)
{
	const void *common[] = { 1 ? a : b, 1 ? b : a };

	return cmm_ptr_eq(common[0], common[1]);
}
}
#endif

/* Orders the store after all stores before it: those that initialised the object of @v. */
#define _rcu_set_pointer(p, v) uatomic_store_mo(p, v, CMM_RELEASE)
#define _rcu_assign_pointer(p, v) _rcu_set_pointer(&(p), v)

/* Full barriers where they change the pointer; the new pointer has the type of the old one. */
#define _rcu_xchg_pointer(p, v)                                                                                        \
	__extension__({                                                                                                \
		quiesce_urcu__type(p) quiesce_urcu__fresh = (v);                                                       \
		quiesce_xchg(RU3, (p), quiesce_urcu__fresh); /* RU3: full, pairs with the caller */                    \
	})
#define _rcu_cmpxchg_pointer(p, old, fresh)                                                                            \
	__extension__({                                                                                                \
		quiesce_urcu__type(p) quiesce_urcu__found = (old);                                                     \
		quiesce_urcu__type(p) quiesce_urcu__fresh = (fresh);                                                   \
		quiesce_cmpxchg(RU3, (p), &quiesce_urcu__found, quiesce_urcu__fresh); /* RU3: full, pairs with the caller */ \
		quiesce_urcu__found;                                                                                   \
	})

#endif
