/* SPDX-License-Identifier: MIT */
/* test_children.c - children of forks without handlers, daemons, and executed programs. */
#include "children.h"
#include "use.h"

#include <sched.h>
#include <spawn.h>

extern char **environ;

static struct rcu_head first_head;
static int first_run;

static void first_callback(struct rcu_head *head)
{
	(void)head;
	count_up(&first_run);
}

static void first_synchronize(void)
{
	synchronize_rcu();
}

static void first_poll(void)
{
	struct rcu_gp_seq seq = get_state_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		short_rest();
}

static void first_start_poll(void)
{
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		short_rest();
}

static void first_barrier(void)
{
	call_rcu(&first_head, first_callback);
	rcu_barrier();
	must(first_run == 1);
}

static void first_call_rcu_alone(void)
{
	call_rcu(&first_head, first_callback);
	wait_until(flag_get(&first_run) == 1);
}

static void first_many_callbacks(void)
{
	static struct rcu_head head[100000];

	for (int i = 0; i < 100000; i++)
		call_rcu(&head[i], first_callback);
	rcu_barrier();
	must(first_run == 100000);
}

static void first_kfree(void)
{
	kfree_rcu_mightsleep((int *)malloc(sizeof(int)));
	must(quiesce_shutdown(0) == 0);
}

static void first_read(void)
{
	must(use_reader());
	must(use_everything());
}

static const struct {
	const char *name;
	void (*fn)(void);
} firsts[] = {
	{ "synchronize_rcu", first_synchronize },
	{ "poll", first_poll },
	{ "start_poll", first_start_poll },
	{ "call_rcu and rcu_barrier", first_barrier },
	{ "call_rcu alone", first_call_rcu_alone },
	{ "many call_rcu", first_many_callbacks },
	{ "kfree_rcu_mightsleep and shutdown", first_kfree },
	{ "everything", first_read },
};

/* The parent has a worker, a thread inside a section, and one that waits for it. */
static void *wait_main(void *unused)
{
	(void)unused;
	synchronize_rcu();
	return NULL;
}

static void each_first_use(pid_t (*make)(void))
{
	uint64_t sleeps = stats_now().sleeps;
	pthread_t waiter;
	struct held h;
	int bad = 0;

	assert_true(use_everything());
	held_begin(&h, NULL);
	thread_must(pthread_create(&waiter, NULL, wait_main, NULL));
	wait_until(stats_now().sleeps > sleeps);
	for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
		int status = status_of_child(make, firsts[i].fn);

		if (!exited_with(status, 0))
			print_error("%s: wait status %#x\n", firsts[i].name, (unsigned int)status);
		bad += !exited_with(status, 0);
		alarm(watchdog_seconds());
	}
	held_end(&h);
	pthread_join(waiter, NULL);
	assert_int_equal(bad, 0);
}

static void after_fork(void **state)
{
	(void)state;
	each_first_use(fork);
}

static void after_raw_clone(void **state)
{
	(void)state;
	each_first_use(raw_clone);
}

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
#define HAS_UNDERSCORE_FORK 1
#endif
#endif
#ifdef HAS_UNDERSCORE_FORK
#define underscore_fork _Fork
#else
#define underscore_fork raw_clone
#endif

static void after_underscore_fork(void **state)
{
	(void)state;
	each_first_use(underscore_fork);
}

/* ---- children that share our memory for a while, or replace it ---- */

static void vfork_and_exec(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_true(use_everything());
	for (int i = 0; i < 5; i++) {
		pid = vfork();
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_true(use_everything());
	}
}

static void spawn(void **state)
{
	char *argv[] = { (char *)(uintptr_t)"true", NULL };
	int status;
	pid_t pid;

	(void)state;
	rcu_read_lock();
	assert_int_equal(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
	rcu_read_unlock();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(use_everything());
}

/* A child that shares the memory is no fork: a registration that it makes belongs to the thread whose memory it uses, and not to the
 * child, which ends soon. */
static int waited;

static int use_our_memory(void *unused)
{
	(void)unused;
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
	return 0;
}

static void *lend_memory(void *inside)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct timespec long_rest = { .tv_nsec = 200000000 }; /* long enough for several probes for threads that died */
	int status, seen;
	pid_t pid = clone(use_our_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	if (waitpid(pid, &status, 0) != pid || !exited_with(status, 0))
		return NULL;
	rcu_read_lock();
	sem_post(inside);
	nanosleep(&long_rest, NULL);
	seen = flag_get(&waited);
	rcu_read_unlock();
	return seen ? NULL : inside;
}

static void a_child_in_our_memory_is_no_fork(void **state)
{
	uint32_t before;
	pthread_t thread;
	void *good;
	sem_t inside;

	(void)state;
	assert_true(use_everything());
	before = stats_now().readers;
	sem_init(&inside, 0, 0);
	thread_must(pthread_create(&thread, NULL, lend_memory, &inside));
	wait_for(&inside);
	assert_int_equal(stats_now().readers, before + 1);
	synchronize_rcu();
	flag_set(&waited);
	pthread_join(thread, &good);
	assert_non_null(good);
	assert_int_equal(stats_now().readers, before);
	assert_true(use_everything());
}

/* The daemon reports through a pipe; its parent has ended by then. */
static int daemon_pipe[2];

static void become_daemon(void)
{
	char ok;

	must(daemon(1, 1) == 0);
	alarm(watchdog_seconds() / 3);
	ok = use_everything() && use_with_threads(2, 2) ? 'y' : 'n';
	must(write(daemon_pipe[1], &ok, 1) == 1);
}

static void a_daemon_has_a_worker_of_its_own(void **state)
{
	char reported = '?';
	int status;

	(void)state;
	assert_true(use_everything());
	assert_int_equal(stats_now().worker_running, 1);
	assert_int_equal(pipe(daemon_pipe), 0);
	status = status_of_child(fork, become_daemon);
	assert_true(exited_with(status, 0));
	close(daemon_pipe[1]);
	assert_int_equal(read(daemon_pipe[0], &reported, 1), 1);
	assert_int_equal(reported, 'y');
	close(daemon_pipe[0]);
}

/* ---- a callback that forks, and returns in the child as well ---- */

static int report[2];
static pid_t first_process;
static pid_t (*fork_in_callback)(void);

static void report_one(char what)
{
	must(write(report[1], &what, 1) == 1);
}

static void fork_and_return(struct rcu_head *head)
{
	(void)head;
	if (fork_in_callback() == 0)
		alarm(watchdog_seconds() / 3);
}

/* In the child the thread goes on as the worker, and returns here, too. */
static void report_process(struct rcu_head *head)
{
	(void)head;
	if (getpid() == first_process) {
		report_one('p');
	} else {
		report_one('c');
		_exit(0);
	}
}

static void returns_in_both(pid_t (*way)(void))
{
	static struct rcu_head forks, later;
	char seen[2] = "";

	fork_in_callback = way;
	first_process = getpid();
	assert_int_equal(pipe(report), 0);
	rcu_read_lock();
	call_rcu(&forks, fork_and_return);
	call_rcu(&later, report_process);
	rcu_read_unlock();
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(report[0], &seen[i], 1), 1);
	assert_true(seen[0] != seen[1]);
	rcu_barrier();
	for (int i = 0; i < 2; i++)
		close(report[i]);
	assert_true(use_everything());
}

static void a_forking_callback_returns_in_both(void **state)
{
	(void)state;
	returns_in_both(fork);
	returns_in_both(raw_clone);
	returns_in_both(underscore_fork);
}

/* ---- a callback that forks without handlers and ends its thread in the child ---- */

static int waited;

static void *wait_for_readers(void *unused)
{
	synchronize_rcu();
	flag_set(&waited);
	return unused;
}

/* The hook runs in the ending thread: the library knows of the fork by then, so no call waits for a section of a thread that the child
 * does not have. */
static void hook_of_ended(enum quiesce_misuse kind, const char *text)
{
	pthread_t thread;

	(void)text;
	must(kind == QUIESCE_MISUSE_EXIT_IN_CALLBACK);
	thread_must(pthread_create(&thread, NULL, wait_for_readers, NULL));
	for (int i = 0; i < 3000 && !flag_get(&waited); i++)
		short_rest();
	must(flag_get(&waited));
	_exit(0);
}

static void fork_and_end(struct rcu_head *unused)
{
	int status = -1;
	struct held h;
	pid_t pid;

	(void)unused;
	held_begin(&h, NULL);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		quiesce_set_misuse_hook(hook_of_ended);
		pthread_exit(NULL);
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
	held_end(&h);
}

static void fork_and_end_once(void)
{
	static struct rcu_head head;

	call_rcu(&head, fork_and_end);
	rcu_barrier();
}

static void a_forking_callback_may_end_its_thread(void **state)
{
	(void)state;
	succeeds(fork_and_end_once);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(after_fork),
		TEST(after_raw_clone),
		TEST(after_underscore_fork),
		TEST(vfork_and_exec),
		TEST(spawn),
		TEST(a_child_in_our_memory_is_no_fork),
		TEST(a_daemon_has_a_worker_of_its_own),
		TEST(a_forking_callback_returns_in_both),
		TEST(a_forking_callback_may_end_its_thread),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
