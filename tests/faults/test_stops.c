/* SPDX-License-Identifier: MIT */
/* test_stops.c - the process, or a reader, is stopped from outside: which waits are reported then, and which are not. */
#include "../unit/testing.h"

#include <quiesce/detail/qsbr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <sys/prctl.h>
#include <sys/ptrace.h>

#define LIMIT_NS 1000000000u
#define STOP_NS 2500000000u
#define INSIDE_NS 50000000u /* time inside after the stop, so that sections are open for a small part of the limit */

DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_PERCPU_RWSEM(read_locked);
DEFINE_STATIC_PERCPU_RWSEM(write_locked);
static struct rcu_head head;
static int object, nr_inside, leave, nr_calls, nr_returned;

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&t, NULL);
}

static void *reader_main(void *unused)
{
	struct shazptr_guard guard;
	int idx;

	(void)unused;
	if (quiesce_qsbr_register(QUIESCE_LAYOUT))
		abort();
	rcu_read_lock();
	idx = srcu_read_lock(&domain);
	guard = shazptr_acquire(&object);
	percpu_down_read(&read_locked);
	percpu_down_write(&write_locked);
	count_up(&nr_inside);
	wait_until(flag_get(&leave));
	percpu_up_write(&write_locked);
	percpu_up_read(&read_locked);
	shazptr_clear(guard);
	srcu_read_unlock(&domain, idx);
	rcu_read_unlock();
	quiesce_qsbr_unregister();
	return NULL;
}

static void do_nothing(struct rcu_head *unused)
{
	(void)unused;
}

static void wait_for_rcu(void)
{
	synchronize_rcu();
}

static void wait_for_srcu(void)
{
	synchronize_srcu(&domain);
}

static void wait_for_shazptr(void)
{
	synchronize_shazptr(&object);
}

static void wait_for_callback(void)
{
	call_rcu(&head, do_nothing);
	rcu_barrier();
}

static void wait_to_write(void)
{
	percpu_down_write(&read_locked);
	percpu_up_write(&read_locked);
}

static void wait_to_read(void)
{
	percpu_down_read(&write_locked);
	percpu_up_read(&write_locked);
}

static void (*const waits[])(void) = {
	wait_for_rcu, wait_for_srcu, wait_for_shazptr, wait_for_callback, wait_to_write, wait_to_read, quiesce_qsbr_synchronize,
};
#define NR_WAITS (int)(sizeof waits / sizeof waits[0])

static void *waiter_main(void *wait)
{
	count_up(&nr_calls);
	(*(void (*const *)(void))wait)();
	count_up(&nr_returned);
	return NULL;
}

/* Start a process that stops its parent for a while, as soon as it reads from the pipe. */
static pid_t stopper_begin(int *ret_begin)
{
	pid_t parent = getpid(), pid;
	int fd[2];
	char c;

	must(!pipe(fd));
	pid = fork();
	if (!pid) {
		if (read(fd[0], &c, 1) == 1 && !kill(parent, SIGSTOP)) {
			sleep_ns(STOP_NS);
			kill(parent, SIGCONT);
		}
		_exit(0);
	}
	must(pid > 0);
	*ret_begin = fd[1];
	return pid;
}

static void wait_through_a_stop(void)
{
	pthread_t reader, waiter[NR_WAITS];
	int begin;
	pid_t stopper = stopper_begin(&begin);
	uint64_t begun;

	quiesce_set_stall_timeout(LIMIT_NS);
	thread_must(pthread_create(&reader, NULL, reader_main, NULL));
	wait_until(flag_get(&nr_inside));
	for (int i = 0; i < NR_WAITS; i++)
		thread_must(pthread_create(&waiter[i], NULL, waiter_main, (void *)(uintptr_t)&waits[i]));
	wait_until(flag_get(&nr_calls) == NR_WAITS);
	sleep_ns(INSIDE_NS);
	begun = now_ns();
	must(write(begin, "", 1) == 1);
	must(waitpid(stopper, NULL, 0) == stopper);
	must(now_ns() - begun >= STOP_NS);
	sleep_ns(INSIDE_NS);
	must(flag_get(&nr_returned) == 0);
	flag_set(&leave);
	pthread_join(reader, NULL);
	threads_end(waiter, NR_WAITS);
	must(stats_now().stalls == 0);
}

static void a_stop_of_the_process_is_no_stall(void **state)
{
	(void)state;
	succeeds(wait_through_a_stop);
}

/* ---- one thread is stopped ---- */

static int holder_reported, stop_reported;
static pid_t holder;

static void keep(const struct quiesce_report *report)
{
	if (report->holder != (uint32_t)holder)
		return;
	if (strstr(report->text, ", stopped"))
		flag_set(&stop_reported);
	flag_set(&holder_reported);
}

/* Start a process that stops one thread as a debugger does, and continues it when the pipe is closed; return whether it could. */
static bool debug(pid_t tid, int *ret_end)
{
	int fd[2], could[2];
	char c = 0;

	if (pipe(fd) || pipe(could))
		abort();
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (!fork()) {
		close(fd[1]);
		c = !ptrace(PTRACE_SEIZE, tid, NULL, NULL) && !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) &&
		    waitpid(tid, NULL, __WALL) == tid;
		if (write(could[1], &c, 1) == 1)
			c = (char)read(fd[0], &c, 1);
		_exit(0);
	}
	close(fd[0]);
	*ret_end = fd[1];
	return read(could[0], &c, 1) == 1 && c;
}

static void a_reader_that_is_stopped_is_reported_as_that(void **state)
{
	struct held h;
	pthread_t waiter;
	int end;

	(void)state;
	quiesce_set_stall_timeout(20000000);
	quiesce_set_report_hook(keep);
	held_begin(&h, NULL);
	holder = h.tid;
	if (debug(h.tid, &end)) {
		thread_must(pthread_create(&waiter, NULL, waiter_main, (void *)(uintptr_t)&waits[0]));
		wait_until(flag_get(&holder_reported));
		assert_true(flag_get(&stop_reported));
		close(end);
		held_end(&h);
		pthread_join(waiter, NULL);
	} else {
		print_message("# skipped: no process may stop a thread of this process here\n");
		close(end);
		held_end(&h);
	}
	wait(NULL);
	quiesce_set_report_hook(NULL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_stop_of_the_process_is_no_stall),
		TEST(a_reader_that_is_stopped_is_reported_as_that),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
