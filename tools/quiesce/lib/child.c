/* SPDX-License-Identifier: MIT */
/* child.c - the child's side of a job: it reads the job from descriptor 0 and writes messages to descriptor 3. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "alive.h"
#include "message.h"
#include "peers.h"
#include "tool.h"

static FILE *to_parent;

static void send_message(const struct message *m)
{
	if (fwrite(m, sizeof(*m), 1, to_parent) != 1)
		_exit(EXIT_FAILED); /* the parent has closed its end */
}

void job_send_metric(int scenario, int metric, int threads, uint32_t group, double value)
{
	send_message(&(struct message){ .kind = MESSAGE_SAMPLE, .scenario = scenario, .metric = metric, .threads = threads,
					.group = group, .value = value });
}

void job_send(int scenario, int threads, uint32_t group, double value)
{
	job_send_metric(scenario, 0, threads, group, value);
}

void job_send_slot(int scenario, int threads, const char *kind)
{
	struct message m = { .kind = MESSAGE_SLOT, .scenario = scenario, .threads = threads };

	snprintf(m.text, sizeof(m.text), "%s", kind);
	send_message(&m);
}

void job_send_costs(int scenario, int threads, const struct costs *costs)
{
	send_message(&(struct message){ .kind = MESSAGE_COSTS, .scenario = scenario, .threads = threads,
					.costs = *costs });
}

/* Without a job there is no parent to send the note to. */
void job_send_note(const char *format, ...)
{
	struct message m = { .kind = MESSAGE_NOTE };
	va_list args;

	va_start(args, format);
	vsnprintf(m.text, sizeof(m.text), format, args);
	va_end(args);
	if (!to_parent) {
		fprintf(stderr, "quiesce: %s\n", m.text);
		return;
	}
	send_message(&m);
	job_flush();
}

void job_print(const char *format, ...)
{
	struct message m = { .kind = MESSAGE_TEXT };
	va_list args;

	va_start(args, format);
	vsnprintf(m.text, sizeof(m.text), format, args);
	va_end(args);
	send_message(&m);
	job_flush();
}

void job_flush(void)
{
	send_message(&(struct message){ .kind = MESSAGE_ALIVE });
	if (fflush(to_parent))
		_exit(EXIT_FAILED);
}

/* A subcommand that measures has the threads of --alive beside it. */
static int run_job(const struct job *job)
{
	bool alive = !job->command->run && job->alive;
	struct sleepers sleepers;
	int status;

	cpus_online(); /* counts all CPUs before a thread is bound */
	if (alive)
		sleepers_start(&sleepers, job->op, job->alive);
	status = job->command->child(job);
	if (alive)
		sleepers_stop(&sleepers);
	return status;
}

static int dispatch(struct wire *wire, const struct subcommand *(*find)(const char *name))
{
	struct job *job = &wire->job;
	int err;

	job->command = find(wire->command);
	job->op = job->command && job->command->child ? command_type(job->command, wire->type) : NULL;
	if (!job->op)
		return EXIT_USAGE;
	if (job->op->absent) { /* the peer's module has been tried by now */
		job_send_note("left out: %s", peer_load(peer_of(wire->type)));
		return EXIT_UNAVAILABLE;
	}
	if (job->command->prepare)
		job->command->prepare(job);
	err = job->op->init ? job->op->init(job->fence) : 0;
	if (!err)
		return run_job(job);
	job_send_note("left out, not available here: %s", strerror(-err));
	return EXIT_UNAVAILABLE;
}

int job_child(const struct subcommand *(*find)(const char *name))
{
	struct wire wire;
	sigset_t mask;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the parent decides what Ctrl-C does */
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT); /* spawn() has blocked it */
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	to_parent = fdopen(MESSAGE_FD, "w");
	fcntl(MESSAGE_FD, F_SETFD, FD_CLOEXEC); /* otherwise a hog would keep it open, and the parent would wait for the end of messages */
	if (!to_parent || TEMP_FAILURE_RETRY(read(STDIN_FILENO, &wire, sizeof(wire))) != sizeof(wire)) {
		fprintf(stderr, "quiesce: --child is for the tool's own use\n");
		return EXIT_USAGE;
	}
	status = dispatch(&wire, find);
	job_flush();
	return status;
}
