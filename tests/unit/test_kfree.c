/* SPDX-License-Identifier: MIT */
/* test_kfree.c - objects that are freed without a callback: the right address, once, after the readers.
 *
 * This program has its own free(), which the library calls too, and watches one address.
 */
#include "testing.h"

extern void __libc_free(void *p);

static void *watched;
static int nr_freed;

void free(void *p)
{
	if (p && p == quiesce_load_relaxed(&watched)) { /* Relaxed: set before anybody frees it. */
		quiesce_store_relaxed(&watched, NULL);
		count_up(&nr_freed);
	}
	__libc_free(p);
}

static void watch(void *p)
{
	assert_non_null(p);
	quiesce_store_relaxed(&nr_freed, 0);
	quiesce_store_relaxed(&watched, p);
}

struct first {
	struct rcu_head rcu;
	char payload[100];
};

struct inner {
	char payload[1000];
	struct rcu_head rcu;
};

struct far {
	char payload[4080];
	struct rcu_head rcu;
};

/* The worker sleeps for the reader, so the grace period is under way and not over. */
#define freed_after_readers(object, free_it)                        \
	do {                                                        \
		uint64_t sleeps = stats_now().sleeps;               \
		struct held h;                                      \
                                                                    \
		watch(object);                                      \
		held_begin(&h, NULL);                               \
		free_it;                                            \
		wait_until(stats_now().sleeps > sleeps);            \
		assert_int_equal(flag_get(&nr_freed), 0);           \
		held_end(&h);                                       \
		rcu_barrier();                                      \
		assert_int_equal(flag_get(&nr_freed), 1);           \
	} while (0)

static void the_head_may_be_first(void **state)
{
	struct first *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

static void the_head_may_be_inside(void **state)
{
	struct inner *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

static void the_head_may_be_far_inside(void **state)
{
	struct far *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu(o, rcu));
}

static void no_head_is_needed_to_sleep(void **state)
{
	long *o = malloc(sizeof *o);

	(void)state;
	freed_after_readers(o, kfree_rcu_mightsleep(o));
}

static void sizes_are_those_of_the_objects(void **state)
{
	struct inner *a = malloc(sizeof *a);
	struct first *b = malloc(sizeof *b);
	struct held h;

	(void)state;
	rcu_barrier();
	held_begin(&h, NULL);
	kfree_rcu(a, rcu);
	kfree_rcu_mightsleep(b);
	assert_int_equal(stats_now().garbage_bytes, sizeof *a + sizeof *b);
	held_end(&h);
	rcu_barrier();
	wait_until(stats_now().garbage_bytes == 0); /* told a moment after the last is free */
}

/* More than a queue holds. */
static void many_are_freed_from_a_section(void **state)
{
	enum { N = 30000 };

	(void)state;
	rcu_read_lock();
	for (int i = 0; i < N; i++) {
		struct inner *o = malloc(sizeof *o);

		if (i == N - 1)
			watch(o);
		kfree_rcu(o, rcu);
	}
	assert_int_equal(flag_get(&nr_freed), 0);
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(flag_get(&nr_freed), 1);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_head_may_be_first),
		TEST(the_head_may_be_inside),
		TEST(the_head_may_be_far_inside),
		TEST(no_head_is_needed_to_sleep),
		TEST(sizes_are_those_of_the_objects),
		TEST(many_are_freed_from_a_section),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
