/* SPDX-License-Identifier: MIT */
/* urcu/pointer.h - pointers that readers follow and updaters change.
 *
 *	rcu_assign_pointer(current_config, fresh);      // updater: after it is complete
 *	config = rcu_dereference(current_config);       // reader, inside a section
 *
 * All of it is inline, whatever _LGPL_SOURCE and URCU_INLINE_SMALL_FUNCTIONS are.  The functions ...._sym() are there for who
 * calls them by name.
 */
#ifndef QUIESCE_URCU_POINTER_H
#define QUIESCE_URCU_POINTER_H

#include <quiesce-urcu/name.h>
#include <urcu/static/pointer.h>

/* The pointer @p, an lvalue: what it points to is seen as it was when it was assigned, or newer. */
#define rcu_dereference(p) _rcu_dereference(p)

/* To the pointer @p, an lvalue, or at @p: @v, which readers may follow from now on. */
#define rcu_assign_pointer(p, v) _rcu_assign_pointer(p, v)
#define rcu_set_pointer(p, v) _rcu_set_pointer(p, v)

/* The same, and return what was there; of these cmpxchg does it only if that is @old. */
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
