/* SPDX-License-Identifier: MIT */
/* watched.h - helpers for all tests of threads: a watchdog, waits for conditions, states of threads.
 *
 * Nothing here is decided by timing: a test waits for a condition, and the watchdog
 * ends a test whose condition never comes.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <dirent.h>
#include <fcntl.h>
#include <quiesce/atomic.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#undef skip /* cmocka 1.1.5 reports it as "not ok": print a message that begins with '#', and return */

#define WATCHDOG_SECONDS 30

/* ---- threads of the process ---- */

/* Return how often the thread went to sleep; -1: there is no such thread. */
static inline long voluntary_switches(pid_t tid)
{
	char path[64], line[256];
	long n = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof line, file))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	fclose(file);
	return n;
}

/* Return how many threads have that name, and store one of them, 0 if there is none.  Fewer may be found than there are: the
 * system ends the list early when a thread that it lists, such as one that was joined just now, vanishes at that moment. */
static inline int threads_named(const char *name, pid_t *ret_one)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int nr = 0;

	*ret_one = 0;
	while (dir && (entry = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof comm, file))
			comm[strcspn(comm, "\n")] = '\0';
		fclose(file);
		if (strcmp(comm, name))
			continue;
		nr++;
		*ret_one = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static inline pid_t thread_named(const char *name)
{
	pid_t one;

	threads_named(name, &one);
	return one;
}

/* ---- watchdog ---- */

static const char *testing_name = "?";

static inline unsigned int watchdog_seconds(void)
{
	const char *slower = getenv("TEST_SLOWER"); /* by so much, at most, is an emulator */

	return WATCHDOG_SECONDS * (slower ? (unsigned int)atoi(slower) : 1);
}

static inline void testing_bark(int sig)
{
	static const char text[] = "watchdog: hangs: ";
	ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

	(void)sig;
	n += write(STDERR_FILENO, testing_name, strlen(testing_name));
	n += write(STDERR_FILENO, "\n", 1);
	_exit(n < 0 ? 98 : 99);
}

static inline void testing_watch(const char *name)
{
	testing_name = name;
	signal(SIGALRM, testing_bark);
	alarm(watchdog_seconds());
}

static inline int testing_setup(void **state)
{
	testing_watch(*state);
	return 0;
}

static inline int testing_teardown(void **state)
{
	(void)state;
	alarm(0);
	return 0;
}

#define TEST(f) cmocka_unit_test_prestate_setup_teardown(f, testing_setup, testing_teardown, (void *)(uintptr_t)#f)

/* The first argument, a pattern, chooses tests. */
static inline void testing_choose(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
}

/* ---- waiting ---- */

static inline void short_rest(void)
{
	struct timespec rest = { .tv_nsec = 100000 };

	nanosleep(&rest, NULL);
}

static inline void rest_ms(int ms)
{
	for (int i = 0; i < 10 * ms; i++)
		short_rest();
}

/* Evaluate the condition repeatedly until it is true; the watchdog bounds the wait. */
#define wait_until(condition)         \
	do {                          \
		while (!(condition))  \
			short_rest(); \
	} while (0)

static inline void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

/* Relaxed: flags and counts of tests; data that must be ordered is joined or posted. */
#define flag_get(p) quiesce_load_relaxed(p)
#define flag_set(p) quiesce_store_relaxed(p, 1)
#define count_up(p) ((void)quiesce_fetch_add_relaxed(p, 1))

static inline void thread_must(int err)
{
	if (err) {
		fprintf(stderr, "cannot create a thread: %s\n", strerror(err));
		abort();
	}
}

/* Return the state letter of a thread of this process: S asleep, R running, ? ended. */
static inline char thread_state(pid_t tid)
{
	char path[64], line[256] = "", *at;
	ssize_t n;
	int file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	file = open(path, O_RDONLY | O_CLOEXEC); /* open(), because fopen() is not safe in signal handlers */
	if (file < 0)
		return '?';
	n = read(file, line, sizeof line - 1);
	close(file);
	at = n > 0 ? strrchr(line, ')') : NULL;
	return at ? at[2] : '?';
}

/* A signal that an instruction raises: library threads do not block those. */
static inline int is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP;
}

/* Return the signal mask of thread @tid, bit 0 for signal 1. */
static inline unsigned long long blocked_signals(pid_t tid)
{
	unsigned long long bits = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "SigBlk:", 7))
			bits = strtoull(line + 7, NULL, 16);
	fclose(file);
	return bits;
}

static inline pid_t my_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static inline void *raises_itself(void *ret_nice)
{
	setpriority(PRIO_PROCESS, (id_t)my_tid(), 0);
	*(int *)ret_nice = getpriority(PRIO_PROCESS, (id_t)my_tid());
	return NULL;
}

/* Return the default nice value of the library's threads: 0, or the caller's where that may not be lowered to 0. */
static inline int default_nice(void)
{
	pthread_t thread;
	int value;

	thread_must(pthread_create(&thread, NULL, raises_itself, &value));
	pthread_join(thread, NULL);
	return value;
}

#endif
