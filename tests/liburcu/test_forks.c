/* SPDX-License-Identifier: MIT */
/* test_forks.c - call_rcu_before_fork() and its counterparts, beside queues that are created and freed, and beside each other. */
#define _GNU_SOURCE
#include <urcu-qsbr.h>

#include "../sanitized.h"
#include "../unit/watched.h"

#include <sys/wait.h>

enum { NR = 500 }; /* number of forks, and of queues */

static uint32_t nr_called, nr_forks, nr_freed;

static void called(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_called);
}

static bool all_done(void)
{
	return flag_get(&nr_forks) >= NR && flag_get(&nr_freed) >= NR;
}

static void *forks(void *unused)
{
	rcu_register_thread();
	while (!all_done()) {
		call_rcu_before_fork();
		call_rcu_after_fork_parent();
		count_up(&nr_forks);
	}
	rcu_unregister_thread();
	return unused;
}

static void *makes_and_frees(void *unused)
{
	struct rcu_head head;
	struct call_rcu_data *c;

	rcu_register_thread();
	while (!all_done()) {
		c = create_call_rcu_data(0, -1);
		assert_non_null(c);
		set_thread_call_rcu_data(c);
		call_rcu(&head, called);
		set_thread_call_rcu_data(NULL);
		call_rcu_data_free(c);
		rcu_barrier();
		count_up(&nr_freed);
	}
	rcu_unregister_thread();
	return unused;
}

static void forks_beside_queues_that_come_and_go(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? forks : makes_and_frees, NULL), 0);
	rcu_thread_offline();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	rcu_thread_online();
}

#if !QUIESCE_TSAN /* ThreadSanitizer does not survive threads of a child */
static int child_calls(void)
{
	static struct rcu_head mine;

	call_rcu_after_fork_child();
	call_rcu(&mine, called);
	rcu_barrier();
	return flag_get(&nr_called) == 2 ? 0 : 1;
}

/* The queue's thread exists, so that its id can be requested, but it has no callbacks. */
static void a_queue_that_is_made_before_a_fork_pauses(void **state)
{
	struct rcu_head head;
	struct call_rcu_data *c;
	pthread_t thread;
	int status;
	pid_t child;

	(void)state;
	quiesce_store_relaxed(&nr_called, 0u); /* Relaxed: a count of the test. */
	call_rcu_before_fork();
	c = create_call_rcu_data(0, -1);
	assert_non_null(c);
	thread = get_call_rcu_thread(c);
	assert_false(pthread_equal(thread, pthread_self()));
	set_thread_call_rcu_data(c);
	call_rcu(&head, called);
	short_rest();
	short_rest();
	assert_int_equal(flag_get(&nr_called), 0);
	child = fork();
	if (!child)
		_exit(child_calls());
	call_rcu_after_fork_parent();
	rcu_barrier();
	assert_int_equal(flag_get(&nr_called), 1);
	rcu_thread_offline();
	assert_int_equal(waitpid(child, &status, 0), child);
	rcu_thread_online();
	assert_int_equal(status, 0);
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(c);
	rcu_thread_offline();
	assert_int_equal(pthread_join(thread, NULL), 0);
	rcu_thread_online();
}
#endif

static int prepare(void **state)
{
	(void)state;
	rcu_register_thread();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(forks_beside_queues_that_come_and_go),
#if !QUIESCE_TSAN
		TEST(a_queue_that_is_made_before_a_fork_pauses),
#endif
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, prepare, NULL);
}
