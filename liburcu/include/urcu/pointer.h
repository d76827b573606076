/* SPDX-License-Identifier: MIT */
/* urcu/pointer.h - pointers that readers follow and updaters change.
 *
 *	rcu_assign_pointer(current_config, fresh);      // updater: after it is complete
 *	config = rcu_dereference(current_config);       // reader, inside a section
 *
 * All of it is inline, whatever _LGPL_SOURCE and URCU_INLINE_SMALL_FUNCTIONS are.  The functions ..._sym() are for programs that
 * call them by name.
 */
#ifndef QUIESCE_URCU_POINTER_H
#define QUIESCE_URCU_POINTER_H

#include <quiesce-urcu/name.h>
#include <urcu/static/pointer.h>

/* Loads the pointer @p, an lvalue; its object is seen as it was at the assignment, or newer. */
#define rcu_dereference(p) _rcu_dereference(p)

/* Stores @v to the pointer @p, an lvalue, or to the pointer at @p; readers may follow @v from now on. */
#define rcu_assign_pointer(p, v) _rcu_assign_pointer(p, v)
#define rcu_set_pointer(p, v) _rcu_set_pointer(p, v)

/* Exchange the pointer and return the old one; cmpxchg exchanges it only if the old one is @old. */
#define rcu_xchg_pointer(p, v) _rcu_xchg_pointer(p, v)
#define rcu_cmpxchg_pointer(p, old, fresh) _rcu_cmpxchg_pointer(p, old, fresh)

QUIESCE_URCU_BEGIN
/* Returns @p, which the caller has loaded. */
void *rcu_dereference_sym(void *p) QUIESCE_URCU_NAME(urcu_dereference_sym);
void *rcu_dereference_sym2(void **p) QUIESCE_URCU_NAME(urcu_dereference_sym2);
void *rcu_set_pointer_sym(void **p, void *v) QUIESCE_URCU_NAME(urcu_set_pointer_sym);
void *rcu_xchg_pointer_sym(void **p, void *v) QUIESCE_URCU_NAME(urcu_xchg_pointer_sym);
void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *fresh) QUIESCE_URCU_NAME(urcu_cmpxchg_pointer_sym);
QUIESCE_URCU_END

#endif
