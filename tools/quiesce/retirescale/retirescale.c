/* SPDX-License-Identifier: MIT */
/* retirescale.c - deferred reclamation from end to end. */
#include <string.h>

#include "emit.h"
#include "retirescale.h"

#define DEFAULT_CELL_S 0.1

static const struct scenario_info scenarios[SCENARIO_RETIRE_END] = {
	[SCENARIO_RETIRE_IDLE] = { "idle", "objects/s", "objects that no other thread saw; no readers" },
	[SCENARIO_RETIRE_PUBLISHED] = { "published", "objects/s", "each object replaces the last at a shared pointer; no readers" },
	[SCENARIO_RETIRE_BUSY] = { "busy", "objects/s", "objects are published; one reader back to back" },
	[SCENARIO_RETIRE_GAP] = { "gap", "objects/s", "objects are published; one reader with 100 ns between reads" },
	[SCENARIO_RETIRE_STALLED] = { "stalled", "objects/s", "objects are published; one reader holds one object all the time" },
	[SCENARIO_RETIRE_SCAN ... SCENARIO_RETIRE_END - 1] = { "scan", "ns", NULL },
};

#define OPTION(field) OPTION_OWN(struct retire_options, field)
static const struct option_row own[] = {
	{ "threads", "N,M", "numbers of threads (default 1,2)", OPTION_NUMBERS, 1, MAX_RETIRING, .take = NULL },
	{ "batch", "N", "objects in a batch of types that have none of their own (default 1024)", OPTION_WHOLE, 1, MAX_BATCH,
	  OPTION(batch) },
	{ "bytes", "N", "bytes of each object (default 64)", OPTION_WHOLE, RETIRE_MIN_BYTES, MAX_BYTES, OPTION(bytes) },
	{ "scan", NULL, "cost of a scan, by slots in use and objects", OPTION_FLAG, OPTION(scan) },
	{ 0 }
};

static bool measure(const struct job *job, bool timed)
{
	bool good = true;

	for (int s = 0; s < NR_RETIRE_SCENARIOS; s++)
		for (int i = 0; i < job->nr_readers && (job->scenarios & SCENARIO_BIT(s)); i++)
			good = retirescale_cell(job, s, job->readers[i], timed) && good;
	return good;
}

/* All rates come first, before the process has timed single calls. */
static bool measure_all(const struct job *job)
{
	const struct retire_options *o = OWN(const struct retire_options, job);
	bool good;

	if (o->scan)
		return retirescale_scan(job);
	good = measure(job, false);
	return (o->rates || measure(job, true)) && good;
}

static int child(const struct job *job)
{
	return measure_all(job) ? 0 : EXIT_FAILED;
}

static void prepare(const struct job *job)
{
	retire_set(OWN(const struct retire_options, job)->bytes, OWN(const struct retire_options, job)->batch);
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
	bool scan = OWN(const struct retire_options, options)->scan;
	int nr = options_types(options, &retirescale_command, types), kept = 0;

	for (int i = 0; i < nr; i++) {
		if (takes_part(types[i], scan))
			types[kept++] = types[i];
		else if (options->nr_types)
			usage_error("--type=%s: it takes part only %s --scan", types[i]->name, scan ? "without" : "with");
	}
	return kept;
}

static void check(struct options *options)
{
	const struct retire_options *o = OWN(const struct retire_options, options);

	if (o->scan && (options->scenarios || options->nr_readers || options->seconds > 0 || o->batch || o->bytes))
		usage_error("--scan has slots, objects and sizes of its own: no --scenario, --threads, --seconds, --batch, --bytes");
	retire_set(o->bytes, o->batch);
}

const struct subcommand retirescale_command = {
	.name = "retirescale",
	.what = "Cost of deferred reclamation, end to end, and how much garbage it keeps.",
	.doc = "Result: objects per second, allocated, retired and freed, including the drain at the end; then the duration of one call "
	       "that retires an object. See quiesce-retirescale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_scenario, options_seconds, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.columns = retirescale_columns,
	.tables = retirescale_tables,
	.row_threads = retirescale_threads,
	.print = retirescale_print,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2 },
	.check = check,
	.choose = choose_types,
	.prepare = prepare,
	.child = child,
};
