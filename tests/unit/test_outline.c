/* SPDX-License-Identifier: MIT */
/* test_outline.c - exported wrappers of inline calls, reached as bindings do: by symbols that no header declares, with the same effect. */
#include <quiesce/counted_ptr.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include "testing.h"

void quiesce_rcu_read_lock(void);
void quiesce_rcu_read_unlock(void);
int quiesce_rcu_read_lock_held(void);
struct shazptr_guard quiesce_shazptr_acquire(const void *ptr);
struct shazptr_guard quiesce_shazptr_protect(void **where);
struct shazptr_guard quiesce_shazptr_tryprotect(void **where);
void quiesce_shazptr_clear(struct shazptr_guard guard);
hazptr_t *quiesce_hazptr_alloc(struct hazptr_context *ctx);
void quiesce_hazptr_free(struct hazptr_context *ctx, hazptr_t *slot);
void *quiesce_hazptr_protect(hazptr_t *slot, void **where, size_t offset);
void *quiesce_hazptr_tryprotect(hazptr_t *slot, void **where, size_t offset);
void quiesce_hazptr_clear(hazptr_t *slot);
void quiesce_counted_get(struct counted *counted);
bool quiesce_counted_tryget(struct counted *counted);
bool quiesce_counted_put(struct counted *counted);
void *quiesce_counted_load(void **where, size_t offset);
void quiesce_percpu_ref_get(struct percpu_ref *ref);
bool quiesce_percpu_ref_tryget(struct percpu_ref *ref);
bool quiesce_percpu_ref_tryget_live(struct percpu_ref *ref);
void quiesce_percpu_ref_put(struct percpu_ref *ref);
int quiesce_srcu_read_lock(struct srcu_struct *ssp);
void quiesce_srcu_read_unlock(struct srcu_struct *ssp, int idx);
void quiesce_percpu_down_read(struct percpu_rw_semaphore *sem);
bool quiesce_percpu_down_read_trylock(struct percpu_rw_semaphore *sem);
void quiesce_percpu_up_read(struct percpu_rw_semaphore *sem);
uint64_t quiesce_hashmap_lookup(const struct hashmap *map, uint64_t key);
void *quiesce_hashtable_lookup(const struct hashtable *ht, const struct hashtable_type *type, const void *key);
void *quiesce_hashtable_lookup_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
				      hazptr_t *slot, size_t offset);
bool quiesce_wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node);
struct wfcq_node *quiesce_wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state);
enum wfcq_ret quiesce_wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
					      struct wfcq_tail *src_tail);
void *quiesce_idr_find(const struct idr *idr, unsigned long id);
bool quiesce_lfs_push(struct lfs_stack *s, struct lfs_node *node);
struct lfs_node *quiesce_lfs_pop(struct lfs_stack *s);
struct lfs_head *quiesce_lfs_pop_all(struct lfs_stack *s);
bool quiesce_wfs_push(struct wfs_stack *s, struct wfs_node *node);
struct wfs_node *quiesce_wfs_pop_blocking(struct wfs_stack *s);
struct wfs_node *quiesce_wfs_pop_nonblocking(struct wfs_stack *s);
struct wfs_head *quiesce_wfs_pop_all(struct wfs_stack *s);
void *quiesce_xa_load(const struct xarray *xa, unsigned long index);

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
	for (int i = 0; i < 3; i++) {
		struct shazptr_guard guard = i == 0 ? quiesce_shazptr_acquire(&thing) :
					     i == 1 ? quiesce_shazptr_protect(&where) :
						      quiesce_shazptr_tryprotect(&where);

		assert_ptr_equal(shazptr_ptr(guard), &thing);
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
		TEST(rcu_sections), TEST(guards), TEST(slots), TEST(counted_references), TEST(percpu_references), TEST(srcu_sections),
		TEST(read_locks), TEST(lookups), TEST(queues), TEST(queues_of_many), TEST(stacks),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
