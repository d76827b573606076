/* SPDX-License-Identifier: MIT */
/* run.c - the headline: everything side by side, in two minutes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"
#include "tool.h"

#define BUDGET_NS 105000000000ull /* no job begins later */
#define ROUNDS 2
#define CELL_S 0.25
#define YARDSTICK "liburcu_memb"

struct column {
	const char *title;
	const struct subcommand *command;
	enum scenario scenario;
	int threads;
	bool more_is_better;
};

static const struct column read_columns[] = {
	{ "1 reader", &refscale_command, SCENARIO_NONE, 1, false },
	{ "2 readers", &refscale_command, SCENARIO_NONE, 2, false },
	{ "64 readers", &refscale_command, SCENARIO_NONE, 64, false },
	{ NULL, NULL, SCENARIO_NONE, 0, false },
};

static const struct column wait_columns[] = {
	{ "asleep", &rcuscale_command, SCENARIO_IDLE, 1, false },
	{ "1 reader", &rcuscale_command, SCENARIO_SAME, 1, false },
	{ "8 readers", &rcuscale_command, SCENARIO_SAME, 8, false },
	{ "64 readers", &rcuscale_command, SCENARIO_SAME, 64, false },
	{ NULL, NULL, SCENARIO_NONE, 0, false },
};

static const struct column retire_columns[] = {
	{ "1 thread", &rcuscale_command, SCENARIO_RETIRE, 1, true },
	{ "2 threads", &rcuscale_command, SCENARIO_RETIRE, 2, true },
	{ "garbage 1", &rcuscale_command, SCENARIO_GARBAGE, 1, false },
	{ "garbage 2", &rcuscale_command, SCENARIO_GARBAGE, 2, false },
	{ NULL, NULL, SCENARIO_NONE, 0, false },
};

static double median_of(const struct results *results, const struct column *c, const char *type, enum op_fence fence)
{
	const struct cell *cell = results_find(results, c->command, type, c->scenario, fence, c->threads);

	return cell ? cell_summary(cell).p50 : NAN;
}

static void print_value(FILE *out, double v)
{
	if (!isfinite(v))
		fprintf(out, " %10s", "-");
	else if (v >= 1e6)
		fprintf(out, " %9.1fM", v / 1e6);
	else
		fprintf(out, " %10.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
}

/* How many times as good as the yardstick. */
static void print_ratio(FILE *out, double v, double yardstick, bool more_is_better)
{
	double ratio = more_is_better ? v / yardstick : yardstick / v;

	if (!isfinite(ratio))
		fprintf(out, " %10s", "-");
	else
		fprintf(out, " %*.*fx", 9, ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

static bool has_row(const struct results *results, const struct column *columns, const struct op *op, enum op_fence fence)
{
	for (const struct column *c = columns; c->title; c++)
		if (isfinite(median_of(results, c, op->name, fence)))
			return true;
	return false;
}

static void print_row(FILE *out, const struct results *results, const struct column *columns, const struct op *op,
		      enum op_fence fence)
{
	fprintf(out, "%-18s %-5s", op->name, fence ? fence_name(fence) : "-");
	for (const struct column *c = columns; c->title; c++)
		print_value(out, median_of(results, c, op->name, fence));
	fprintf(out, " |");
	for (const struct column *c = columns; c->title; c++)
		print_ratio(out, median_of(results, c, op->name, fence),
			    median_of(results, c, YARDSTICK, OP_FENCE_NONE), c->more_is_better);
	fputc('\n', out);
}

/* How far the figures of a table can be trusted: the widest spread among its cells, and the usual one. */
static void print_spread(FILE *out, const struct results *results, const struct column *columns)
{
	double worst = 0, sum = 0;
	size_t samples = 0, disturbed = 0;
	int n = 0;

	for (size_t i = 0; i < results->nr; i++)
		for (const struct column *c = columns; c->title; c++) {
			const struct cell *cell = &results->cell[i];
			double spread;

			if (cell->command != c->command || cell->scenario != c->scenario || cell->threads != c->threads)
				continue;
			samples += cell->nr;
			disturbed += cell->disturbed;
			spread = cell_summary(cell).spread;
			if (!isfinite(spread))
				continue;
			worst = spread > worst ? spread : worst;
			sum += spread;
			n++;
		}
	if (n)
		fprintf(out, "spread: %.0f %% on average, %.0f %% at most", 100 * sum / n, 100 * worst);
	if (disturbed)
		fprintf(out, "; %zu of %zu samples disturbed by other processes", disturbed, samples);
	fputc('\n', out);
}

static void print_table(FILE *out, const struct results *results, const char *title, const struct column *columns)
{
	fprintf(out, "\n%s\n%-18s %-5s", title, "type", "fence");
	for (const struct column *c = columns; c->title; c++)
		fprintf(out, " %10s", c->title);
	fprintf(out, " |");
	for (const struct column *c = columns; c->title; c++)
		fprintf(out, " %10s", c->title);
	fputc('\n', out);
	for (const struct op *const *op = op_table; *op; op++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			if (has_row(results, columns, *op, fence))
				print_row(out, results, columns, *op, fence);
	print_spread(out, results, columns);
}

static void print_tables(FILE *out, const struct results *results)
{
	emit_head(out);
	print_table(out, results, "Read side: CPU ns per section with a pointer load and a field load in it"
		    "                | times as good as " YARDSTICK, read_columns);
	print_table(out, results, "Waiting: us until every reader has left, median; readers run back to back"
		    "                          | times as good as " YARDSTICK, wait_columns);
	print_table(out, results, "call_rcu(): objects freed per second; most objects waiting"
		    "                                         | times as good as " YARDSTICK, retire_columns);
	for (size_t i = 0; i < results->nr_notes; i++)
		fprintf(out, "note: %s\n", results->note[i]);
}

static void measure_reads(const struct options *options, struct results *results, uint64_t deadline)
{
	static const char *const left_out[] = { "raw_rseq_counter", "seqlock", "pthread_spinlock" };
	struct job base = { .nr_readers = 3, .readers = { 1, 2, 64 }, .seconds = CELL_S, .watchdog_s = 30,
			    .deadline_ns = deadline };
	const struct op *types[MAX_TYPES];
	int nr = options_types(options, &refscale_command, types), kept = 0;

	for (int i = 0; i < nr; i++) {
		bool keep = true;

		for (size_t k = 0; k < sizeof(left_out) / sizeof(left_out[0]); k++)
			keep = keep && strcmp(types[i]->name, left_out[k]) != 0;
		if (keep)
			types[kept++] = types[i];
	}
	jobs_run(&refscale_command, options, &base, types, kept, results);
}

static void measure_waits(const struct options *options, struct results *results, uint64_t deadline)
{
	struct job base = { .seconds = CELL_S, .watchdog_s = 30, .deadline_ns = deadline,
			    .scenarios = 1u << SCENARIO_IDLE | 1u << SCENARIO_SAME | 1u << SCENARIO_RETIRE };
	const struct op *types[MAX_TYPES];
	int nr = options_types(options, &rcuscale_command, types);

	jobs_run(&rcuscale_command, options, &base, types, nr, results);
}

static int run(const struct options *options)
{
	struct options mine = *options;
	struct results results = { 0 };
	uint64_t begin = now_ns();
	FILE *out = emit_open(options);
	int status;

	mine.runs = ROUNDS;
	/* Waits first: if this machine is so slow that something has to give, it is the second round of reads. */
	measure_waits(&mine, &results, begin + BUDGET_NS / 2);
	if (!interrupted())
		measure_reads(&mine, &results, begin + BUDGET_NS);
	if (options->format == FORMAT_TABLE)
		print_tables(out, &results);
	else
		emit_results(out, options, &results);
	status = emit_close(out, options);
	if (!status && results.failures)
		status = EXIT_FAILED;
	results_free(&results);
	return interrupted() ? EXIT_INTERRUPTED : status;
}

static bool fits(const struct op *op)
{
	(void)op;
	return false;
}

const struct subcommand run_command = {
	.name = "run",
	.what = "The headline in two minutes: RCU beside liburcu, locks, reference counts and raw floors.",
	.doc = "A short refscale and a short rcuscale, as one table each, with ratios against liburcu. The subcommands "
	       "themselves show more.",
	.accepts = 0,
	.fits = fits,
	.run = run,
};
