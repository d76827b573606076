/* SPDX-License-Identifier: MIT */
/* queuescale.c - queues and stacks: pairs of a put and a get by each thread, or producers and consumers; of nodes that
 * circulate, or of messages that are allocated and freed. */
#include <math.h>
#include <string.h>

#include "emit.h"
#include "queuescale.h"
#include "team.h"

#define DEFAULT_CELL_S 0.05

#define UNIT "operations/s", NULL
#define SHAPES(pairs, to) { pairs, UNIT }, { to "to_1", UNIT }, { to "to_2", UNIT }, { to "to_3", UNIT }, { to "to_4", UNIT }
#define MESSAGES(burst) SHAPES("messages_" burst, "messages_" burst "_")
/* Each size of bursts, where 0 is for nodes that circulate, has the scenarios of all numbers of consumers. */
static const uint32_t bursts[] = { 0, 1, 2, 16, 1000 };
static const struct scenario_info scenarios[] = { SHAPES("pairs", ""), MESSAGES("1"), MESSAGES("2"), MESSAGES("16"), MESSAGES("1000") };
#define NR_BURSTS (int)(sizeof(bursts) / sizeof(bursts[0]))
_Static_assert(sizeof(scenarios) / sizeof(scenarios[0]) == sizeof(bursts) / sizeof(bursts[0]) * QUEUE_SHAPES, "each has its scenarios");
#define DEFAULT_BURSTS 3u /* nodes, and messages one by one */

struct own {
	uint32_t bursts; /* a bit for each of the table */
};

/* ---- the child ---- */

static bool measure(const struct job *job, struct queue_shape shape, int burst)
{
	const struct queue_op *queues = job->op->queues;

	if (!bursts[burst])
		return !queues->pairs || queuescale_cell(job, shape);
	return !queues->send || queuescale_messages(job, shape, bursts[burst], burst * QUEUE_SHAPES + shape.consumers);
}

static int child(const struct job *job)
{
	bool good = true;

	for (int burst = 0; burst < NR_BURSTS; burst++)
		for (int i = 0; OWN(const struct own, job)->bursts & 1u << burst && i < job->nr_readers; i++) {
			good = measure(job, queue_shape(job->readers[i]), burst) && good;
			job_flush();
		}
	return good ? 0 : EXIT_FAILED;
}

/* ---- output ---- */

static int consumers(const struct cell *c)
{
	return c->scenario % QUEUE_SHAPES;
}

static uint32_t burst(const struct cell *c)
{
	return bursts[c->scenario / QUEUE_SHAPES];
}

ROW_VALUE(producers_of, row->cell->threads - consumers(row->cell))
ROW_VALUE(consumers_of, consumers(row->cell))
ROW_VALUE(burst_of, burst(row->cell) ? burst(row->cell) : NAN)

/* The time of one CPU for a put and a get, or of a consumer for a get. */
static double pair_ns_of(const struct row *row)
{
	int threads = consumers(row->cell) ? consumers(row->cell) : row->cell->threads;

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
	{ "burst", "messages that a thread puts before it gets as many, or in turn with other threads; `null`: nodes circulate",
	  COLUMN_COUNT, .value = burst_of },
	{ "pair_ns", "a CPU's time for a pair, or a dequeue", COLUMN_NUMBER, .value = pair_ns_of },
	{ "peer", "liburcu's type of the same kind; `null`: none", COLUMN_TEXT, .text = peer_of_row },
	{ "to_peer", "ratio to the peer in each round, as `to_base` of hashscale; `null` where the peer was not measured",
	  COLUMN_NUMBER, .value = to_peer },
	{ "to_peer_low", NULL, COLUMN_NUMBER, .value = to_peer_low },
	{ "to_peer_high", NULL, COLUMN_NUMBER, .value = to_peer_high },
	{ "waited", "the share of its time that a thread waited for a grace period, before it enqueued nodes again that it had dequeued",
	  COLUMN_NUMBER, .metric = QUEUE_WAITED },
	{ "in_all", "the rate of nodes with these waits in the time, and with those for other threads after them",
	  COLUMN_NUMBER, .metric = QUEUE_IN_ALL },
	{ "cpu_ns", "CPU time of the whole process for a message, from its allocation until it is freed, and of threads that find the "
	  "queue empty or full", COLUMN_NUMBER, .metric = QUEUE_CPU_NS },
	{ "empty", "dequeues that found the queue empty", COLUMN_NUMBER, .metric = QUEUE_EMPTY },
	{ 0 }
};

static void title_shape(FILE *out, const struct cell *c, const char *pair, const char *got)
{
	int gets = consumers(c), threads = c->threads;

	if (gets)
		fprintf(out, "\nqueuescale %d:%d, producers:consumers: million %s/s of all consumers", threads - gets, gets, got);
	else
		fprintf(out, "\nqueuescale %d thread%s: million %s/s of all threads", threads, threads > 1 ? "s" : "", pair);
	fprintf(out, ", median over rounds;\n");
}

static void title_nodes(FILE *out, const struct row *first)
{
	title_shape(out, first->cell, "pairs of a put and a get", "gets");
	fprintf(out, "'ratio': to liburcu's of the same kind, 95 %% intervals; 'ns': a CPU's time for one; 'waited' for readers, which\n"
		     "only 'in all' counts\n");
}

static void title_messages(FILE *out, const struct row *first)
{
	title_shape(out, first->cell, "messages", "messages");
	fprintf(out, "each from malloc(), until it is freed; bursts of %u; 'ratio': as above; 'CPU ns': of the whole process for one\n",
		burst(first->cell));
}

ROW_PART(nodes, burst(row->cell) ? -1 : 0)
ROW_PART(messages, burst(row->cell) ? 0 : -1)

#define VIEW_RATIO V("ratio", 8, "to_peer"), V("", 6, "to_peer_low"), V("interval", 6, "to_peer_high")
static const struct view node_views[] = {
	VIEW_MILLIONS, V("ns", 8, "pair_ns"), VIEW_RATIO, V("waited", 7, "waited", .percent = true),
	V("in all", 8, "in_all", .scale = 1e-6), { 0 }
};
static const struct view message_views[] = { VIEW_MILLIONS, V("ns", 8, "pair_ns"), V("CPU ns", 8, "cpu_ns"), VIEW_RATIO, { 0 } };
static const struct table_form tables[] = {
	{ nodes, title_nodes, node_views, row_remark }, { messages, title_messages, message_views, row_remark }, { 0 }
};

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

static void add_burst(const char *item, struct options *o)
{
	uint64_t size = option_whole("burst", item, 0, bursts[NR_BURSTS - 1]);

	for (int i = 0; i < NR_BURSTS; i++)
		if (bursts[i] == size) {
			OWN(struct own, o)->bursts |= 1u << i;
			return;
		}
	usage_error("--burst takes 0, 1, 2, 16 and 1000, not %s", item);
}

static void check_options(struct options *o)
{
	if (!OWN(struct own, o)->bursts)
		OWN(struct own, o)->bursts = DEFAULT_BURSTS;
}

static const struct option_row own[] = {
	{ "threads", "N,P:C", "numbers of threads, or producers:consumers (default 1,2,1:1)", OPTION_ITEMS, .take = add_shape },
	{ "burst", "B,...", "messages in bursts of 1, 2, 16 or 1000; 0: nodes that circulate (default 0,1)", OPTION_ITEMS,
	  .take = add_burst },
	{ 0 }
};

static bool fits(const struct op *op)
{
	return op->queues;
}

const struct subcommand queuescale_command = {
	.name = "queuescale",
	.what = "Queues and stacks: puts and gets by several threads.",
	.doc = "Result: pairs of a put and a get per second of all threads together, or gets of consumers with --threads=P:C, the median "
	       "over rounds; of nodes without the waits for readers, of messages with all that frees them. See quiesce-queuescale(1).",
	OPTIONS(options_type, options_rounds, options_runs, options_seconds, own),
	.fits = fits,
	SCENARIOS(scenarios),
	.columns = columns,
	.tables = tables,
	.runs = DEFAULT_RUNS_OF_RATIOS,
	.cell_s = DEFAULT_CELL_S,
	.readers = { 1, 2, 1 | QUEUE_CONSUMERS(1) },
	.one_fence = true,
	.check = check_options,
	.child = child,
};
