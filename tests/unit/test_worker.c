/* SPDX-License-Identifier: MIT */
/* test_worker.c - the thread that runs callbacks, as other threads of the process see it. */
#include "testing.h"

#include <sched.h>

static int nr_run;

static void count_run(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_run);
}

/* Return the worker's thread id, 0 if there is none; -1 if there are several. */
static pid_t find_worker(void)
{
	pid_t one;

	return threads_named("quiesce", &one) > 1 ? -1 : one;
}

static void run_one_callback(void)
{
	static struct rcu_head head;
	int before = flag_get(&nr_run);

	call_rcu(&head, count_run);
	rcu_barrier();
	assert_int_equal(nr_run, before + 1);
}

static void stop_the_worker(void)
{
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(stats_now().worker_running, 0);
	wait_until(find_worker() == 0); /* the worker sleeps a moment after it has announced that */
}

static void a_worker_starts_at_first_need(void **state)
{
	(void)state;
	assert_int_equal(find_worker(), 0);
	synchronize_rcu();
	rcu_barrier();
	assert_int_equal(find_worker(), 0);
	run_one_callback();
	assert_in_range(find_worker(), 1, INT32_MAX);
	assert_int_equal(stats_now().worker_running, 1);
}

static int must_be_blocked(int sig)
{
	return sig != SIGKILL && sig != SIGSTOP && (sig < 32 || sig >= SIGRTMIN) && !is_fault(sig);
}

static void the_worker_blocks_every_signal_but_faults(void **state)
{
	unsigned long long bits;

	(void)state;
	run_one_callback();
	bits = blocked_signals(find_worker());
	for (int sig = 1; sig <= 64; sig++)
		if (must_be_blocked(sig) && !(bits >> (sig - 1) & 1))
			fail_msg("signal %d is not blocked in the worker", sig);
		else if (is_fault(sig) && bits >> (sig - 1) & 1)
			fail_msg("signal %d is blocked in the worker", sig);
	assert_int_equal(blocked_signals(my_tid()) >> (SIGUSR1 - 1) & 1, 0);
}

static sigjmp_buf after_fault;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(after_fault, 1);
}

static void fault_and_count(struct rcu_head *head)
{
	if (!sigsetjmp(after_fault, 1))
		raise(SIGSEGV);
	else
		count_run(head);
}

static void callbacks_may_handle_their_faults(void **state)
{
	static struct rcu_head head;
	struct sigaction handle = { .sa_handler = on_fault }, old;
	int before = flag_get(&nr_run);

	(void)state;
	assert_int_equal(sigaction(SIGSEGV, &handle, &old), 0);
	call_rcu(&head, fault_and_count);
	rcu_barrier();
	sigaction(SIGSEGV, &old, NULL);
	assert_int_equal(nr_run, before + 1);
}

static void the_worker_stops_with_shutdown(void **state)
{
	(void)state;
	run_one_callback();
	stop_the_worker();
	run_one_callback();
	assert_in_range(find_worker(), 1, INT32_MAX);
}

static void retire_another(struct rcu_head *head)
{
	static struct rcu_head another;

	(void)head;
	call_rcu(&another, count_run);
}

/* A worker whose callbacks have retired something has a queue, which no other worker is started for when it ends. */
static void the_worker_stops_after_callbacks_that_retire(void **state)
{
	static struct rcu_head head;
	int before = flag_get(&nr_run);

	(void)state;
	call_rcu(&head, retire_another);
	stop_the_worker();
	assert_int_equal(nr_run, before + 1);
	assert_int_equal(stats_now().worker_running, 0);
}

static int first_cpu(const cpu_set_t *cpus)
{
	int cpu = 0;

	while (!CPU_ISSET((unsigned int)cpu, cpus))
		cpu++;
	return cpu;
}

static void the_worker_runs_on_the_chosen_cpus(void **state)
{
	cpu_set_t all, cpus;
	int cpu;

	(void)state;
	stop_the_worker();
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0); /* we may not have the whole machine */
	cpu = first_cpu(&all);
	assert_int_equal(quiesce_set_worker_cpu(-2), -EINVAL);
	assert_int_equal(quiesce_set_worker_cpu(1 << 24), -EINVAL);
	assert_int_equal(quiesce_set_worker_cpu(cpu), 0);
	run_one_callback();
	assert_int_equal(sched_getaffinity(find_worker(), sizeof cpus, &cpus), 0);
	assert_int_equal(CPU_COUNT(&cpus), 1);
	assert_int_equal(first_cpu(&cpus), cpu);
	quiesce_set_worker_cpu(-1);
	stop_the_worker();
	run_one_callback();
	assert_int_equal(sched_getaffinity(find_worker(), sizeof cpus, &cpus), 0);
	assert_true(CPU_EQUAL(&cpus, &all));
}

/* This may take any time: with a worker that keeps waking up it lasts until the watchdog ends the test. */
/* Without queued callbacks and waiters the worker must not wake up by itself. */
static void the_worker_sleeps_when_idle(void **state)
{
	struct timespec rest = { .tv_nsec = 200000000 };
	long before;
	pid_t worker;

	(void)state;
	run_one_callback();
	worker = find_worker();
	do {
		wait_until(thread_state(worker) == 'S');
		before = voluntary_switches(worker);
		nanosleep(&rest, NULL);
	} while (voluntary_switches(worker) != before);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_worker_starts_at_first_need),
		TEST(the_worker_blocks_every_signal_but_faults),
		TEST(callbacks_may_handle_their_faults),
		TEST(the_worker_stops_with_shutdown),
		TEST(the_worker_stops_after_callbacks_that_retire),
		TEST(the_worker_runs_on_the_chosen_cpus),
		TEST(the_worker_sleeps_when_idle),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
