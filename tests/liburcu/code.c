/* SPDX-License-Identifier: MIT */
/* code.c - operations of the face, each in a function of its own; code.py checks their instructions. */
#include <urcu/rcuhlist.h>
#include <urcu/rculist.h>

#define FOR_TYPE(name, type)                                                                                           \
	void name##_set(type *p, type v) { uatomic_set(p, v); }                                                        \
	type name##_read(const type *p) { return uatomic_read(p); }                                                    \
	type name##_xchg(type *p, type v) { return uatomic_xchg(p, v); }                                               \
	type name##_cmpxchg(type *p, type old, type fresh) { return uatomic_cmpxchg(p, old, fresh); }                  \
	type name##_add_return(type *p, type v) { return uatomic_add_return(p, v); }                                   \
	type name##_sub_return(type *p, type v) { return uatomic_sub_return(p, v); }                                   \
	int name##_put(type *p) { return uatomic_sub_return(p, 1) == 0; }                                              \
	void name##_add(type *p, type v) { uatomic_add(p, v); }                                                        \
	void name##_sub(type *p, type v) { uatomic_sub(p, v); }                                                        \
	void name##_inc(type *p) { uatomic_inc(p); }                                                                   \
	void name##_dec(type *p) { uatomic_dec(p); }                                                                   \
	void name##_or(type *p, type v) { uatomic_or(p, v); }                                                          \
	void name##_and(type *p, type v) { uatomic_and(p, v); }                                                        \
	void name##_set_fence(type *p, type v) { uatomic_set(p, v, CMM_SEQ_CST_FENCE); }                               \
	type name##_read_fence(type *p) { return uatomic_load(p, CMM_SEQ_CST_FENCE); }

FOR_TYPE(char, signed char)
FOR_TYPE(short, short)
FOR_TYPE(int, int)
FOR_TYPE(long, long)

void smp_mb(void) { cmm_smp_mb(); }
void smp_rmb(void) { cmm_smp_rmb(); }
void smp_wmb(void) { cmm_smp_wmb(); }

/* The compiler moves no access across these full barriers: @x is loaded twice. */
int mb_inc_mb(long *p, const int *x)
{
	int before = *x;

	cmm_smp_mb__before_uatomic_inc();
	uatomic_inc(p);
	cmm_smp_mb__after_uatomic_inc();
	return before - *x;
}

/* On x86 the operation is a full barrier even without these macros, so @other is loaded twice. */
long flags;
int other;
int or_between(void)
{
	int before = other;

	uatomic_or(&flags, 1);
	return before - other;
}

/* The macros may be used apart from an operation. */
void beside(int *x)
{
	*x = 1;
	cmm_smp_mb__before_uatomic_or();
	*x = 2;
}

void *dereference(void **p) { return rcu_dereference(*p); }
void assign(void **p, void *v) { rcu_assign_pointer(*p, v); }
void *xchg_pointer(void **p, void *v) { return rcu_xchg_pointer(p, v); }
void *cmpxchg_pointer(void **p, void *old, void *fresh) { return rcu_cmpxchg_pointer(p, old, fresh); }

void list_add(struct cds_list_head *fresh, struct cds_list_head *head) { cds_list_add_rcu(fresh, head); }
void list_del(struct cds_list_head *node) { cds_list_del_rcu(node); }

struct item {
	long value;
	struct cds_list_head node;
	struct cds_hlist_node hnode;
};

long list_walk(struct cds_list_head *head)
{
	struct item *it;
	long sum = 0;

	cds_list_for_each_entry_rcu(it, head, node)
		sum += it->value;
	return sum;
}

long hlist_walk(struct cds_hlist_head *head)
{
	struct item *it;
	long sum = 0;

	cds_hlist_for_each_entry_rcu_2(it, head, hnode)
		sum += it->value;
	return sum;
}

/* A plain access beside a pause needs no volatile, because the pause is a compiler barrier. */
void pause_until(const int *flag)
{
	while (!*flag)
		caa_cpu_relax();
}
