/* SPDX-License-Identifier: MIT */
/* test_threads.c - how the library's threads run, whichever thread starts them, and what a program may choose. */
#define _GNU_SOURCE
#include "testing.h"

#include <dirent.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>
#include <sched.h>
#include <sys/prctl.h>

static struct rcu_head head;
DEFINE_STATIC_SRCU(domain);
static int nr_run;

static void has_run(struct rcu_head *unused)
{
	(void)unused;
	count_up(&nr_run);
}

/* ---- each of them is started by its first use ---- */

static void start_worker(void)
{
	int before = flag_get(&nr_run);

	call_rcu(&head, has_run);
	wait_until(flag_get(&nr_run) != before);
	rcu_barrier(); /* the head is used again */
}

static void start_helper(void)
{
	int before = flag_get(&nr_run);

	call_srcu(&domain, &head, has_run);
	wait_until(flag_get(&nr_run) != before);
	srcu_barrier(&domain); /* the head is used again */
}

static void start_scan(void)
{
	static char object;

	quiesce_set_skip_self_scan(1);
	synchronize_shazptr(&object);
}

static const struct {
	enum quiesce_thread which;
	const char *name;
	void (*start)(void);
} kinds[] = {
	{ QUIESCE_THREAD_WORKER, "quiesce", start_worker },
	{ QUIESCE_THREAD_HELPER, "quiesce-helper", start_helper },
	{ QUIESCE_THREAD_SCAN, "quiesce-scan", start_scan },
};

/* The starter of a thread does not wait until it has its name, so poll for it. */
static pid_t wait_for_thread(const char *name)
{
	wait_until(thread_named(name));
	return thread_named(name);
}

/* ---- the first caller starts the thread ---- */

static cpu_set_t all;
static int normal_nice, chosen_nice;

static void pin_to_one(cpu_set_t *one)
{
	CPU_ZERO(one);
	CPU_SET((unsigned int)sched_getcpu(), one);
	assert_int_equal(sched_setaffinity(0, sizeof *one, one), 0);
}

static void *starts_all(void *may_fail)
{
	struct sched_param param = { .sched_priority = 3 };
	cpu_set_t one;

	pin_to_one(&one);
	if (setpriority(PRIO_PROCESS, (id_t)my_tid(), -5) || sched_setscheduler(0, SCHED_FIFO, &param))
		flag_set((int *)may_fail);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		kinds[i].start();
	return NULL;
}

static void assert_normal(pid_t tid)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getscheduler(tid), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), normal_nice);
	assert_int_equal(sched_getaffinity(tid, sizeof cpus, &cpus), 0);
	assert_true(CPU_EQUAL(&cpus, &all));
}

static void threads_inherit_no_attributes(void **state)
{
	pthread_t thread;
	int unprivileged = 0;

	(void)state;
	assert_int_equal(quiesce_shutdown(0), 0);
	thread_must(pthread_create(&thread, NULL, starts_all, &unprivileged));
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_normal(wait_for_thread(kinds[i].name));
	if (unprivileged)
		print_message("# without privileges: only the CPUs of the starter were others\n");
}

static void assert_slack(pid_t tid, long slack)
{
	char path[64];
	long found = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/timerslack_ns", (int)tid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%ld", &found) != 1)
		print_message("# the slack of other threads cannot be read here\n");
	else
		assert_int_equal(found, slack);
	if (file)
		fclose(file);
}

/* The slack that a thread begins with is its default, which 0 restores. */
static void *starts_all_lazily(void *unused)
{
	assert_int_equal(prctl(PR_SET_TIMERSLACK, 77000000, 0, 0, 0), 0);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		kinds[i].start();
	return unused;
}

static void threads_inherit_no_timer_slack(void **state)
{
	long slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	pthread_t thread;

	(void)state;
	assert_int_equal(quiesce_shutdown(0), 0);
	thread_must(pthread_create(&thread, NULL, starts_all_lazily, NULL));
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_slack(wait_for_thread(kinds[i].name), slack);
}

/* ---- CPUs of the process ---- */

static void assert_started_on(const cpu_set_t *cpus)
{
	cpu_set_t found;

	assert_int_equal(quiesce_shutdown(0), 0);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		kinds[i].start();
		assert_int_equal(sched_getaffinity(wait_for_thread(kinds[i].name), sizeof found, &found), 0);
		assert_true(CPU_EQUAL(&found, cpus));
	}
}

/* Set the CPUs of the first thread, which is this one, as "taskset -a -p" does while there are no threads of the library. */
static void threads_go_where_the_process_is_put(void **state)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	cpu_set_t one;

	(void)state;
	if (CPU_COUNT(&all) < 2)
		print_message("# one CPU: there is nowhere to go\n");
	pin_to_one(&one);
	assert_started_on(&one);
	attr.nice = chosen_nice; /* only the nice value is chosen, not the CPUs */
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, &attr), 0);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	assert_started_on(&all);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, NULL), 0);
	assert_int_equal(quiesce_shutdown(0), 0);
	pin_to_one(&one);
	attr = (struct quiesce_thread_attr)QUIESCE_THREAD_ATTR_INIT;
	attr.cpus = &all;
	attr.cpus_size = sizeof all;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, &attr), 0);
	assert_started_on(&all);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, NULL), 0);
}

/* ---- the program's choice ---- */

static void assert_chosen(pid_t tid, const cpu_set_t *one)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getscheduler(tid), SCHED_BATCH);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), chosen_nice);
	assert_int_equal(sched_getaffinity(tid, sizeof cpus, &cpus), 0);
	assert_true(CPU_EQUAL(&cpus, one));
}

static void threads_run_as_a_program_chooses(void **state)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	cpu_set_t one;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	attr.policy = SCHED_BATCH;
	attr.nice = chosen_nice;
	attr.cpus = &one;
	attr.cpus_size = sizeof one;
	attr.name = "chosen";
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		kinds[i].start();
		wait_for_thread(kinds[i].name);
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, &attr), 0);
		assert_chosen(wait_for_thread("chosen"), &one);
		assert_int_equal(quiesce_shutdown(0), 0);
		wait_until(!thread_named("chosen"));
		kinds[i].start();
		assert_chosen(wait_for_thread("chosen"), &one);
		assert_int_equal(quiesce_set_thread_attr(kinds[i].which, NULL), 0);
		/* A running thread that may not lower its nice value keeps it, without an error, and takes the other defaults. */
		if (getpriority(PRIO_PROCESS, (id_t)wait_for_thread(kinds[i].name)) == normal_nice)
			assert_normal(thread_named(kinds[i].name));
		assert_int_equal(sched_getscheduler(thread_named(kinds[i].name)), SCHED_OTHER);
		assert_int_equal(quiesce_shutdown(0), 0);
	}
}

/* In a child that cannot get nice 0, the default is no request, and a lower value is one. */
static void choose_without_privileges(void)
{
	struct quiesce_thread_attr attr = QUIESCE_THREAD_ATTR_INIT;
	struct rlimit none = { 0, 0 };
	cpu_set_t cpus;

	if (setrlimit(RLIMIT_NICE, &none) || (!geteuid() && setuid(65534)))
		_exit(77);
	setpriority(PRIO_PROCESS, 0, 17);
	start_worker();
	wait_for_thread("quiesce");
	must(quiesce_set_worker_cpu(sched_getcpu()) == 0);
	must(quiesce_set_worker_cpu(-1) == 0);
	must(!sched_getaffinity(thread_named("quiesce"), sizeof cpus, &cpus) && CPU_EQUAL(&cpus, &all));
	attr.nice = 16;
	must(quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, &attr) == -EACCES);
	attr.nice = 18;
	must(quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, &attr) == 0);
	must(quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, NULL) == 0);
	must(getpriority(PRIO_PROCESS, (id_t)thread_named("quiesce")) == 18);
}

static void the_default_is_no_error_without_privileges(void **state)
{
	struct outcome o;

	(void)state;
	in_child(choose_without_privileges, &o);
	if (exited_with(o.status, 77))
		print_message("# privileges cannot be dropped here: not tried\n");
	else
		expect_success(&o);
}

static void wrong_choices_are_refused(void **state)
{
	const struct quiesce_thread_attr good = QUIESCE_THREAD_ATTR_INIT;
	static const cpu_set_t none;
	struct quiesce_thread_attr attr;

	(void)state;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_NR_THREADS, NULL), -EINVAL);
	attr = good, attr.size = 1;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.nice = 20;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.name = "longer than a thread's name may be";
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.policy = 4711;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.policy = SCHED_FIFO; /* without a priority */
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.cpus_size = sizeof none;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr.cpus = &none;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -EINVAL);
	attr = good, attr.node = 4711;
	assert_int_equal(quiesce_set_thread_attr(QUIESCE_THREAD_HELPER, &attr), -ENODEV);
	assert_int_equal(quiesce_set_worker_cpu(-2), -EINVAL);
	assert_int_equal(quiesce_set_worker_cpu(1 << 24), -EINVAL);
}

static void a_worker_is_let_go_again(void **state)
{
	cpu_set_t one, cpus;
	int cpu = sched_getcpu();

	(void)state;
	start_worker();
	wait_for_thread("quiesce");
	assert_int_equal(quiesce_set_worker_cpu(cpu), 0);
	CPU_ZERO(&one);
	CPU_SET((unsigned int)cpu, &one);
	assert_int_equal(sched_getaffinity(thread_named("quiesce"), sizeof cpus, &cpus), 0);
	assert_true(CPU_EQUAL(&cpus, &one));
	assert_int_equal(quiesce_set_worker_cpu(-1), 0);
	assert_normal(thread_named("quiesce"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_default_is_no_error_without_privileges),
		TEST(threads_inherit_no_attributes),
		TEST(threads_inherit_no_timer_slack),
		TEST(threads_go_where_the_process_is_put),
		TEST(threads_run_as_a_program_chooses),
		TEST(wrong_choices_are_refused),
		TEST(a_worker_is_let_go_again),
	};

	sched_getaffinity(0, sizeof all, &all);
	normal_nice = default_nice();
	chosen_nice = normal_nice < 15 ? normal_nice + 5 : 19;
	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
