/* SPDX-License-Identifier: MIT */
/* test_twice.c - reports of debug builds about objects that are queued, or inserted into a table, while they are there already. */
#define _GNU_SOURCE
#include "../sanitized.h"
#include "misuses.h"

#include <quiesce/ds/hashtable.h>
#include <quiesce/hazptr.h>
#include <quiesce/srcu.h>

#include "release_build.h"

#if !defined(QUIESCE_DEBUG)
#error "is about debug builds"
#endif

struct object {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	uint64_t key;
};
HASHTABLE_TYPE(object, struct object, key);

DEFINE_STATIC_SRCU(domain);
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
static struct object one;
static int nr_run;

static void run(struct rcu_head *head)
{
	assert_ptr_equal(head, &one.rcu);
	count_up(&nr_run);
}

static void run_hazptr(struct hazptr_head *head)
{
	assert_ptr_equal(head, &one.hazptr);
	count_up(&nr_run);
}

static void run_object(void *object)
{
	assert_ptr_equal(object, &one);
	count_up(&nr_run);
}

static void drain(void)
{
	rcu_barrier();
	srcu_barrier(&domain);
	hazptr_barrier();
	synchronize_hazptr_cohort(&cohort);
}

/* ---- ways to queue the object ---- */

static void by_rcu(void)
{
	call_rcu(&one.rcu, run);
}

static void by_rcu_sized(void)
{
	call_rcu_sized(&one.rcu, run, 1000);
}

static void by_srcu(void)
{
	call_srcu(&domain, &one.rcu, run);
}

static void by_srcu_sized(void)
{
	call_srcu_sized(&domain, &one.rcu, run, 1000);
}

static void by_hazptr(void)
{
	call_hazptr(&one.hazptr, run_hazptr);
}

static void by_hazptr_sized(void)
{
	call_hazptr_sized(&one.hazptr, run_hazptr, 1000);
}

static void by_hazptr_inline(void)
{
	call_hazptr_inline(&one.hazptr, run_hazptr);
}

static void by_hazptr_inline_sized(void)
{
	call_hazptr_inline_sized(&one.hazptr, run_hazptr, 1000);
}

static void by_cohort(void)
{
	call_hazptr_cohort(&cohort, &one.hazptr, run_hazptr);
}

static void by_retire(void)
{
	hazptr_retire(&one, run_object);
}

static void by_retire_sized(void)
{
	hazptr_retire_sized(&one, run_object, 1000);
}

static const struct way {
	void (*queue)(void);
	const char *call;
	int place; /* equal for ways that queue the same address */
} ways[] = {
	{ by_rcu, "call_rcu()", 0 },
	{ by_rcu_sized, "call_rcu()", 0 },
	{ by_srcu, "call_srcu()", 0 },
	{ by_srcu_sized, "call_srcu()", 0 },
	{ by_hazptr, "call_hazptr()", 1 },
	{ by_hazptr_sized, "call_hazptr()", 1 },
	{ by_hazptr_inline, "call_hazptr_inline()", 1 },
	{ by_hazptr_inline_sized, "call_hazptr_inline()", 1 },
	{ by_cohort, "call_hazptr_cohort()", 1 },
	{ by_retire, "hazptr_retire()", 0 },
	{ by_retire_sized, "hazptr_retire()", 0 },
};
#define NR_WAYS (sizeof ways / sizeof ways[0])

/* A reader or slot keeps the object in its queue. */
static void hold(int *idx, hazptr_t **slot)
{
	void *first = &one, *head = &one.hazptr;

	rcu_read_lock();
	*idx = srcu_read_lock(&domain);
	hazptr_protect(slot[0], &first);
	hazptr_protect(slot[1], &head);
}

static void let_go(int idx, hazptr_t **slot)
{
	hazptr_clear(slot[0]);
	hazptr_clear(slot[1]);
	srcu_read_unlock(&domain, idx);
	rcu_read_unlock();
}

/* Two calls of different kinds are reported, too.  The callback runs once, and then the object may be queued again. */
static void queued_twice(const struct way *first, const struct way *second, hazptr_t **slot)
{
	int idx, ran = flag_get(&nr_run);
	char text[64];

	hold(&idx, slot);
	accepted(first->queue);
	reported(second->queue, QUIESCE_MISUSE_TWICE, second->call);
	snprintf(text, sizeof text, "queued already: %s at ", first->call);
	last_says(text);
	last_has_places(2);
	let_go(idx, slot);
	drain();
	assert_int_equal(flag_get(&nr_run), ran + 1);
}

static void a_queued_object_is_not_queued_again(void **state)
{
	hazptr_t *slot[2] = { hazptr_alloc(NULL), hazptr_alloc(NULL) };

	(void)state;
	for (size_t i = 0; i < NR_WAYS; i++)
		for (size_t k = 0; k < NR_WAYS; k++)
			if (ways[i].place == ways[k].place)
				queued_twice(&ways[i], &ways[k], slot);
	hazptr_free(NULL, slot[0]);
	hazptr_free(NULL, slot[1]);
}

static void twice_by_rcu(void)
{
	rcu_read_lock();
	by_rcu();
	by_rcu();
}

static void by_default_it_is_fatal(void **state)
{
	(void)state;
	fatal(twice_by_rcu, "call_rcu() at test_twice+0x");
}

/* ---- objects for free() ---- */

static struct object *freed;

static void kfree_by_rcu(void)
{
	kfree_rcu(freed, rcu);
}

static void kfree_by_hazptr(void)
{
	kfree_hazptr(freed, hazptr);
}

static void an_object_to_be_freed_is_not_freed_twice(void **state)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	uint64_t run_before = stats_now().callbacks_run;

	(void)state;
	freed = malloc(sizeof *freed);
	rcu_read_lock();
	accepted(kfree_by_rcu);
	reported(kfree_by_rcu, QUIESCE_MISUSE_TWICE, "kfree_rcu() at ");
	rcu_read_unlock();
	rcu_barrier(); /* malloc() would notice a second free() */
	assert_true(stats_now().callbacks_run == run_before + 1);
	freed = malloc(sizeof *freed);
	assert_ptr_equal(hazptr_protect(slot, &freed, hazptr), freed);
	accepted(kfree_by_hazptr);
	reported(kfree_by_hazptr, QUIESCE_MISUSE_TWICE, "kfree_hazptr() at ");
	hazptr_free(NULL, slot);
	hazptr_barrier();
}

/* ---- allowed uses ---- */

static int nr_left;

static void run_again(struct rcu_head *head)
{
	if (nr_left-- > 0)
		call_rcu(head, run_again);
	else
		count_up(&nr_run);
}

static void again_from_the_callback(void)
{
	nr_left = 5;
	call_rcu(&one.rcu, run_again);
	wait_until(flag_get(&nr_run));
	rcu_barrier();
}

static void many(void)
{
	static struct object objects[100000]; /* more than there is room for */

	rcu_read_lock();
	nr_left = 0;
	for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
		call_rcu(&objects[i].rcu, run_again);
	rcu_read_unlock();
	rcu_barrier();
}

/* A reader may copy an object that it has found, and the copy is another object. */
static void a_copy(void)
{
	static struct object copy;

	rcu_read_lock();
	nr_left = -1;
	call_rcu(&one.rcu, run_again);
	copy = one;
	call_rcu(&copy.rcu, run_again);
	rcu_read_unlock();
	rcu_barrier();
}

static void reclaimed_objects_may_be_queued_again(void **state)
{
	(void)state;
	nr_run = 0;
	accepted(again_from_the_callback);
	nr_run = 0;
	accepted(many);
	assert_int_equal(flag_get(&nr_run), 100000);
	nr_run = 0;
	accepted(a_copy);
	assert_int_equal(flag_get(&nr_run), 2);
}

/* ---- fork ---- */

static void the_parents_comes_back(void)
{
	rcu_read_unlock();
	drain();
	must(flag_get(&nr_run) == 1);
	by_rcu();
	drain();
	must(flag_get(&nr_run) == 2);
}

static void a_child_knows_what_is_queued(void **state)
{
	(void)state;
	nr_run = 0;
	rcu_read_lock();
	by_rcu();
	succeeds(the_parents_comes_back);
	rcu_read_unlock();
	drain();
	assert_int_equal(flag_get(&nr_run), 1);
}

#if !SANITIZED /* allocators of sanitizers leave a child their locks as another thread held them */
static int enough;

static void nothing(struct rcu_head *head)
{
	free(head);
}

static void *retires(void *unused)
{
	(void)unused;
	while (!flag_get(&enough)) {
		struct rcu_head *head = malloc(sizeof *head);

		assert_non_null(head);
		call_rcu(head, nothing);
		if (stats_now().garbage_objects > 1000)
			rcu_barrier();
	}
	return NULL;
}

static void queues_and_drains(void)
{
	by_rcu();
	drain();
}

/* A fork may come while another thread is changing the table of queued objects. */
static void forks_beside_retirers(void **state)
{
	pthread_t thread[2];

	(void)state;
	threads_begin(thread, 2, retires, NULL);
	for (int i = 0; i < 50; i++)
		succeeds(queues_and_drains);
	flag_set(&enough);
	threads_end(thread, 2);
	rcu_barrier();
}
#endif

/* ---- beside release builds ---- */

static void release_then_debug(void)
{
	release_call_rcu(&one.rcu, run);
	drain();
	by_rcu();
	drain();
	release_call_rcu(&one.rcu, run);
	drain();
}

static void twice_with_a_release_build(void)
{
	rcu_read_lock();
	release_call_rcu(&one.rcu, run);
	by_rcu(); /* a release build left no note that it is queued */
	rcu_read_unlock();
	drain();
}

static void release_builds_queue_too(void **state)
{
	(void)state;
	nr_run = 0;
	accepted(release_then_debug);
	assert_int_equal(flag_get(&nr_run), 3);
	nr_run = 0;
	reported(twice_with_a_release_build, QUIESCE_MISUSE_TWICE, "comes back twice");
	assert_int_equal(flag_get(&nr_run), 1); /* the callback of the release build is not run with an unknown function */
}

/* ---- tables ---- */

static struct hashtable table = HASHTABLE_INIT(&object_type);

static void put_in(void)
{
	assert_int_equal(hashtable_insert(&table, &one), 0);
}

static void put_in_again(void)
{
	assert_int_equal(hashtable_insert(&table, &one), -EINVAL);
}

static void put_in_by_type(void)
{
	assert_int_equal(object_insert(&table, &one), -EINVAL);
}

static void an_object_is_in_a_table_once(void **state)
{
	static struct object same_key[20];

	(void)state;
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(hashtable_insert(&table, &same_key[i]), 0);
	accepted(put_in);
	reported(put_in_again, QUIESCE_MISUSE_TWICE, "hashtable_insert() at ");
	reported(put_in_by_type, QUIESCE_MISUSE_TWICE, "in the table already");
	last_has_places(1);
	assert_int_equal(hashtable_count(&table), 21);
	assert_int_equal(hashtable_remove(&table, &one), 0);
	accepted(put_in);
	hashtable_destroy(&table, NULL, NULL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_queued_object_is_not_queued_again),
		TEST(by_default_it_is_fatal),
		TEST(an_object_to_be_freed_is_not_freed_twice),
		TEST(reclaimed_objects_may_be_queued_again),
		TEST(a_child_knows_what_is_queued),
#if !SANITIZED
		TEST(forks_beside_retirers),
#endif
		TEST(release_builds_queue_too),
		TEST(an_object_is_in_a_table_once),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
