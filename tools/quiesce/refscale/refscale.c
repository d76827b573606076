/* SPDX-License-Identifier: MIT */
/* refscale.c - the cost of one read-side operation.
 *
 * An operation is a section with one pointer load and one field load in it.  All threads execute the same number of
 * operations; all begin at a barrier; the CPU time of the threads counts, so that 64 threads on two CPUs do not measure
 * the scheduler.  As long as each thread has a CPU, runs in which another process took a CPU away are dropped,
 * because then the threads did not run against each other.
 */
#include <stdlib.h>

#include <quiesce/atomic.h>

#include "team.h"
#include "emit.h"
#include "refscale.h"

#define TARGET_NS 2000000  /* CPU time of one thread in one run; less with a smaller budget */
#define RUNS 3             /* runs of each layout, in each round */
#define CELL_S 1.5         /* no run of a cell begins later */
#define LAYOUTS_LATE 4     /* no layout of a cell begins after this multiple of CELL_S */
#define SHARE 0.95         /* a bound thread with a smaller share of its CPU was disturbed */

static const struct scenario_info scenarios[] = {
	[SCENARIO_READ] = { "read", "ns", "CPU time of one read-side operation" },
};

struct refscale_options {
	uint64_t loops; /* 0: as many as take TARGET_NS */
};

static const struct option_row own[] = {
	{ "loops", "N", "operations of each thread in each run (default: about 2 ms)", OPTION_WHOLE, 1, 1e12,
	  OPTION_OWN(struct refscale_options, loops) },
	{ 0 }
};

struct timing {
	double ns;    /* CPU time per operation */
	double share; /* CPU time divided by elapsed time */
	const char *slot; /* kind of the slot that the thread got right after the run; NULL: the type has no slots */
};

struct experiment {
	const struct op *op;
	uint64_t loops;
	int runs;
	struct spin_barrier barrier;
	uint64_t begin, budget_ns;
	uint32_t stop;     /* written by thread 0 between barriers */
	struct timing *timing; /* [runs][OP_LAYOUTS][threads]; ns 0: did not run */
};

static uint64_t loop_sink;

static struct timing timed(const struct experiment *e, int layout)
{
	uint64_t wall = now_ns(), cpu = thread_cpu_ns(), sum;

	sum = e->op->read->loop[layout](&op_target, e->loops);
	cpu = thread_cpu_ns() - cpu;
	wall = now_ns() - wall;
	(void)quiesce_fetch_add_relaxed(&loop_sink, sum);
	return (struct timing){ (double)cpu / (double)e->loops, (double)cpu / (double)wall,
				e->op->slot_kind ? e->op->slot_kind() : NULL };
}

/* Thread 0 reads the clock while all others wait at the barrier. */
static bool is_over(struct experiment *e, const struct member *m, bool whole_run)
{
	spin_barrier_wait(&e->barrier);
	if (m->index == 0)
		quiesce_store_relaxed(&e->stop, now_ns() > e->begin + (whole_run ? 1 : LAYOUTS_LATE) * e->budget_ns);
	spin_barrier_wait(&e->barrier);
	return quiesce_load_relaxed(&e->stop);
}

static void reader(struct member *m)
{
	struct experiment *e = m->team->arg;

	op_thread_enter(e->op);
	e->op->read->loop[0](&op_target, e->loops / 8 + 1); /* warm up */
	spin_barrier_wait(&e->barrier);
	for (int i = 0; i < e->runs * OP_LAYOUTS; i++) {
		e->timing[i * m->team->nr + m->index] = timed(e, i % OP_LAYOUTS);
		if (is_over(e, m, (i + 1) % OP_LAYOUTS == 0))
			break;
	}
	op_thread_exit(e->op);
}

/* Returns the mean over the threads of one run; stores true in @ret_quiet if no thread lost its CPU. */
static double run_mean(const struct experiment *e, int run, int layout, int threads, bool *ret_quiet)
{
	const struct timing *t = &e->timing[(run * OP_LAYOUTS + layout) * threads];
	double sum = 0;

	*ret_quiet = true;
	for (int i = 0; i < threads; i++) {
		sum += t[i].ns;
		*ret_quiet = *ret_quiet && (t[i].share >= SHARE || threads > cpus_online());
	}
	return sum / threads;
}

/* Sends the quiet runs of each layout; if there is none, all runs, marked as disturbed. */
static void send_layout(const struct experiment *e, int layout, int threads)
{
	bool quiet;
	int nr_quiet = 0;

	for (int run = 0; run < e->runs; run++)
		nr_quiet += run_mean(e, run, layout, threads, &quiet) > 0 && quiet;
	for (int run = 0; run < e->runs; run++) {
		double ns = run_mean(e, run, layout, threads, &quiet);

		if (ns > 0 && (quiet || !nr_quiet))
			job_send(SCENARIO_READ, threads, (uint32_t)layout | (quiet ? 0 : GROUP_DISTURBED), ns);
	}
}

static void send_slots(const struct experiment *e, int threads)
{
	for (int i = 0; i < e->runs * OP_LAYOUTS * threads; i++)
		if (e->timing[i].slot)
			job_send_slot(SCENARIO_READ, threads, e->timing[i].slot);
}

static void measure(const struct op *op, int threads, uint64_t loops, double seconds)
{
	struct experiment e = { .op = op, .loops = loops, .runs = RUNS, .begin = now_ns(),
				.budget_ns = (uint64_t)(seconds * 1e9) };
	struct team team = { .nr = threads, .pinned = threads <= cpus_online(), .body = reader, .arg = &e };

	e.timing = calloc((size_t)(e.runs * OP_LAYOUTS * threads), sizeof(*e.timing));
	if (!e.timing) {
		job_send_note("out of memory");
		return;
	}
	spin_barrier_init(&e.barrier, (uint32_t)threads);
	team_start(&team);
	team_join(&team);
	for (int layout = 0; layout < OP_LAYOUTS; layout++)
		send_layout(&e, layout, threads);
	send_slots(&e, threads);
	job_flush();
	free(e.timing);
}

/* The number of operations that one thread executes in TARGET_NS, or in a run's share of @seconds. */
static uint64_t calibrate(const struct op *op, double seconds)
{
	double share = seconds * 1e9 / (RUNS * OP_LAYOUTS);
	uint64_t loops = 1000, ns, target = share < TARGET_NS ? (uint64_t)share : TARGET_NS;

	op_thread_enter(op);
	for (;; loops *= 4) {
		ns = thread_cpu_ns();
		(void)quiesce_fetch_add_relaxed(&loop_sink, op->read->loop[0](&op_target, loops));
		ns = thread_cpu_ns() - ns;
		if (ns > target / 8 || loops > 100000000)
			break;
	}
	op_thread_exit(op);
	return loops * target / (ns ? ns : 1) + 1;
}

static int child(const struct job *job)
{
	uint64_t given = OWN(const struct refscale_options, job)->loops;
	uint64_t loops = given ? given : calibrate(job->op, job->seconds);

	for (int i = 0; i < job->nr_readers; i++) {
		bool many = job->readers[i] > cpus_online(), oversubscribed = !given && many;

		if (many && job->op->queue) {
			if (job->round == 0)
				job_send_note("left out with %d threads: they would queue behind threads that do not run", job->readers[i]);
			continue;
		}
		measure(job->op, job->readers[i], oversubscribed ? loops / 3 + 1 : loops, job->seconds);
	}
	return 0;
}

static bool fits(const struct op *op)
{
	return op->read && !op->wait_only && !op->torture;
}

static void title(FILE *out, const struct row *first)
{
	fprintf(out, "\nrefscale read, %d threads: %s; ns, median over code layouts\n", first->cell->threads, scenarios[0].what);
}

ROW_TEXT(remark, row->cell->disturbed ? " disturbed" : "")

static const struct view views[] = {
	V("median", 8, "p50"), V("min", 8, "min"), V("max", 8, "max"), V("spread", 7, "spread", .percent = true),
	V("n", 6, "n"), V("slot", -13, "slot"), { 0 }
};
static const struct table_form tables[] = { { NULL, title, views, remark }, { 0 } };

const struct subcommand refscale_command = {
	.name = "refscale",
	.what = "Cost of a read-side operation: a section, one pointer load, one field load.",
	.doc = "Result: CPU nanoseconds per operation, the median over several positions of the same loop in memory. Default: 1, 2 and "
	       "64 readers. See quiesce-refscale(1).",
	OPTIONS(options_type, options_readers, options_rounds, options_runs, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.tables = tables,
	.layouts = true,
	.cell_s = CELL_S,
	.readers = { 1, 2, 64 },
	.may_be_empty = true,
	.child = child,
};
