// SPDX-License-Identifier: MIT
/* pointer.c - urcu/pointer.h for callers that call functions. */
#include <urcu/pointer.h>

/* Orders the load of the caller here, because the caller's accesses cannot depend
 * on it: the compiler may have loaded @p long ago. */
void *rcu_dereference_sym(void *p)
{
	cmm_smp_rmb();
	return p;
}

void *rcu_dereference_sym2(void **p) { return rcu_dereference(*p); }

void *rcu_set_pointer_sym(void **p, void *v)
{
	rcu_set_pointer(p, v);
	return v;
}

void *rcu_xchg_pointer_sym(void **p, void *v) { return rcu_xchg_pointer(p, v); }

void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *fresh) { return rcu_cmpxchg_pointer(p, old, fresh); }
