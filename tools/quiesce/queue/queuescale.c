/* SPDX-License-Identifier: MIT */
/* queuescale.c - queues and stacks: pairs of a put and a get by each thread, or producers and consumers. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "alive.h"
#include "emit.h"
#include "hash/hashscale.h"
#include "queuescale.h"
#include "team.h"

#define DEFAULT_RUNS 6 /* the fewest rounds for which a ratio has an interval */
#define DEFAULT_CELL_S 0.05
#define WATCHDOG_S 60

/* ---- the child ---- */

int queuescale_child(const struct job *job)
{
	struct sleepers sleepers;
	bool good = true;

	cpus_online(); /* counts all CPUs before a thread is bound */
	if (job->alive)
		sleepers_start(&sleepers, job->op, job->alive);
	for (int i = 0; i < job->nr_readers; i++) {
		good = queuescale_cell(job, queue_shape(job->readers[i])) && good;
		job_flush();
	}
	if (job->alive)
		sleepers_stop(&sleepers);
	return good ? 0 : EXIT_FAILED;
}

/* ---- output ---- */

static bool is_row(const struct cell *c)
{
	return c->scenario >= SCENARIO_QUEUE && c->scenario < SCENARIO_QUEUE_END;
}

static int consumers_of(const struct cell *c)
{
	return (int)c->scenario - SCENARIO_QUEUE;
}

static struct hash_ratio ratio_of(const struct results *results, const struct cell *c)
{
	const char *peer = c->op->queues->peer;

	return hashscale_ratio(c, peer ? results_find(results, c->command, peer, c->scenario, OP_FENCE_NONE, c->threads) : NULL);
}

static double metric(const struct results *results, const struct cell *c, enum queue_metric m)
{
	const struct cell *more = results_find(results, c->command, c->op->name, queue_more(m, c->scenario), c->fence, c->threads);

	return more ? cell_summary(more).p50 : NAN;
}

/* Returns the time of one CPU for a put and a get, or of a consumer for a get. */
static double ns_of(const struct cell *c)
{
	int threads = consumers_of(c) ? consumers_of(c) : c->threads;

	return 1e9 * (threads < cpus_online() ? threads : cpus_online()) / cell_summary(c).p50;
}

static void add_number(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_real(v) : json_null());
}

static void columns(json_t *row, const struct results *results, const struct cell *c)
{
	const char *peer = c->op->queues->peer;
	struct hash_ratio ratio = ratio_of(results, c);

	json_object_set_new(row, "producers", json_integer(c->threads - consumers_of(c)));
	json_object_set_new(row, "consumers", json_integer(consumers_of(c)));
	add_number(row, "pair_ns", ns_of(c));
	json_object_set_new(row, "peer", peer ? json_string(peer) : json_null());
	add_number(row, "to_peer", ratio.median);
	add_number(row, "to_peer_low", ratio.low);
	add_number(row, "to_peer_high", ratio.high);
	add_number(row, "waited", metric(results, c, QUEUE_WAITED));
	add_number(row, "empty", metric(results, c, QUEUE_EMPTY));
}

static void number(FILE *out, int width, double v)
{
	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else
		fprintf(out, " %*.*f", width, v < 10 ? 2 : v < 100 ? 1 : 0, v);
}

static void print_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);
	struct hash_ratio ratio = ratio_of(results, c);

	fprintf(out, "%-13s %-5s", c->op->name, c->fence == OP_FENCE_NONE ? "-" : fence_name(c->fence));
	number(out, 8, s.p50 / 1e6);
	number(out, 8, s.min / 1e6);
	number(out, 8, s.max / 1e6);
	number(out, 8, ns_of(c));
	number(out, 8, ratio.median);
	number(out, 6, ratio.low);
	number(out, 6, ratio.high);
	fprintf(out, " %6.0f%%%s\n", 100 * metric(results, c, QUEUE_WAITED), c->disturbed * 2 > c->nr ? "  disturbed" : "");
}

static void print_table(FILE *out, const struct results *results, const struct cell *first)
{
	int consumers = consumers_of(first);

	if (consumers)
		fprintf(out, "\nqueuescale %d:%d, producers:consumers: million gets/s of all consumers", first->threads - consumers,
			consumers);
	else
		fprintf(out, "\nqueuescale %d thread%s: million pairs of a put and a get/s of all threads", first->threads,
			first->threads > 1 ? "s" : "");
	fprintf(out,
		", median over rounds;\n'ratio': to liburcu's of the same kind, 95 %% intervals; 'ns': a CPU's time for one; 'waited' for "
		"readers, not counted\n%-13s %-5s %8s %8s %8s %8s %8s %13s %7s\n",
		"type", "fence", "median", "min", "max", "ns", "ratio", "interval", "waited");
	for (const struct cell *c = first; c < results->cell + results->nr; c++)
		if (c->scenario == first->scenario && c->threads == first->threads)
			print_row(out, results, c);
}

/* ---- the parent ---- */

static bool fits(const struct op *op)
{
	return op->queues;
}

static void default_shapes(struct job *base)
{
	base->readers[base->nr_readers++] = 1;
	base->readers[base->nr_readers++] = 2;
	base->readers[base->nr_readers++] = 1 | QUEUE_CONSUMERS(1);
}

static int run(const struct options *options)
{
	struct options mine = *options;
	struct job base = { .nr_readers = options->nr_readers, .alive = options->alive, .watchdog_s = WATCHDOG_S + (int)options->seconds,
			    .seconds = options->seconds > 0 ? options->seconds : DEFAULT_CELL_S };
	const struct op *types[MAX_TYPES];
	struct results results = { 0 };
	int nr = options_types(options, &queuescale_command, types), status;
	FILE *out;

	hashscale_default_fence(&mine);
	mine.runs = options->runs_given ? options->runs : DEFAULT_RUNS;
	memcpy(base.readers, options->readers, sizeof(base.readers));
	if (!base.nr_readers)
		default_shapes(&base);
	out = emit_open(&mine);
	jobs_run(&queuescale_command, &mine, &base, types, nr, &results);
	emit_by_scenario(out, &mine, &results, print_table);
	status = emit_end(out, &mine, &queuescale_command, &results);
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

const struct subcommand queuescale_command = {
	.name = "queuescale",
	.what = "Queues and stacks: puts and gets by several threads.",
	.doc = "Result: pairs of a put and a get per second of all threads together, the median over rounds; each round measures "
	       "every type in a process of its own, in turn. With --threads=N each thread puts a node and then gets one, of any "
	       "thread, so that the queue stays short; with --threads=P:C, P producers put, C consumers get, and 4096 nodes for "
	       "each producer circulate: that also shows the cost of a full or an empty queue.\n"
	       "Gets of wait-free types are serialised by a pthread mutex, those of quiesce and of liburcu alike. Types whose "
	       "gets are in sections of RCU put a node again only after a grace period: each thread waits for one after 1024 "
	       "gets, and then for the other threads. The rate does not contain that time; 'waited' is the share of the time "
	       "that the grace periods took.\n"
	       "The counts and sums of all values put and got have to agree, and in a pair the get has to find a node (except "
	       "for ck_fifo): otherwise it is an error, BROKEN. Threads are bound to CPUs as long as there are enough.",
	.accepts = OPT_TYPE | OPT_ROUNDS | OPT_SECONDS | OPT_QUEUE,
	.fits = fits,
	.is_row = is_row,
	.columns = columns,
	.run = run,
};
