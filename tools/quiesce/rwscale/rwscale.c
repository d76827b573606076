/* SPDX-License-Identifier: MIT */
/* rwscale.c - reader-writer locks with their writers. */
#include <string.h>

#include "emit.h"
#include "rwscale.h"

#define BURST_BITS (SCENARIO_BIT(SCENARIO_RW_SPARSE) | SCENARIO_BIT(SCENARIO_RW_DENSE))
#define LATENCY_BITS (SCENARIO_BIT(SCENARIO_RW_RARE) | SCENARIO_BIT(SCENARIO_RW_OFTEN))

static const struct scenario_info scenarios[NR_RW_SCENARIOS] = {
	[SCENARIO_RW_SPARSE] = { "sparse", "ms", "a burst of writes, while each reader reads once in a millisecond" },
	[SCENARIO_RW_DENSE] = { "dense", "ms", "a burst of writes, while readers read back to back" },
	[SCENARIO_RW_RARE] = { "rare", "us", "wait of a writer that comes when readers are fast; readers back to back" },
	[SCENARIO_RW_OFTEN] = { "often", "us", "wait of a writer that writes back to back; readers back to back" },
};

/* Numbers of readers without --readers; -1 ends a list. */
static const int default_readers[NR_RW_SCENARIOS][4] = { { 0, 2, 64, -1 }, { 2, 64, -1 }, { 0, 1, 64, -1 }, { 0, 1, 64, -1 } };

#define OPTION(field) OPTION_OWN(struct rw_options, field)
static const struct option_row own[] = {
	{ "readers", "N,M", "numbers of reader threads", OPTION_NUMBERS, 0, MAX_THREADS, .take = NULL },
	{ "sections", "N", "write sections in a burst (default 2000)", OPTION_WHOLE, 1, 1e9, OPTION(sections) },
	{ "latency", NULL, "waits of writers: scenarios rare and often", OPTION_FLAG, OPTION(latency) },
	{ "bystanders", "N", "more threads that read under RCU, without the lock", OPTION_COUNT, 0, MAX_THREADS, OPTION(bystanders) },
	{ 0 }
};

/* Notes once for all cells that they are left out. */
static bool left_out(const struct job *job, int readers)
{
	static bool noted;

	if (!job->op->rwlock->queue || readers < cpus_online())
		return false;
	if (job->round == 0 && !noted)
		job_send_note("left out with %d and more readers: they would queue behind threads that do not run", readers);
	noted = true;
	return true;
}

static bool cell(const struct job *job, int scenario, int readers)
{
	if (left_out(job, readers))
		return true;
	return SCENARIO_BIT(scenario) & BURST_BITS ? rwscale_burst(job, scenario, readers) : rwscale_latency(job, scenario, readers);
}

static bool measure(const struct job *job)
{
	bool good = true;

	for (int s = 0; s < NR_RW_SCENARIOS; s++) {
		const int *readers = job->nr_readers ? job->readers : default_readers[s];

		for (int i = 0; (job->scenarios & SCENARIO_BIT(s)) && (job->nr_readers ? i < job->nr_readers : readers[i] >= 0); i++)
			good = cell(job, s, readers[i]) && good;
	}
	return good;
}

static int child(const struct job *job)
{
	const struct rwlock_op *lock = job->op->rwlock;
	int err = lock->init ? lock->init() : 0;
	bool good;

	if (err) {
		job_send_note("left out, not available here: %s", strerror(-err));
		return EXIT_UNAVAILABLE;
	}
	good = measure(job);
	if (lock->fini)
		lock->fini();
	return good ? 0 : EXIT_FAILED;
}

static bool fits(const struct op *op)
{
	return op->rwlock != NULL;
}

static void check(struct options *options)
{
	const struct rw_options *o = OWN(const struct rw_options, options);

	if (o->latency && options->scenarios & ~LATENCY_BITS)
		usage_error("--latency: its scenarios are rare and often");
	if (!options->scenarios)
		options->scenarios = o->latency ? LATENCY_BITS : BURST_BITS;
	if (o->sections && !(options->scenarios & BURST_BITS))
		usage_error("--sections: there is no burst in the scenarios asked for");
	if (o->bystanders && !(options->scenarios & BURST_BITS))
		usage_error("--bystanders: there is no burst in the scenarios asked for");
}

static const char *describe(const struct op *op)
{
	return op->rwlock->what;
}

const struct subcommand rwscale_command = {
	.name = "rwscale",
	.what = "Reader-writer locks with their writers: bursts of writes beside readers, and how long writers wait.",
	.doc = "Result: milliseconds for a burst of writes and what readers lose by it, or with --latency the microseconds that a writer "
	       "waits. Default: 0, 2 and 64 readers; with --latency 0, 1 and 64. See quiesce-rwscale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_scenario, options_seconds, own),
	.fits = fits,
	.describe = describe,
	SCENARIOS(scenarios),
	.columns = rwscale_columns,
	.tables = rwscale_tables,
	.check = check,
	.child = child,
};
