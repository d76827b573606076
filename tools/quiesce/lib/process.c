/* SPDX-License-Identifier: MIT */
/* process.c - start a program, read its output, and kill it if it is silent for too long. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"

#define TICK_MS 100
#define EXIT_NOT_STARTED 127 /* status by which posix_spawn() says that its child could not execute the program */
#define FAREWELL_MS 5000 /* time that a program has after Ctrl-C */

/* Both ends are above the descriptors that the program gets, so that dup2() also clears close-on-exec. */
bool process_pipe(int fd[2])
{
	int raw[2];

	if (pipe2(raw, O_CLOEXEC))
		return false;
	for (int i = 0; i < 2; i++) {
		fd[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, MESSAGE_FD + 1);
		close(raw[i]);
	}
	return fd[0] >= 0 && fd[1] >= 0;
}

static int spawn(struct process *p, char *const argv[], char *const environment[], int in, int out, int out_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t mask;
	int err;

	posix_spawn_file_actions_init(&actions);
	if (in < 0)
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, out_fd);
	/* A Ctrl-C must not kill the program before it can ignore the signal, if it wants to. */
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigaddset(&mask, SIGINT);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	err = posix_spawn(&p->pid, p->path, &actions, &attr, argv, environment);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int process_start(struct process *p, char *const argv[], char *const environment[], int in, int out)
{
	int from[2], err;

	if (!process_pipe(from))
		return -errno;
	err = spawn(p, argv, environment, in, from[1], out);
	close(from[1]);
	p->from = from[0];
	if (err)
		close(from[0]);
	return err;
}

enum ending { ENDING_EOF, ENDING_HUNG, ENDING_INTERRUPTED };

/* How long the program may stay silent.  The first Ctrl-C asks it to end;
 * after the second the tool does not wait for it. */
static int limit_ms(const struct process *p, bool *asked)
{
	if (interrupted() && !*asked) {
		*asked = true;
		kill(p->pid, SIGTERM);
	}
	if (interrupted_again())
		return -1;
	return *asked ? FAREWELL_MS : p->watchdog_s * 1000;
}

static enum ending listen_to(const struct process *p, void (*take)(void *arg, const char *data, size_t size), void *arg)
{
	int quiet_ms = 0;
	bool asked = false;
	char data[4096];

	for (;;) {
		struct pollfd fd = { .fd = p->from, .events = POLLIN };
		int ready = poll(&fd, 1, TICK_MS);
		ssize_t n;

		progress_tick();
		if (quiet_ms > limit_ms(p, &asked))
			return asked ? ENDING_INTERRUPTED : ENDING_HUNG;
		if (ready <= 0) {
			quiet_ms += TICK_MS;
			continue;
		}
		quiet_ms = 0;
		n = read(p->from, data, sizeof(data));
		if (n == 0)
			return asked ? ENDING_INTERRUPTED : ENDING_EOF;
		if (n > 0)
			take(arg, data, (size_t)n);
	}
}

int process_finish(struct process *p, void (*take)(void *arg, const char *data, size_t size), void *arg, struct results *results)
{
	enum ending ending = listen_to(p, take, arg);
	int status;

	if (ending != ENDING_EOF)
		kill(p->pid, SIGKILL);
	close(p->from);
	while (waitpid(p->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (ending == ENDING_INTERRUPTED)
		return -1;
	if (ending == ENDING_HUNG) {
		results_note(results, "%s: HUNG, killed after %d s of silence", p->name, p->watchdog_s);
		return -1;
	}
	if (WIFSIGNALED(status)) {
		results_note(results, "%s: CRASHED by signal %d (%s)", p->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
		return -1;
	}
	/* An emulator of single programs reports the start of a program before it knows whether the kernel has one for its CPU. */
	if (WEXITSTATUS(status) == EXIT_NOT_STARTED) {
		results_note(results, "%s: %s did not start; a program under an emulator starts another only with binfmt_misc", p->name,
			     p->path);
		return -1;
	}
	return WEXITSTATUS(status);
}
