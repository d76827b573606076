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

#define REGIME_NS 400000000
#define POLL_NS 20000000
#define CROWD 8 /* readers per CPU in the regime with more threads than CPUs */
#define DEFAULT_S 10

struct torture torture;

/* Only builds for torture define these two. */
int quiesce_mutant_set(const char *name) __attribute__((weak));
extern unsigned int quiesce_perturb_rate __attribute__((weak)); /* number of accesses of 65536 that are delayed */

const char *quiesce_mutant_name(int i) __attribute__((weak));

/* The parent checks, so that a mistake is reported once. */
static void check_build(const struct options *options)
{
	char names[4096] = "";
	size_t n = 0;

	if (options->perturb >= 0 && !&quiesce_perturb_rate)
		usage_error("--perturb: not in this build, only in quiesce-torture");
	if (!options->mutant)
		return;
	if (!quiesce_mutant_set || !quiesce_mutant_name)
		usage_error("--mutant: not in this build, only in quiesce-torture");
	if (!quiesce_mutant_set(options->mutant))
		return;
	for (int i = 0; quiesce_mutant_name(i) && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", quiesce_mutant_name(i));
	usage_error("unknown mutant '%s'; valid:%s", options->mutant, names);
}

static void weaken(const struct job *job)
{
	if (job->mutant[0])
		quiesce_mutant_set(job->mutant);
	if (job->perturb >= 0)
		quiesce_store_relaxed(&quiesce_perturb_rate, (unsigned int)job->perturb);
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
	sleep_ns(POLL_NS);
	quiesce_store_relaxed(&torture.regime.paused, 0);
}

/* A writer waits for ever and cannot be joined: report and exit. */
static void give_up(uint64_t begin)
{
	job_print("!!! HUNG: a writer did nothing for %d s", HUNG_S);
	torture.hung = 1;
	torture_report((double)(now_ns() - begin) / 1e9);
	job_flush();
	_exit(EXIT_FAILED);
}

/* True if a writer has made no progress for too long.  A regime in which some writers rest is shorter than that. */
static bool any_hung(void)
{
	static uint64_t progress[NR_PROGRESS], changed[NR_PROGRESS];
	bool hung = false;

	for (int i = 0; i < NR_PROGRESS; i++) {
		uint64_t now = quiesce_load_relaxed(&torture.progress[i]);

		if (!changed[i] || now != progress[i] || !torture_has_writer(i))
			changed[i] = now_ns();
		progress[i] = now;
		hung |= now_ns() - changed[i] > HUNG_S * 1000000000ull;
	}
	return hung;
}

/* Changes regimes until the time is up or an error is found. */
static void conduct(const struct job *job, uint64_t begin)
{
	uint64_t end = begin + (uint64_t)(job->seconds * 1e9), next = begin;

	for (uint32_t n = 0; now_ns() < end && !interrupted();) {
		if (now_ns() >= next) {
			if (n && n % 6 == 0)
				stutter();
			next_regime(n++);
			next = now_ns() + REGIME_NS;
		}
		if (any_hung())
			give_up(begin);
		if (!job->keep_going && torture_errors())
			break;
		sleep_ns(POLL_NS);
		job_flush();
	}
	quiesce_store_relaxed(&torture.regime.stop, 1);
}

static void *watch_end(void *arg)
{
	sleep_ns(HUNG_S * 1000000000ull);
	give_up(*(uint64_t *)arg);
	return NULL;
}

/* Joins all threads, runs queued callbacks, and checks that every element came back. */
static void finish(uint64_t *begin)
{
	pthread_t watch;
	uint32_t here;

	if (!pthread_create(&watch, NULL, watch_end, begin))
		pthread_detach(watch);
	team_join(&torture.others);
	team_join(&torture.readers);
	for (int i = 0; i <= PIPE_LENGTH && torture.op->retire; i++) /* callbacks queue themselves again, once per age */
		torture.op->retire->barrier();
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
	torture.kind = job->op->torture;
	torture.job = job;
	torture.nr_readers = job->nr_readers ? job->readers[0] : CROWD * cpus_online();
	torture.tally = aligned_alloc(128, (size_t)torture_nr_tallies() * sizeof(*torture.tally));
	if (!torture.tally)
		abort();
	memset(torture.tally, 0, (size_t)torture_nr_tallies() * sizeof(*torture.tally));
	pool_init();
	for (int i = 0; i < (job->op->object ? NR_POINTERS : 1); i++)
		torture.current[i] = pool_get();
	if (torture.kind && torture.kind->set_up)
		torture.kind->set_up();
	torture_catch_signal();
	next_regime(0);
	torture.readers = (struct team){ .nr = torture.nr_readers, .body = torture_reader };
	torture.others = (struct team){ .nr = torture_nr_others(), .body = torture_other };
	torture.users = (uint32_t)(torture.nr_readers + torture_nr_others());
}

int torture_child(const struct job *job)
{
	struct sleepers sleepers;
	uint64_t begin;

	weaken(job);
	interrupt_catch(); /* after a signal it still reports */
	cpus_online();
	set_up(job);
	job_print("--- %s torture%s%s: %d readers, %d other threads, %.1f s%s%s", job->op->name,
		  job->fence ? ", fence " : "", job->fence ? fence_name(job->fence) : "", torture.nr_readers,
		  torture_nr_others(), job->seconds, job->mutant[0] ? ", mutant " : "", job->mutant);
	op_thread_enter(job->op);
	sleepers_start(&sleepers, job->op, job->alive);
	begin = now_ns();
	team_start(&torture.readers);
	team_start(&torture.others);
	conduct(job, begin);
	finish(&begin);
	sleepers_stop(&sleepers);
	return torture_report((double)(now_ns() - begin) / 1e9);
}

static bool fits(const struct op *op)
{
	return op->torture || (op->read && op->read->lock && ((op->retire && op->polled && op->pointer) || op->object));
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
	struct job base = { .seconds = options->seconds > 0 ? options->seconds : DEFAULT_S, .perturb = options->perturb,
			    .keep_going = options->keep_going, .nr_readers = options->nr_readers, .alive = options->alive };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	struct options once = *options;
	FILE *out;
	int nr = options_types(options, &torture_command, types), status;

	check_build(options);
	if (options->nr_readers > 1)
		usage_error("--readers: only one number");
	out = emit_open(options);
	snprintf(base.mutant, sizeof(base.mutant), "%s", options->mutant ? options->mutant : "");
	memcpy(base.readers, options->readers, sizeof(base.readers));
	base.watchdog_s = 3 * HUNG_S;
	once.runs = options->runs_given ? options->runs : 1;
	results.live = options->format == FORMAT_TABLE ? out : NULL;
	if (results.live)
		emit_head(out);
	progress_expect(base.seconds * once.runs * nr_modes(options, types, nr));
	jobs_run(&torture_command, &once, &base, types, nr, &results);
	if (!results.live)
		emit_results(out, options, &results);
	else
		emit_notes(&results);
	status = emit_close(out, options);
	if (!status)
		status = results.nr ? results.worst : EXIT_FAILED; /* a run without results is not a success */
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand torture_command = {
	.name = "torture",
	.what = "Search for grace periods and waits that end too early or never.",
	.doc = "Readers, a writer, writers without data, deferred callbacks, barriers, threads that exit and signal handlers "
	       "that read run against each other for some seconds in each fence mode, bound to CPUs, loose, and with more "
	       "threads than CPUs. It fails if a reader sees an element that a grace period should have kept, if updates stop, "
	       "or if the run did too little to prove anything. For types that protect single objects, guards nest and overlap, "
	       "are handed to other threads and outlive their own, and writers wait for keys that readers protect again and "
	       "again, or retire elements. Locks are locked, tried, handed over and freed by their last user, domains are "
	       "independent, counts are killed and revived during gets and puts. The types whose names begin with 'busted' have "
	       "to fail.",
	.accepts = OPT_MEASURE | OPT_SECONDS | OPT_TORTURE,
	.fits = fits,
	.run = run,
};
