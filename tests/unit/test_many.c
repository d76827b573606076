/* SPDX-License-Identifier: MIT */
/* test_many.c - calls that take several objects: none, many, the same one twice, NULL, one in a wrong state. */
#define _GNU_SOURCE
#include "misuses.h"

#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/rcuhlist.h>
#include <quiesce/ds/rculist.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>

#include <sys/mman.h>

#ifdef QUIESCE_DEBUG
enum { DEBUG_BUILD = 1 };
#else
enum { DEBUG_BUILD = 0 };
#endif

/* The hook counts reports, and the program goes on. */
static int nr_of_kind[QUIESCE_MISUSE_TWICE + 1];

static void count_kinds(enum quiesce_misuse kind, const char *text)
{
	(void)text;
	nr_of_kind[kind]++;
}

static void begin_counting(void)
{
	memset(nr_of_kind, 0, sizeof nr_of_kind);
	quiesce_set_misuse_hook(count_kinds);
}

static int end_counting(enum quiesce_misuse kind)
{
	int all = 0;

	quiesce_set_misuse_hook(NULL);
	for (size_t i = 0; i < sizeof nr_of_kind / sizeof nr_of_kind[0]; i++)
		all += nr_of_kind[i];
	assert_int_equal(all, nr_of_kind[kind]);
	return all;
}

/* ---- percpu_ref_kill_many() ---- */

static int released;

static void on_release(struct percpu_ref *ref)
{
	(void)ref;
	count_up(&released);
}

static void many_are_killed_for_one_membarrier(void **state)
{
	enum { MANY = 1000 };
	static struct percpu_ref refs[MANY], *list[MANY];
	struct quiesce_stats before;

	(void)state;
	released = 0;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(percpu_ref_init(&refs[i], on_release, i % 3 ? 0 : PERCPU_REF_INIT_ATOMIC), 0);
		list[i] = &refs[i];
		if (i % 2)
			percpu_ref_get(&refs[i]);
	}
	before = stats_now();
	percpu_ref_kill_many(list, MANY);
	assert_in_range(stats_now().membarriers - before.membarriers, 0, 1);
	assert_int_equal(released, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		assert_true(percpu_ref_is_dying(&refs[i]));
		assert_false(percpu_ref_tryget_live(&refs[i]));
		assert_int_equal(percpu_ref_is_zero(&refs[i]), i % 2 == 0);
		if (i % 2)
			percpu_ref_put(&refs[i]);
		percpu_ref_exit(&refs[i]);
	}
	assert_int_equal(released, MANY);
	percpu_ref_kill_many(NULL, 0);
}

static void unmap(struct percpu_ref *ref)
{
	percpu_ref_exit(ref);
	assert_int_equal(munmap(ref, (size_t)sysconf(_SC_PAGESIZE)), 0);
	count_up(&released);
}

static struct percpu_ref *mapped(void)
{
	struct percpu_ref *ref =
		mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(ref, MAP_FAILED);
	assert_int_equal(percpu_ref_init(ref, unmap, 0), 0);
	return ref;
}

/* The release function frees the memory in which the count of another entry would be. */
static void a_count_that_stands_there_twice_is_killed_once(void **state)
{
	struct percpu_ref *ref = mapped(), *other = mapped(), *list[] = { ref, other, ref, ref };

	(void)state;
	released = 0;
	begin_counting();
	percpu_ref_kill_many(list, 4);
	assert_int_equal(end_counting(QUIESCE_MISUSE_COUNT), 2);
	assert_int_equal(released, 2);
}

static struct percpu_ref together[3];

/* None is released while another one is live. */
static void release_together(struct percpu_ref *ref)
{
	for (size_t i = 0; i < 3; i++)
		assert_false(percpu_ref_tryget_live(&together[i]));
	assert_true(percpu_ref_is_dying(ref));
	count_up(&released);
}

static void begin_together(void)
{
	released = 0;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(percpu_ref_init(&together[i], release_together, PERCPU_REF_ALLOW_REINIT), 0);
}

static void end_together(void)
{
	assert_int_equal(released, 3);
	for (size_t i = 0; i < 3; i++)
		percpu_ref_exit(&together[i]);
}

static void a_count_that_cannot_be_killed_stops_no_other(void **state)
{
	struct percpu_ref dead, never = { .state = 0 }, gone;
	struct percpu_ref *list[] = { &dead, &together[0], NULL, &together[1], &never, &gone, &together[2] };

	(void)state;
	begin_together();
	assert_int_equal(percpu_ref_init(&dead, on_release, PERCPU_REF_INIT_DEAD), 0);
	assert_int_equal(percpu_ref_init(&gone, on_release, PERCPU_REF_INIT_DEAD), 0);
	percpu_ref_exit(&gone);
	begin_counting();
	percpu_ref_kill_many(list, sizeof list / sizeof list[0]);
	quiesce_set_misuse_hook(NULL);
	assert_int_equal(nr_of_kind[QUIESCE_MISUSE_COUNT], 3);
	assert_int_equal(nr_of_kind[QUIESCE_MISUSE_NULL], 1);
	end_together();
	percpu_ref_exit(&dead);
}

static int confirming;
static sem_t may_go_on;

static void confirm_late(struct percpu_ref *ref)
{
	(void)ref;
	flag_set(&confirming);
	wait_for(&may_go_on);
}

static void *switch_second(void *unused)
{
	percpu_ref_switch_to_atomic(&together[1], confirm_late);
	return unused;
}

static void *kill_all_three(void *tid)
{
	struct percpu_ref *list[] = { &together[0], &together[1], &together[2] };

	quiesce_store_relaxed((pid_t *)tid, my_tid());
	percpu_ref_kill_many(list, 3);
	return NULL;
}

static void a_changing_count_is_awaited_before_any_is_released(void **state)
{
	pthread_t switcher, killer;
	pid_t tid = 0;

	(void)state;
	begin_together();
	confirming = 0;
	sem_init(&may_go_on, 0, 0);
	percpu_ref_get(&together[1]);
	thread_must(pthread_create(&switcher, NULL, switch_second, NULL));
	wait_until(flag_get(&confirming));
	thread_must(pthread_create(&killer, NULL, kill_all_three, &tid));
	wait_until(percpu_ref_is_dying(&together[0]) && percpu_ref_is_dying(&together[2]));
	wait_until(thread_state(quiesce_load_relaxed(&tid)) == 'S');
	assert_int_equal(flag_get(&released), 0);
	sem_post(&may_go_on);
	pthread_join(killer, NULL);
	pthread_join(switcher, NULL);
	assert_int_equal(released, 2);
	percpu_ref_put(&together[1]);
	end_together();
}

static void confirm_that_kills_many(struct percpu_ref *ref)
{
	struct percpu_ref *list[] = { &together[0], ref, &together[2] };

	percpu_ref_kill_many(list, 3);
	assert_false(percpu_ref_is_dying(ref));
	assert_true(percpu_ref_is_dying(&together[0]) && percpu_ref_is_dying(&together[2]));
}

static void many_in_a_confirm_function_are_killed_but_its_own(void **state)
{
	(void)state;
	begin_together();
	for (size_t i = 0; i < 3; i++)
		together[i].release = on_release;
	begin_counting();
	percpu_ref_switch_to_atomic(&together[1], confirm_that_kills_many);
	assert_int_equal(end_counting(QUIESCE_MISUSE_WAIT_IN_CALLBACK), 1);
	assert_int_equal(released, 2);
	percpu_ref_kill(&together[1]);
	end_together();
}

static void kill_null(void)
{
	percpu_ref_kill(NULL);
}

static void kill_twice(void)
{
	struct percpu_ref *list[] = { &together[0], &together[0] };

	begin_together();
	percpu_ref_kill_many(list, 2);
}

static void by_default_it_is_fatal(void **state)
{
	(void)state;
	if (QUIESCE_TSAN)
		return; /* ThreadSanitizer does not survive a fork of a process that had threads */
	fatal(kill_null, "percpu_ref_kill() of NULL");
	fatal(kill_twice, "which has been killed");
}

/* ---- percpu_down_write_many() ---- */

static struct percpu_rw_semaphore locks[3] = { PERCPU_RWSEM_INIT };

static void a_lock_that_stands_there_twice_is_acquired_once(void **state)
{
	struct percpu_rw_semaphore *list[] = { &locks[0], &locks[1], &locks[0], NULL, &locks[2], &locks[2], &locks[1] };

	(void)state;
	for (int round = 0; round < 2; round++) {
		begin_counting();
		percpu_down_write_many(list, sizeof list / sizeof list[0]);
		quiesce_set_misuse_hook(NULL);
		assert_int_equal(nr_of_kind[QUIESCE_MISUSE_TWICE], 3);
		assert_int_equal(nr_of_kind[QUIESCE_MISUSE_NULL], 1);
		for (size_t i = 0; i < 3; i++) {
			assert_true(percpu_is_write_locked_by_me(&locks[i]));
			assert_int_equal(locks[i].rss.gp_count, 1);
			assert_false(percpu_down_read_trylock(&locks[i]));
			percpu_up_write(&locks[i]);
			assert_false(percpu_is_write_locked(&locks[i]));
			assert_true(percpu_down_read_trylock(&locks[i]));
			percpu_up_read(&locks[i]);
			begin_counting();
			percpu_up_write(&locks[i]);
			assert_int_equal(end_counting(QUIESCE_MISUSE_UNBALANCED_UNLOCK), 1);
		}
	}
	for (size_t i = 0; i < 3; i++)
		percpu_free_rwsem(&locks[i]);
}

static void *release_first(void *unused)
{
	wait_for(&may_go_on);
	percpu_up_write(&locks[0]);
	return unused;
}

/* To wait for a lock that another thread holds is no misuse: it was not acquired by this call. */
static void a_lock_that_another_thread_will_release_is_waited_for(void **state)
{
	struct percpu_rw_semaphore *list[] = { &locks[1], &locks[0] };
	pthread_t thread;

	(void)state;
	if (DEBUG_BUILD) { /* a debug build knows that this thread holds the lock */
		print_message("# the debug build reports it\n");
		return;
	}
	sem_init(&may_go_on, 0, 0);
	percpu_down_write(&locks[0]);
	thread_must(pthread_create(&thread, NULL, release_first, NULL));
	begin_counting();
	sem_post(&may_go_on);
	percpu_down_write_many(list, 2);
	assert_int_equal(end_counting(QUIESCE_MISUSE_TWICE), 0);
	pthread_join(thread, NULL);
	percpu_up_write(&locks[0]);
	percpu_up_write(&locks[1]);
	percpu_free_rwsem(&locks[0]);
	percpu_free_rwsem(&locks[1]);
}

static struct percpu_rw_semaphore zero;
static int writing, stop, beside, nr_sections;

static void *read_zero(void *unused)
{
	while (!flag_get(&stop)) {
		percpu_down_read(&zero);
		if (flag_get(&writing))
			flag_set(&beside);
		count_up(&nr_sections);
		percpu_up_read(&zero);
	}
	return unused;
}

/* A lock may be a member of a zeroed allocation, for example. */
static void a_lock_that_is_all_zero_excludes(void **state)
{
	struct percpu_rw_semaphore *list[] = { &zero, &zero };
	pthread_t thread;

	(void)state;
	stop = 0;
	thread_must(pthread_create(&thread, NULL, read_zero, NULL));
	wait_until(flag_get(&nr_sections) > 1000);
	for (int i = 0; i < 20; i++) {
		begin_counting();
		percpu_down_write_many(list, 1 + i % 2);
		assert_int_equal(end_counting(QUIESCE_MISUSE_TWICE), i % 2);
		flag_set(&writing);
		for (int k = 0; k < 20; k++)
			short_rest();
		quiesce_store_relaxed(&writing, 0);
		percpu_up_write(&zero);
	}
	flag_set(&stop);
	pthread_join(thread, NULL);
	assert_false(beside);
	percpu_free_rwsem(&zero);
}

/* ---- slots ---- */

static int objects[8];

static void no_row_has_no_slots(void **state)
{
	struct hazptr_context ctx;
	hazptr_t *row;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	for (int round = 0; round < 2; round++) {
		struct hazptr_context *from = round ? &ctx : NULL;

		row = hazptr_alloc_array(from, HAZPTR_SLOT_PER_CTX);
		assert_non_null(row);
		hazptr_free_array(from, row, HAZPTR_SLOT_PER_CTX);
		assert_null(hazptr_alloc_array(from, 0));
		assert_null(hazptr_alloc_array(from, HAZPTR_SLOT_PER_CTX + 1));
		assert_null(hazptr_alloc_array(from, SIZE_MAX));
		hazptr_free_array(from, NULL, 3);
	}
	cleanup_hazptr_context(&ctx);
}

static void a_batch_that_fails_names_no_slots(void **state)
{
	enum { TOO_MANY = HAZPTR_SLOT_PER_CTX + 2 };
	hazptr_t *slots[TOO_MANY], *row;
	struct hazptr_context ctx;

	(void)state;
	assert_int_equal(init_hazptr_context(&ctx), 0);
	memset(slots, 0xff, sizeof slots);
	assert_false(hazptr_alloc_batch(&ctx, slots, TOO_MANY));
	for (int i = 0; i < TOO_MANY; i++)
		assert_null(slots[i]);
	hazptr_free_batch(&ctx, slots, TOO_MANY);
	assert_true(hazptr_alloc_batch(&ctx, slots, 0));
	row = hazptr_alloc_array(&ctx, HAZPTR_SLOT_PER_CTX);
	assert_non_null(row);
	hazptr_free_array(&ctx, row, HAZPTR_SLOT_PER_CTX);
	cleanup_hazptr_context(&ctx);
}

static hazptr_t *batch[3];
static void *sources[3] = { &objects[0], &objects[1], &objects[2] }, *found[3];
static void **const places[3] = { &sources[0], &sources[1], &sources[2] };

static void protect_twice(void)
{
	hazptr_protect_batch(batch, places, found, 3);
}

/* A slot protects one pointer. */
static void a_slot_that_stands_there_twice(void **state)
{
	hazptr_t *third;

	(void)state;
	assert_true(hazptr_alloc_batch(NULL, batch, 3));
	hazptr_protect_batch(batch, places, found, 0);
	accepted(protect_twice);
	assert_ptr_equal(found[2], &objects[2]);
	third = batch[2];
	batch[2] = batch[0];
	if (DEBUG_BUILD) {
		reported(protect_twice, QUIESCE_MISUSE_TWICE, "twice: it protects one pointer");
		assert_null(found[0]);
		assert_null(found[2]);
	}
	hazptr_clear_batch(batch, 3); /* a slot may be cleared twice */
	batch[2] = third;
	hazptr_free_batch(NULL, batch, 3);
}

/* ---- containers ---- */

struct item { uint64_t key; struct list_head list; struct hlist_node hlist; };

static const void *item_key(const void *object)
{
	return &((const struct item *)object)->key;
}

static uint64_t item_hash(const void *key, uint64_t seed)
{
	return *(const uint64_t *)key * 0x9e3779b97f4a7c15u + seed;
}

static bool item_equal(const void *object, const void *key)
{
	return ((const struct item *)object)->key == *(const uint64_t *)key;
}

static const struct hashtable_type item_type = { .key = item_key, .hash = item_hash, .equal = item_equal };

/* An object that replaces itself must not be retired. */
static void an_object_put_in_the_place_of_itself(void **state)
{
	struct hashtable table = HASHTABLE_INIT(&item_type);
	struct item one = { .key = 1 }, other = { .key = 1 };
	void *old = &other;

	(void)state;
	assert_int_equal(hashtable_set(&table, &one, &old), 0);
	assert_null(old);
	assert_int_equal(hashtable_set(&table, &one, &old), 0);
	assert_ptr_equal(old, &one);
	assert_int_equal(hashtable_count(&table), 1);
	assert_int_equal(hashtable_replace(&table, &one, &one), -EINVAL);
	assert_int_equal(hashtable_replace(&table, NULL, &one), -EINVAL);
	assert_int_equal(hashtable_replace(&table, &one, NULL), -EINVAL);
	assert_int_equal(hashtable_remove(&table, NULL), -EINVAL);
	assert_int_equal(hashtable_insert_unique(&table, &one, &old), -EEXIST);
	assert_ptr_equal(old, &one);
	assert_int_equal(hashtable_set(&table, &other, &old), 0);
	assert_ptr_equal(old, &one);
	assert_int_equal(hashtable_remove(&table, &other), 0);
	assert_int_equal(hashtable_remove(&table, &other), -ENOENT);
	assert_int_equal(hashtable_replace(&table, &other, &other), -ENOENT);
	assert_int_equal(hashtable_count(&table), 0);
	hashtable_destroy(&table, NULL, NULL);
}

static int nr_syncs;

static void count_sync(void)
{
	nr_syncs++;
}

static int length(struct list_head *head)
{
	struct item *item;
	int nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(item, head, list)
		assert_true(++nr < 10);
	rcu_read_unlock();
	return nr;
}

static void a_list_that_is_moved_to_itself(void **state)
{
	struct item item[3] = { { .key = 0 } };
	LIST_HEAD(list);
	LIST_HEAD(other);

	(void)state;
	nr_syncs = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(length(&list), i);
		list_splice_init_rcu(&list, &list, count_sync);
		list_splice_tail_init_rcu(&list, &list, count_sync);
		assert_int_equal(length(&list), i);
		list_add_rcu(&item[i].list, &list);
	}
	assert_int_equal(nr_syncs, 0);
	list_splice_tail_init_rcu(&list, &other, count_sync);
	assert_int_equal(nr_syncs, 1);
	assert_int_equal(length(&list), 0);
	assert_int_equal(length(&other), 3);
	list_del_rcu(&item[1].list);
	assert_int_equal(length(&other), 2);
}

static void heads_that_are_the_same_are_swapped(void **state)
{
	struct hlist_head head = { NULL };
	struct item item = { .key = 0 };

	(void)state;
	hlists_swap_heads_rcu(&head, &head);
	assert_true(hlist_empty(&head));
	hlist_add_head_rcu(&item.hlist, &head);
	hlists_swap_heads_rcu(&head, &head);
	assert_ptr_equal(head.first, &item.hlist);
	hlist_del_rcu(&item.hlist);
	assert_true(hlist_empty(&head));
}

static void a_queue_that_is_moved_to_itself(void **state)
{
	struct wfcq_node node[3];
	struct wfcq_head head;
	struct wfcq_tail tail;

	(void)state;
	wfcq_init(&head, &tail);
	assert_int_equal(wfcq_splice_blocking(&head, &tail, &head, &tail), WFCQ_RET_SRC_EMPTY);
	for (int i = 0; i < 3; i++)
		wfcq_enqueue(&head, &tail, &node[i]);
	wfcq_splice_blocking(&head, &tail, &head, &tail);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(wfcq_dequeue_blocking(&head, &tail), &node[i]);
	assert_null(wfcq_dequeue_blocking(&head, &tail));
}

static void nothing_is_taken_out_of_an_array(void **state)
{
	struct xarray xa;

	(void)state;
	xa_init(&xa);
	assert_int_equal(xa_store(&xa, 1, &objects[0], NULL), 0);
	assert_int_equal(xa_extract(&xa, NULL, 0, ULONG_MAX, 0, XA_PRESENT), 0);
	assert_int_equal(xa_extract(&xa, NULL, 2, 1, 8, XA_PRESENT), 0);
	xa_destroy(&xa);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(many_are_killed_for_one_membarrier),
		TEST(a_count_that_stands_there_twice_is_killed_once),
		TEST(a_count_that_cannot_be_killed_stops_no_other),
		TEST(a_changing_count_is_awaited_before_any_is_released),
		TEST(many_in_a_confirm_function_are_killed_but_its_own),
		TEST(by_default_it_is_fatal),
		TEST(a_lock_that_stands_there_twice_is_acquired_once),
		TEST(a_lock_that_another_thread_will_release_is_waited_for),
		TEST(a_lock_that_is_all_zero_excludes),
		TEST(no_row_has_no_slots),
		TEST(a_batch_that_fails_names_no_slots),
		TEST(a_slot_that_stands_there_twice),
		TEST(an_object_put_in_the_place_of_itself),
		TEST(a_list_that_is_moved_to_itself),
		TEST(heads_that_are_the_same_are_swapped),
		TEST(a_queue_that_is_moved_to_itself),
		TEST(nothing_is_taken_out_of_an_array),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
