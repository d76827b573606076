/* SPDX-License-Identifier: MIT */
/* rcuscale.c - how long updaters wait, and the cost of their waits for others. */
#include <string.h>

#include "emit.h"
#include "rcuscale.h"
#include "team.h"

#define DEFAULT_CELL_S 0.3

static const struct scenario_info scenarios[NR_WAIT_SCENARIOS] = {
	[SCENARIO_IDLE] = { "idle", "us", "readers registered, but asleep outside sections" },
	[SCENARIO_SAME] = { "same", "us", "readers back to back, on what is waited for" },
	[SCENARIO_OTHERS] = { "others", "us", "readers back to back, on 1024 other objects" },
	[SCENARIO_DOCUMENT] = { "document", "us", "readers back to back, each on an object of its own" },
	[SCENARIO_LONG] = { "long", "us", "readers that sleep 1 ms inside their sections" },
	[SCENARIO_HELD] = { "held", "us", "time from the end of a section of 100 ms to the return of the wait for it" },
	[SCENARIO_HELD_CPU] = { "held_cpu", "us", "of held: CPU time of the process during the wait of 100 ms" },
	[SCENARIO_CALLERS] = { "callers", "us", "8 callers beside one reader of what they wait for" },
	[SCENARIO_CALLERS0] = { "callers0", "us", "8 callers, each for an object of its own, no readers" },
	[SCENARIO_CALLERS2] = { "callers2", "us", "8 callers, each for an object of its own, beside 2 readers of others" },
	[SCENARIO_RATE] = { "rate", "waits/s", "of callers: waits of all of them together" },
	[SCENARIO_RATE0] = { "rate0", "waits/s", "of callers0: waits of all of them together" },
	[SCENARIO_RATE2] = { "rate2", "waits/s", "of callers2: waits of all of them together" },
	[SCENARIO_FAIRNESS] = { "fairness", "ratio", "of callers: waits of the slowest over the mean" },
	[SCENARIO_FAIRNESS0] = { "fairness0", "ratio", "of callers0: waits of the slowest over the mean" },
	[SCENARIO_FAIRNESS2] = { "fairness2", "ratio", "of callers2: waits of the slowest over the mean" },
	[SCENARIO_ALIVE] = { "alive", "us", "1024 registered threads asleep" },
	[SCENARIO_HOGS] = { "hogs", "us", "64 readers beside 2 other processes that hog CPUs" },
	[SCENARIO_BESIDE] = { "beside", "ratio", "readers back to back: their rate beside an updater, over that without" },
	[SCENARIO_BESIDE_LONG] = { "beside_long", "ratio", "beside of one reader, with one on the updater's CPU in a section of 20 ms" },
	[SCENARIO_RETIRE] = { "retire", "objects/s", "call_rcu() or call_hazptr() of 64-byte objects, final barrier included" },
	[SCENARIO_GARBAGE] = { "garbage", "objects", "of retire: most objects retired and not yet freed" },
};

/* Numbers of threads without --readers; 0 ends a list. */
static const int default_threads[NR_WAIT_SCENARIOS][4] = {
	[SCENARIO_IDLE] = { 1, 64 },	     [SCENARIO_SAME] = { 1, 2, 8, 64 },	  [SCENARIO_OTHERS] = { 1, 2, 8, 64 },
	[SCENARIO_DOCUMENT] = { 2 },	     [SCENARIO_LONG] = { 8 },		  [SCENARIO_HELD] = { 1 },
	[SCENARIO_CALLERS] = { CALLERS },    [SCENARIO_CALLERS0] = { CALLERS },	  [SCENARIO_CALLERS2] = { CALLERS },
	[SCENARIO_ALIVE] = { ALIVE },	     [SCENARIO_HOGS] = { 64 },		  [SCENARIO_RETIRE] = { 1, 2 },
	[SCENARIO_BESIDE] = { 1, 64 },	     [SCENARIO_BESIDE_LONG] = { 1 },
};

/* Scenarios whose number of threads --readers sets. */
#define FREE_READERS                                                                                        \
	(SCENARIO_BIT(SCENARIO_IDLE) | SCENARIO_BIT(SCENARIO_SAME) | SCENARIO_BIT(SCENARIO_OTHERS) |        \
	 SCENARIO_BIT(SCENARIO_DOCUMENT) | SCENARIO_BIT(SCENARIO_LONG) | SCENARIO_BIT(SCENARIO_HOGS) | SCENARIO_BIT(SCENARIO_BESIDE))

static void cell(const struct job *job, int scenario, int threads)
{
	switch (scenario) {
	case SCENARIO_HELD: held_cell(job); break;
	case SCENARIO_CALLERS:
	case SCENARIO_CALLERS0:
	case SCENARIO_CALLERS2: callers_cell(job, scenario); break;
	case SCENARIO_BESIDE:
	case SCENARIO_BESIDE_LONG: reader_cell(job, scenario, threads); break;
	case SCENARIO_RETIRE: retire_cell(job, threads); break;
	default: wait_cell(job, scenario, threads);
	}
}

/* Scenarios that are measured together with another one. */
static const struct { int what, with; } companions[] = {
	{ SCENARIO_HELD_CPU, SCENARIO_HELD },
	{ SCENARIO_RATE, SCENARIO_CALLERS }, { SCENARIO_FAIRNESS, SCENARIO_CALLERS },
	{ SCENARIO_RATE0, SCENARIO_CALLERS0 }, { SCENARIO_FAIRNESS0, SCENARIO_CALLERS0 },
	{ SCENARIO_RATE2, SCENARIO_CALLERS2 }, { SCENARIO_FAIRNESS2, SCENARIO_CALLERS2 },
	{ SCENARIO_GARBAGE, SCENARIO_RETIRE },
};

static bool makes_sense(const struct op *op, int scenario)
{
	return scenario != SCENARIO_RETIRE || op->retire;
}

static int child(const struct job *job)
{
	for (int s = 0; s < NR_WAIT_SCENARIOS; s++) {
		bool given = job->nr_readers && (FREE_READERS & SCENARIO_BIT(s));
		const int *threads = given ? job->readers : default_threads[s];
		int nr = given ? job->nr_readers : 4;

		if (!(job->scenarios & SCENARIO_BIT(s)) || !makes_sense(job->op, s))
			continue;
		for (int i = 0; i < nr && threads[i]; i++)
			cell(job, s, threads[i]);
	}
	return 0;
}

static bool fits(const struct op *op)
{
	return op->wait && !op->torture;
}

static void check(struct options *options)
{
	for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++)
		if (options->scenarios & SCENARIO_BIT(companions[i].what))
			options->scenarios |= SCENARIO_BIT(companions[i].with);
	if (options->nr_readers && options->scenarios && !(options->scenarios & FREE_READERS))
		usage_error("--readers: the scenarios asked for have fixed numbers of threads");
}

/* Cells of few values have no columns for percentiles and costs. */
ROW_PART(is_short, strcmp(cell_unit(row->cell), "us") ? 0 : -1)
ROW_PART(is_wait, -1 - is_short(row))

static void wait_title(FILE *out, const struct row *first)
{
	fprintf(out, "\nrcuscale %s, %d threads: %s; us\n", cell_scenario(first->cell), first->cell->threads,
		scenarios[first->cell->scenario].what);
}

static void short_title(FILE *out, const struct row *first)
{
	fprintf(out, "\nrcuscale %s, %d threads: %s; %s, median over rounds\n", cell_scenario(first->cell), first->cell->threads,
		scenarios[first->cell->scenario].what, cell_unit(first->cell));
}

static const struct view waits[] = {
	V("mean", 8, "mean"), V("min", 8, "min"), V("p50", 8, "p50"), V("p90", 8, "p90"), V("p99", 8, "p99"), V("max", 8, "max"),
	V("spread", 7, "spread", .percent = true), V("n", 7, "n"), V("IPI/s", 8, "ipis"), V("mb/wait", 7, "membarriers"),
	V("wk/wait", 7, "wakeups"), V("CPU s", 7, "cpu_s"), { 0 }
};
static const struct view shorts[] = {
	V("median", 8, "p50"), V("min", 8, "min"), V("max", 8, "max"), V("spread", 7, "spread", .percent = true), V("n", 6, "n"), { 0 }
};
static const struct table_form tables[] = { { is_wait, wait_title, waits, NULL }, { is_short, short_title, shorts, NULL }, { 0 } };

const struct subcommand rcuscale_command = {
	.name = "rcuscale",
	.what = "How long an updater's wait takes, and what it costs.",
	.doc = "Result: microseconds per wait over all rounds, with their cost for others: interrupts, membarriers, wake-ups and CPU time. "
	       "See quiesce-rcuscale(1).",
	OPTIONS(options_type, options_readers, options_scenario, options_seconds, options_rounds, options_runs),
	.fits = fits,
	SCENARIOS(scenarios),
	.tables = tables,
	.cell_s = DEFAULT_CELL_S,
	.check = check,
	.child = child,
};
