/* SPDX-License-Identifier: MIT */
/* queuescale.c - queues and stacks: pairs of a put and a get by each thread, or producers and consumers. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "emit.h"
#include "hashscale/hashscale.h"
#include "queuescale.h"
#include "team.h"

#define DEFAULT_CELL_S 0.05

static const struct scenario_info scenarios[QUEUE_MAX_CONSUMERS + 1] = {
	{ "pairs", "operations/s", NULL }, { "to_1", "operations/s", NULL }, { "to_2", "operations/s", NULL },
	{ "to_3", "operations/s", NULL }, { "to_4", "operations/s", NULL },
};

/* ---- the child ---- */

static int child(const struct job *job)
{
	bool good = true;

	for (int i = 0; i < job->nr_readers; i++) {
		good = queuescale_cell(job, queue_shape(job->readers[i])) && good;
		job_flush();
	}
	return good ? 0 : EXIT_FAILED;
}

/* ---- output ---- */

static int consumers_of(const struct cell *c)
{
	return c->scenario;
}

static struct hash_ratio ratio_of(const struct results *results, const struct cell *c)
{
	const char *peer = c->op->queues->peer;

	return hashscale_ratio(c, peer ? results_find(results, c->command, peer, c->scenario, OP_FENCE_NONE, c->threads) : NULL);
}

static double metric(const struct results *results, const struct cell *c, enum queue_metric m)
{
	return cell_median(results_metric(results, c, m));
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
		if (!c->metric && c->scenario == first->scenario && c->threads == first->threads)
			print_row(out, results, c);
}

static void emit(FILE *out, const struct options *options, const struct results *results)
{
	emit_by_scenario(out, options, results, print_table);
}

/* ---- the parent ---- */

/* Reads "2", or "3:1": producers, with consumers in the upper half of the number. */
static void add_shape(const char *item, struct options *o)
{
	const char *colon = strchr(item, ':');
	char producers[32];

	snprintf(producers, sizeof(producers), "%.*s", colon ? (int)(colon - item) : 31, item);
	option_add_number("threads", producers, 1, MAX_PRODUCERS, o);
	if (colon)
		o->readers[o->nr_readers - 1] |= QUEUE_CONSUMERS((int)option_whole("threads", colon + 1, 1, QUEUE_MAX_CONSUMERS));
}

static void take_threads(const char *arg, struct options *o)
{
	option_items("threads", arg, o, add_shape);
}

static const struct option_row own[] = {
	{ "threads", "N,P:C", "numbers of threads, or producers:consumers (default 1,2,1:1)", .take = take_threads }, { 0 }
};

static bool fits(const struct op *op)
{
	return op->queues;
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
	.options = (const struct option_row *const[]){ options_type, options_rounds, options_runs, options_seconds, own, NULL },
	.fits = fits,
	.types = queue_types,
	SCENARIOS(scenarios),
	.columns = columns,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2, 1 | QUEUE_CONSUMERS(1) },
	.one_fence = true,
	.emit = emit,
	.child = child,
};
