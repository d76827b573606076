/* SPDX-License-Identifier: MIT */
/* children.h - children that have to do something successfully: by fork(), without its handlers, and in a signal handler. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "../unit/testing.h"

#include <errno.h>
#include <sys/syscall.h>

/* The child runs @fn, and prints nothing. */
static inline void in_good_child(void (*fn)(void))
{
	struct outcome o;

	in_child(fn, &o);
	if (!exited_with(o.status, 0))
		fail_msg("child: wait status %#x, stderr: %s", (unsigned int)o.status, o.text);
	assert_int_equal(o.length, 0);
	alarm(watchdog_seconds());
}

/* The child loses membarrier and goes on; the library reports that once, if it needs membarrier. */
static inline void loses_membarrier(void (*fn)(void))
{
	struct outcome o;

	in_child(fn, &o);
	expect_success(&o);
	assert_int_equal(count_lines(o.text), quiesce_fence() == QUIESCE_FENCE_LIGHT);
	assert_true(!o.length || strstr(o.text, "quiesce: membarrier worked at start-up and now fails"));
	assert_true(!o.length || strstr(o.text, "QUIESCE_FENCE=full"));
}

/* A fork without the handlers of pthread_atfork(). */
static inline pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Forks by @make; the child runs @fn.  Returns the child's status. */
static inline int status_of_child(pid_t (*make)(void), void (*fn)(void))
{
	int status = -1;
	pid_t pid = make();

	if (pid == 0) {
		alarm(watchdog_seconds() / 3);
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* ---- forks in a signal handler ---- */

#define NR_FORKS 20

static pid_t first_process;
static int nr_handler_forks, nr_bad_children, forks_end;

/* The child continues what was interrupted. */
static inline void fork_in_handler(int sig)
{
	int status, saved = errno;
	pid_t pid;

	(void)sig;
	if (getpid() != first_process || nr_handler_forks == NR_FORKS)
		return;
	nr_handler_forks++;
	pid = fork();
	if (pid == 0)
		alarm(watchdog_seconds() / 3);
	else if (waitpid(pid, &status, 0) != pid || !exited_with(status, 0))
		nr_bad_children++;
	errno = saved;
}

static inline void *interrupt_often(void *target)
{
	while (!flag_get(&forks_end)) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		short_rest();
	}
	return NULL;
}

/* Has the handler interrupt this thread, which calls @once again and again, and @child where it finds itself in a child. */
static inline void fork_in_handlers(void (*once)(void), void (*child)(void))
{
	struct sigaction action = { .sa_handler = fork_in_handler, .sa_flags = SA_RESTART };
	pthread_t me = pthread_self(), killer;

	first_process = getpid();
	sigaction(SIGUSR1, &action, NULL);
	thread_must(pthread_create(&killer, NULL, interrupt_often, &me));
	while (nr_handler_forks < NR_FORKS && getpid() == first_process)
		once();
	if (getpid() != first_process) {
		child();
		_exit(0);
	}
	flag_set(&forks_end);
	pthread_join(killer, NULL);
	signal(SIGUSR1, SIG_DFL);
	assert_int_equal(nr_bad_children, 0);
}

#endif
