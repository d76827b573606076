/* SPDX-License-Identifier: MIT */
/* test_isolated.c - on which CPUs the library's threads run by default: those of the process, less isolated ones and those without
 * a tick; and that they run at all.  The kernel's answers are this program's, by its own syscall(), and so are the CPUs, 0 to 7, on
 * any machine. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define OF_PROCESS 0xfful

static const char *isolated, *nohz_full; /* contents of the files in sysfs; NULL: there is no such file */
static unsigned long given;              /* CPUs that the last starter gave its new thread */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static long open_list(const char *list)
{
	int fd = memfd_create("list", MFD_CLOEXEC);

	if (!list) {
		close(fd);
		return -1;
	}
	must(write(fd, list, strlen(list)) == (ssize_t)strlen(list) && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_openat && !strcmp((const char *)arg[1], "/sys/devices/system/cpu/isolated"))
		return open_list(isolated);
	if (number == SYS_openat && !strcmp((const char *)arg[1], "/sys/devices/system/cpu/nohz_full"))
		return open_list(nohz_full);
	if (number == SYS_sched_getaffinity && arg[0] == getpid()) {
		memcpy((void *)arg[2], &(unsigned long){ OF_PROCESS }, sizeof(unsigned long));
		return sizeof(unsigned long);
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus);

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus)
{
	(void)thread;
	(void)size;
	memcpy(&given, cpus, sizeof given);
	return 0;
}

/* The kernel refuses each policy, even the normal one; then a thread can only have that of its creator. */
static bool refuse_policies;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	return attr && refuse_policies ? EPERM : __real_pthread_create(thread, attr, fn, arg);
}

static const struct {
	const char *isolated, *nohz_full;
	unsigned long expected;
} cases[] = {
	{ NULL, NULL, OF_PROCESS },
	{ "\n", "\n", OF_PROCESS },
	{ "0\n", NULL, 0xfe },
	{ NULL, "7\n", 0x7f },
	{ "1,3-5\n", "\n", 0xc5 },
	{ "\n", "1,3-5\n", 0xc5 },
	{ "0-2\n", "2-4,6\n", 0xa0 },
	{ "0-127\n", NULL, OF_PROCESS }, /* no CPU would be left */
	{ "0-3\n", "4-7\n", OF_PROCESS },
	{ "0-6\n", "64-127\n", 0x80 },
};
static size_t current;

static void nothing(struct rcu_head *unused)
{
	(void)unused;
}

static void start_worker(void)
{
	static struct rcu_head head;
	isolated = cases[current].isolated;
	nohz_full = cases[current].nohz_full;
	call_rcu(&head, nothing);
	if (given != cases[current].expected)
		dprintf(STDERR_FILENO, "CPUs %#lx\n", given);
	must(given == cases[current].expected);
	_exit(0);
}

static void threads_keep_off_cpus_that_are_not_for_them(void **state)
{
	struct outcome o;

	(void)state;
	for (current = 0; current < sizeof cases / sizeof cases[0]; current++) {
		in_child(start_worker, &o);
		if (!exited_with(o.status, 0))
			fail_msg("isolated %s, nohz_full %s: wait status %#x, stderr: %s", cases[current].isolated,
				 cases[current].nohz_full, (unsigned int)o.status, o.text);
	}
}

static void start_worker_as_creator(void)
{
	static struct rcu_head head;

	refuse_policies = true;
	call_rcu(&head, nothing);
	must(given == OF_PROCESS && stats_now().worker_running);
	rcu_barrier();
	_exit(0);
}

static void threads_start_where_policies_are_refused(void **state)
{
	struct outcome o;

	(void)state;
	isolated = nohz_full = NULL;
	in_child(start_worker_as_creator, &o);
	expect_success(&o);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(threads_keep_off_cpus_that_are_not_for_them),
		TEST(threads_start_where_policies_are_refused),
	};

	testing_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
