/* SPDX-License-Identifier: MIT */
/* thread.c - threads: start those of the library, and detect the end of others. */
#define _GNU_SOURCE
#include "platform/platform.h"
#include "file.h"
#include "renew.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_key_t exit_key;
static bool exit_key_made;
static void (*exit_hook)(void);

static void on_thread_exit(void *unused)
{
	(void)unused;
	exit_hook();
}

int platform_thread_exit_init(void (*hook)(void));

int platform_thread_exit_init(void (*hook)(void))
{
	int err = pthread_key_create(&exit_key, on_thread_exit);

	exit_hook = hook;
	exit_key_made = err == 0;
	return -err;
}

/* The C libraries preallocate a thread's first keys (glibc 32, musl all), so setting them allocates nothing;
 * this key is made when the library is loaded, so it is nearly always one of them. */
int platform_arm_thread_exit(void)
{
	if (!exit_key_made)
		return -EAGAIN;
	/* Set even if it is set already: register_self() arms exiting threads, too, and where a signal
	 * handler does so after the last round of destructors, the value stays on the stack that the C
	 * library gives to the next thread, whose destructor would then not be called. */
	return -pthread_setspecific(exit_key, &exit_key);
}

uint32_t platform_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* ---- thread ids ---- */

static pid_t process;   /* id of the process whose thread ids the library records */
static bool renumbered; /* 1: it was restored, and has threads whose recorded ids are old */
static int slack;       /* timer slack at the start of the program, in nanoseconds; 0: unknown */

void platform_process_begin(void)
{
	process = getpid();
	if (!slack)
		slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	renumbered = false;
}

void platform_renew_numbers(void)
{
	pid_t now = getpid();

	renumbered |= now != process;
	process = now;
}

bool platform_in_process(void)
{
	return getpid() == process;
}

bool platform_thread_alive(uint32_t tid)
{
	int saved = errno;
	bool alive = syscall(SYS_tgkill, process, tid, 0) == 0 || errno != ESRCH || renumbered || !platform_in_process();

	errno = saved;
	return alive;
}

size_t platform_read_file(const char *path, char *text, size_t size)
{
	ssize_t n = 0;
	int fd, saved = errno;

	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = syscall(SYS_read, fd, text, size - 1);
		syscall(SYS_close, fd);
	}
	text[n > 0 ? n : 0] = '\0';
	errno = saved;
	return n > 0 ? (size_t)n : 0;
}

/* Read a file of /proc about thread @tid. */
static size_t read_task_file(uint32_t tid, const char *file, char *text, size_t size)
{
	char path[48];

	snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, file);
	return platform_read_file(path, text, size);
}

void platform_thread_name(uint32_t tid, char name[16])
{
	if (!read_task_file(tid, "comm", name, 16))
		memcpy(name, "?", 2);
	name[strcspn(name, "\n")] = '\0';
}

char platform_thread_state(uint32_t tid)
{
	char text[128], *end;

	if (!read_task_file(tid, "stat", text, sizeof text))
		return '?';
	end = strrchr(text, ')'); /* the name before it may contain any character */
	return !end || end[1] == '\0' ? '?' : end[2];
}

_Static_assert(sizeof(sigset_t) <= sizeof(struct platform_sigmask), "a signal mask fits");

void platform_signals_block(struct platform_sigmask *ret_old)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	memcpy(ret_old, &old, sizeof old);
}

void platform_signals_restore(const struct platform_sigmask *old)
{
	sigset_t mask;

	memcpy(&mask, old, sizeof mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* A signal that an instruction raises while it is blocked ends the process, even if the program has a
 * handler. */
static void unblock_faults(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigaddset(&set, faults[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void *thread_main(void *argument)
{
	const struct platform_start *start = argument;

	start->fn(start->arg);
	return NULL;
}

void platform_cpus_of_process(struct platform_cpus *ret)
{
	/* The system call returns the number of bytes written. */
	long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof *ret, ret->bits);

	memset((char *)ret->bits + (bytes > 0 ? bytes : 0), bytes > 0 ? 0 : 0xff, sizeof *ret - (size_t)(bytes > 0 ? bytes : 0));
}

/* Parse a list such as "0-3,8,10-11". */
static void parse_list(const char *text, struct platform_cpus *ret)
{
	unsigned long first, last;
	char *end;

	for (; *text >= '0' && *text <= '9'; text = *end == ',' ? end + 1 : end) {
		first = last = strtoul(text, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < 8 * sizeof *ret; first++)
			ret->bits[first / PLATFORM_CPUS_PER_WORD] |= 1ul << first % PLATFORM_CPUS_PER_WORD;
	}
}

bool platform_cpus_of_list(const char *file, struct platform_cpus *ret)
{
	char path[96], text[4096];

	memset(ret, 0, sizeof *ret);
	snprintf(path, sizeof path, "/sys/devices/system/%s", file);
	if (!platform_read_file(path, text, sizeof text))
		return false;
	parse_list(text, ret);
	return true;
}

struct thread_fn {
	void *(*fn)(void *arg);
	void *arg;
};

static int create(pthread_t *thread, const struct thread_fn *what, int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	err = pthread_attr_setschedpolicy(&attr, policy);
	if (!err)
		err = pthread_attr_setschedparam(&attr, &param);
	if (!err)
		err = pthread_create(thread, &attr, what->fn, what->arg);
	pthread_attr_destroy(&attr);
	return err;
}

/* Create a thread with its policy if that is a real-time policy, the only kind that the C library accepts,
 * and permitted; else with the normal policy, else with its creator's. */
static int create_somehow(pthread_t *thread, const struct thread_fn *what, const struct platform_thread *how)
{
	int err = create(thread, what, how->policy, how->priority);

	if (err == EPERM || err == EINVAL)
		err = create(thread, what, SCHED_OTHER, 0);
	if (err == EPERM || err == EINVAL)
		err = pthread_create(thread, NULL, what->fn, what->arg);
	return err;
}

static int create_blocked(pthread_t *ret, void *(*fn)(void *arg), void *arg, const struct platform_thread *how)
{
	const struct thread_fn what = { fn, arg };
	struct platform_sigmask mask;
	int err;

	platform_signals_block(&mask); /* the thread inherits the mask */
	err = create_somehow(ret, &what, how);
	platform_signals_restore(&mask);
	return -err;
}

/* The kernel takes the CPUs that the process may use; if there is none, the thread keeps its creator's. */
static void set_cpus(pthread_t thread, const struct platform_thread *how)
{
	pthread_setaffinity_np(thread, sizeof how->cpus, (const cpu_set_t *)how->cpus.bits);
}

int platform_thread_create(pthread_t *ret, void *(*fn)(void *arg), void *arg, const struct platform_thread *how)
{
	int err = create_blocked(ret, fn, arg, how);

	if (!err)
		set_cpus(*ret, how);
	return err;
}

int platform_thread_start(const struct platform_start *start, const struct platform_thread *how, pthread_t *ret)
{
	return create_blocked(ret, thread_main, (void *)(uintptr_t)start, how);
}

void platform_thread_settle(pthread_t thread, const struct platform_thread *how)
{
	set_cpus(thread, how);
	pthread_detach(thread);
}

/* The kernel refuses a nice value below the creator's, and some refuse a better policy.  Nice 0 is the
 * default, which no caller need have chosen: a thread that may not raise itself to it keeps its nice value. */
static int change_policy(pid_t tid, const struct platform_thread *how)
{
	struct sched_param param = { .sched_priority = how->priority };

	if (sched_setscheduler(tid, how->policy, &param))
		return -errno;
	if (setpriority(PRIO_PROCESS, (id_t)tid, how->nice) && (how->nice || errno != EACCES))
		return -errno;
	return 0;
}

void platform_thread_begin(const char *name, const struct platform_thread *how)
{
	int saved = errno;

	unblock_faults();
	platform_set_cancelable(false); /* a callback may have published this thread's id */
	change_policy((pid_t)platform_tid(), how);
	syscall(SYS_sched_setaffinity, 0, sizeof how->cpus, how->cpus.bits); /* refused if the set is empty */
	/* 0 would set the slack of the thread's creator. */
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
	pthread_setname_np(pthread_self(), name); /* last: a thread with this name is completely set up */
	errno = saved;
}

static void change_name(uint32_t tid, const char *name)
{
	char path[48];
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (syscall(SYS_write, fd, name, strlen(name)) < 0)
		errno = 0; /* the thread has ended */
	syscall(SYS_close, fd);
}

static bool possible(const struct platform_thread *how)
{
	bool real_time = how->policy == SCHED_FIFO || how->policy == SCHED_RR;

	if (!real_time)
		return how->priority == 0 &&
		       (how->policy == SCHED_OTHER || how->policy == SCHED_BATCH || how->policy == SCHED_IDLE);
	return how->priority >= sched_get_priority_min(how->policy) && how->priority <= sched_get_priority_max(how->policy);
}

static int change(uint32_t tid, const struct platform_thread *how, const char *name)
{
	int err;

	if (!possible(how))
		return -EINVAL;
	if (!tid || renumbered || !platform_in_process())
		return 0;
	err = change_policy((pid_t)tid, how);
	if (!err && syscall(SYS_sched_setaffinity, tid, sizeof how->cpus, how->cpus.bits) < 0)
		err = -errno;
	if (!err)
		change_name(tid, name);
	return err == -ESRCH ? 0 : err;
}

int platform_thread_change(uint32_t tid, const struct platform_thread *how, const char *name)
{
	int saved = errno, err = change(tid, how, name);

	errno = saved;
	return err;
}
