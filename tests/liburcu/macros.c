/* SPDX-License-Identifier: MIT */
/* macros.c - the face's macros in a program, for headers.py, in C and C++ with all warnings.
 *
 * raw, whole file: it tests volatile.
 */
#include <urcu/annotate.h>
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/rcuhlist.h>
#include <urcu/rculist.h>
#include <urcu/ref.h>
#include <urcu/tls-compat.h>

struct opaque;
struct entry {
	int number;
	struct cds_list_head node;
	struct cds_hlist_node hnode;
};
struct table {
	struct cds_list_head row[2];
};
enum colour { RED, GREEN };
typedef int quad[4];

int use_numbers(struct entry *e, const unsigned char *byte);
int use_pointers(struct entry *e);
int use_lists(struct entry *e);
int use_others(void);

static struct entry *current;
static struct opaque *volatile hidden;
static struct opaque *const fixed = NULL;
static void (*function)(int);
static void *any;
static DEFINE_URCU_TLS(quad, four);
static DEFINE_URCU_TLS_INIT(int, depth, 5);
static struct table whole = { { CDS_LIST_HEAD_INIT(whole.row[0]), CDS_LIST_HEAD_INIT(whole.row[1]) } };

int use_numbers(struct entry *e, const unsigned char *byte)
{
	static volatile int shared;
	static const int constant = 4;
	static signed char small;
	static long long wide;
	static bool flag;
	static enum colour colour;

	uatomic_set(&shared, uatomic_read(&constant));
	uatomic_store(&wide, uatomic_load(byte, CMM_ACQUIRE), CMM_RELEASE);
	uatomic_set(&flag, true), uatomic_set(&colour, RED);
	small = uatomic_add_return(&small, -1);
	small = uatomic_sub_return(&small, 1u, CMM_RELAXED);
	colour = uatomic_cmpxchg(&colour, RED, uatomic_xchg(&colour, GREEN), CMM_ACQ_REL, CMM_ACQUIRE);
	uatomic_add(&wide, -11UL);
	uatomic_sub(&wide, 2u, CMM_SEQ_CST_FENCE);
	uatomic_or(&small, 0x80);
	uatomic_and(&small, ~1UL, CMM_RELEASE);
	if (uatomic_xchg(&flag, false))
		uatomic_inc(&shared);
	else
		uatomic_dec(&shared, CMM_SEQ_CST_FENCE);
	CMM_STORE_SHARED(shared, 3);
	_CMM_STORE_SHARED(e->number, 3);
	CMM_STORE_SHARED(any, NULL);
	wide = uatomic_load(&wide, CMM_SEQ_CST_FENCE) + uatomic_load(cmm_cast_volatile(&shared));
	shared = uatomic_xchg(&shared, uatomic_xchg(&shared, uatomic_read(&constant)));
	return CMM_LOAD_SHARED(e->number) + CMM_ACCESS_ONCE(constant);
}

int use_pointers(struct entry *e)
{
	struct entry *found = rcu_xchg_pointer(&current, e);
	struct opaque *gone = rcu_xchg_pointer(&hidden, NULL);

	rcu_assign_pointer(current, NULL);
	rcu_set_pointer(&current, e);
	rcu_assign_pointer(hidden, gone);
	rcu_assign_pointer(function, NULL);
	rcu_assign_pointer(any, e);
	found = rcu_cmpxchg_pointer(&current, found, e);
	found = rcu_cmpxchg_pointer(&current, NULL, found);
	any = uatomic_cmpxchg(&any, NULL, e);
	any = uatomic_xchg(&current, NULL);
	uatomic_or(&any, 1UL);
	uatomic_add(&any, 8);
	(void)rcu_dereference(hidden);
	(void)rcu_dereference(fixed);
	if (rcu_dereference(function))
		rcu_dereference(function)(*URCU_FORCE_CAST(void **, &current) != NULL);
	return rcu_dereference(current)->number + cmm_ptr_eq(found, e);
}

int use_lists(struct entry *e)
{
	struct entry *it, *next;
	struct cds_list_head *pos, *p;
	struct cds_hlist_node *hpos, *hp;
	const struct cds_list_head *node = &e->node;
	CDS_LIST_HEAD(list);
	CDS_HLIST_HEAD(chain);
	int sum = caa_container_of(node, struct entry, node)->number + cds_list_first_entry(&whole.row[0], struct entry, node)->number;

	CDS_INIT_LIST_HEAD(&whole.row[1]);
	CDS_INIT_HLIST_HEAD(&chain);
	cds_list_for_each(pos, &list) sum += pos->next == pos;
	cds_list_for_each_prev(pos, &list) sum += pos->next == pos;
	cds_list_for_each_rcu(pos, &list) sum += pos->next == pos;
	cds_list_for_each_safe(pos, p, &list) sum += pos == p;
	cds_list_for_each_prev_safe(pos, p, &list) sum += pos == p;
	cds_list_for_each_entry(it, &list, node) sum += it->number;
	cds_list_for_each_entry_reverse(it, &list, node) sum += it->number;
	cds_list_for_each_entry_rcu(it, &list, node) sum += it->number;
	cds_list_for_each_entry_safe(it, next, &list, node) sum += it == next;
	cds_list_for_each_entry_safe_from(e, next, &list, node) sum += e == next;
	cds_hlist_for_each(hpos, &chain) sum += !hpos->next;
	cds_hlist_for_each_rcu(hpos, &chain) sum += !hpos->next;
	cds_hlist_for_each_safe(hpos, hp, &chain) sum += hpos == hp;
	cds_hlist_for_each_entry(it, hpos, &chain, hnode) sum += it->number;
	cds_hlist_for_each_entry_rcu(it, hpos, &chain, hnode) sum += it->number;
	cds_hlist_for_each_entry_safe(it, hpos, hp, &chain, hnode) sum += it->number;
	cds_hlist_for_each_entry_2(it, &chain, hnode) sum += it->number;
	cds_hlist_for_each_entry_rcu_2(it, &chain, hnode) sum += it->number;
	cds_hlist_for_each_entry_safe_2(it, next, &chain, hnode) sum += it == next;
	return sum;
}

int use_others(void)
{
	unsigned long long ticks;
	cmm_annotate_define(group);

	cmm_annotate_group_mem_acquire(&group, &any);
	cmm_annotate_group_mb_acquire(&group);
	cmm_annotate_group_mb_release(&group);
	cmm_annotate_group_mem_release(&group, &any);
	cmm_annotate_mem_acquire(&any);
	cmm_annotate_mem_release(&any);
	rdtscll(ticks);
	cmm_mb();
	cmm_smp_mb();
	cmm_smp_rmb();
	cmm_smp_mb__before_uatomic_or();
	caa_cpu_relax();
	cmm_emit_legacy_smp_mb();
	cmm_read_barrier_depends();
	urcu_assert(ticks);
	urcu_posix_assert(CAA_BUILD_BUG_ON_ZERO(sizeof(int) != 4) == 0);
	CAA_BUILD_BUG_ON(sizeof(long) != 8);
	urcu_static_assert(sizeof(char) == 1, "a char", a_char);
	URCU_TLS(four)[1] = caa_max(URCU_TLS(depth), caa_is_signed_type(unsigned int));
	return CAA_ARRAY_SIZE(URCU_TLS(four)) == caa_cast_long_keep_sign(4) && caa_likely(ticks != 0);
}
