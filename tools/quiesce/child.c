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

#include "message.h"
#include "types/retire.h"
#include "types/peers.h"
#include "tool.h"

static FILE *to_parent;

static void send_message(const struct message *m)
{
	if (fwrite(m, sizeof(*m), 1, to_parent) != 1)
		_exit(EXIT_FAILED); /* the parent has closed its end */
}

void job_send(enum scenario scenario, int threads, uint32_t group, double value)
{
	send_message(&(struct message){ .kind = MESSAGE_SAMPLE, .scenario = (int)scenario, .threads = threads,
					.group = group, .value = value });
}

void job_send_slot(enum scenario scenario, int threads, const char *kind)
{
	struct message m = { .kind = MESSAGE_SLOT, .scenario = (int)scenario, .threads = threads };

	snprintf(m.text, sizeof(m.text), "%s", kind);
	send_message(&m);
}

void job_send_costs(enum scenario scenario, int threads, const struct costs *costs)
{
	send_message(&(struct message){ .kind = MESSAGE_COSTS, .scenario = (int)scenario, .threads = threads,
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

static bool receive(struct wire *wire)
{
	char *p = (char *)wire;
	size_t want = sizeof(*wire);

	while (want) {
		ssize_t n = read(STDIN_FILENO, p, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		want -= (size_t)n;
	}
	return true;
}

static int dispatch(struct wire *wire)
{
	static const struct {
		const struct subcommand *command;
		int (*child)(const struct job *job);
	} table[] = {
		{ &refscale_command, refscale_child },
		{ &rcuscale_command, rcuscale_child },
		{ &retirescale_command, retirescale_child },
		{ &rwscale_command, rwscale_child },
		{ &hashscale_command, hashscale_child },
		{ &walkscale_command, hashscale_child },
		{ &queuescale_command, queuescale_child },
		{ &torture_command, torture_child },
		{ &costs_command, costs_child },
	};
	struct job *job = &wire->job;
	int err;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].command->name, wire->command))
			continue;
		job->command = table[i].command;
		job->op = command_type(job->command, wire->type);
		if (!job->op)
			break;
		if (job->op->absent) { /* the peer's module has been tried by now */
			job_send_note("left out: %s", peer_load(peer_of(wire->type)));
			return EXIT_UNAVAILABLE;
		}
		if (job->op->reclaim || job->op->hash)
			retire_set(job->bytes, job->batch);
		err = job->op->init ? job->op->init(job->fence) : 0;
		if (!err)
			return table[i].child(job);
		job_send_note("left out, not available here: %s", strerror(-err));
		return EXIT_UNAVAILABLE;
	}
	return EXIT_USAGE;
}

int job_child(void)
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
	if (!to_parent || !receive(&wire)) {
		fprintf(stderr, "quiesce: --child is for the tool's own use\n");
		return EXIT_USAGE;
	}
	status = dispatch(&wire);
	job_flush();
	return status;
}
