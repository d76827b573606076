/* SPDX-License-Identifier: MIT */
/* test_outline.c - inline calls as bindings reach them: by an exported function, and with the same effect. */
#include <quiesce/calls.h>

#include "testing.h"

#include <string.h>

static int thing;

static void rcu_sections(void **state)
{
	(void)state;
	quiesce_rcu_read_lock();
	assert_true(rcu_read_lock_held() && quiesce_rcu_read_lock_held());
	rcu_read_unlock();
	rcu_read_lock();
	quiesce_rcu_read_unlock();
	assert_false(rcu_read_lock_held() || quiesce_rcu_read_lock_held());
	synchronize_rcu();
}

static void guards(void **state)
{
	void *where = &thing;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct shazptr_guard guard = i == 0 ? quiesce_shazptr_acquire(&thing) :
					     i == 1 ? quiesce_shazptr_protect(&where) :
					     i == 2 ? quiesce_shazptr_tryprotect(&where) :
						      quiesce_shazptr_protect_detached(&where);

		assert_ptr_equal(shazptr_ptr(guard), &thing);
		assert_ptr_equal(quiesce_shazptr_ptr(guard), &thing);
		quiesce_shazptr_clear(guard);
	}
	synchronize_shazptr(&thing);
}

static void slots(void **state)
{
	struct {
		uint64_t other;
		struct hazptr_head hazptr;
	} object, *where = &object;
	size_t offset = offsetof(__typeof__(object), hazptr);
	hazptr_t *slot = quiesce_hazptr_alloc(NULL), *other = hazptr_alloc(NULL);

	(void)state;
	assert_true(slot && other && slot != other);
	for (int i = 0; i < 2; i++) {
		void *found = i == 0 ? quiesce_hazptr_protect(slot, (void **)&where, offset) :
				       quiesce_hazptr_tryprotect(slot, (void **)&where, offset);

		assert_ptr_equal(found, &object);
		assert_int_equal(slot->value, (uintptr_t)&object.hazptr);
		quiesce_hazptr_clear(slot);
		synchronize_hazptr(&object.hazptr);
	}
	quiesce_hazptr_free(NULL, slot);
	assert_int_equal(slot->value, QUIESCE_HAZPTR_FREE);
	hazptr_free(NULL, other);
}

static void marked_pointers(void **state)
{
	static uint64_t object;
	void *where = (void *)((uintptr_t)&object | 1);
	hazptr_t *slot = quiesce_hazptr_alloc(NULL);

	(void)state;
	assert_ptr_equal(quiesce_hazptr_protect_masked(slot, &where, 1, 8), where);
	assert_int_equal(slot->value, (uintptr_t)&object + 8);
	assert_ptr_equal(quiesce_hazptr_protect_masked(slot, &where, 1, 0), where);
	assert_int_equal(slot->value, (uintptr_t)&object);
	quiesce_hazptr_set(slot, &thing);
	assert_int_equal(slot->value, (uintptr_t)&thing);
	quiesce_hazptr_free(NULL, slot);
}

static unsigned int nr_released;

static void on_counted_release(struct counted *counted)
{
	(void)counted;
	nr_released++;
}

static void on_ref_release(struct percpu_ref *ref)
{
	(void)ref;
	nr_released++;
}

static void counted_references(void **state)
{
	static struct counted counted;
	void *where = &counted;

	(void)state;
	nr_released = 0;
	counted_init(&counted, on_counted_release);
	quiesce_counted_get(&counted);
	assert_true(quiesce_counted_tryget(&counted));
	assert_ptr_equal(quiesce_counted_load(&where, 0), &counted);
	assert_int_equal(counted_read(&counted), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(quiesce_counted_put(&counted), i == 3);
	assert_false(quiesce_counted_tryget(&counted));
	hazptr_barrier();
	assert_int_equal(nr_released, 1);
}

static void counted_pointers(void **state)
{
	static struct object {
		uint64_t other;
		struct counted counted;
	} object;
	size_t offset = offsetof(struct object, counted);
	hazptr_t *slot = quiesce_hazptr_alloc(NULL);
	void *where = NULL, *expected = &object;

	(void)state;
	nr_released = 0;
	quiesce_counted_init(&object.counted, on_counted_release);
	quiesce_counted_publish(&where, &object, offset);
	assert_int_equal(quiesce_counted_read(&object.counted), 1);
	for (int i = 0; i < 2; i++) {
		void *found = i == 0 ? quiesce_counted_protect(slot, &where, offset) : quiesce_counted_tryprotect(slot, &where, offset);

		assert_ptr_equal(found, &object);
		assert_int_equal(slot->value, (uintptr_t)&object.counted.hazptr);
		quiesce_hazptr_clear(slot);
	}
	assert_true(quiesce_counted_cmpxchg(&where, &expected, NULL));
	assert_ptr_equal(quiesce_counted_exchange(&where, &object), NULL);
	quiesce_counted_publish(&where, NULL, offset); /* the last reference */
	hazptr_barrier();
	assert_int_equal(nr_released, 1);
	quiesce_hazptr_free(NULL, slot);
}

static int nr_reports;

static void hook(enum quiesce_misuse kind, const char *text)
{
	assert_int_equal(kind, QUIESCE_MISUSE_ARGUMENT);
	assert_non_null(strstr(text, "4096"));
	nr_reports++;
}

/* An offset that would be taken for the address of a function: the macros do not compile with it. */
static void offsets(void **state)
{
	static char large[8192];

	(void)state;
	quiesce_kfree_rcu(NULL, 0, 64);
	quiesce_kfree_hazptr(NULL, 0, 64);
	quiesce_kfree_rcu(malloc(QUIESCE_KFREE_OFFSET_MAX + 64), QUIESCE_KFREE_OFFSET_MAX - 8, QUIESCE_KFREE_OFFSET_MAX + 64);
	quiesce_kfree_hazptr(malloc(QUIESCE_KFREE_OFFSET_MAX + 64), QUIESCE_KFREE_OFFSET_MAX - 8, QUIESCE_KFREE_OFFSET_MAX + 64);
	quiesce_set_misuse_hook(hook);
	quiesce_kfree_rcu(large, QUIESCE_KFREE_OFFSET_MAX, sizeof(large));
	quiesce_kfree_hazptr(large, QUIESCE_KFREE_OFFSET_MAX, sizeof(large));
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_reports, 2);
	rcu_barrier();
	hazptr_barrier();
}

static void object_caches(void **state)
{
	struct kmem_cache *cache = quiesce_kmem_cache_create(QUIESCE_LAYOUT, "outline", 32, 0, 0, NULL);
	void *one = quiesce_kmem_cache_alloc(cache);
	uint64_t *two = quiesce_kmem_cache_zalloc(cache);
	struct kmem_cache_stats stats;

	(void)state;
	assert_non_null(one);
	assert_non_null(two);
	assert_true(!two[0] && !two[1] && !two[2] && !two[3]);
	kmem_cache_free(cache, one);
	quiesce_kmem_cache_free(cache, two);
	quiesce_kmem_cache_get_stats(cache, &stats, sizeof stats);
	assert_int_equal(stats.objects, 0);
	quiesce_kmem_cache_destroy(cache);
}

static void percpu_references(void **state)
{
	static struct percpu_ref ref;

	(void)state;
	nr_released = 0;
	assert_int_equal(percpu_ref_init(&ref, on_ref_release, 0), 0);
	quiesce_percpu_ref_get(&ref);
	assert_true(quiesce_percpu_ref_tryget(&ref) && quiesce_percpu_ref_tryget_live(&ref));
	percpu_ref_kill(&ref);
	assert_false(quiesce_percpu_ref_tryget_live(&ref));
	assert_true(quiesce_percpu_ref_tryget(&ref));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(nr_released, 0);
		quiesce_percpu_ref_put(&ref);
	}
	assert_int_equal(nr_released, 1);
	assert_false(quiesce_percpu_ref_tryget(&ref));
	percpu_ref_exit(&ref);
}

static void srcu_sections(void **state)
{
	static struct srcu_struct domain;
	int idx;

	(void)state;
	assert_int_equal(init_srcu_struct(&domain), 0);
	idx = quiesce_srcu_read_lock(&domain);
	srcu_read_unlock(&domain, idx);
	idx = srcu_read_lock(&domain);
	quiesce_srcu_read_unlock(&domain, idx);
	synchronize_srcu(&domain);
	cleanup_srcu_struct(&domain);
}

static void read_locks(void **state)
{
	static struct percpu_rw_semaphore sem;

	(void)state;
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	quiesce_percpu_down_read(&sem);
	assert_true(quiesce_percpu_down_read_trylock(&sem));
	assert_true(percpu_is_read_locked(&sem));
	percpu_up_read(&sem);
	quiesce_percpu_up_read(&sem);
	percpu_down_write(&sem);
	assert_false(quiesce_percpu_down_read_trylock(&sem));
	percpu_up_write(&sem);
	percpu_free_rwsem(&sem);
}

struct number {
	uint64_t key;
	struct hazptr_head hazptr;
};
HASHTABLE_TYPE(number, struct number, key);

static void lookups(void **state)
{
	struct number number = { .key = 7 };
	size_t offset = offsetof(struct number, hazptr);
	hazptr_t *slot = hazptr_alloc(NULL);
	struct hashtable table;
	struct hashmap map;
	DEFINE_XARRAY(xa);
	DEFINE_IDR(idr);
	uint64_t none = 8;
	const void *keys[] = { &none, &number.key };
	void *found[2];

	(void)state;
	assert_int_equal(idr_alloc(&idr, &thing, 3, 0), 3);
	assert_int_equal(xa_store(&xa, ULONG_MAX, &thing, NULL), 0);
	assert_int_equal(hashmap_init(&map), 0);
	assert_int_equal(hashmap_insert(&map, 7, 70, NULL), 0);
	assert_int_equal(hashtable_init(&table, &number_type), 0);
	assert_int_equal(hashtable_insert(&table, &number), 0);
	rcu_read_lock();
	assert_ptr_equal(quiesce_idr_find(&idr, 3), &thing);
	assert_null(quiesce_idr_find(&idr, 4));
	assert_ptr_equal(quiesce_xa_load(&xa, ULONG_MAX), &thing);
	assert_null(quiesce_xa_load(&xa, 3));
	assert_int_equal(quiesce_hashmap_lookup(&map, 7), 70);
	assert_int_equal(quiesce_hashmap_lookup(&map, none), 0);
	assert_ptr_equal(quiesce_hashtable_lookup(&table, &number_type, &number.key), &number);
	assert_null(quiesce_hashtable_lookup(&table, &number_type, &none));
	assert_int_equal(quiesce_hashtable_lookup_many(&table, &number_type, keys, 2, found), 1);
	assert_null(found[0]);
	assert_ptr_equal(found[1], &number);
	rcu_read_unlock();
	assert_ptr_equal(quiesce_hashtable_lookup_hazptr(&table, &number_type, &number.key, slot, offset), &number);
	assert_int_equal(slot->value, (uintptr_t)&number.hazptr);
	assert_null(quiesce_hashtable_lookup_hazptr(&table, &number_type, &none, slot, offset));
	hazptr_free(NULL, slot);
	idr_destroy(&idr);
	xa_destroy(&xa);
	hashmap_destroy(&map);
	hashtable_destroy(&table, NULL, NULL);
}

static void pointers(void **state)
{
	static int other;
	void *where = NULL, *expected = &other;

	(void)state;
	quiesce_RCU_INIT_POINTER(&where, &thing);
	rcu_read_lock();
	assert_ptr_equal(quiesce_rcu_dereference(&where), &thing);
	assert_ptr_equal(quiesce_rcu_dereference_raw(&where), &thing);
	rcu_read_unlock();
	assert_false(quiesce_rcu_try_cmpxchg_pointer(&where, &expected, NULL));
	assert_ptr_equal(expected, &thing);
	assert_true(quiesce_rcu_try_cmpxchg_pointer(&where, &expected, &other));
	assert_ptr_equal(quiesce_rcu_cmpxchg_pointer(&where, &other, &thing), &other);
	assert_ptr_equal(quiesce_rcu_xchg_pointer(&where, NULL), &thing);
	quiesce_rcu_assign_pointer(&where, &other);
	assert_ptr_equal(quiesce_rcu_access_pointer(&where), &other);
}

struct item {
	int number;
	struct list_head list;
	struct hlist_node hlist;
};

static void lists(void **state)
{
	static struct item items[3];
	size_t offset = offsetof(struct item, list);
	struct list_head head;
	struct hlist_head hhead;
	struct item *item;
	int n = 0;

	(void)state;
	quiesce_INIT_LIST_HEAD(&head);
	quiesce_INIT_HLIST_HEAD(&hhead);
	assert_true(quiesce_list_empty(&head) && quiesce_hlist_empty(&hhead));
	assert_null(quiesce_list_first_or_null_rcu(&head, offset));
	for (int i = 0; i < 3; i++) {
		items[i].number = i;
		quiesce_list_add_tail_rcu(&items[i].list, &head);
		quiesce_hlist_add_tail_rcu(&items[i].hlist, &hhead);
	}
	rcu_read_lock();
	for (item = quiesce_list_first_or_null_rcu(&head, offset); item; item = quiesce_list_next_or_null_rcu(&head, &item->list, offset))
		assert_int_equal(item->number, n++);
	hlist_for_each_entry_rcu(item, &hhead, hlist)
		assert_int_equal(item->number, n++ - 3);
	rcu_read_unlock();
	assert_int_equal(n, 6);
	quiesce_list_del_rcu(&items[0].list);
	quiesce_hlist_del_rcu(&items[0].hlist);
	assert_true(quiesce_list_is_first(&items[1].list, &head) && quiesce_list_is_last(&items[2].list, &head));
	assert_ptr_equal(hhead.first, &items[1].hlist);
}

static void queues(void **state)
{
	struct wfcq_head head = WFCQ_HEAD_INIT, other = WFCQ_HEAD_INIT;
	struct wfcq_tail tail = WFCQ_TAIL_INIT(head), other_tail = WFCQ_TAIL_INIT(other);
	struct wfcq_node node[3];
	int last;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(quiesce_wfcq_enqueue(&head, &tail, &node[i]), i > 0);
	assert_ptr_equal(quiesce_wfcq_dequeue_with_state_nonblocking(&head, &tail, &last), &node[0]);
	assert_int_equal(last, 0);
	assert_int_equal(quiesce_wfcq_splice_nonblocking(&other, &other_tail, &head, &tail), WFCQ_RET_DEST_EMPTY);
	assert_int_equal(quiesce_wfcq_splice_blocking(&other, &other_tail, &head, &tail), WFCQ_RET_SRC_EMPTY);
	assert_ptr_equal(quiesce_wfcq_wait(&other_tail, &other.node), &node[1]);
	assert_ptr_equal(quiesce_wfcq_dequeue_with_state_blocking(&other, &other_tail, &last), &node[1]);
	assert_ptr_equal(quiesce_wfcq_dequeue_with_state_blocking(&other, &other_tail, &last), &node[2]);
	assert_int_equal(last, WFCQ_STATE_LAST);
	assert_null(quiesce_wfcq_wait(&other_tail, &other.node));
}

static void queues_of_many(void **state)
{
	struct lfq_queue q = LFQ_INIT;
	struct lfq_node node[2];

	(void)state;
	rcu_read_lock();
	quiesce_lfq_enqueue(&q, &node[0]);
	quiesce_lfq_enqueue(&q, &node[1]);
	assert_int_equal(quiesce_lfq_destroy(&q), -EPERM);
	assert_ptr_equal(quiesce_lfq_dequeue(&q), &node[0]);
	assert_ptr_equal(quiesce_lfq_dequeue(&q), &node[1]);
	assert_null(quiesce_lfq_dequeue(&q));
	rcu_read_unlock();
	assert_int_equal(quiesce_lfq_destroy(&q), 0);
	synchronize_rcu();
}

static void stacks(void **state)
{
	struct wfs_node w[2];
	struct lfs_node l[2];
	DEFINE_WFS_STACK(wfs);
	DEFINE_LFS_STACK(lfs);

	(void)state;
	assert_false(quiesce_wfs_push(&wfs, &w[0]));
	assert_true(quiesce_wfs_push(&wfs, &w[1]));
	assert_ptr_equal(quiesce_wfs_pop_blocking(&wfs), &w[1]);
	assert_ptr_equal(quiesce_wfs_pop_nonblocking(&wfs), &w[0]);
	wfs_push(&wfs, &w[0]);
	assert_ptr_equal(quiesce_wfs_pop_all(&wfs), &w[0]);
	assert_false(quiesce_lfs_push(&lfs, &l[0]));
	assert_true(quiesce_lfs_push(&lfs, &l[1]));
	assert_ptr_equal(quiesce_lfs_pop(&lfs), &l[1]);
	assert_ptr_equal(quiesce_lfs_pop_all(&lfs), &l[0]);
	assert_null(quiesce_lfs_pop(&lfs));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(rcu_sections), TEST(guards), TEST(slots), TEST(marked_pointers), TEST(counted_references), TEST(counted_pointers),
		TEST(offsets), TEST(object_caches), TEST(percpu_references),
		TEST(srcu_sections), TEST(read_locks), TEST(lookups), TEST(pointers),
		TEST(lists), TEST(queues), TEST(queues_of_many), TEST(stacks),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
