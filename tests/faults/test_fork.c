/* SPDX-License-Identifier: MIT */
/* test_fork.c - the library in a forked child, for each kind and time of the fork. */
#include "../unit/testing.h"
#include "use.h"

#include <sched.h>
#include <spawn.h>

extern char **environ;

static void child_uses_everything(void)
{
	must(use_everything());
	must(use_with_threads(2, 2));
	must(quiesce_shutdown(0) == 0);
	must(stats_now().garbage_objects == 0);
}

static void in_good_child(void (*fn)(void))
{
	struct outcome o;

	in_child(fn, &o);
	expect_success(&o);
	assert_int_equal(o.length, 0);
}

static void start_worker(void)
{
	assert_true(use_callback());
	assert_int_equal(stats_now().worker_running, 1);
}

static void child_of_an_idle_process(void **state)
{
	(void)state;
	in_good_child(child_uses_everything);
	start_worker();
	in_good_child(child_uses_everything);
	child_uses_everything();
}

/* ---- in a section ---- */

static void leave_then_use(void)
{
	must(rcu_read_lock_held());
	rcu_read_unlock();
	must(!rcu_read_lock_held());
	child_uses_everything();
}

static void fork_in_a_section(void **state)
{
	(void)state;
	start_worker();
	rcu_read_lock();
	in_good_child(leave_then_use);
	assert_true(rcu_read_lock_held());
	rcu_read_unlock();
	synchronize_rcu();
}

static void knows_that_it_is_alone(void)
{
	must(stats_now().readers <= 1);
	child_uses_everything();
}

/* The section of a thread that is not in the child must not hang the child. */
static void fork_while_another_reads(void **state)
{
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	in_good_child(knows_that_it_is_alone);
	held_end(&h);
}

static void *synchronize_main(void *unused)
{
	(void)unused;
	synchronize_rcu();
	return NULL;
}

static void fork_while_another_waits(void **state)
{
	uint64_t sleeps = stats_now().sleeps;
	pthread_t waiter;
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	thread_must(pthread_create(&waiter, NULL, synchronize_main, NULL));
	wait_until(stats_now().sleeps > sleeps);
	in_good_child(child_uses_everything);
	held_end(&h);
	pthread_join(waiter, NULL);
}

/* ---- while much goes on ---- */

static int busy_stop;

static void *busy_reader(void *unused)
{
	(void)unused;
	for (int i = 0; !flag_get(&busy_stop); i++) {
		use_reader();
		if (i % 64 == 0) /* leave some of the machine to the children */
			short_rest();
	}
	return NULL;
}

static void *busy_updater(void *way)
{
	for (int i = 0; !flag_get(&busy_stop); i++) {
		use_replace((int)(intptr_t)way);
		if (i % 64 == 0)
			short_rest();
	}
	return NULL;
}

static void fork_in_a_busy_process(void **state)
{
	pthread_t thread[4];

	(void)state;
	thread_must(pthread_create(&thread[0], NULL, busy_reader, NULL));
	for (int i = 1; i < 4; i++)
		thread_must(pthread_create(&thread[i], NULL, busy_updater, (void *)(intptr_t)(i == 3 ? 3 : i - 1)));
	for (int i = 0; i < 50; i++) {
		alarm(watchdog_seconds());
		in_good_child(child_uses_everything);
	}
	flag_set(&busy_stop);
	threads_end(thread, 4);
	assert_true(use_everything());
}

static void grandchild(void)
{
	pid_t pid;
	int status;

	child_uses_everything();
	pid = fork();
	if (pid == 0) {
		child_uses_everything();
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
	child_uses_everything();
}

static void grandchildren(void **state)
{
	(void)state;
	in_good_child(grandchild);
}

/* ---- pending callbacks ---- */

enum { PENDING = 30000 }; /* many segments */
static struct rcu_head pending[PENDING];
static unsigned char pending_runs[PENDING];
static int slow_at = -1;
static sem_t slow_reached, slow_go;

static void pending_run(struct rcu_head *head)
{
	int i = (int)(head - pending);

	if (i == slow_at) {
		sem_post(&slow_reached);
		wait_for(&slow_go);
	}
	pending_runs[i]++;
}

static void queue_pending(void)
{
	memset(pending_runs, 0, sizeof pending_runs);
	rcu_read_lock();
	for (int i = 0; i < PENDING; i++)
		call_rcu(&pending[i], pending_run);
	rcu_read_unlock();
}

static int nr_pending_run(void)
{
	int once = 0;

	for (int i = 0; i < PENDING; i++) {
		if (pending_runs[i] > 1)
			return -1;
		once += pending_runs[i];
	}
	return once;
}

static void child_runs_the_pending(void)
{
	rcu_barrier();
	must(nr_pending_run() == PENDING);
	child_uses_everything();
	must(nr_pending_run() == PENDING);
}

static void leave_and_run_the_pending(void)
{
	rcu_read_unlock();
	child_runs_the_pending();
}

static void pending_callbacks_run_in_both(void **state)
{
	(void)state;
	start_worker();
	rcu_read_lock();
	queue_pending();
	in_good_child(leave_and_run_the_pending);
	assert_int_equal(nr_pending_run(), 0);
	rcu_read_unlock();
	rcu_barrier();
	assert_int_equal(nr_pending_run(), PENDING);
}

/* The callback that runs at the time of the fork counts as run in the child. */
static void child_runs_all_but_one(void)
{
	rcu_barrier();
	must(nr_pending_run() == PENDING - 1);
	child_uses_everything();
}

static void forked_at(int i)
{
	sem_init(&slow_reached, 0, 0);
	sem_init(&slow_go, 0, 0);
	slow_at = i;
	queue_pending();
	wait_for(&slow_reached);
	in_good_child(child_runs_all_but_one);
	sem_post(&slow_go);
	rcu_barrier();
	assert_int_equal(nr_pending_run(), PENDING);
	slow_at = -1;
}

static void fork_during_a_callback(void **state)
{
	(void)state;
	forked_at(0);
	forked_at(PENDING - 1);
	forked_at(PENDING / 2);
}

/* A callback that does not wait is never left half done in a child, however many threads fork. */
static int halves;

static void two_halves(struct rcu_head *head)
{
	struct timespec rest = { .tv_nsec = 50000 };

	(void)head;
	count_up(&halves);
	nanosleep(&rest, NULL);
	count_up(&halves);
}

static void *forker(void *failures)
{
	int status, nr_in_time = 0;

	while (nr_in_time < 60) {
		uint64_t begun = now_ns();
		pid_t pid = fork();

		if (pid == 0)
			_exit(in_time(begun) && flag_get(&halves) % 2);
		nr_in_time += in_time(begun);
		if (waitpid(pid, &status, 0) != pid || !exited_with(status, 0))
			count_up((int *)failures);
	}
	return NULL;
}

static void *halves_queuer(void *heads)
{
	struct rcu_head *h = heads;

	while (!flag_get(&busy_stop)) {
		for (int i = 0; i < 100; i++)
			call_rcu(&h[i], two_halves);
		rcu_barrier();
	}
	return NULL;
}

static void concurrent_forks_cut_no_callback(void **state)
{
	static struct rcu_head heads[100];
	pthread_t thread[3], queuer;
	int failures = 0;

	(void)state;
	busy_stop = 0;
	thread_must(pthread_create(&queuer, NULL, halves_queuer, heads));
	threads_begin(thread, 3, forker, &failures);
	threads_end(thread, 3);
	flag_set(&busy_stop);
	pthread_join(queuer, NULL);
	assert_int_equal(failures, 0);
}

/* ---- from a callback ---- */

static int callback_status;

static void fork_in_callback(struct rcu_head *head)
{
	pid_t pid = fork();

	(void)head;
	if (pid == 0) {
		must(use_reader());
		synchronize_rcu();
		_exit(0);
	}
	if (waitpid(pid, &callback_status, 0) != pid)
		callback_status = -1;
}

static void fork_from_a_callback(void **state)
{
	static struct rcu_head head[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		callback_status = -1;
		call_rcu(&head[i], fork_in_callback);
		rcu_barrier();
		assert_int_equal(callback_status, 0);
	}
	assert_true(use_everything());
}

/* The child's pass goes on, and its counts are right: one callback is queued, which is just running. */
static void check_counts(struct rcu_head *head)
{
	struct quiesce_stats s = stats_now();

	(void)head;
	must(s.callbacks_queued - s.callbacks_run == 1 && s.garbage_objects == 1);
	_exit(0);
}

static void fork_and_go_on(struct rcu_head *head)
{
	static struct rcu_head next;
	pid_t pid = fork();

	(void)head;
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		call_rcu(&next, check_counts);
		return;
	}
	if (waitpid(pid, &callback_status, 0) != pid)
		callback_status = -1;
}

static void a_child_of_a_callback_counts_right(void **state)
{
	static struct rcu_head head;

	(void)state;
	callback_status = -1;
	call_rcu(&head, fork_and_go_on);
	rcu_barrier();
	assert_int_equal(callback_status, 0);
}

/* ---- objects in no queue, because their thread was exiting: a pass has taken them when the process forks ---- */

#define MANY 1000
#define SLOW 10

static struct rcu_head many[MANY + 1];
static int nr_run, one_is_slow;

struct range {
	int first, end;
};

static void run_one(struct rcu_head *head)
{
	if (one_is_slow && flag_get(&nr_run) == SLOW) {
		one_is_slow = 0;
		sem_post(&slow_reached);
		wait_for(&slow_go);
	}
	(void)head;
	count_up(&nr_run);
}

static void retire_range(void *arg)
{
	const struct range *r = arg;

	for (int i = r->first; i < r->end; i++)
		call_rcu(&many[i], run_one);
}

static pthread_key_t last; /* a key whose destructor runs after the library's */

static void *leave_a_range(void *arg)
{
	rcu_read_lock(); /* creates the library's key first, so that its destructor runs first */
	rcu_read_unlock();
	pthread_setspecific(last, arg);
	return NULL;
}

static void retire_at_exit(int first, int end)
{
	struct range r = { first, end };
	uint64_t queues = stats_now().queues;
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, leave_a_range, &r));
	pthread_join(thread, NULL);
	assert_int_equal(stats_now().queues, queues);
}

static void all_have_run_once(void)
{
	rcu_barrier();
	must(flag_get(&nr_run) == MANY + 1);
	must(quiesce_shutdown(0) == 0);
	must(stats_now().garbage_objects == 0 && stats_now().garbage_bytes == 0);
}

static void fork_while_a_pass_holds_what_is_in_no_queue(void **state)
{
	uint64_t sleeps;
	struct held h;

	(void)state;
	quiesce_store_relaxed(&nr_run, 0);
	assert_int_equal(pthread_key_create(&last, retire_range), 0);
	held_begin(&h, NULL);
	sleeps = stats_now().sleeps;
	retire_at_exit(0, MANY);
	wait_until(stats_now().sleeps > sleeps); /* a pass waits for the held reader */
	retire_at_exit(MANY, MANY + 1);
	assert_int_equal(flag_get(&nr_run), 0);
	in_good_child(all_have_run_once);
	held_end(&h);
	rcu_barrier();
	assert_int_equal(flag_get(&nr_run), MANY + 1);
	pthread_key_delete(last);
}

static void all_but_one_have_run(void)
{
	rcu_barrier();
	must(flag_get(&nr_run) == MANY - 1);
	must(stats_now().garbage_objects == 0);
}

/* The process has no queues, so that no other event requests a pass. */
static void fork_in_the_middle_of_them(void)
{
	rcu_barrier();
	must(stats_now().queues == 0);
	sem_init(&slow_reached, 0, 0);
	sem_init(&slow_go, 0, 0);
	quiesce_store_relaxed(&nr_run, 0);
	one_is_slow = 1;
	retire_at_exit(0, MANY);
	wait_for(&slow_reached);
	in_good_child(all_but_one_have_run);
	sem_post(&slow_go);
	rcu_barrier();
	must(flag_get(&nr_run) == MANY);
}

static void fork_while_callbacks_in_no_queue_run(void **state)
{
	(void)state;
	assert_int_equal(pthread_key_create(&last, retire_range), 0);
	call_rcu(&many[MANY], run_one); /* the child's barrier has a callback to wait for */
	in_good_child(fork_in_the_middle_of_them);
	rcu_barrier();
	pthread_key_delete(last);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(child_of_an_idle_process),
		TEST(fork_in_a_section),
		TEST(fork_while_another_reads),
		TEST(fork_while_another_waits),
		TEST(fork_while_a_pass_holds_what_is_in_no_queue),
		TEST(fork_while_callbacks_in_no_queue_run),
		TEST(fork_in_a_busy_process),
		TEST(grandchildren),
		TEST(pending_callbacks_run_in_both),
		TEST(fork_during_a_callback),
		TEST(concurrent_forks_cut_no_callback),
		TEST(fork_from_a_callback),
		TEST(a_child_of_a_callback_counts_right),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
