/* SPDX-License-Identifier: MIT */
/* queuescale.c - queues and stacks: pairs of a put and a get by each thread, or producers and consumers. */
#include <math.h>
#include <string.h>

#include "emit.h"
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

ROW_VALUE(producers_of, row->cell->threads - row->cell->scenario)
ROW_VALUE(consumers_of, row->cell->scenario)

/* The time of one CPU for a put and a get, or of a consumer for a get. */
static double pair_ns_of(const struct row *row)
{
	int threads = row->cell->scenario ? row->cell->scenario : row->cell->threads;

	return 1e9 * (threads < cpus_online() ? threads : cpus_online()) / row->s.p50;
}

ROW_TEXT(peer_of_row, row->cell->op->queues->peer)

static const struct cell *liburcu_of(const struct row *row)
{
	const struct cell *c = row->cell;
	const char *peer = peer_of_row(row);

	return peer ? results_find(row->results, c->command, peer, c->scenario, OP_FENCE_NONE, c->threads) : NULL;
}

ROW_RATIO(to_peer, row->cell, liburcu_of(row))

static const struct column columns[] = {
	{ "producers", "threads that enqueue, and dequeue; without consumers each thread does both", COLUMN_COUNT, .value = producers_of },
	{ "consumers", NULL, COLUMN_COUNT, .value = consumers_of },
	{ "pair_ns", "a CPU's time for a pair, or a dequeue", COLUMN_NUMBER, .value = pair_ns_of },
	{ "peer", "liburcu's type of the same kind; `null`: none", COLUMN_TEXT, .text = peer_of_row },
	{ "to_peer", "ratio to the peer in each round, as `to_base` of hashscale; `null` where the peer was not measured",
	  COLUMN_NUMBER, .value = to_peer },
	{ "to_peer_low", NULL, COLUMN_NUMBER, .value = to_peer_low },
	{ "to_peer_high", NULL, COLUMN_NUMBER, .value = to_peer_high },
	{ "waited", "the share of its time that a thread waited for a grace period, before it enqueued nodes again that it had dequeued",
	  COLUMN_NUMBER, .metric = QUEUE_WAITED },
	{ "empty", "dequeues that found the queue empty", COLUMN_NUMBER, .metric = QUEUE_EMPTY },
	{ 0 }
};

static void title(FILE *out, const struct row *first)
{
	int consumers = first->cell->scenario, threads = first->cell->threads;

	if (consumers)
		fprintf(out, "\nqueuescale %d:%d, producers:consumers: million gets/s of all consumers", threads - consumers, consumers);
	else
		fprintf(out, "\nqueuescale %d thread%s: million pairs of a put and a get/s of all threads", threads,
			threads > 1 ? "s" : "");
	fprintf(out, ", median over rounds;\n'ratio': to liburcu's of the same kind, 95 %% intervals; 'ns': a CPU's time for one; "
		     "'waited' for readers, not counted\n");
}

static const struct view views[] = {
	VIEW_MILLIONS, V("ns", 8, "pair_ns"), V("ratio", 8, "to_peer"),
	V("", 6, "to_peer_low"), V("interval", 6, "to_peer_high"), V("waited", 7, "waited", .percent = true), { 0 }
};
static const struct table_form tables[] = { { NULL, title, views, row_remark }, { 0 } };

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

static const struct option_row own[] = {
	{ "threads", "N,P:C", "numbers of threads, or producers:consumers (default 1,2,1:1)", OPTION_ITEMS, .take = add_shape }, { 0 }
};

static bool fits(const struct op *op)
{
	return op->queues;
}

const struct subcommand queuescale_command = {
	.name = "queuescale",
	.what = "Queues and stacks: puts and gets by several threads.",
	.doc = "Result: pairs of a put and a get per second of all threads together, or gets of consumers with --threads=P:C, the median "
	       "over rounds. See quiesce-queuescale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_seconds, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.columns = columns,
	.tables = tables,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2, 1 | QUEUE_CONSUMERS(1) },
	.one_fence = true,
	.child = child,
};
