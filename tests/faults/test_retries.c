/* SPDX-License-Identifier: MIT */
/* test_retries.c - a thread whose start fails once, or for a while, is started again later, and without constant retries. */
#include "no_threads.h"

#include <quiesce/hazptr.h>
#include <quiesce/srcu.h>

DEFINE_STATIC_SRCU(domain);

static int nr_run;

static void run(struct rcu_head *head)
{
	free(head);
	count_up(&nr_run);
}

static void delete(void *object)
{
	free(object);
	count_up(&nr_run);
}

static void *new_object(void)
{
	void *object = malloc(sizeof(struct rcu_head));

	assert_non_null(object);
	return object;
}

static void retire_to_rcu(void)
{
	call_rcu((struct rcu_head *)new_object(), run);
}

static void retire_to_domain(void)
{
	call_srcu(&domain, (struct rcu_head *)new_object(), run);
}

static void retire_to_hazptr(void)
{
	hazptr_retire(new_object(), delete);
}

static void shut_down(void)
{
	assert_int_equal(quiesce_shutdown(0), 0);
	quiesce_store_relaxed(&nr_run, 0);
	quiesce_store_relaxed(&nr_refused, 0);
}

/* A thread retires few objects, now and then, and is at no safe point. */
static void comes_back(void (*retire)(void))
{
	int nr = 0;

	shut_down();
	flag_set(&no_threads);
	retire();
	assert_int_equal(flag_get(&nr_refused), 1);
	quiesce_store_relaxed(&no_threads, 0);
	for (; !flag_get(&nr_run); nr++) {
		assert_true(nr < 1000);
		retire();
		rest_ms(1);
	}
	assert_in_range(nr, 0, 400); /* some milliseconds, or a sweep */
	shut_down();
}

static void the_worker_comes_after_one_failure(void **state)
{
	(void)state;
	comes_back(retire_to_rcu);
}

static void the_helper_comes_after_one_failure(void **state)
{
	(void)state;
	comes_back(retire_to_domain);
}

static void the_sweeper_comes_after_one_failure(void **state)
{
	(void)state;
	comes_back(retire_to_hazptr);
}

/* The number of attempts is bounded, however many calls there are. */
static void attempts_are_few(void **state)
{
	uint64_t begin, ms;

	(void)state;
	shut_down();
	flag_set(&no_threads);
	begin = now_ns();
	for (int i = 0; i < 300000; i++) {
		retire_to_rcu();
		if (i % 8 == 0)
			retire_to_domain();
	}
	ms = (now_ns() - begin) / 1000000;
	assert_in_range(flag_get(&nr_refused), 2, 2 * (ms + 2));
	rcu_barrier();
	srcu_barrier(&domain);
	quiesce_store_relaxed(&no_threads, 0);
	shut_down();
}

/* ---- the child of a callback that ran in its own barrier ---- */

static void fork_in_wait(struct rcu_head *unused)
{
	int status = -1;
	pid_t pid = fork();

	(void)unused;
	if (pid == 0) {
		quiesce_store_relaxed(&no_threads, 0);
		return;
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
}

/* A waiter for callbacks is woken at once, and does not wake by a timeout. */
static void wait_often(void)
{
	int nr_late = 0;

	for (int i = 0; i < 10; i++) {
		uint64_t begin;

		retire_to_rcu();
		begin = now_ns();
		rcu_barrier();
		nr_late += now_ns() - begin > 50000000;
	}
	must(nr_late < 5);
}

static void begin_in_wait(void)
{
	static struct rcu_head head;
	pid_t parent = getpid();

	flag_set(&no_threads);
	call_rcu(&head, fork_in_wait);
	rcu_barrier();
	quiesce_store_relaxed(&no_threads, 0);
	if (getpid() == parent)
		return;
	wait_often();
	_exit(0);
}

static void a_child_of_a_wait_is_woken(void **state)
{
	(void)state;
	shut_down();
	succeeds(begin_in_wait);
}

/* ---- a hook that a thread is to call ---- */

static sem_t start;

static void *synchronizes(void *unused)
{
	wait_for(&start);
	synchronize_rcu();
	return unused;
}

static void count_name(int tid, uint64_t waited_ns, void *nr)
{
	(void)tid, (void)waited_ns;
	count_up((int *)nr);
}

static void readers_are_named_once_the_helper_can_be_had(void **state)
{
	struct held reader;
	pthread_t waiter;
	int nr = 0;

	(void)state;
	shut_down();
	sem_init(&start, 0, 0);
	held_begin(&reader, NULL);
	thread_must(pthread_create(&waiter, NULL, synchronizes, NULL));
	flag_set(&no_threads);
	assert_int_equal(quiesce_set_holdout_hook(count_name, &nr), -EAGAIN);
	sem_post(&start);
	rest_ms(30);
	srcu_barrier(&domain); /* takes the helper's steps, where there is none */
	assert_int_equal(flag_get(&nr), 0);
	quiesce_store_relaxed(&no_threads, 0);
	wait_until(flag_get(&nr));
	held_end(&reader);
	pthread_join(waiter, NULL);
	assert_int_equal(quiesce_set_holdout_hook(NULL, NULL), 0);
	shut_down();
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_worker_comes_after_one_failure),
		TEST(the_helper_comes_after_one_failure),
		TEST(the_sweeper_comes_after_one_failure),
		TEST(attempts_are_few),
		TEST(a_child_of_a_wait_is_woken),
		TEST(readers_are_named_once_the_helper_can_be_had),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
