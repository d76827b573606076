/* SPDX-License-Identifier: MIT */
/* rcuscale.c - how long updaters wait, and the cost of their waits for others. */
#include "alive.h"
#include "rcuscale.h"
#include "team.h"

#define DEFAULT_CELL_S 0.3

/* Numbers of threads without --readers; 0 ends a list. */
static const int default_threads[NR_SCENARIOS][4] = {
	[SCENARIO_IDLE] = { 1, 64 },	     [SCENARIO_SAME] = { 1, 2, 8, 64 },	  [SCENARIO_OTHERS] = { 1, 2, 8, 64 },
	[SCENARIO_DOCUMENT] = { 2 },	     [SCENARIO_LONG] = { 8 },		  [SCENARIO_HELD] = { 1 },
	[SCENARIO_CALLERS] = { CALLERS },    [SCENARIO_CALLERS0] = { CALLERS },	  [SCENARIO_CALLERS2] = { CALLERS },
	[SCENARIO_ALIVE] = { ALIVE },	     [SCENARIO_HOGS] = { 64 },		  [SCENARIO_RETIRE] = { 1, 2 },
	[SCENARIO_BESIDE] = { 1, 64 },	     [SCENARIO_BESIDE_LONG] = { 1 },
};

/* Scenarios whose number of threads --readers sets. */
#define FREE_READERS                                                                                        \
	(1u << SCENARIO_IDLE | 1u << SCENARIO_SAME | 1u << SCENARIO_OTHERS | 1u << SCENARIO_DOCUMENT |      \
	 1u << SCENARIO_LONG | 1u << SCENARIO_HOGS | 1u << SCENARIO_BESIDE)

static void cell(const struct job *job, enum scenario scenario, int threads)
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
static const struct { enum scenario what, with; } companions[] = {
	{ SCENARIO_HELD_CPU, SCENARIO_HELD },
	{ SCENARIO_RATE, SCENARIO_CALLERS }, { SCENARIO_FAIRNESS, SCENARIO_CALLERS },
	{ SCENARIO_RATE0, SCENARIO_CALLERS0 }, { SCENARIO_FAIRNESS0, SCENARIO_CALLERS0 },
	{ SCENARIO_RATE2, SCENARIO_CALLERS2 }, { SCENARIO_FAIRNESS2, SCENARIO_CALLERS2 },
	{ SCENARIO_GARBAGE, SCENARIO_RETIRE },
};

static bool makes_sense(const struct op *op, enum scenario scenario)
{
	return scenario != SCENARIO_RETIRE || op->retire;
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
	return op->wait && !op->torture;
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
	for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++)
		if (base.scenarios & (1u << companions[i].what))
			base.scenarios |= 1u << companions[i].with;
	if (options->nr_readers && !(base.scenarios & FREE_READERS))
		usage_error("--readers: the scenarios asked for have fixed numbers of threads");
	out = emit_open(options);
	base.watchdog_s += (int)base.seconds;
	jobs_run(&rcuscale_command, options, &base, types, nr, &results);
	emit_results(out, options, &results);
	status = emit_end(out, options, &rcuscale_command, &results);
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand rcuscale_command = {
	.name = "rcuscale",
	.what = "How long an updater's wait takes, and what it costs.",
	.doc = "Result: microseconds per wait over all rounds, with the spread of the rounds' medians. IPI/s are the machine's "
	       "function-call interrupts per second; the noop row shows those that have other causes. mb/wait and wk/wait are "
	       "membarriers and wake-ups per wait, CPU s is the processor time of the process.\n"
	       "Beside running readers, waits of every type come in bursts of 16, or of as many as begin within 200 us, with 50 "
	       "to 250 us between two bursts: back to back a caller would find the readers where its last wait left them, and "
	       "with single waits cold caches would dominate a wait of less than a microsecond. In 'idle', 'alive' and the "
	       "scenarios with 8 callers waits are back to back.\n"
	       "A type that can wait for the readers of one object does so: in 'same', 'long', 'held', 'hogs' and 'callers' "
	       "readers are on that object, in 'others', 'document' and 'callers2' on different ones; in 'document' each reader "
	       "has its own, as in the test of the document that proposed simple hazard pointers. For types that wait for every "
	       "reader these scenarios do not differ.\n"
	       "'beside' and 'beside_long' are the rate of readers beside waits for others, divided by their rate without: 1 is "
	       "no loss.",
	.accepts = OPT_MEASURE | OPT_SCENARIO | OPT_SECONDS,
	.fits = fits,
	.first_scenario = SCENARIO_IDLE,
	.end_scenario = NR_WAIT_SCENARIOS,
	.run = run,
};
