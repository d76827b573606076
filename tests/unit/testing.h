/* SPDX-License-Identifier: MIT */
/* testing.h - what the unit and fault tests share: watchdog, handshakes, held readers, children.
 *
 * Nothing here is decided by timing: a test waits for a condition, and the watchdog
 * ends a test whose condition never comes.
 */
#ifndef TESTING_H
#define TESTING_H

#include <dirent.h>
#include <fcntl.h>
#include <quiesce/control.h>
#include <quiesce/rcu.h>

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

#define WATCHDOG_SECONDS 30

/* ---- threads of the process ---- */

/* How often it went to sleep; -1: there is no such thread. */
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

/* How many threads have that name, and one of them, 0 if there is none.  Fewer may be found than there are: the system ends
 * the list early when a thread that it lists, as one that was joined just now, vanishes at that moment. */
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
	alarm(WATCHDOG_SECONDS);
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

/* The condition is asked again and again; the watchdog bounds it. */
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

/* Relaxed: flags and counts of tests; what must be ordered is joined or posted. */
#define flag_get(p) quiesce_load_relaxed(p)
#define flag_set(p) quiesce_store_relaxed(p, 1)
#define count_up(p) ((void)quiesce_fetch_add_relaxed(p, 1))

static inline struct quiesce_stats stats_now(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats;
}

static inline void thread_must(int err)
{
	if (err) {
		fprintf(stderr, "cannot create a thread: %s\n", strerror(err));
		abort();
	}
}

/* The state letter of a thread of this process: S asleep, R running, ? gone. */
static inline char thread_state(pid_t tid)
{
	char path[64], line[256] = "", *at;
	ssize_t n;
	int file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	file = open(path, O_RDONLY | O_CLOEXEC); /* not fopen(): also in signal handlers */
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

/* The mask of thread @tid, bit 0 for signal 1. */
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

/* ---- forks beside callbacks ---- */

/* The library lets a fork wait so long for callbacks that run; later one may be cut in two.  On a busy machine that
 * happens, so only who was forked in time is asked. */
#define FORK_WAIT_MAX_NS 100000000u

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int in_time(uint64_t begun)
{
	return now_ns() - begun < FORK_WAIT_MAX_NS;
}

/* ---- a reader that stays inside until told to leave ---- */

struct held {
	pthread_t thread;
	sem_t inside, leave;
	pid_t tid;
	const int *watched; /* read just before the section ends */
	int seen;
};

static inline void *held_main(void *arg)
{
	struct held *h = arg;

	h->tid = my_tid();
	rcu_read_lock();
	sem_post(&h->inside);
	wait_for(&h->leave);
	if (h->watched)
		h->seen = flag_get(h->watched);
	rcu_read_unlock();
	return NULL;
}

static inline void held_begin(struct held *h, const int *watched)
{
	sem_init(&h->inside, 0, 0);
	sem_init(&h->leave, 0, 0);
	h->watched = watched;
	h->seen = -1;
	thread_must(pthread_create(&h->thread, NULL, held_main, h));
	wait_for(&h->inside);
}

static inline void held_end(struct held *h)
{
	sem_post(&h->leave);
	pthread_join(h->thread, NULL);
}

/* ---- children ---- */

struct outcome {
	int status; /* of waitpid() */
	size_t length;
	char text[8192]; /* what it wrote to stderr */
};

static inline void child_prepare(int error_fd)
{
	static const int caught[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
	struct rlimit none = { 0, 0 };

	for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
		signal(caught[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	dup2(error_fd, STDERR_FILENO);
	alarm(WATCHDOG_SECONDS / 2);
}

static inline void outcome_read(struct outcome *o, int fd)
{
	ssize_t n;

	o->length = 0;
	while ((n = read(fd, o->text + o->length, sizeof o->text - 1 - o->length)) > 0)
		o->length += (size_t)n;
	o->text[o->length] = '\0';
}

/* Run @fn in a forked child that exits with 0 after it. */
static inline void in_child(void (*fn)(void), struct outcome *o)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		abort();
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		child_prepare(fd[1]);
		fn();
		_exit(0);
	}
	close(fd[1]);
	outcome_read(o, fd[0]);
	close(fd[0]);
	waitpid(pid, &o->status, 0);
}

/* In a child: say what is not as it must be, and end. */
#define must(condition) ((condition) ? (void)0 : child_fails(__FILE__, __LINE__, #condition))

static inline void __attribute__((noreturn)) child_fails(const char *file, int line, const char *what)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, what);
	_exit(3);
}

static inline int exited_with(int status, int code)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static inline void expect_success(const struct outcome *o)
{
	if (exited_with(o->status, 77))
		fail_msg("seccomp filters cannot be installed here");
	if (!exited_with(o->status, 0))
		fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o->status, o->text);
	alarm(WATCHDOG_SECONDS);
}

/* @fn in a child. */
static inline void succeeds(void (*fn)(void))
{
	struct outcome o;

	in_child(fn, &o);
	expect_success(&o);
}

static inline int count_lines(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

#endif
