/* SPDX-License-Identifier: MIT */
/* test_no_threads.c - queues of callbacks for which no thread can be started: no callback is lost, and the barrier runs them. */
#define _GNU_SOURCE
#include <urcu/urcu-memb.h>
/* The last of these headers defines the short names. */
#include <urcu-qsbr.h>

#include "../unit/watched.h"

#define RETRY_NS 10000000u /* liburcu/src/call_rcu.c */

static uint32_t refuse;     /* further threads */
static uint32_t nr_refused;

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!flag_get(&refuse))
		return __real_pthread_create(ret, attr, fn, arg);
	count_up(&nr_refused);
	return EAGAIN;
}

static uint32_t nr_called;

static void called(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_called);
}

static void deferred(void *unused)
{
	(void)unused;
	count_up(&nr_called);
}

static void a_queue_needs_a_thread(void **state)
{
	(void)state;
	quiesce_store_relaxed(&refuse, 1u); /* Relaxed: a flag of the test. */
	assert_null(create_call_rcu_data(0, -1));
	assert_int_equal(errno, EAGAIN);
	assert_null(urcu_memb_create_call_rcu_data(0, -1));
	assert_int_equal(create_all_cpu_call_rcu_data(0), -1);
	free_all_cpu_call_rcu_data();
	quiesce_store_relaxed(&refuse, 0u); /* Relaxed: a flag of the test. */
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void rest_until_retry(void)
{
	uint64_t until = now_ns() + RETRY_NS;

	while (now_ns() < until)
		short_rest();
}

/* The number of attempts is bounded, however long the calls last. */
static void most_calls_do_not_try_to_start_one(void **state)
{
	enum { NR = 20000 };
	static struct rcu_head head[NR];
	uint64_t begun = now_ns();

	(void)state;
	quiesce_store_relaxed(&nr_called, 0u); /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&refuse, 1u);    /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&nr_refused, 0u); /* Relaxed: a flag of the test. */
	for (int i = 0; i < NR; i++)
		call_rcu(&head[i], called);
	assert_in_range(flag_get(&nr_refused), 1, 1 + (now_ns() - begun) / RETRY_NS);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), NR);
	quiesce_store_relaxed(&refuse, 0u); /* Relaxed: a flag of the test. */
}

static void the_barrier_calls_what_no_thread_does(void **state)
{
	static struct rcu_head head[3];

	(void)state;
	quiesce_store_relaxed(&refuse, 1u); /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&nr_called, 0u); /* Relaxed: a flag of the test. */
	call_rcu(&head[0], called); /* the default of qsbr, without a thread */
	rcu_quiescent_state();
	assert_int_equal(flag_get(&nr_called), 0);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), 1);
	call_rcu(&head[1], called);
	quiesce_store_relaxed(&refuse, 0u); /* Relaxed: a flag of the test. */
	rest_until_retry();
	call_rcu(&head[2], called); /* starts it */
	rcu_thread_offline();
	wait_until(flag_get(&nr_called) == 3);
	rcu_thread_online();
}

static void deferred_calls_are_made_at_once(void **state)
{
	(void)state;
	quiesce_store_relaxed(&refuse, 1u); /* Relaxed: a flag of the test. */
	quiesce_store_relaxed(&nr_called, 0u); /* Relaxed: a flag of the test. */
	assert_int_equal(rcu_defer_register_thread(), -EAGAIN);
	defer_rcu(deferred, NULL);
	assert_int_equal(flag_get(&nr_called), 1);
	quiesce_store_relaxed(&refuse, 0u); /* Relaxed: a flag of the test. */
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_queue_needs_a_thread),
		TEST(most_calls_do_not_try_to_start_one),
		TEST(the_barrier_calls_what_no_thread_does),
		TEST(deferred_calls_are_made_at_once),
	};
	int failed;

	testing_choose(argc, argv);
	rcu_register_thread();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rcu_unregister_thread();
	return failed;
}
