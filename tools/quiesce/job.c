/* SPDX-License-Identifier: MIT */
/* job.c - one child process per measurement.
 *
 * Fence modes belong to a process, and a crash or a hang of one type must not
 * take the others' results along: every (type, fence mode) is measured by this
 * program started once more, which reads its job from descriptor 0 and writes
 * messages to descriptor 3.  Silence is watched over.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "team.h"
#include "tool.h"

#define TICK_MS 100
#define FAREWELL_MS 5000 /* after Ctrl-C */

extern char **environ;

struct child {
	pid_t pid;
	int from; /* read end of the child's messages */
};

static bool write_whole(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static int spawn(struct child *child, int job_fd, int message_fd)
{
	char *const argv[] = { (char *)"quiesce", (char *)"--child", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t mask;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, job_fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, message_fd, MESSAGE_FD);
	/* A Ctrl-C now must not kill it before it can say that it ignores it. */
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigaddset(&mask, SIGINT);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	err = posix_spawn(&child->pid, "/proc/self/exe", &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* Pipes above the descriptors that the child gets, so that dup2() also clears close-on-exec. */
static bool make_pipe(int fd[2])
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

static int start(const struct job *job, struct child *child)
{
	struct wire wire = { .job = *job };
	int to[2], from[2], err;

	snprintf(wire.command, sizeof(wire.command), "%s", job->command->name);
	snprintf(wire.type, sizeof(wire.type), "%s", job->op->name);
	if (!make_pipe(to) || !make_pipe(from))
		return -errno;
	err = spawn(child, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	child->from = from[0];
	if (!err && !write_whole(to[1], &wire, sizeof(wire)))
		err = -EPIPE;
	close(to[1]);
	return err;
}

static void add_costs(struct costs *sum, const struct costs *c)
{
	sum->seconds += c->seconds;
	sum->cpu_s += c->cpu_s;
	sum->ipis += c->ipis;
	sum->membarriers += c->membarriers;
	sum->wakeups += c->wakeups;
	sum->waits += c->waits;
}

static void take(const struct job *job, const struct message *m, struct results *results)
{
	struct cell *c;

	if (m->kind == MESSAGE_NOTE) {
		results_note(results, "%s%s%s: %s", job->op->name, job->fence ? " " : "",
			     job->fence ? fence_name(job->fence) : "", m->text);
		return;
	}
	if (m->kind == MESSAGE_TEXT && results->live) {
		progress_end();
		fprintf(results->live, "%s\n", m->text);
		fflush(results->live);
	}
	if (m->kind == MESSAGE_TEXT || m->kind == MESSAGE_ALIVE)
		return;
	c = results_cell(results, job->command, job->op, (enum scenario)m->scenario, job->fence, m->threads);
	if (m->kind == MESSAGE_SAMPLE)
		cell_add(c, m->value, m->group);
	else if (m->kind == MESSAGE_SLOT)
		cell_add_slot(c, m->text);
	else
		add_costs(&c->costs, &m->costs);
}

enum ending { ENDING_EOF, ENDING_HUNG, ENDING_INTERRUPTED };

/* How much longer the child may keep silent; Ctrl-C first asks it to come to an end. */
static int patience_ms(const struct job *job, const struct child *child, bool *asked)
{
	if (interrupted() && !*asked) {
		*asked = true;
		kill(child->pid, SIGTERM);
	}
	return *asked ? FAREWELL_MS : job->watchdog_s * 1000;
}

/* Read messages until the child closes its end. */
static enum ending listen_to(const struct job *job, const struct child *child, struct results *results)
{
	struct message m;
	size_t have = 0;
	int quiet_ms = 0;
	bool asked = false;

	for (;;) {
		struct pollfd fd = { .fd = child->from, .events = POLLIN };
		int ready = poll(&fd, 1, TICK_MS);
		ssize_t n;

		progress_tick();
		if (quiet_ms > patience_ms(job, child, &asked))
			return asked ? ENDING_INTERRUPTED : ENDING_HUNG;
		if (ready <= 0) {
			quiet_ms += TICK_MS;
			continue;
		}
		quiet_ms = 0;
		n = read(child->from, (char *)&m + have, sizeof(m) - have);
		if (n == 0)
			return asked ? ENDING_INTERRUPTED : ENDING_EOF;
		have += n > 0 ? (size_t)n : 0;
		if (have == sizeof(m)) {
			take(job, &m, results);
			have = 0;
		}
	}
}

static int reap(const struct job *job, const struct child *child, enum ending ending, struct results *results)
{
	const char *fence = job->fence ? fence_name(job->fence) : "";
	const char *name = job->op->name;
	int status;

	if (ending != ENDING_EOF)
		kill(child->pid, SIGKILL);
	close(child->from);
	while (waitpid(child->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (ending == ENDING_INTERRUPTED)
		return -1;
	if (ending == ENDING_HUNG) {
		results_note(results, "%s %s: HUNG, killed after %d s of silence", name, fence, job->watchdog_s);
		return -1;
	}
	if (WIFSIGNALED(status)) {
		results_note(results, "%s %s: CRASHED by signal %d (%s)", name, fence, WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
		return -1;
	}
	return WEXITSTATUS(status);
}

int job_run(const struct job *job, struct results *results)
{
	struct child child;
	int err = start(job, &child);

	if (err) {
		results_note(results, "%s: cannot start a process: %s", job->op->name, strerror(-err));
		return -1;
	}
	return reap(job, &child, listen_to(job, &child, results), results);
}

/* What this machine does not have is a failure only for those who asked for it. */
static void account(struct results *results, const struct options *options, int status)
{
	bool asked = options->fences || options->nr_types;

	if (status == 0 || (status == EXIT_UNAVAILABLE && !asked))
		return;
	if (status < 0 || status == EXIT_UNAVAILABLE)
		status = EXIT_FAILED;
	results->failures++;
	results->worst = status > results->worst ? status : results->worst;
}

/* Peers and ours take turns, so that what disturbs the machine disturbs them alike. */
void jobs_run(const struct subcommand *command, const struct options *options, const struct job *base,
	      const struct op *const *types, int nr_types, struct results *results)
{
	bool refused[MAX_TYPES][OP_NR_FENCES] = { { false } };
	int status;

	progress_begin((size_t)(options->runs * nr_types));
	for (int round = 0; round < options->runs; round++)
		for (int i = 0; i < nr_types; i++) {
			progress_step("%s %s", command->name, types[i]->name);
			if (base->deadline_ns && now_ns() > base->deadline_ns) {
				results_note(results, "out of time: %s stopped at %s in round %d", command->name,
					     types[i]->name, round + 1);
				goto out;
			}
			for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++) {
				struct job job = *base;

				if (!options_fence(options, types[i], fence) || refused[i][fence])
					continue;
				job.command = command;
				job.op = types[i];
				job.fence = fence;
				job.round = (uint32_t)round;
				status = job_run(&job, results);
				refused[i][fence] = status != 0; /* told once, not in each round */
				if (interrupted())
					goto out;
				account(results, options, status);
			}
		}
out:
	progress_end();
}
