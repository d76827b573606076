/* SPDX-License-Identifier: MIT */
/* test_unannounced.c - children of forks without handlers, which start threads: whichever thread calls the library first, waits last
 * for readers that exist in the child, and for no others.
 *
 * Below, the first thread of a child is the one that it has inherited.
 */
#include "../unit/testing.h"
#include "use.h"

#include <quiesce/detail/qsbr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>

#include <linux/sched.h>
#include <sched.h>

/* ---- how children are made ---- */

static pid_t by_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t by_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

#ifdef SYS_fork
static pid_t by_fork(void)
{
	return (pid_t)syscall(SYS_fork);
}
#endif

#if __GLIBC_PREREQ(2, 34)
static pid_t by_underscore(void)
{
	return _Fork();
}
#endif

static pid_t (*const ways[])(void) = {
	by_clone,
	by_clone3,
#ifdef SYS_fork
	by_fork,
#endif
#if __GLIBC_PREREQ(2, 34)
	by_underscore,
#endif
};
enum { NR_WAYS = sizeof ways / sizeof *ways };
static pid_t (*make)(void);

/* Run @fn in a child of each kind of fork, forked between @enter and @leave of the forking thread. */
static void in_each(void (*fn)(void), void (*enter)(void), void (*leave)(void))
{
	for (int i = 0; i < NR_WAYS; i++) {
		int status = -1;
		pid_t pid;

		make = ways[i];
		if (enter)
			enter();
		pid = make();
		if (pid == 0) {
			alarm(watchdog_seconds() / 3);
			fn();
			_exit(0);
		}
		if (leave)
			leave();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			print_error("way %d: wait status %#x\n", i, (unsigned int)status);
		assert_int_equal(status, 0);
		alarm(watchdog_seconds());
	}
}

/* ---- another thread of the child ---- */

static pthread_t thread;
static int done; /* set by @thread */

static void *run_other(void *fn)
{
	((void (*)(void))fn)();
	flag_set(&done);
	return NULL;
}

static void other_begins(void (*fn)(void))
{
	done = 0;
	thread_must(pthread_create(&thread, NULL, run_other, (void *)fn));
}

static void other_ends(void)
{
	pthread_join(thread, NULL);
	must(done);
}

static void rest(void)
{
	for (int i = 0; i < 300; i++)
		short_rest();
}

/* Another thread of the child waits for a section or guard that the first thread ends. */
static void other_waits_until(void (*wait)(void), void (*leave)(void))
{
	other_begins(wait);
	rest();
	must(!flag_get(&done));
	leave();
	other_ends();
}

static void wait_for_rcu(void)
{
	synchronize_rcu();
}

static void lock_rcu(void)
{
	rcu_read_lock();
}

static void unlock_rcu(void)
{
	rcu_read_unlock();
}

/* ---- sections of RCU ---- */

static sem_t entered, to_leave;

static void read_until_asked(void)
{
	rcu_read_lock();
	sem_post(&entered);
	wait_for(&to_leave);
	rest();
	flag_set(&done);
	rcu_read_unlock();
}

static void first_waits_for_other(void)
{
	sem_init(&entered, 0, 0);
	sem_init(&to_leave, 0, 0);
	other_begins(read_until_asked);
	wait_for(&entered);
	must(!flag_get(&done));
	sem_post(&to_leave);
	synchronize_rcu();
	must(flag_get(&done));
	other_ends();
}

static void a_new_reader_is_waited_for(void **state)
{
	(void)state;
	in_each(first_waits_for_other, NULL, NULL);
	lock_rcu(); /* now the first thread is registered */
	unlock_rcu();
	in_each(first_waits_for_other, NULL, NULL);
}

static void other_waits_for_first(void)
{
	rcu_read_lock();
	other_waits_until(wait_for_rcu, unlock_rcu);
}

static void the_first_thread_is_waited_for(void **state)
{
	(void)state;
	in_each(other_waits_for_first, NULL, NULL);
	lock_rcu();
	unlock_rcu();
	in_each(other_waits_for_first, NULL, NULL);
}

static void other_waits_for_old_section(void)
{
	other_waits_until(wait_for_rcu, unlock_rcu);
	must(use_everything());
}

static void a_section_goes_on(void **state)
{
	(void)state;
	in_each(other_waits_for_old_section, lock_rcu, unlock_rcu);
}

/* ---- sections of threads that the child does not have ---- */

static void ask_something(void)
{
	stats_now();
}

/* Until the first thread makes any call, the library does not know that the inherited section is that thread's. */
static void other_waits_for_no_reader(void)
{
	other_waits_until(wait_for_rcu, ask_something);
	must(use_everything());
}

static void an_unowned_section_ends_when_the_first_thread_registers(void **state)
{
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	in_each(other_waits_for_no_reader, NULL, NULL);
	held_end(&h);
}

static void first_waits_for_no_reader(void)
{
	synchronize_rcu();
	other_begins(wait_for_rcu);
	other_ends();
	must(use_with_threads(2, 3));
}

static void the_first_thread_forgets_others_at_once(void **state)
{
	struct held h;

	(void)state;
	held_begin(&h, NULL);
	in_each(first_waits_for_no_reader, NULL, NULL);
	held_end(&h);
}

/* ---- each primitive, first used by the other thread ---- */

static void use_all(void)
{
	must(use_everything());
	must(use_with_threads(2, 5));
}

static void other_uses_all(void)
{
	other_begins(use_all);
	other_ends();
	use_all();
	must(quiesce_shutdown(0) == 0);
	must(stats_now().garbage_objects == 0);
}

static void other_threads_use_all_calls_without_the_first_one(void **state)
{
	(void)state;
	in_each(other_uses_all, NULL, NULL);
	assert_true(use_everything());
	assert_int_equal(stats_now().worker_running, 1);
	in_each(other_uses_all, NULL, NULL);
}

static void use_all_and_end(void)
{
	use_all();
	_exit(0);
}

static void first_ends(void)
{
	other_begins(use_all_and_end);
	pthread_exit(NULL);
}

static void the_first_thread_ends(void **state)
{
	(void)state;
	in_each(first_ends, NULL, NULL);
}

/* ---- children of children ---- */

static int depth;

static void each_generation(void);

static void forks_again(void)
{
	int status = -1;
	pid_t pid;

	if (!depth--)
		return;
	pid = depth % 2 ? make() : fork();
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		each_generation();
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
}

/* The next fork is made alternately by the first thread and by another, which may or may not have used the library. */
static void each_generation(void)
{
	if (depth % 3 == 0)
		other_uses_all();
	if (depth % 2)
		forks_again();
	other_begins(forks_again);
	other_ends();
	other_waits_for_first();
	use_all();
}

static void four_generations(void)
{
	depth = 4;
	each_generation();
}

static void each_generation_works(void **state)
{
	(void)state;
	in_each(four_generations, NULL, NULL);
}

/* ---- callbacks that were queued before ---- */

enum { QUEUED = 5000 };
static struct rcu_head head[2 * QUEUED];
static unsigned char runs[2 * QUEUED];

static void run(struct rcu_head *h)
{
	runs[h - head]++;
}

static void queue(int from)
{
	for (int i = from; i < from + QUEUED; i++)
		call_rcu(&head[i], run);
}

static void enter_and_queue(void)
{
	memset(runs, 0, sizeof runs);
	rcu_read_lock();
	queue(0);
}

static void leave_and_run(void)
{
	rcu_read_unlock();
	rcu_barrier();
}

static void all_run_once(void)
{
	other_begins(rcu_barrier);
	rcu_read_unlock();
	queue(QUEUED);
	other_ends();
	rcu_barrier();
	for (int i = 0; i < 2 * QUEUED; i++)
		must(runs[i] == 1);
}

static void callbacks_run_once(void **state)
{
	(void)state;
	assert_true(use_everything());
	in_each(all_run_once, enter_and_queue, leave_and_run);
}

/* ---- in a callback ---- */

static int status_of_child;

/* Fork in a callback; another thread of the child takes the callback's pass for abandoned. */
static void fork_and_let_another_come(struct rcu_head *unused)
{
	pid_t pid = make();

	(void)unused;
	if (pid) {
		must(waitpid(pid, &status_of_child, 0) == pid);
		return;
	}
	alarm(watchdog_seconds() / 3);
	other_begins(wait_for_rcu);
	other_ends();
}

static void fork_in_callback(void)
{
	static struct rcu_head fork_head;

	make = by_clone;
	call_rcu(&fork_head, fork_and_let_another_come);
	rcu_barrier();
	must(WIFSIGNALED(status_of_child) && WTERMSIG(status_of_child) == SIGABRT);
	must(use_everything());
}

static void a_callback_that_is_too_late_ends_the_child(void **state)
{
	struct outcome o;

	(void)state;
	in_child(fork_in_callback, &o);
	expect_success(&o);
	assert_int_equal(count_lines(o.text), 1);
	assert_non_null(strstr(o.text, "quiesce: a callback has forked without fork handlers"));
}

/* ---- the other kinds of readers ---- */

DEFINE_STATIC_SRCU(domain);
static int section;

static void lock_srcu(void)
{
	section = srcu_read_lock(&domain);
}

static void unlock_srcu(void)
{
	srcu_read_unlock(&domain, section);
}

static void wait_for_srcu(void)
{
	synchronize_srcu(&domain);
}

static void other_waits_for_srcu(void)
{
	other_waits_until(wait_for_srcu, unlock_srcu);
}

static void a_section_of_srcu_goes_on(void **state)
{
	(void)state;
	in_each(other_waits_for_srcu, lock_srcu, unlock_srcu);
}

static struct percpu_rw_semaphore sem;

static void down(void)
{
	percpu_down_read(&sem);
}

static void up(void)
{
	percpu_up_read(&sem);
}

static void write_once(void)
{
	percpu_down_write(&sem);
	percpu_up_write(&sem);
}

static void other_writes(void)
{
	other_waits_until(write_once, up);
}

static void a_read_lock_goes_on(void **state)
{
	(void)state;
	assert_int_equal(percpu_init_rwsem(&sem), 0);
	in_each(other_writes, down, up);
}

static hazptr_t *slot, *slot_of_context;
static struct hazptr_context context;
static struct use_object *protected[2];
static int nr_freed;

static void count_freed(struct hazptr_head *h)
{
	(void)h;
	count_up(&nr_freed);
}

static void protect(void)
{
	slot = hazptr_alloc(NULL);
	must(init_hazptr_context(&context) == 0);
	slot_of_context = hazptr_alloc(&context);
	for (int i = 0; i < 2; i++)
		protected[i] = use_new();
	hazptr_protect(slot, &protected[0], hazptr);
}

static void unprotect(void)
{
	hazptr_free(NULL, slot);
	hazptr_free(&context, slot_of_context);
	cleanup_hazptr_context(&context);
}

static void retire_protected(void)
{
	for (int i = 0; i < 2; i++)
		call_hazptr(&protected[i]->hazptr, count_freed);
	hazptr_barrier();
}

/* One object was protected before the fork, and one is protected after it, by inline code. */
static void other_retires(void)
{
	hazptr_protect(slot_of_context, &protected[1], hazptr);
	other_begins(retire_protected);
	rest();
	must(!flag_get(&nr_freed));
	must(!flag_get(&done));
	unprotect();
	other_ends();
	must(flag_get(&nr_freed) == 2);
	use_all();
}

static void slots_go_on_protecting(void **state)
{
	(void)state;
	in_each(other_retires, protect, unprotect);
}

static void come_online(void)
{
	must(quiesce_qsbr_register(QUIESCE_LAYOUT) == 0);
}

static void go_away(void)
{
	quiesce_qsbr_unregister();
}

/* Again and again: on a busy machine the wait may begin after the first report. */
static void report(void)
{
	while (!flag_get(&done)) {
		quiesce__qsbr_quiescent_state();
		short_rest();
	}
}

static void other_waits_for_qsbr(void)
{
	other_waits_until(quiesce_qsbr_synchronize, report);
	other_waits_until(quiesce_qsbr_synchronize, go_away);
}

static void a_thread_stays_online(void **state)
{
	(void)state;
	in_each(other_waits_for_qsbr, come_online, go_away);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_new_reader_is_waited_for),
		TEST(the_first_thread_is_waited_for),
		TEST(a_section_goes_on),
		TEST(an_unowned_section_ends_when_the_first_thread_registers),
		TEST(the_first_thread_forgets_others_at_once),
		TEST(other_threads_use_all_calls_without_the_first_one),
		TEST(the_first_thread_ends),
		TEST(each_generation_works),
		TEST(callbacks_run_once),
		TEST(a_callback_that_is_too_late_ends_the_child),
		TEST(a_section_of_srcu_goes_on),
		TEST(a_read_lock_goes_on),
		TEST(slots_go_on_protecting),
		TEST(a_thread_stays_online),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
