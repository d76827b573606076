/* SPDX-License-Identifier: MIT */
/* job.c - one child process per measurement.
 *
 * Fence modes belong to a process, and a crash or a hang of one type must not lose the results of others: every
 * (type, fence mode) is measured by this program started once more, which reads its job from descriptor 0 and writes
 * messages to descriptor 3.  A child that is silent for too long is killed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "process.h"
#include "team.h"
#include "tool.h"

extern char **environ;

/* The C library of the child reads it when it starts; what the user has set stays. */
#define TUNABLES "GLIBC_TUNABLES"
#define MORE_STATIC_TLS "glibc.rtld.optional_static_tls=16384"

static int start_child(const struct job *job, struct process *child, char *const argv[], int in)
{
	bool more = job->op->static_tls && !getenv(TUNABLES);
	int err;

	if (more)
		setenv(TUNABLES, MORE_STATIC_TLS, 0);
	err = process_start(child, argv, environ, in, MESSAGE_FD);
	if (more)
		unsetenv(TUNABLES);
	return err;
}

static int start(const struct job *job, struct process *child)
{
	char *const argv[] = { (char *)"quiesce", (char *)"--child", NULL };
	struct wire wire = { .job = *job };
	int to[2], err;

	snprintf(wire.command, sizeof(wire.command), "%s", job->command->name);
	snprintf(wire.type, sizeof(wire.type), "%s", job->op->name);
	if (!process_pipe(to))
		return -errno;
	err = start_child(job, child, argv, to[0]);
	close(to[0]);
	if (!err && TEMP_FAILURE_RETRY(write(to[1], &wire, sizeof(wire))) != sizeof(wire))
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
	c = results_cell(results, job->command, job->op, m->scenario, m->metric, job->fence, m->threads);
	if (m->kind == MESSAGE_SAMPLE)
		cell_add(c, m->value, m->group);
	else if (m->kind == MESSAGE_SLOT)
		cell_add_slot(c, m->text);
	else
		add_costs(&c->costs, &m->costs);
}

/* A message may arrive in pieces. */
struct inbox {
	const struct job *job;
	struct results *results;
	struct message message;
	size_t have;
};

static void take_bytes(void *arg, const char *data, size_t size)
{
	struct inbox *in = arg;

	while (size) {
		size_t n = sizeof(in->message) - in->have < size ? sizeof(in->message) - in->have : size;

		memcpy((char *)&in->message + in->have, data, n);
		in->have += n;
		data += n;
		size -= n;
		if (in->have < sizeof(in->message))
			continue;
		take(in->job, &in->message, in->results);
		in->have = 0;
	}
}

/* Runs @job in a child of its own and adds its measurements to @results.
 * Returns the child's exit status, or -1 after a crash or hang, which becomes a note. */
static int job_run(const struct job *job, struct results *results)
{
	struct inbox in = { .job = job, .results = results };
	char name[128];
	struct process child = { .path = "/proc/self/exe", .name = name, .watchdog_s = job->watchdog_s };
	int err;

	snprintf(name, sizeof(name), "%s%s%s", job->op->name, job->fence ? " " : "", job->fence ? fence_name(job->fence) : "");
	err = start(job, &child);
	if (err) {
		results_note(results, "%s: cannot start a process: %s", name, strerror(-err));
		return -1;
	}
	return process_finish(&child, take_bytes, &in, results);
}

/* A type that this machine does not have is a failure only if --type named it. */
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

/* True if an earlier call with these @results has measured it. */
static bool is_there(const struct results *results, const struct subcommand *command, const struct job *base, const struct op *op,
		     enum op_fence fence)
{
	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];

		if (c->command == command && c->op == op && c->fence == fence &&
		    !c->metric && (!base->scenarios || base->scenarios & SCENARIO_BIT(c->scenario)))
			return true;
	}
	return false;
}

/* Peers and the library's types take turns, so that disturbances of the machine affect them alike. */
void jobs_run(const struct subcommand *command, const struct options *options, const struct job *base,
	      const struct op *const *types, int nr_types, struct results *results)
{
	bool left_out[MAX_TYPES][OP_NR_FENCES];
	int status;

	for (int i = 0; i < nr_types; i++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			left_out[i][fence] = !options_fence(options, types[i], fence) ||
					     is_there(results, command, base, types[i], fence);
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

				if (left_out[i][fence])
					continue;
				job.command = command;
				job.op = types[i];
				job.fence = fence;
				job.round = (uint32_t)round;
				status = job_run(&job, results);
				left_out[i][fence] = status != 0; /* reported once, not in each round */
				if (interrupted()) {
					results_note(results, "interrupted: %s stopped at %s in round %d of %d", command->name,
						     types[i]->name, round + 1, options->runs);
					goto out;
				}
				account(results, options, status);
			}
		}
out:
	progress_end();
}
