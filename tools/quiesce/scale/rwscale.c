/* SPDX-License-Identifier: MIT */
/* rwscale.c - reader-writer locks with their writers. */
#include <string.h>

#include "alive.h"
#include "rwscale.h"

#define WATCHDOG_S 60
#define BURST_BITS (1u << SCENARIO_RW_SPARSE | 1u << SCENARIO_RW_DENSE)
#define LATENCY_BITS (1u << SCENARIO_RW_RARE | 1u << SCENARIO_RW_OFTEN)

/* Numbers of readers without --readers; -1 ends a list. */
static const int default_readers[NR_RW_SCENARIOS][4] = { { 0, 2, 64, -1 }, { 2, 64, -1 }, { 0, 1, 64, -1 }, { 0, 1, 64, -1 } };

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

static bool cell(const struct job *job, enum scenario scenario, int readers)
{
	if (left_out(job, readers))
		return true;
	return (1u << scenario) & BURST_BITS ? rwscale_burst(job, scenario, readers) : rwscale_latency(job, scenario, readers);
}

static bool measure(const struct job *job)
{
	bool good = true;

	for (int s = SCENARIO_RW_SPARSE; s < SCENARIO_RW_END; s++) {
		const int *readers = job->nr_readers ? job->readers : default_readers[s - SCENARIO_RW_SPARSE];

		for (int i = 0; (job->scenarios & (1u << s)) && (job->nr_readers ? i < job->nr_readers : readers[i] >= 0); i++)
			good = cell(job, (enum scenario)s, readers[i]) && good;
	}
	return good;
}

int rwscale_child(const struct job *job)
{
	const struct rwlock_op *lock = job->op->rwlock;
	struct sleepers sleepers;
	int err = lock->init ? lock->init() : 0;
	bool good;

	cpus_online();
	if (err) {
		job_send_note("left out, not available here: %s", strerror(-err));
		return EXIT_UNAVAILABLE;
	}
	if (job->alive)
		sleepers_start(&sleepers, job->op, job->alive);
	good = measure(job);
	if (job->alive)
		sleepers_stop(&sleepers);
	if (lock->fini)
		lock->fini();
	return good ? 0 : EXIT_FAILED;
}

static bool fits(const struct op *op)
{
	return op->rwlock != NULL;
}

static uint32_t scenarios_of(const struct options *options)
{
	if (options->latency && options->scenarios & ~LATENCY_BITS)
		usage_error("--latency: its scenarios are rare and often");
	if (options->scenarios)
		return options->scenarios;
	return options->latency ? LATENCY_BITS : BURST_BITS;
}

static int run(const struct options *options)
{
	struct job base = { .nr_readers = options->nr_readers, .alive = options->alive, .seconds = options->seconds,
			    .bystanders = options->bystanders,
			    .scenarios = scenarios_of(options), .watchdog_s = WATCHDOG_S + (int)options->seconds,
			    .sections = options->sections ? options->sections : RW_SECTIONS_DEFAULT };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	int nr = options_types(options, &rwscale_command, types), status;
	FILE *out;

	if (options->sections && !(base.scenarios & BURST_BITS))
		usage_error("--sections: there is no burst in the scenarios asked for");
	if (options->bystanders && !(base.scenarios & BURST_BITS))
		usage_error("--bystanders: there is no burst in the scenarios asked for");
	memcpy(base.readers, options->readers, sizeof(base.readers));
	out = emit_open(options);
	jobs_run(&rwscale_command, options, &base, types, nr, &results);
	rwscale_emit(out, options, &results);
	status = emit_end(out, options, &rwscale_command, &results);
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand rwscale_command = {
	.name = "rwscale",
	.what = "Reader-writer locks with their writers: bursts of writes beside readers, and how long writers wait.",
	.doc = "A burst is many write sections in a row, 1.5 us of work each, by one writer; each round has up to five bursts. "
	       "Result: milliseconds for a burst, and for one section, the median over bursts. 'GPs' and 'mb' are grace periods "
	       "of RCU and membarriers during a burst, for locks of the library. 'quiet' is CPU nanoseconds of a read section "
	       "before the bursts, with all readers running; 'wait' and 'worst' are the median and the longest wait of readers "
	       "for the lock during bursts; 'back' is milliseconds from the end of a burst until readers are fast again, for "
	       "locks with a fast path. A burst that lasts for more than a second (--seconds) is cut off: readers stop, and the "
	       "row is marked.\n"
	       "gp and expedited are locks made for this comparison: percpu_rwsem without rcu_sync, with a grace period in each "
	       "lock and each unlock of a writer.\n"
	       "--bystanders: so many more threads read under RCU back to back, 20 us each, without the lock: grace periods wait "
	       "for them, too.\n"
	       "--latency: microseconds that a writer waits for the lock, alone and beside readers back to back; a writer that "
	       "waits for half a second is starved: readers stop, and the row is marked. With more threads than CPUs a writer "
	       "also waits for a CPU, beside dense readers most of the time; that is no wait for the lock.\n"
	       "Readers check that no writer is inside with them; if one was, that is an error, BROKEN. Threads are bound to "
	       "CPUs as long as there are enough. Default: 0, 2 and 64 readers; with --latency 0, 1 and 64.",
	.accepts = OPT_MEASURE | OPT_SCENARIO | OPT_SECONDS | OPT_RWLOCK,
	.fits = fits,
	.first_scenario = SCENARIO_RW_SPARSE,
	.end_scenario = SCENARIO_RW_END,
	.is_row = rwscale_is_row,
	.columns = rwscale_columns,
	.run = run,
};
