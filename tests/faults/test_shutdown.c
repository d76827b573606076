/* SPDX-License-Identifier: MIT */
/* test_shutdown.c - when quiesce_shutdown() returns 0 no thread of the library is left, also for the kernel; their starts and ends. */
#define _GNU_SOURCE
#include "../unit/testing.h"
#include "filter.h"
#include "use.h"

#include <dlfcn.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/srcu.h>
#include <sched.h>

#ifndef CLONE_THREAD
#define CLONE_THREAD 0x10000
#endif

DEFINE_STATIC_PERCPU_RWSEM(lock);
DEFINE_STATIC_SRCU(domain);

/* ---- the kernel's answer ---- */

/* unshare(CLONE_THREAD) succeeds only in processes of one thread, and needs no privilege. */
static bool alone(void)
{
	return unshare(CLONE_THREAD) == 0;
}

static void be_alone(void)
{
	if (!alone())
		_exit(77);
}

static bool kernel_counts(void)
{
	struct outcome o;

	in_child(be_alone, &o);
	if (exited_with(o.status, 0))
		return true;
	print_message("# this kernel does not say how many threads there are\n");
	return false;
}

static void run_srcu(struct rcu_head *head)
{
	free(head);
}

static void *write_and_read(void *tid)
{
	for (int i = 0; i < 50; i++) {
		percpu_down_read(&lock);
		percpu_up_read(&lock);
		percpu_down_write(&lock);
		percpu_up_write(&lock);
	}
	*(pid_t *)tid = my_tid();
	return NULL;
}

/* Joined threads still exist in the kernel for a while. */
static void join_for_sure(pthread_t thread, const pid_t *tid)
{
	pthread_join(thread, NULL);
	wait_until(syscall(SYS_tgkill, getpid(), *tid, 0) < 0);
}

static void use_all_kinds(int nr_threads)
{
	struct hashmap map = HASHMAP_INIT;
	struct rcu_head *head = malloc(sizeof *head);
	pthread_t thread[3];
	pid_t tid[3];

	must(head != NULL);
	call_srcu(&domain, head, run_srcu);
	must(use_everything());
	quiesce_set_skip_self_scan(1);
	synchronize_shazptr(&domain);
	for (uint64_t k = 1; k < 2000; k++)
		hashmap_insert(&map, k, k, NULL);
	for (int i = 0; i < nr_threads; i++)
		thread_must(pthread_create(&thread[i], NULL, write_and_read, &tid[i]));
	for (int i = 0; i < nr_threads; i++)
		join_for_sure(thread[i], &tid[i]);
	hashmap_destroy(&map);
}

static void leave_nothing(void)
{
	for (int i = 0; i < 20; i++) {
		use_all_kinds(i % 4);
		must(quiesce_shutdown(i % 2 ? 0 : 20000000000) == 0);
		must(alone());
	}
}

static void nothing_is_left_for_the_kernel(void **state)
{
	(void)state;
	if (!kernel_counts())
		return;
	for (int i = 0; i < 5; i++)
		succeeds(leave_nothing);
}

static void without_questions(void)
{
	filter_now("tgkill=EPERM");
	use_all_kinds(0);
	must(quiesce_shutdown(0) == 0);
}

/* If the kernel does not report whether a thread exists, the shutdown does not wait for ever. */
static void a_kernel_that_does_not_answer_is_not_waited_for(void **state)
{
	(void)state;
	succeeds(without_questions);
}

/* ---- others go on ---- */

static int stop;

static void *goes_on(void *unused)
{
	while (!flag_get(&stop)) {
		struct rcu_head *head = malloc(sizeof *head), *other = malloc(sizeof *other);

		call_srcu(&domain, head, run_srcu);
		call_rcu(other, run_srcu);
		percpu_down_write(&lock);
		percpu_up_write(&lock);
		rcu_throttle();
		short_rest();
	}
	return unused;
}

static void shut_down_beside_others(void)
{
	pthread_t thread;
	int err;

	thread_must(pthread_create(&thread, NULL, goes_on, NULL));
	wait_until(thread_named("quiesce-helper") && thread_named("quiesce"));
	for (int i = 0; i < 3; i++) {
		err = quiesce_shutdown(0);
		must(!err || err == -EBUSY);
		err = quiesce_shutdown(100000000);
		must(!err || err == -EBUSY || err == -ETIMEDOUT);
	}
	flag_set(&stop);
	pthread_join(thread, NULL);
	must(quiesce_shutdown(0) == 0);
	must(!thread_named("quiesce-helper") && !thread_named("quiesce"));
}

static void running_threads_do_not_delay_a_shutdown_for_ever(void **state)
{
	(void)state;
	succeeds(shut_down_beside_others);
}

/* ---- a starter that is slow ---- */

static void (*before_cpus)(void); /* called once, after a starter has started the worker and before it sets its CPUs */

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus)
{
	int (*real)(pthread_t, size_t, const cpu_set_t *);
	void (*before)(void) = before_cpus;

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
	before_cpus = NULL;
	if (before)
		before();
	return real(thread, size, cpus);
}

static cpu_set_t one;
static pthread_t other;
static int other_is_over;
static pid_t other_tid;

static void pin(void)
{
	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	must(sched_setaffinity(0, sizeof one, &one) == 0);
}

static bool has_one(pid_t tid)
{
	cpu_set_t cpus;

	return sched_getaffinity(tid, sizeof cpus, &cpus) == 0 && CPU_EQUAL(&cpus, &one);
}

/* Let @fn run in another thread until it has ended, or sleeps. */
static void begin_other(void *(*fn)(void *))
{
	thread_must(pthread_create(&other, NULL, fn, NULL));
	wait_until(flag_get(&other_tid));
	wait_until(flag_get(&other_is_over) || thread_state(flag_get(&other_tid)) == 'S');
}

static void *choose_one(void *unused)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;

	attr.cpus = &one;
	attr.cpus_size = sizeof one;
	quiesce_store_relaxed(&other_tid, my_tid());
	must(quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, &attr) == 0);
	flag_set(&other_is_over);
	return unused;
}

static void choose_beside_start(void)
{
	begin_other(choose_one);
}

static void start_worker(void)
{
	struct rcu_head *head = malloc(sizeof *head);

	must(head != NULL);
	call_rcu(head, run_srcu);
}

static void choose_while_it_starts(void)
{
	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	before_cpus = choose_beside_start;
	start_worker();
	must(!before_cpus);
	pthread_join(other, NULL);
	wait_until(thread_named("quiesce"));
	wait_until(has_one(thread_named("quiesce"))); /* a thread may have just got its name */
}

static void settings_made_during_a_start_are_kept(void **state)
{
	(void)state;
	succeeds(choose_while_it_starts);
}

static void *shut_down(void *unused)
{
	quiesce_store_relaxed(&other_tid, my_tid());
	must(quiesce_shutdown(0) == 0);
	flag_set(&other_is_over);
	return unused;
}

/* The worker is idle, and is asked to end. */
static void end_beside_start(void)
{
	begin_other(shut_down);
	for (int i = 0; i < 300 && (!i || thread_named("quiesce")); i++)
		short_rest();
}

static void end_while_it_starts(void)
{
	pin();
	before_cpus = end_beside_start;
	start_worker();
	must(!before_cpus);
	pthread_join(other, NULL);
	must(has_one(0)); /* the id of an ended thread is 0, by which the C library would have changed the caller */
}

static void a_thread_that_ends_at_once_costs_its_starter_no_cpus(void **state)
{
	(void)state;
	succeeds(end_while_it_starts);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_left_for_the_kernel),
		TEST(a_kernel_that_does_not_answer_is_not_waited_for),
		TEST(running_threads_do_not_delay_a_shutdown_for_ever),
		TEST(settings_made_during_a_start_are_kept),
		TEST(a_thread_that_ends_at_once_costs_its_starter_no_cpus),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
