/* SPDX-License-Identifier: MIT */
/* measure.c - a subcommand that measures types, from its options to its exit status. */
#include <string.h>

#include <quiesce/control.h>

#include "tool.h"

#define WATCHDOG_S 60

void options_one_fence(struct options *options)
{
	if (!options->fences)
		options->fences = 1u << (quiesce_set_fence(QUIESCE_FENCE_LIGHT) ? OP_FENCE_FULL : OP_FENCE_LIGHT);
}

struct job job_of(const struct subcommand *command, const struct options *options)
{
	struct job job = { .command = command, .scenarios = options->scenarios ? options->scenarios : ~UINT64_C(0),
			   .nr_readers = options->nr_readers, .alive = options->alive,
			   .seconds = options->seconds > 0 ? options->seconds : command->cell_s,
			   .watchdog_s = WATCHDOG_S + (int)options->seconds };

	memcpy(job.readers, options->readers, sizeof(job.readers));
	memcpy(job.own, options->own, sizeof(job.own));
	return job;
}

static void complete(const struct subcommand *command, struct options *options)
{
	if (command->one_fence)
		options_one_fence(options);
	if (command->check)
		command->check(options);
	if (!options->nr_readers)
		for (; options->nr_readers < MAX_DEFAULTS && command->readers[options->nr_readers]; options->nr_readers++)
			options->readers[options->nr_readers] = command->readers[options->nr_readers];
}

static int status_of(FILE *out, const struct options *options, const struct subcommand *command, const struct results *results)
{
	int status = emit_close(out, options);

	if (!status && (results->failures || (!results->nr && !command->may_be_empty)))
		status = EXIT_FAILED;
	if (!results->nr && !command->may_be_empty && !interrupted())
		fprintf(stderr, "quiesce %s: nothing was measured\n", command->name);
	if (command->finish && results->nr)
		status = command->finish(options, results) || status ? EXIT_FAILED : 0;
	return interrupted() ? EXIT_INTERRUPTED : status;
}

int subcommand_measure(const struct subcommand *command, const struct options *asked)
{
	struct options options = *asked;
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	struct job job;
	int nr, status;
	FILE *out;

	complete(command, &options);
	nr = command->choose ? command->choose(&options, types) : options_types(&options, command, types);
	job = job_of(command, &options);
	out = emit_open(&options);
	jobs_run(command, &options, &job, types, nr, &results);
	emit_results(out, command, &options, &results);
	status = status_of(out, &options, command, &results);
	results_free(&results);
	return status;
}
