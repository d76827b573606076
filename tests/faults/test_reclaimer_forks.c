/* SPDX-License-Identifier: MIT */
/* test_reclaimer_forks.c - forks while several threads run callbacks: by one of these callbacks, in each way, and beside them. */
#include "../unit/testing.h"

#include <sys/syscall.h>

enum { NR_QUEUERS = 3, NR_EACH = 300, NR_RECLAIMERS = 2, ROUNDS = 20 };

struct once {
	struct rcu_head head;
	int nr_run;
};

static struct once objects[NR_QUEUERS * NR_EACH];
static int nr_begun, nr_run, forks_at, nr_stuck;
static pid_t (*way)(void), child;

static pid_t system_call(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define underscore_fork _Fork
#else
#define underscore_fork system_call
#endif

static void run_more(struct rcu_head *head)
{
	((struct once *)(void *)head)->nr_run++;
}

/* All callbacks of the parent have run once, but for those that its other threads were just running. */
static void check_child(void)
{
	static struct once more;
	struct quiesce_stats stats;
	int left = 0;

	call_rcu(&more.head, run_more);
	rcu_barrier();
	must(more.nr_run == 1);
	for (int i = 0; i < NR_QUEUERS * NR_EACH; i++) {
		must(objects[i].nr_run <= 1);
		left += !objects[i].nr_run;
	}
	must(left <= NR_RECLAIMERS);
	stats = stats_now();
	must(stats.callbacks_queued == stats.callbacks_run);
	must(stats.garbage_bytes == 0);
}

static void *check_and_end(void *unused)
{
	(void)unused;
	check_child();
	_exit(0);
}

/* The child ends also where the parent has ended before.  Threads of the library block all signals. */
static void end_if_stuck(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	alarm(watchdog_seconds() / 3);
}

/* The callback returns in the child as well. */
static void begin_child(void)
{
	pthread_t thread;

	end_if_stuck();
	(void)stats_now(); /* this thread makes the first call */
	must(!pthread_create(&thread, NULL, check_and_end, NULL));
	if (forks_at % 2)
		short_rest(); /* the other thread queues before this one goes on */
}

static void run_once(struct rcu_head *head)
{
	int nr = quiesce_fetch_add_relaxed(&nr_begun, 1); /* Relaxed: a count of the test's. */

	((struct once *)(void *)head)->nr_run++;
	if (nr == forks_at) {
		child = way();
		if (!child)
			begin_child();
	} else if (nr % 20 == 0) {
		short_rest();
	}
	count_up(&nr_run);
}

static void *queue_all(void *first)
{
	for (int i = 0; i < NR_EACH; i++)
		call_rcu(&((struct once *)first)[i].head, run_once);
	return NULL;
}

/* Queue callbacks of several threads, which one pass takes. */
static void queue_of_threads(void)
{
	pthread_t thread[NR_QUEUERS];

	memset(objects, 0, sizeof objects);
	quiesce_store_relaxed(&nr_begun, 0); /* Relaxed: no callback is queued. */
	quiesce_store_relaxed(&nr_run, 0);   /* Relaxed: no callback is queued. */
	rcu_read_lock();
	for (int i = 0; i < NR_QUEUERS; i++)
		thread_must(pthread_create(&thread[i], NULL, queue_all, &objects[i * NR_EACH]));
	threads_end(thread, NR_QUEUERS);
	rcu_read_unlock();
}

#define STUCK_MS 5000u

/* A child that was forked without the C library's handlers may find its locks of malloc() and pthread_create() held by threads of the
 * parent.  Such a child does not end by itself, and says nothing about this library; 1 if this is one. */
static int is_stuck(int *ret_status)
{
	for (uint32_t ms = 0; ms < STUCK_MS; ms++) {
		if (waitpid(child, ret_status, WNOHANG) == child)
			return 0;
		usleep(1000);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, ret_status, 0), child);
	return 1;
}

static void child_succeeds(void)
{
	int status;

	if (way == fork || forks_at < 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
	} else if (is_stuck(&status)) {
		assert_true(++nr_stuck < 3);
		return;
	}
	if (!exited_with(status, 0))
		fail_msg("the child ended with status %#x", (unsigned int)status);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_run), NR_QUEUERS * NR_EACH);
}

static void fork_in_callbacks(pid_t (*how)(void))
{
	way = how;
	for (int i = 0; i < ROUNDS; i++) {
		forks_at = i * NR_QUEUERS * NR_EACH / ROUNDS + i;
		queue_of_threads();
		wait_until(flag_get(&nr_run) == NR_QUEUERS * NR_EACH);
		child_succeeds();
	}
	if (!stats_now().queues_helped)
		print_message("# one CPU: the worker alone\n");
}

static void a_callback_may_fork(void **state)
{
	(void)state;
	fork_in_callbacks(fork);
}

static void a_callback_may_fork_without_handlers(void **state)
{
	(void)state;
	fork_in_callbacks(underscore_fork);
	fork_in_callbacks(system_call);
}

/* fork() waits until all reclaimers are between two callbacks, so no callback is lost to the child. */
static void other_threads_may_fork_beside_callbacks(void **state)
{
	(void)state;
	forks_at = -1;
	for (int i = 0; i < ROUNDS; i++) {
		queue_of_threads();
		wait_until(flag_get(&nr_begun) > i * NR_QUEUERS * NR_EACH / ROUNDS);
		child = fork();
		if (!child) {
			alarm(watchdog_seconds() / 3);
			check_child();
			for (int k = 0; k < NR_QUEUERS * NR_EACH; k++)
				must(objects[k].nr_run == 1);
			_exit(0);
		}
		child_succeeds();
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_callback_may_fork),
		TEST(a_callback_may_fork_without_handlers),
		TEST(other_threads_may_fork_beside_callbacks),
	};

	testing_choose(argc, argv);
	quiesce_set_reclaimers(NR_RECLAIMERS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
