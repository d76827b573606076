/* SPDX-License-Identifier: MIT */
/* rcuscale.c - how long updaters wait, and what that costs everybody. */
#include "alive.h"
#include "rcuscale.h"
#include "team.h"

#define DEFAULT_CELL_S 0.3

/* What is measured when --readers does not say otherwise; 0 ends a list. */
static const int default_threads[NR_SCENARIOS][4] = {
	[SCENARIO_IDLE] = { 1, 64 },  [SCENARIO_SAME] = { 1, 8, 64 }, [SCENARIO_OTHERS] = { 1, 8, 64 },
	[SCENARIO_LONG] = { 8 },      [SCENARIO_CALLERS] = { CALLERS }, [SCENARIO_ALIVE] = { ALIVE },
	[SCENARIO_HOGS] = { 64 },     [SCENARIO_RETIRE] = { 1, 2 },
};

/* Scenarios whose number of threads is what --readers says. */
#define FREE_READERS                                                                                  \
	(1u << SCENARIO_IDLE | 1u << SCENARIO_SAME | 1u << SCENARIO_OTHERS | 1u << SCENARIO_LONG |    \
	 1u << SCENARIO_HOGS)

static void cell(const struct job *job, enum scenario scenario, int threads)
{
	switch (scenario) {
	case SCENARIO_CALLERS: callers_cell(job); break;
	case SCENARIO_RETIRE: retire_cell(job, threads); break;
	default: wait_cell(job, scenario, threads);
	}
}

static bool makes_sense(const struct op *op, enum scenario scenario)
{
	if (scenario == SCENARIO_RETIRE)
		return op->retire;
	if (scenario == SCENARIO_OTHERS) /* a type that waits for everybody cannot tell them apart */
		return op->wait->per_object;
	return true;
}

int rcuscale_child(const struct job *job)
{
	struct sleepers sleepers;

	cpus_online();
	if (job->alive)
		sleepers_start(&sleepers, job->op, job->alive);
	for (int s = SCENARIO_IDLE; s < NR_WAIT_SCENARIOS; s++) {
		bool given = job->nr_readers && (FREE_READERS & (1u << s));
		const int *threads = given ? job->readers : default_threads[s];
		int nr = given ? job->nr_readers : 4;

		if (!(job->scenarios & (1u << s)) || !makes_sense(job->op, (enum scenario)s))
			continue;
		for (int i = 0; i < nr && threads[i]; i++)
			cell(job, (enum scenario)s, threads[i]);
	}
	if (job->alive)
		sleepers_stop(&sleepers);
	return 0;
}

static bool fits(const struct op *op)
{
	return op->wait;
}

/* Say what was asked for and is not shown. */
static void explain_others(const struct options *options, const struct op *const *types, int nr)
{
	if (!(options->scenarios & (1u << SCENARIO_OTHERS)))
		return;
	for (int i = 0; i < nr; i++)
		if (!types[i]->wait->per_object)
			fprintf(stderr, "quiesce rcuscale: %s waits for every reader: 'others' is 'same' for it\n",
				types[i]->name);
}

static int run(const struct options *options)
{
	struct job base = { .nr_readers = options->nr_readers, .alive = options->alive, .watchdog_s = 60,
			    .seconds = options->seconds > 0 ? options->seconds : DEFAULT_CELL_S,
			    .scenarios = options->scenarios ? options->scenarios : ~0u };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	FILE *out;
	int nr = options_types(options, &rcuscale_command, types), status;

	for (int i = 0; i < options->nr_readers; i++)
		base.readers[i] = options->readers[i];
	/* fairness and garbage come with callers and retire */
	if (base.scenarios & (1u << SCENARIO_FAIRNESS))
		base.scenarios |= 1u << SCENARIO_CALLERS;
	if (base.scenarios & (1u << SCENARIO_GARBAGE))
		base.scenarios |= 1u << SCENARIO_RETIRE;
	if (options->nr_readers && !(base.scenarios & FREE_READERS))
		usage_error("--readers: the scenarios asked for have fixed numbers of threads");
	out = emit_open(options);
	explain_others(options, types, nr);
	base.watchdog_s += (int)base.seconds;
	jobs_run(&rcuscale_command, options, &base, types, nr, &results);
	emit_results(out, options, &results);
	status = emit_close(out, options);
	if (!status && (results.failures || !results.nr))
		status = EXIT_FAILED;
	if (!results.nr && !interrupted())
		fprintf(stderr, "quiesce rcuscale: nothing was measured\n");
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand rcuscale_command = {
	.name = "rcuscale",
	.what = "How long an updater's wait takes, and what it costs.",
	.doc = "Result: microseconds per wait over all rounds, with the spread of the rounds' medians. IPI/s are the "
	       "machine's function-call interrupts per second, of which the noop row shows what was there anyway; mb/wait "
	       "and wk/wait are membarriers and wake-ups per wait, CPU s the processor time of the process. Beside running "
	       "readers, waits are 50 to 250 us apart; in 'idle', 'alive' and 'callers' they are back to back. A type that "
	       "waits for all readers has no scenario 'others': it is the same as 'same'.",
	.accepts = OPT_MEASURE | OPT_SCENARIO | OPT_SECONDS,
	.fits = fits,
	.run = run,
};
