/* SPDX-License-Identifier: MIT */
/* retirescale.c - deferred reclamation from end to end. */
#include <string.h>

#include "alive.h"
#include "retirescale.h"

#define DEFAULT_CELL_S 0.1
#define WATCHDOG_S 60
#define ALL_SCENARIOS (((1u << NR_RETIRE_SCENARIOS) - 1) << SCENARIO_RETIRE_IDLE)
_Static_assert(SCENARIO_RETIRE_END <= 32, "scenarios are bits");

static bool measure(const struct job *job, bool timed)
{
	bool good = true;

	for (int s = SCENARIO_RETIRE_IDLE; s < SCENARIO_RETIRE_END; s++)
		for (int i = 0; i < job->nr_readers && (job->scenarios & (1u << s)); i++)
			good = retirescale_cell(job, (enum scenario)s, job->readers[i], timed) && good;
	return good;
}

/* All rates come first, before the process has timed single calls. */
static bool measure_all(const struct job *job)
{
	bool good;

	if (job->scan)
		return retirescale_scan(job);
	good = measure(job, false);
	return (!job->calls || measure(job, true)) && good;
}

int retirescale_child(const struct job *job)
{
	struct sleepers sleepers;
	bool good;

	cpus_online();
	if (job->alive)
		sleepers_start(&sleepers, job->op, job->alive);
	good = measure_all(job);
	if (job->alive)
		sleepers_stop(&sleepers);
	return good ? 0 : EXIT_FAILED;
}

static bool fits(const struct op *op)
{
	return op->reclaim;
}

static bool takes_part(const struct op *op, bool scan)
{
	return scan ? op->reclaim->give != NULL : op->reclaim->produce != NULL;
}

/* The types that --type names, or all that take part. */
static int choose_types(const struct options *options, const struct op *types[MAX_TYPES])
{
	int nr = options_types(options, &retirescale_command, types), kept = 0;

	for (int i = 0; i < nr; i++) {
		if (takes_part(types[i], options->scan))
			types[kept++] = types[i];
		else if (options->nr_types)
			usage_error("--type=%s: it takes part only %s --scan", types[i]->name, options->scan ? "without" : "with");
	}
	return kept;
}

static void check_scan(const struct options *options)
{
	if (!options->scan)
		return;
	if (options->scenarios || options->nr_readers || options->seconds > 0 || options->batch || options->bytes)
		usage_error("--scan has slots, objects and sizes of its own: no --scenario, --threads, --seconds, --batch, --bytes");
}

static int run(const struct options *options)
{
	struct job base = { .nr_readers = options->nr_readers, .alive = options->alive, .scan = options->scan, .calls = true,
			    .seconds = options->seconds > 0 ? options->seconds : DEFAULT_CELL_S,
			    .scenarios = options->scenarios ? options->scenarios : ALL_SCENARIOS,
			    .batch = options->batch, .bytes = options->bytes, .watchdog_s = WATCHDOG_S };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	int nr, status;
	FILE *out;

	check_scan(options);
	retire_set(options->bytes, options->batch);
	nr = choose_types(options, types);
	memcpy(base.readers, options->readers, sizeof(base.readers));
	for (; !options->nr_readers && base.nr_readers < 2; base.nr_readers++)
		base.readers[base.nr_readers] = base.nr_readers + 1;
	out = emit_open(options);
	base.watchdog_s += (int)base.seconds;
	jobs_run(&retirescale_command, options, &base, types, nr, &results);
	retirescale_emit(out, options, &base, &results);
	status = emit_end(out, options, &retirescale_command, &results);
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand retirescale_command = {
	.name = "retirescale",
	.what = "Cost of deferred reclamation, end to end, and how much garbage it keeps.",
	.doc = "Result: objects per second, allocated, retired and freed, including the drain at the end; median over rounds. 'x "
	       "raw' and 'x liburcu' are ratios to raw_malloc_free and to liburcu_memb in the same scenario. 'CPU ns' is the "
	       "processor time of the whole process, including readers and workers, for each object. 'peak' is the most garbage, "
	       "objects retired and not yet freed, of samples taken every half millisecond. A window with 128 MB of garbage ends "
	       "early, and is marked 'capped'. An object that is not freed after the drain is LOST, an error.\n"
	       "'One call' is the duration of the call that retires one object. It contains neither the allocation nor the "
	       "exchange that replaces the object, but all that the call does now and then: reclaim a batch, wake a worker, wait "
	       "because a queue is full. For raw_malloc_free it is free() of an object, deferred until a batch is full. Calls "
	       "are timed in a window of their own, of the same length, after that for the rate. Preemption counts, and so does "
	       "the clock, whose cost stands above the table. Percentiles and the mean are medians over rounds, max is the "
	       "maximum of all rounds. Work that is done once for about 1000 objects lies at the edge of p99.9: see the mean and "
	       "max, or use --batch=512.\n"
	       "Retiring threads and the reader are bound to CPUs as long as there are enough. In all scenarios but 'idle' "
	       "threads share one pointer.\n"
	       "--scan: nanoseconds for each of N objects while M slots are in use; hazptr_inline reclaims in batches as they "
	       "come, hazptr_list in one scan, with a table of fixed size.",
	.accepts = OPT_TYPE | OPT_ROUNDS | OPT_SCENARIO | OPT_SECONDS | OPT_RETIRE,
	.fits = fits,
	.first_scenario = SCENARIO_RETIRE_IDLE,
	.end_scenario = SCENARIO_RETIRE_END,
	.is_row = retirescale_is_row,
	.columns = retirescale_columns,
	.run = run,
};
