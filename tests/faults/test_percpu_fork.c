/* SPDX-License-Identifier: MIT */
/* test_percpu_fork.c - percpu_rwsem, rcu_sync and domains of SRCU across forks: the state and the guarantees that a child has. */
#include "children.h"
#include "../unit/rwsems.h"

#include <quiesce/srcu.h>

#include <dirent.h>

DEFINE_STATIC_PERCPU_RWSEM(handlers_lock);
DEFINE_STATIC_SRCU(handlers_domain);
static uint32_t raise_in_fork, handled;

/* A fork handler makes the first use of both, between the library's handlers, because it was registered before them. */
static void first_user(int signal)
{
	(void)signal;
	srcu_read_unlock(&handlers_domain, srcu_read_lock(&handlers_domain));
	if (percpu_down_read_trylock(&handlers_lock))
		percpu_up_read(&handlers_lock);
	handled++;
}

static void in_the_midst_of_fork(void)
{
	if (raise_in_fork)
		raise(SIGUSR2);
}

static void before_all_others(void)
{
	pthread_atfork(in_the_midst_of_fork, NULL, NULL);
}
static void (*const begin)(void) __attribute__((section(".preinit_array"), used)) = before_all_others;

DEFINE_STATIC_PERCPU_RWSEM(sem);
DEFINE_STATIC_SRCU(domain);

static void works(struct percpu_rw_semaphore *s)
{
	percpu_down_read(s);
	must(percpu_is_read_locked(s) && !percpu_down_write_trylock(s));
	percpu_up_read(s);
	must(!percpu_is_read_locked(s));
	for (int i = 0; i < 3; i++) {
		percpu_down_write(s);
		must(percpu_is_write_locked_by_me(s) && !percpu_down_read_trylock(s));
		percpu_up_write(s);
	}
	wait_until(rcu_sync_is_idle(&s->rss)); /* the helper makes readers fast again */
}

static void *work_elsewhere(void *s)
{
	works(s);
	return NULL;
}

static void works_and_ends(void)
{
	pthread_t thread;

	works(&sem);
	thread_must(pthread_create(&thread, NULL, work_elsewhere, &sem));
	pthread_join(thread, NULL);
	percpu_free_rwsem(&sem);
	must(percpu_init_rwsem(&sem) == 0);
	works(&sem);
	must(quiesce_shutdown(0) == 0);
	works(&sem);
}

static void write_a_little(void)
{
	for (int i = 0; i < 2; i++) {
		percpu_down_write(&sem);
		percpu_up_write(&sem);
	}
}

static void a_free_lock_is_free_in_the_child(void **state)
{
	(void)state;
	in_good_child(works_and_ends);
	for (int i = 0; i < 8; i++) {
		if (i % 2)
			wait_until(rcu_sync_is_idle(&sem.rss));
		write_a_little(); /* readers are slow, the helper may be about to change that */
		for (int k = 0; k < 3 * i; k++)
			short_rest();
		in_good_child(works_and_ends);
	}
	lock_works(&sem);
}

/* ---- the forking thread's locks are held in parent and child ---- */

static void stop_writing(void)
{
	must(percpu_is_write_locked_by_me(&sem));
	must(!percpu_down_read_trylock(&sem));
	percpu_up_write(&sem);
	works_and_ends();
}

static void stop_reading(void)
{
	must(percpu_is_read_locked(&sem));
	must(!percpu_down_write_trylock(&sem));
	percpu_up_read(&sem);
	works_and_ends();
}

static void stop_reading_twice(void)
{
	in_good_child(stop_reading);
	stop_reading();
}

static void the_forking_thread_keeps_its_locks(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		wait_until(rcu_sync_is_idle(&sem.rss));
		if (slow)
			write_a_little();
		percpu_down_read(&sem);
		in_good_child(stop_reading);
		in_good_child(stop_reading_twice);
		assert_true(percpu_is_read_locked(&sem));
		percpu_up_read(&sem);
		percpu_down_write(&sem);
		in_good_child(stop_writing);
		assert_true(percpu_is_write_locked_by_me(&sem));
		percpu_up_write(&sem);
		lock_works(&sem);
	}
}

/* ---- a lock that another thread has, or waits for ---- */

static void begins_anew(void)
{
	must(percpu_init_rwsem(&sem) == 0);
	works_and_ends();
}

static void a_lock_of_others_begins_anew(void **state)
{
	struct user u[4];

	(void)state;
	for (int write = 0; write < 2; write++) {
		if (!write)
			wait_until(rcu_sync_is_idle(&sem.rss));
		user_inside(&u[0], &sem, write);
		in_good_child(begins_anew);
		if (write)
			user_queued(&u[1], &sem, true, 0);
		else
			user_drains(&u[1], &sem, 0);
		user_queued(&u[2], &sem, false, 0);
		user_queued(&u[3], &sem, true, 0);
		in_good_child(begins_anew);
		for (int i = 0; i < 4; i++)
			flag_set(&u[i].leave);
		for (int i = 0; i < 4; i++)
			user_leave(&u[i]);
		lock_works(&sem);
		in_good_child(begins_anew); /* callbacks queued by the parent run in the parent */
	}
}

/* ---- beside threads that use other locks ---- */

static int stop, nr_turns;
static struct rcu_head busy_head[3];
DEFINE_STATIC_SRCU(busy_domain);

static void count_turn(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_turns);
}

static void *use_other_locks(void *arg)
{
	size_t me = (size_t)(uintptr_t)arg;
	static struct percpu_rw_semaphore common = PERCPU_RWSEM_INIT;
	struct percpu_rw_semaphore own;
	int idx;

	while (!flag_get(&stop)) {
		must(percpu_init_rwsem(&own) == 0);
		percpu_down_write(&own);
		percpu_up_write(&own);
		percpu_down_write(&common);
		percpu_up_write(&common);
		percpu_down_read(&common);
		idx = srcu_read_lock(&busy_domain);
		percpu_up_read(&common);
		percpu_free_rwsem(&own);
		srcu_read_unlock(&busy_domain, idx);
		synchronize_srcu(&busy_domain);
		call_srcu(&busy_domain, &busy_head[me], count_turn);
		srcu_barrier(&busy_domain);
	}
	return NULL;
}

static struct rcu_head heads[100];
static int nr_run;

static void run(struct rcu_head *head)
{
	(void)head;
	count_up(&nr_run);
}

/* A lock or domain that no other thread used at the fork works as before. */
static void uses_inherited_objects(void)
{
	works(&sem);
	percpu_free_rwsem(&sem);
	synchronize_srcu(&domain);
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 100);
	cleanup_srcu_struct(&domain);
}

static void queue_all(void)
{
	quiesce_store_relaxed(&nr_run, 0);
	for (int i = 0; i < 100; i++)
		call_srcu(&domain, &heads[i], run);
}

static void forks_beside_threads_that_use_others(void **state)
{
	enum { NR = 3 };
	pthread_t thread[NR];

	(void)state;
	stop = 0;
	for (uintptr_t i = 0; i < NR; i++)
		thread_must(pthread_create(&thread[i], NULL, use_other_locks, (void *)i));
	wait_until(flag_get(&nr_turns) > NR);
	for (int i = 0; i < 40; i++) {
		int idx = srcu_read_lock(&domain);
		uint64_t begun;
		struct outcome o;

		queue_all();
		write_a_little(); /* the helper has our callback when we fork */
		srcu_read_unlock(&domain, idx);
		begun = now_ns();
		in_child(uses_inherited_objects, &o);
		if (in_time(begun) && !exited_with(o.status, 0))
			fail_msg("child %d: wait status %#x, stderr: %s", i, (unsigned int)o.status, o.text);
		srcu_barrier(&domain);
		assert_int_equal(flag_get(&nr_run), 100);
	}
	alarm(watchdog_seconds());
	flag_set(&stop);
	threads_end(thread, NR);
	srcu_barrier(&busy_domain);
	works(&sem);
}

/* ---- domains ---- */

static int idx_held;

static void leave_section(void)
{
	srcu_read_unlock(&domain, idx_held);
	synchronize_srcu(&domain);
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 100);
	queue_all();
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 100);
	must(stats_now().garbage_bytes == 0 && stats_now().garbage_objects == 0);
	cleanup_srcu_struct(&domain);
	must(quiesce_shutdown(0) == 0);
}

static void pending_callbacks_run_in_both(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		idx_held = srcu_read_lock(&domain);
		queue_all();
		for (int k = 0; k < i; k++)
			short_rest();
		in_good_child(leave_section);
		assert_int_equal(flag_get(&nr_run), 0);
		srcu_read_unlock(&domain, idx_held);
		srcu_barrier(&domain);
		assert_int_equal(flag_get(&nr_run), 100);
	}
}

struct section {
	pthread_t thread;
	int inside, leave;
};

static void *section_main(void *arg)
{
	struct section *s = arg;
	int idx = srcu_read_lock(&domain);

	flag_set(&s->inside);
	wait_until(flag_get(&s->leave));
	srcu_read_unlock(&domain, idx);
	return NULL;
}

static void domain_begins_anew(void)
{
	must(init_srcu_struct(&domain) == 0);
	synchronize_srcu(&domain);
	queue_all();
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 100);
	cleanup_srcu_struct(&domain);
}

static void *wait_for_domain(void *done)
{
	synchronize_srcu(&domain);
	flag_set((int *)done);
	return NULL;
}

static void sections_of_others_stay_in_the_parent(void **state)
{
	struct section s = { .inside = 0 };
	uint64_t sleeps;
	pthread_t updater;
	int done = 0;

	(void)state;
	thread_must(pthread_create(&s.thread, NULL, section_main, &s));
	wait_until(flag_get(&s.inside));
	in_good_child(domain_begins_anew);
	sleeps = stats_now().sleeps;
	thread_must(pthread_create(&updater, NULL, wait_for_domain, &done));
	wait_until(stats_now().sleeps > sleeps);
	in_good_child(domain_begins_anew);
	assert_false(flag_get(&done));
	flag_set(&s.leave);
	pthread_join(updater, NULL);
	pthread_join(s.thread, NULL);
}

/* ---- quiesce_shutdown() ---- */

static int nr_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr - 2;
}

DEFINE_STATIC_SRCU(second_domain);

/* Callbacks that wait for sections without an owner in the child cannot run. */
static void child_cannot_run_all(void)
{
	static struct rcu_head head[2];

	must(quiesce_shutdown(20 * MS) == -ETIMEDOUT);
	must(quiesce_shutdown(0) == -ETIMEDOUT);
	wait_until(nr_threads() == 1); /* the helper may be about to end */
	/* Callbacks whose readers have left run. */
	call_srcu(&domain, &head[0], run);
	call_srcu(&second_domain, &head[1], run);
	must(quiesce_shutdown(0) == -ETIMEDOUT && flag_get(&nr_run) == 1);
	wait_until(nr_threads() == 1);
	must(stats_now().garbage_objects == 101);
}

/* The section belongs to the forking thread, and ends. */
static void child_can(void)
{
	srcu_read_unlock(&domain, idx_held);
	must(quiesce_shutdown(0) == 0 && flag_get(&nr_run) == 100);
	wait_until(nr_threads() == 1);
	must(stats_now().garbage_objects == 0 && stats_now().garbage_bytes == 0);
}

static void shutdown_after_a_fork(void **state)
{
	struct section s = { .inside = 0 };

	(void)state;
	thread_must(pthread_create(&s.thread, NULL, section_main, &s));
	wait_until(flag_get(&s.inside));
	queue_all();
	in_good_child(child_cannot_run_all);
	short_rest();
	in_good_child(child_cannot_run_all);
	assert_int_equal(quiesce_shutdown(20 * MS), -ETIMEDOUT);
	flag_set(&s.leave);
	pthread_join(s.thread, NULL);
	assert_int_equal(quiesce_shutdown(0), 0);
	assert_int_equal(flag_get(&nr_run), 100);
	idx_held = srcu_read_lock(&domain);
	queue_all();
	in_good_child(child_can);
	srcu_read_unlock(&domain, idx_held);
	srcu_barrier(&domain);
}

/* ---- the helper is never forked inside a step ---- */

enum { NR_HALVES = 200 };

static int halves;

static void two_halves(struct rcu_head *head)
{
	struct timespec rest = { .tv_nsec = 50000 };

	(void)head;
	count_up(&halves);
	nanosleep(&rest, NULL);
	count_up(&halves);
}

static uint64_t fork_begun;

static void is_whole_and_goes_on(void)
{
	must(!in_time(fork_begun) || flag_get(&halves) % 2 == 0);
	srcu_barrier(&domain);
	must(!in_time(fork_begun) || flag_get(&halves) == 2 * NR_HALVES);
}

static void forks_beside_callbacks(void **state)
{
	static struct rcu_head head[NR_HALVES];
	int nr_forks = 0;

	(void)state;
	for (int round = 0; round < 3 || nr_forks < 10; round++) {
		quiesce_store_relaxed(&halves, 0);
		for (int i = 0; i < NR_HALVES; i++)
			call_srcu(&domain, &head[i], two_halves);
		wait_until(flag_get(&halves) > 0);
		for (int i = 0; i < 4 && flag_get(&halves) < 2 * NR_HALVES; i++) {
			fork_begun = now_ns();
			in_good_child(is_whole_and_goes_on);
			nr_forks++;
		}
		srcu_barrier(&domain);
		assert_int_equal(halves, 2 * NR_HALVES);
	}
}

/* ---- a child of a fork without handlers ---- */

static void first_use(int which)
{
	if (which == 0)
		works(&sem);
	else if (which == 1)
		percpu_free_rwsem(&sem), must(percpu_init_rwsem(&sem) == 0);
	else if (which == 2)
		synchronize_srcu(&domain);
	else if (which == 3)
		srcu_barrier(&domain);
	else
		percpu_down_write(&sem), percpu_up_write(&sem), percpu_free_rwsem(&sem);
	if (which < 4)
		works(&sem);
	synchronize_srcu(&domain);
	queue_all();
	srcu_barrier(&domain);
	must(flag_get(&nr_run) == 100);
}

/* The helper has a callback in its list, and does not touch it for 10 ms. */
#define REST_NS 5000000u

static bool child_without_handlers(int which, int *ret_status)
{
	int idx = srcu_read_lock(&domain);
	uint64_t begun;
	pid_t pid;

	wait_until(rcu_sync_is_idle(&sem.rss));
	begun = now_ns();
	percpu_down_write(&sem);
	percpu_up_write(&sem);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		srcu_read_unlock(&domain, idx);
		first_use(which);
		_exit(0);
	}
	begun = now_ns() - begun;
	waitpid(pid, ret_status, 0);
	srcu_read_unlock(&domain, idx);
	return begun < REST_NS; /* otherwise the outcome depended on timing */
}

static void children_without_handlers(void **state)
{
	int status = -1;

	(void)state;
	srcu_barrier(&domain);
	for (int which = 0; which < 5; which++) {
		while (!child_without_handlers(which, &status))
			alarm(watchdog_seconds());
		if (!exited_with(status, 0))
			fail_msg("first use %d: wait status %#x", which, (unsigned int)status);
	}
	works(&sem);
}

static void child_of_midst(void)
{
	sigset_t now;

	must(!sigprocmask(SIG_BLOCK, NULL, &now) && !sigismember(&now, SIGUSR2) && !sigismember(&now, SIGTERM));
	first_user(0);
}

static void a_handler_in_the_midst_of_fork(void **state)
{
	sigset_t now;

	(void)state;
	signal(SIGUSR2, first_user);
	raise_in_fork = 1;
	in_good_child(child_of_midst);
	raise_in_fork = 0;
	assert_int_not_equal(handled, 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	assert_false(sigismember(&now, SIGUSR2));
	signal(SIGUSR2, SIG_DFL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_handler_in_the_midst_of_fork),
		TEST(a_free_lock_is_free_in_the_child),
		TEST(the_forking_thread_keeps_its_locks),
		TEST(a_lock_of_others_begins_anew),
		TEST(pending_callbacks_run_in_both),
		TEST(sections_of_others_stay_in_the_parent),
		TEST(shutdown_after_a_fork),
		TEST(forks_beside_callbacks),
		TEST(forks_beside_threads_that_use_others),
		TEST(children_without_handlers),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
