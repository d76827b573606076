/* SPDX-License-Identifier: MIT */
/* thread.c - threads: starting ours, noticing the end of others. */
#define _GNU_SOURCE
#include "../platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_key_t exit_key;
static bool exit_key_made;

static void on_thread_exit(void *unused)
{
	(void)unused;
	quiesce__thread_exit();
}

int platform_thread_exit_init(void);

int platform_thread_exit_init(void)
{
	int err = pthread_key_create(&exit_key, on_thread_exit);

	exit_key_made = err == 0;
	return -err;
}

/* The libcs keep a thread's first keys (glibc 32, musl all) where setting them
 * allocates nothing; ours is made when the library is loaded, so it is one of them
 * in all but the strangest programs. */
int platform_arm_thread_exit(void)
{
	if (!exit_key_made)
		return -EAGAIN;
	/* Set it even if it is set: register_self() arms exiting threads too, and where a signal
	 * handler does so after the last round of destructors, the value stays on the stack that
	 * the C library gives to the next thread, for whom no destructor would be called. */
	return -pthread_setspecific(exit_key, &exit_key);
}

uint32_t platform_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

bool platform_thread_alive(uint32_t tid)
{
	int saved = errno;
	bool alive = syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;

	errno = saved;
	return alive;
}

/* Read up to @size - 1 bytes of a file about thread @tid; by syscall(), because none of
 * this may be a cancellation point.  Returns how many, and ends them with a NUL. */
static size_t read_task_file(uint32_t tid, const char *file, char *text, size_t size)
{
	char path[48];
	ssize_t n = 0;
	int fd, saved = errno;

	snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, file);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = syscall(SYS_read, fd, text, size - 1);
		syscall(SYS_close, fd);
	}
	text[n > 0 ? n : 0] = '\0';
	errno = saved;
	return n > 0 ? (size_t)n : 0;
}

void platform_thread_name(uint32_t tid, char name[16])
{
	if (!read_task_file(tid, "comm", name, 16))
		memcpy(name, "?", 2);
	name[strcspn(name, "\n")] = '\0';
}

bool platform_thread_runnable(uint32_t tid)
{
	char text[128], *end;

	if (!read_task_file(tid, "stat", text, sizeof text))
		return true;
	end = strrchr(text, ')'); /* the name before it may contain anything */
	return !end || end[1] == '\0' || end[2] == 'R';
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

/* What a new thread needs to know; its starter waits until it has been read. */
struct start {
	void (*fn)(void *);
	void *arg;
	const char *name;
	uint32_t read; /* futex */
};

/* A signal that is blocked where an instruction raises it ends the process, whatever handler the program has. */
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
	struct start *start = argument;
	void (*fn)(void *) = start->fn;
	void *arg = start->arg;

	unblock_faults();
	pthread_setname_np(pthread_self(), start->name);
	/* LK1: release, pairs with LK1 in platform_thread_start() */
	quiesce_store_release(LK1, &start->read, 1);
	platform_futex_wake(&start->read, 1);
	fn(arg);
	return NULL;
}

static void set_cpu(pthread_t thread, int cpu)
{
	cpu_set_t cpus;

	if (cpu < 0)
		return;
	CPU_ZERO(&cpus);
	CPU_SET((unsigned int)cpu, &cpus);
	pthread_setaffinity_np(thread, sizeof cpus, &cpus); /* a wish: the CPU may be off */
}

int platform_thread_start(void (*fn)(void *), void *arg, const char *name, int cpu)
{
	struct start start = { .fn = fn, .arg = arg, .name = name, .read = 0 };
	struct platform_sigmask mask;
	pthread_t thread;
	int err;

	platform_signals_block(&mask); /* the thread inherits it */
	err = pthread_create(&thread, NULL, thread_main, &start);
	platform_signals_restore(&mask);
	if (err)
		return -err;
	set_cpu(thread, cpu);
	pthread_detach(thread);
	/* LK1: acquire, pairs with LK1 in thread_main() */
	while (!quiesce_load_acquire(LK1, &start.read))
		platform_futex_wait(&start.read, 0, PLATFORM_FOREVER);
	return 0;
}
