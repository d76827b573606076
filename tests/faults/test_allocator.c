/* SPDX-License-Identifier: MIT */
/* test_allocator.c - this program's malloc() and free() retire objects of their own in each call, including calls by the library, in
 * the middle of its work.
 *
 * An allocator that frees whole pages after a grace period works like this.  Its objects come from a static array, and the callback of
 * each runs once.
 */
#include "../unit/testing.h"

#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/idr.h>
#include <quiesce/hazptr.h>
#include <quiesce/srcu.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t nr, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *object);

enum { MOST = 400000 };

static struct page {
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
	};
} pages[MOST];

static uint32_t every;  /* every call of this number retires; 0: none does */
static uint32_t nr_calls, nr_pages;
static int nr_run;
static __thread int inside;
static int is_guarded;  /* set: it retires nothing when it is called for an object that it retires */

DEFINE_STATIC_SRCU(domain);

static void page_rcu(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void page_hazptr(struct hazptr_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void page_gone(void *unused)
{
	(void)unused;
	count_up(&nr_run);
}

static void retire_page(uint32_t n)
{
	struct page *page = &pages[n];

	switch (n % 5) {
	case 0:
		call_hazptr(&page->hazptr, page_hazptr);
		break;
	case 1:
		call_srcu(&domain, &page->rcu, page_rcu);
		break;
	case 2:
		call_hazptr_inline(&page->hazptr, page_hazptr);
		break;
	case 3:
		hazptr_retire(page, page_gone);
		break;
	default:
		call_rcu(&page->rcu, page_rcu);
	}
}

/* Retire a page in some calls, but not inside a retirement: that would recurse until all pages are retired. */
static void called(void)
{
	uint32_t n, now = flag_get(&every);

	if (!now || (inside && flag_get(&is_guarded)) || inside > 1)
		return;
	if (quiesce_fetch_add_relaxed(&nr_calls, 1u) % now) /* Relaxed: a count. */
		return;
	n = quiesce_fetch_add_relaxed(&nr_pages, 1u); /* Relaxed: a count. */
	if (n >= MOST)
		abort();
	inside++;
	retire_page(n);
	inside--;
}

void *malloc(size_t bytes)
{
	called();
	return __libc_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	called();
	return __libc_calloc(nr, bytes);
}

void *realloc(void *old, size_t bytes)
{
	called();
	return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	called();
	return __libc_memalign(alignment, bytes);
}

/* A free() that writes a log is a cancellation point. */
static __thread int rests;
static int nr_rests;
/* A free() that retires under its allocator's lock must not be entered again. */
static __thread int retires_under_lock, is_locked;
static int nr_entered_again;

static void retire_under_lock(void);

void free(void *object)
{
	called();
	__libc_free(object);
	if (retires_under_lock)
		retire_under_lock();
	if (rests) {
		count_up(&nr_rests);
		short_rest();
	}
}

/* ---- before the library is initialised ---- */

static void nothing(void)
{
}

/* Register so many handlers that the C library needs memory when the library's own constructor adds one. */
__attribute__((constructor(101))) static void fill_handlers(void)
{
	for (int i = 0; i < 48; i++)
		pthread_atfork(nothing, nothing, nothing);
	every = 1;
}

/* ---- what a program does ---- */

struct object {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
};

static void retire_either(uint32_t n)
{
	struct object *o = __libc_malloc(sizeof *o);

	if (n % 2)
		kfree_rcu(o, rcu);
	else
		kfree_hazptr(o, hazptr);
}

static void retire_under_lock(void)
{
	static __thread uint32_t nr;

	nr_entered_again += is_locked; /* one thread retires */
	if (is_locked++ == 0)
		retire_either(nr++ / 3);
	is_locked--;
}

static void free_rcu(struct rcu_head *head)
{
	free(head);
}

static void *retires(void *unused)
{
	for (int i = 0; i < 400; i++) {
		kfree_rcu((struct object *)malloc(sizeof(struct object)), rcu);
		call_rcu(&((struct object *)malloc(sizeof(struct object)))->rcu, free_rcu);
		kfree_hazptr((struct object *)malloc(sizeof(struct object)), hazptr);
		hazptr_retire(malloc(40), free);
		if (i % 100 == 99)
			kfree_rcu_mightsleep((struct object *)malloc(sizeof(struct object)));
	}
	return unused;
}

static void use_tables(void)
{
	static struct idr ids;
	static struct hashmap map;

	hashmap_init(&map);
	idr_init(&ids);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(hashmap_set(&map, i, i + 1, NULL), 0);
		assert_int_equal(idr_alloc(&ids, &map, 0, 0), (int)i);
	}
	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(hashmap_remove(&map, i), i + 1);
		assert_ptr_equal(idr_remove(&ids, (int)i), &map);
	}
	hashmap_destroy(&map);
	idr_destroy(&ids);
}

static void everything_has_run(void)
{
	quiesce_store_relaxed(&every, 0u); /* Relaxed: a flag of the test. */
	/* A thread of the library that has just begun may be about to retire one more. */
	do {
		rcu_barrier();
		srcu_barrier(&domain);
		hazptr_barrier();
	} while (flag_get(&nr_run) != (int)flag_get(&nr_pages));
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stats_now().garbage_objects, 0);
}

static void run_with(uint32_t each, int guarded)
{
	pthread_t threads[4];

	quiesce_store_relaxed(&is_guarded, guarded); /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&every, each); /* Relaxed: a flag of the test. */
	for (int round = 0; round < 3; round++) {
		threads_begin(threads, 4, retires, NULL);
		use_tables();
		threads_end(threads, 4);
	}
	everything_has_run();
	/* The owners may be this thread, the worker, the helper and the scan thread, but not the twelve that ended. */
	assert_in_range(stats_now().queues, 0, 4);
}

static void an_allocator_may_retire_before_the_library_is_initialised(void **state)
{
	(void)state;
	assert_true(nr_pages > 0);
	everything_has_run();
}

static void an_allocator_may_retire_in_some_calls(void **state)
{
	(void)state;
	run_with(7, 1);
}

static void an_allocator_may_retire_in_each_call(void **state)
{
	(void)state;
	run_with(1, 1);
}

static void an_allocator_may_be_called_for_objects_that_it_retires(void **state)
{
	(void)state;
	run_with(1, 0);
}

static void above_the_ceiling_it_does_not_wait(void **state)
{
	(void)state;
	quiesce_set_garbage_ceiling(1 << 16);
	quiesce_set_throttle(1);
	run_with(1, 1);
	run_with(1, 0);
	quiesce_set_throttle(0);
}

/* ---- free() is a cancellation point ---- */

static void *retires_and_rests(void *unused)
{
	for (int i = 0; i < 4000; i++) {
		struct object *o = malloc(sizeof *o);

		rests = i > 400;
		kfree_hazptr(o, hazptr);
		rests = 0;
	}
	return unused;
}

static void a_thread_may_be_cancelled_in_a_free_of_its_own(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	for (int i = 0; i < 4; i++) {
		quiesce_store_relaxed(&nr_rests, 0); /* Relaxed: a count of the test. */
		thread_must(pthread_create(&thread, NULL, retires_and_rests, NULL));
		wait_until(flag_get(&nr_rests));
		pthread_cancel(thread);
		pthread_join(thread, &result);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		if (i % 2) { /* another thread adopts the queue */
			threads_begin(&thread, 1, retires, NULL);
			threads_end(&thread, 1);
		}
		hazptr_barrier();
		assert_int_equal(stats_now().hazptr_retired, stats_now().hazptr_reclaimed);
	}
	everything_has_run();
}

static void *retires_with_lock(void *unused)
{
	for (uint32_t i = 0; i < 1000; i++) /* the library's threads are started: pthread_create() calls the allocator, too */
		retire_either(i);
	retires_under_lock = 1;
	for (uint32_t i = 0; i < 100000; i++)
		retire_either(i);
	retires_under_lock = 0;
	return unused;
}

static void a_free_by_the_library_is_not_entered_again(void **state)
{
	pthread_t thread;

	(void)state;
	threads_begin(&thread, 1, retires_with_lock, NULL);
	threads_end(&thread, 1);
	assert_int_equal(nr_entered_again, 0);
	everything_has_run();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_allocator_may_retire_before_the_library_is_initialised),
		TEST(an_allocator_may_retire_in_some_calls),
		TEST(an_allocator_may_retire_in_each_call),
		TEST(an_allocator_may_be_called_for_objects_that_it_retires),
		TEST(above_the_ceiling_it_does_not_wait),
		TEST(a_free_by_the_library_is_not_entered_again),
		TEST(a_thread_may_be_cancelled_in_a_free_of_its_own),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
