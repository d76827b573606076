/* SPDX-License-Identifier: MIT */
/* torture.c - finds grace periods that end too early, and those that never end.
 *
 * One writer replaces an element and ages the removed elements by one at the end of each grace period.  A reader that
 * meets an age of 2 or more has found an error: a grace period began after the element was removed and ended while
 * the reader was still in the section in which it had loaded the pointer.  Types that protect single objects have
 * several pointers, each with its writer, which waits for the readers of one element; torture_object.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alive.h"
#include "torture.h"
#include "torture_watch.h"

#define REGIME_NS 400000000
#define READERS_PER_CPU 8 /* readers per CPU in the regime with more threads than CPUs */
#define DEFAULT_S 10
#define SILENT_S 30 /* silence of the child that counts as a hang */

struct torture torture;
static struct torture_watch watch; /* the conductor's */
static uint64_t *reads;            /* sections of each reader, at the last poll */

/* Only builds for torture define these two. */
int quiesce_mutant_set(const char *name) __attribute__((weak));
extern unsigned int quiesce_perturb_rate __attribute__((weak)); /* number of accesses of 65536 that are delayed */

const char *quiesce_mutant_name(int i) __attribute__((weak));

/* The parent checks, so that a mistake is reported once. */
static void check_build(const struct torture_options *o)
{
	char names[4096] = "";
	size_t n = 0;

	if (o->perturbed && !&quiesce_perturb_rate)
		usage_error("--perturb: not in this build, only in quiesce-torture");
	if (!o->mutant[0])
		return;
	if (!quiesce_mutant_set || !quiesce_mutant_name)
		usage_error("--mutant: not in this build, only in quiesce-torture");
	if (!quiesce_mutant_set(o->mutant))
		return;
	for (int i = 0; quiesce_mutant_name(i) && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", quiesce_mutant_name(i));
	usage_error("unknown mutant '%s'; valid:%s", o->mutant, names);
}

static const struct torture_options *own_of(const struct job *job)
{
	return OWN(const struct torture_options, job);
}

static void weaken(const struct job *job)
{
	const struct torture_options *o = own_of(job);

	if (o->mutant[0])
		quiesce_mutant_set(o->mutant);
	if (o->perturbed)
		quiesce_store_relaxed(&quiesce_perturb_rate, (unsigned int)o->perturb);
}

/* Threads are pinned, loose, or more than CPUs; each of these regimes runs without and with delays. */
static void next_regime(uint32_t n)
{
	struct regime *r = &torture.regime;
	uint32_t cpus = (uint32_t)cpus_online(), kind = n % 3;
	uint32_t readers = kind == 2 ? (uint32_t)torture.nr_readers : kind == 0 && cpus > 1 ? cpus - 1 : cpus;

	quiesce_store_relaxed(&r->readers, readers);
	quiesce_store_relaxed(&r->pinned, kind == 0);
	quiesce_store_relaxed(&r->delays, n / 3 % 2);
	quiesce_store_relaxed(&r->generation, n + 1);
}

/* All threads pause for a moment and start again together. */
static void stutter(void)
{
	quiesce_store_relaxed(&torture.regime.paused, 1);
	sleep_ns(WATCH_POLL_NS);
	quiesce_store_relaxed(&torture.regime.paused, 0);
}

/* A thread waits for ever and cannot be joined: report and exit. */
static void give_up(uint64_t begin)
{
	torture.hung = 1;
	torture_report((double)(now_ns() - begin) / 1e9);
	job_flush();
	_exit(EXIT_FAILED);
}

static void poll_readers(void)
{
	for (int i = 0; i < torture.nr_readers; i++)
		reads[i] = quiesce_load_relaxed(&torture.tally[i].n[TALLY_READS]);
	torture_watch_poll(&watch, reads, (uint32_t)torture.nr_readers, quiesce_load_relaxed(&torture.regime.readers), now_ns());
}

/* Gives up if a writer has made no progress for too long.  A regime in which some writers rest is shorter than that. */
static void check_writers(uint64_t begin)
{
	static struct torture_watched writer[NR_PROGRESS];

	for (int i = 0; i < NR_PROGRESS; i++) {
		bool rests = !(torture.kind->writers >> i & 1);

		if (!torture_watch_hangs(&watch, &writer[i], quiesce_load_relaxed(&torture.progress[i]), rests))
			continue;
		job_print("!!! HUNG: writer %d did nothing for %llu turns of the readers, %.0f s", i,
			  (unsigned long long)(watch.turns - writer[i].turn), (double)(watch.ns - writer[i].ns) / 1e9);
		give_up(begin);
	}
}

/* True if the time is up.  On a busy machine the threads may have done too little by then, and the run would prove nothing: it has
 * as many turns more for that as a writer that hangs. */
static bool is_time_up(uint64_t end)
{
	static struct torture_watched late;

	if (now_ns() < end)
		return false;
	return !torture_is_idle() || torture_watch_hangs(&watch, &late, 0, false);
}

/* Changes regimes until the time is up or an error is found. */
static void conduct(const struct job *job, uint64_t begin)
{
	uint64_t end = begin + (uint64_t)(job->seconds * 1e9), next = begin;

	for (uint32_t n = 0; !is_time_up(end) && !interrupted();) {
		if (now_ns() >= next) {
			if (n && n % 6 == 0)
				stutter();
			next_regime(n++);
			next = now_ns() + REGIME_NS;
		}
		poll_readers();
		check_writers(begin);
		if (!own_of(job)->keep_going && torture_errors())
			break;
		sleep_ns(WATCH_POLL_NS);
		job_flush();
	}
	quiesce_store_relaxed(&torture.regime.stop, 1);
}

/* Changes as long as a thread does something. */
static uint64_t activity(void)
{
	uint64_t sum = quiesce_load_relaxed(&torture.version) + quiesce_load_relaxed(&torture.completed) +
		       quiesce_load_relaxed(&torture.callbacks) + quiesce_load_relaxed(&torture.exits) -
		       quiesce_load_relaxed(&torture.users);

	for (int i = 0; i < NR_PROGRESS; i++)
		sum += quiesce_load_relaxed(&torture.progress[i]);
	for (int i = 0; i < torture_nr_tallies(); i++)
		sum += quiesce_load_relaxed(&torture.tally[i].n[TALLY_READS]);
	return sum;
}

struct end {
	uint64_t begin;
	uint32_t over; /* 1: all threads have been joined */
};

/* While the threads end: gives up when none of them has done anything for too long. */
static void *watch_end(void *arg)
{
	struct end *end = arg;
	uint64_t before = 0;
	struct torture_watch all = { .reads = &before };
	struct torture_watched one = { 0 };

	while (!quiesce_load_relaxed(&end->over)) {
		if (torture_watch_is_still(&all, &one, activity(), now_ns())) {
			job_print("!!! HUNG: a thread does not end");
			give_up(end->begin);
		}
		job_flush();
		sleep_ns(WATCH_POLL_NS);
	}
	return NULL;
}

/* Joins all threads, runs queued callbacks, and checks that every element came back. */
static void finish(uint64_t begin)
{
	struct end end = { .begin = begin };
	bool watched;
	pthread_t thread;
	uint32_t here;

	watched = !pthread_create(&thread, NULL, watch_end, &end);
	team_join(&torture.others);
	team_join(&torture.readers);
	for (int i = 0; i <= PIPE_LENGTH && torture.op->retire; i++) /* callbacks queue themselves again, once per age */
		torture.op->retire->barrier();
	quiesce_store_relaxed(&end.over, 1);
	if (watched)
		pthread_join(thread, NULL);
	pthread_mutex_lock(&torture.lock);
	here = torture.nr_free;
	pthread_mutex_unlock(&torture.lock);
	for (int i = 0; i < NR_POINTERS; i++)
		here += torture.current[i] != NULL;
	torture.leaks = here == ELEMENTS ? 0 : 1;
}

static void set_up(const struct job *job)
{
	torture.op = job->op;
	torture.kind = torture_kind(job->op);
	torture.job = job;
	torture.nr_readers = job->nr_readers ? job->readers[0] : READERS_PER_CPU * cpus_online();
	torture.tally = aligned_alloc(128, (size_t)torture_nr_tallies() * sizeof(*torture.tally));
	reads = calloc((size_t)torture.nr_readers, sizeof(*reads));
	watch.reads = calloc((size_t)torture.nr_readers, sizeof(*reads));
	if (!torture.tally || !reads || !watch.reads)
		abort();
	memset(torture.tally, 0, (size_t)torture_nr_tallies() * sizeof(*torture.tally));
	pool_init();
	for (int i = 0; i < (job->op->object ? NR_POINTERS : 1); i++)
		torture.current[i] = pool_get();
	if (torture.kind->set_up)
		torture.kind->set_up();
	torture_catch_signal();
	next_regime(0);
	torture.readers = (struct team){ .nr = torture.nr_readers, .body = torture_reader };
	torture.others = (struct team){ .nr = torture_nr_others(), .body = torture_other };
	torture.users = (uint32_t)(torture.nr_readers + torture_nr_others());
}

static int child(const struct job *job)
{
	struct sleepers sleepers;
	uint64_t begin;

	weaken(job);
	interrupt_catch(); /* after a signal it still reports */
	set_up(job);
	job_print("--- %s torture%s%s: %d readers, %d other threads, %.1f s%s%s", job->op->name,
		  job->fence ? ", fence " : "", job->fence ? fence_name(job->fence) : "", torture.nr_readers,
		  torture_nr_others(), job->seconds, own_of(job)->mutant[0] ? ", mutant " : "", own_of(job)->mutant);
	op_thread_enter(job->op);
	sleepers_start(&sleepers, job->op, job->alive);
	begin = now_ns();
	team_start(&torture.readers);
	team_start(&torture.others);
	conduct(job, begin);
	finish(begin);
	sleepers_stop(&sleepers);
	return torture_report((double)(now_ns() - begin) / 1e9);
}

static void take_mutant(const char *arg, struct options *o)
{
	snprintf(OWN(struct torture_options, o)->mutant, sizeof(OWN(struct torture_options, o)->mutant), "%s", arg);
}

static void take_perturb(const char *arg, struct options *o)
{
	OWN(struct torture_options, o)->perturbed = true;
	OWN(struct torture_options, o)->perturb = option_whole("perturb", arg, 0, 65536);
}

static const struct option_row own[] = {
	{ "mutant", "NAME", "plant this bug in the library (quiesce-torture only)", .take = take_mutant },
	{ "perturb", "RATE", "delay RATE of 65536 accesses (quiesce-torture only)", .take = take_perturb },
	{ "keep-going", NULL, "do not stop at the first error", OPTION_FLAG, OPTION_OWN(struct torture_options, keep_going) },
	{ 0 }
};

static bool fits(const struct op *op)
{
	return torture_kind(op) != NULL;
}

static int nr_modes(const struct options *options, const struct op *const *types, int nr)
{
	int n = 0;

	for (int i = 0; i < nr; i++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			n += options_fence(options, types[i], fence);
	return n;
}

static int run(const struct options *options)
{
	struct job base = job_of(&torture_command, options);
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	FILE *out;
	int nr = options_types(options, &torture_command, types), status;

	check_build(OWN(const struct torture_options, options));
	if (options->nr_readers > 1)
		usage_error("--readers: only one number");
	out = emit_open(options);
	base.watchdog_s = SILENT_S;
	results.live = options->format == FORMAT_TABLE ? out : NULL;
	if (results.live)
		emit_head(out);
	progress_expect(base.seconds * options->runs * nr_modes(options, types, nr));
	jobs_run(&torture_command, options, &base, types, nr, &results);
	if (!results.live)
		emit_results(out, &torture_command, options, &results);
	else
		emit_notes(&results);
	status = emit_close(out, options);
	if (!status)
		status = results.nr ? results.worst : EXIT_FAILED; /* a run without results is not a success */
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

static const struct scenario_info scenarios[] = {
	[SCENARIO_READS] = { "reads", "count", "read-side sections" },
	[SCENARIO_UPDATES] = { "updates", "count", "elements replaced" },
	[SCENARIO_REUSED] = { "reused", "count", "elements used again" },
	[SCENARIO_CLOSE_CALLS] = { "close_calls", "count", "sections during which two or three grace periods ended" },
	[SCENARIO_ERRORS] = { "errors", "count", "whatever must not happen" },
};

const struct subcommand torture_command = {
	.name = "torture",
	.what = "Search for grace periods and waits that end too early or never.",
	.doc = "A type fails if a reader sees an element that a grace period should have kept, if updates stop, or if the run did too "
	       "little to prove anything; those whose names begin with 'busted' have to fail. See quiesce-torture(1).",
	OPTIONS(options_type, options_readers, options_rounds, options_runs, options_seconds, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.run = run,
	.runs = 1,
	.cell_s = DEFAULT_S,
	.child = child,
};
