/* SPDX-License-Identifier: MIT */
/* testing.h - shared by the unit and fault tests: watchdog, handshakes, held readers, children. */
#ifndef TESTING_H
#define TESTING_H

#include <quiesce/control.h>
#include <quiesce/rcu.h>

#include "watched.h"

#include <stdbool.h>

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OTHERS_HEAP
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OTHERS_HEAP
#endif
#ifdef OTHERS_HEAP
#define OWN_HEAP 0 /* the sanitizer's, of which the C library knows nothing */
#else
#define OWN_HEAP 1
#endif

static inline struct quiesce_stats stats_now(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	return stats;
}

/* ---- forks beside callbacks ---- */

/* A fork waits so long at most for running callbacks; after that a child may inherit half of one.  A busy machine can cause that,
 * so only children that were forked in time are checked. */
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

/* ---- a reader that stays inside until asked to leave ---- */

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

/* Start @nr threads that call @fn with @arg, and wait until they have ended. */
static inline void threads_begin(pthread_t *thread, int nr, void *(*fn)(void *), void *arg)
{
	for (int i = 0; i < nr; i++)
		thread_must(pthread_create(&thread[i], NULL, fn, arg));
}

static inline void threads_end(const pthread_t *thread, int nr)
{
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
}

static inline long pages_of_process(bool resident)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long all = 0, in_memory = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &all, &in_memory), 2);
	fclose(file);
	return resident ? in_memory : all;
}

/* The pages of the process's address space; those of them in memory. */
static inline long address_space(void) { return pages_of_process(false); }
static inline long resident_pages(void) { return pages_of_process(true); }

/* ---- children ---- */

struct outcome {
	int status; /* status that waitpid() stored */
	size_t length;
	char text[8192]; /* output of the child on stderr */
};

static inline void child_prepare(int error_fd)
{
	static const int caught[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
	struct rlimit none = { 0, 0 };

	for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
		signal(caught[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	dup2(error_fd, STDERR_FILENO);
	alarm(watchdog_seconds() / 2);
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

/* Report a failed check in a child, and end it. */
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
	alarm(watchdog_seconds());
}

/* Run @fn in a child. */
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
