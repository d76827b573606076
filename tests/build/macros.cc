/* SPDX-License-Identifier: MIT */
/* macros.cc - every macro of the public headers, expanded in a C++ program: headers.py compiles it with -Wold-style-cast,
 * which checks macros.  headers.py also checks that no macro is missing here. */
#include <quiesce/counted_ptr.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/ida.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/rculist.h>
#include <quiesce/ds/rculist_nulls.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>

struct object {
	struct hazptr_head hazptr;
	struct rcu_head rcu;
	struct counted counted;
	struct list_head link;
	struct hlist_node chain;
	struct hlist_nulls_node nulls;
	struct wfcq_node queued;
	struct lfq_node waiting;
	struct wfs_node wait_free;
	struct lfs_node lock_free;
	int number;
	char large[24];
	const char *text;
};

DEFINE_SRCU(domain);
DEFINE_STATIC_SRCU(private_domain);
DEFINE_PERCPU_RWSEM(sem);
DEFINE_STATIC_PERCPU_RWSEM(private_sem);
DEFINE_RCU_SYNC(rss);
DEFINE_IDR(ids);
DEFINE_IDA(numbers);
DEFINE_XARRAY(pages);
DEFINE_WFS_STACK(wait_free);
DEFINE_LFS_STACK(lock_free);
static struct wfs_stack more_wait_free = WFS_STACK_INIT;
static struct lfs_stack more_lock_free = LFS_STACK_INIT;
LIST_HEAD(list);
HLIST_HEAD(hlist);
static struct hlist_nulls_head nulls = HLIST_NULLS_HEAD_INIT(7);
static struct idr more_ids = IDR_INIT(more_ids);
static struct ida more_numbers = IDA_INIT(more_numbers);
static struct xarray more_pages = XARRAY_INIT(more_pages);
static struct list_head more = LIST_HEAD_INIT(more);
static struct wfcq_head queue = WFCQ_HEAD_INIT;
static struct wfcq_tail queue_tail = WFCQ_TAIL_INIT(queue);
static struct lfq_queue jobs = LFQ_INIT;

HASHTABLE_TYPE(by_number, struct object, number);
HASHTABLE_TYPE_HASHED(by_large, struct object, large, quiesce_hash_bytes(key, sizeof(object::large), seed));
HASHTABLE_TYPE_STRING(by_text, struct object, text);
static struct hashtable table = HASHTABLE_INIT(&by_number_type);
static struct hashmap map = HASHMAP_INIT;

struct derived : object { /* the heads are in a base, so that the layout is not a standard one */
	int more;
};
template<class T> static void free_both(T *p, T *q)
{
	kfree_rcu(p, rcu);
	kfree_hazptr(q, hazptr);
}

static struct object *volatile shared;
static const struct object *constant;
static struct object *plain;

int pointers(struct object *fresh, hazptr_t *slot);
int pointers(struct object *fresh, hazptr_t *slot)
{
	struct object *p = rcu_dereference(shared), *q = plain;
	const struct object *c = hazptr_protect(slot, &constant);

	p = rcu_dereference_check(shared, true);
	p = rcu_dereference_raw(shared);
	p = rcu_dereference_protected(shared, true);
	p = srcu_dereference(shared, &domain);
	p = srcu_dereference_check(shared, &private_domain, true);
	rcu_assign_pointer(shared, fresh);
	RCU_INIT_POINTER(shared, fresh);
	p = rcu_xchg_pointer(&plain, fresh);
	p = rcu_replace_pointer(plain, fresh, true);
	p = rcu_cmpxchg_pointer(&plain, p, fresh);
	if (rcu_try_cmpxchg_pointer(&plain, &p, fresh) || !rcu_access_pointer(shared))
		kfree_rcu(q, rcu);
	kfree_rcu_mightsleep(p);
	kfree_hazptr(fresh, hazptr);
	free_both(static_cast<derived *>(nullptr), static_cast<derived *>(nullptr));
	p = hazptr_protect(slot, &shared);
	p = hazptr_protect(slot, &plain, hazptr);
	p = hazptr_protect_masked(slot, &shared, 1);
	p = hazptr_protect_masked(slot, &plain, 1, hazptr);
	p = hazptr_tryprotect(slot, &plain, rcu);
	c = hazptr_tryprotect(slot, &constant);
	p = counted_protect(slot, &plain, counted);
	p = counted_tryprotect(slot, &plain, counted);
	p = counted_load(&plain, counted);
	counted_publish(&plain, p, counted);
	q = counted_exchange(&plain, p);
	return c && counted_cmpxchg(&plain, &p, q) && init_srcu_struct(&domain);
}

int guards();
int guards()
{
	struct shazptr_guard guard = shazptr_protect(&plain), other = shazptr_tryprotect(&constant);
	struct shazptr_guard detached = shazptr_protect_detached(&shared);

	return guard.ptr == SHAZPTR_WILDCARD || other.ptr == detached.ptr;
}

long lists();
long lists()
{
	struct object *p, *n;
	struct list_head *at;
	struct hlist_nulls_node *pos;
	struct hlist_node *next;
	long nr = 0;

	p = list_entry(more.next, struct object, link);
	p = list_entry_rcu(list.next, struct object, link);
	p = list_first_entry(&list, struct object, link);
	p = list_last_entry(&list, struct object, link);
	p = list_first_entry_or_null(&list, struct object, link);
	p = list_first_or_null_rcu(&list, struct object, link);
	p = list_next_or_null_rcu(&list, &p->link, struct object, link);
	p = list_next_entry(p, link);
	p = list_prev_entry(p, link);
	list_for_each_rcu(at, &list)
		nr++;
	list_for_each_entry_rcu(p, &list, link)
		nr++;
	list_for_each_entry_continue_rcu(p, &list, link)
		nr++;
	list_for_each_entry_from_rcu(p, &list, link)
		nr++;
	list_for_each_entry(p, &list, link)
		nr++;
	list_for_each_entry_reverse(p, &list, link)
		nr++;
	list_for_each_entry_safe(p, n, &list, link)
		nr++;
	p = hlist_entry(hlist.first, struct object, chain);
	p = hlist_entry_safe(hlist.first, struct object, chain);
	hlist_for_each_entry_rcu(p, &hlist, chain)
		nr++;
	hlist_for_each_entry_continue_rcu(p, chain)
		nr++;
	hlist_for_each_entry_from_rcu(p, chain)
		nr++;
	hlist_for_each_entry(p, &hlist, chain)
		nr++;
	hlist_for_each_entry_safe(p, next, &hlist, chain)
		nr++;
	p = hlist_nulls_entry(nulls.first, struct object, nulls);
	hlist_nulls_for_each_entry_rcu(p, pos, &nulls, nulls)
		nr++;
	hlist_nulls_for_each_entry_from(p, pos, nulls)
		nr++;
	hlist_nulls_for_each_entry(p, pos, &nulls, nulls)
		nr++;
	hlist_nulls_for_each_entry_safe(p, pos, &nulls, nulls)
		nr++;
	return NULLS_MARKER(7) == get_nulls_value(pos) ? -nr : nr;
}

int queues(void);
int queues(void)
{
	struct wfcq_node *node, *next;
	int nr = wfcq_dequeue_nonblocking(&queue, &queue_tail) == WFCQ_WOULDBLOCK;

	nr += lfq_entry(lfq_dequeue(&jobs), struct object, waiting)->number;
	wfcq_for_each_blocking(&queue, &queue_tail, node)
		nr += wfcq_entry(node, struct object, queued)->number;
	wfcq_for_each_blocking_safe(&queue, &queue_tail, node, next)
		nr++;
	return nr;
}

unsigned long tables();
unsigned long tables()
{
	struct hashtable_iter it;
	struct hashmap_iter at;
	struct object *p = by_number_lookup(&table, nullptr);
	uint64_t key;
	uint64_t value;
	int id;
	unsigned long ul, nr = by_text_lookup(&table, "text") == by_large_lookup(&table, nullptr);

	hashtable_for_each(p, &it, &table)
		nr++;
	hashtable_for_each_match(p, &it, &table, &p->number)
		nr++;
	hashmap_for_each(key, value, &at, &map)
		nr++;
	idr_for_each_entry(&ids, p, id)
		nr++;
	idr_for_each_entry_continue(&ids, p, id)
		nr++;
	idr_for_each_entry_ul(&more_ids, p, ul)
		nr++;
	return nr;
}

unsigned long pages_in_order(void);
unsigned long pages_in_order(void)
{
	struct object *p;
	uint32_t id = 0;
	unsigned long at, nr = 0ul + ida_is_empty(&more_numbers) + ida_is_empty(&numbers) + xa_empty(&more_pages);

	nr += xa_alloc(&pages, &id, &at, XA_LIMIT(1, 9)) == 0 && xa_alloc(&pages, &id, &at, xa_limit_32b) == 0;
	xa_for_each(&pages, at, p)
		nr++;
	xa_for_each_start(&pages, at, p, 7)
		nr++;
	xa_for_each_range(&pages, at, p, 7, 9)
		nr++;
	xa_for_each_reverse(&pages, at, p)
		nr++;
	xa_for_each_range_reverse(&pages, at, p, 7, 9)
		nr++;
	xa_for_each_marked(&pages, at, p, XA_MARK_1)
		nr++;
	return nr;
}

int stacks(void);
int stacks(void)
{
	struct object *p, *n;
	struct wfs_node *w = wfs_pop_nonblocking(&more_wait_free), *wn;
	struct lfs_node *l = lfs_pop(&more_lock_free), *ln;
	int nr = w == WFS_WOULDBLOCK ? WFS_STATE_LAST : wfs_entry(w, struct object, wait_free)->number;

	wfs_for_each_blocking(wfs_pop_all(&wait_free), w)
		nr++;
	wfs_for_each_blocking_safe(wfs_pop_all(&wait_free), w, wn)
		nr++;
	wfs_for_each_entry_blocking(p, wfs_pop_all(&wait_free), wait_free)
		nr++;
	wfs_for_each_entry_blocking_safe(p, n, wfs_pop_all(&wait_free), wait_free)
		nr++;
	nr += lfs_entry(l, struct object, lock_free)->number;
	lfs_for_each(lfs_pop_all(&lock_free), l)
		nr++;
	lfs_for_each_safe(lfs_pop_all(&lock_free), l, ln)
		nr++;
	lfs_for_each_entry(p, lfs_pop_all(&lock_free), lock_free)
		nr++;
	lfs_for_each_entry_safe(p, n, lfs_pop_all(&lock_free), lock_free)
		nr++;
	return nr;
}

struct kmem_cache *caches(void);
struct kmem_cache *caches(void)
{
	return KMEM_CACHE(object, SLAB_HWCACHE_ALIGN);
}
