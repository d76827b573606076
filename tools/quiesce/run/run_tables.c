/* SPDX-License-Identifier: MIT */
/* run_tables.c - the headline's tables. */
#include <math.h>
#include <string.h>

#include "hash/hashscale.h"
#include "scale/retirescale.h"
#include "run.h"
#include "sheet.h"

/* ---- the document's table ---- */

/* us; B. Feng's measurement of the kernel implementation, as published. */
static const struct {
	const char *type;
	double mean, min, p50, p90, p99, max;
} document[] = {
	{ "rcu", 7470.02, 3981.6, 6002.73, 7008.93, 10015, 142228 },
	{ "shazptr", 0.845825, 0.199, 0.585, 1.656, 3.872, 3049.05 },
	{ "shazptr_skip_self_scan", 467.861, 92.913, 440.691, 460.623, 650.068, 5775.46 },
	{ "shazptr_wildcard", 599.569, 1.432, 582.631, 781.704, 1160.26, 6727.53 },
	{ "shazptr_wildcard_skip_self_scan", 460.466, 303.546, 424.334, 482.637, 600.214, 4126.94 },
};
#define DOCUMENT_WHERE "another machine: 96-CPU VM, kernel implementation, B. Feng, LKML June 2025"

static const struct cell *document_cell(const struct results *results, const char *type, enum op_fence fence)
{
	return results_find(results, &rcuscale_command, type, SCENARIO_DOCUMENT, fence, run_document_readers());
}

/* A duration with three or four figures. */
static void print_us(struct sheet *s, double v)
{
	if (isfinite(v))
		sheet_cell(s, 9, "%.*f", v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0, v);
	else
		sheet_cell(s, 9, "-");
}

static void print_six(struct sheet *s, const char *type, const char *where, struct summary sum, double rcu_mean)
{
	const double v[] = { sum.mean, sum.min, sum.p50, sum.p90, sum.p99, sum.max };

	sheet_cell(s, -31, "%s", type);
	sheet_cell(s, -9, "%s", where);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		print_us(s, v[i]);
	sheet_bar(s);
	if (isfinite(rcu_mean))
		sheet_cell(s, 9, "%.*f", rcu_mean / sum.mean < 100 ? 2 : 0, rcu_mean / sum.mean);
	else
		sheet_cell(s, 9, "-");
	sheet_end_row(s);
}

static void document_head(struct sheet *s)
{
	static const char *const column[] = { "mean", "min", "p50", "p90", "p99", "max" };

	sheet_title(s, "Waiting, us: %d readers run, each protects a key of its own; one updater waits for a key of its own",
		    run_document_readers());
	sheet_cell(s, -31, "type");
	sheet_cell(s, -9, "fence");
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++)
		sheet_cell(s, 9, "%s", column[i]);
	sheet_bar(s);
	sheet_cell(s, 9, "rcu/mean");
	sheet_end_head(s);
}

static void print_document(struct sheet *s, const struct results *results)
{
	document_head(s);
	for (size_t i = 0; i < sizeof(document) / sizeof(document[0]); i++) {
		const char *type = document[i].type;

		for (enum op_fence fence = OP_FENCE_LIGHT; fence < OP_NR_FENCES; fence++) {
			const struct cell *cell = document_cell(results, type, fence), *rcu = document_cell(results, "rcu", fence);

			if (cell)
				print_six(s, type, fence_name(fence), cell_summary(cell), rcu ? cell_summary(rcu).mean : NAN);
		}
		print_six(s, type, "document", (struct summary){ .mean = document[i].mean, .min = document[i].min,
			  .p50 = document[i].p50, .p90 = document[i].p90, .p99 = document[i].p99, .max = document[i].max },
			  document[0].mean);
	}
	sheet_note(s, "document: " DOCUMENT_WHERE ".\n"
		      "Its rows and ours do not measure the same thing: the kernel's RCU waits for ticks and context switches on\n"
		      "96 CPUs, RCU here only until its own readers have left; and what a wait costs here is, with light fences,\n"
		      "a system call that interrupts the CPUs where readers run. Compare shapes and ratios, not microseconds.");
}

/* ---- the others: one figure per cell, and how many times as good as the yardstick ---- */

struct column {
	const char *title;
	const struct subcommand *command;
	enum scenario scenario;
	int threads;
	bool more_is_better;
};
#define LAST_COLUMN { NULL, NULL, SCENARIO_NONE, 0, false }

static const struct column same_columns[] = {
	{ "1 reader", &rcuscale_command, SCENARIO_SAME, 1, false },
	{ "2 readers", &rcuscale_command, SCENARIO_SAME, 2, false },
	{ "64 readers", &rcuscale_command, SCENARIO_SAME, 64, false },
	{ "8, 1 ms", &rcuscale_command, SCENARIO_LONG, 8, false },
	{ "1, 100 ms", &rcuscale_command, SCENARIO_HELD, 1, false },
	{ "its CPU", &rcuscale_command, SCENARIO_HELD_CPU, 1, false },
	LAST_COLUMN,
};

static const struct column others_columns[] = {
	{ "1 asleep", &rcuscale_command, SCENARIO_IDLE, 1, false },
	{ "64 asleep", &rcuscale_command, SCENARIO_IDLE, 64, false },
	{ "1 reader", &rcuscale_command, SCENARIO_OTHERS, 1, false },
	{ "64 readers", &rcuscale_command, SCENARIO_OTHERS, 64, false },
	LAST_COLUMN,
};

static const struct column read_columns[] = {
	{ "1 reader", &refscale_command, SCENARIO_NONE, 1, false },
	{ "2 readers", &refscale_command, SCENARIO_NONE, 2, false },
	{ "64 readers", &refscale_command, SCENARIO_NONE, 64, false },
	LAST_COLUMN,
};

/* One of the tables below. */
struct table {
	const char *title;
	const char *yardstick;
	const struct column *columns;
	const struct op *const *types; /* in this order, but */
	const char *const *only;       /* these, or all, */
	const char *const *without;    /* and not these */
	bool slots; /* has a column of them */
};

static double median_of(const struct results *results, const struct column *c, const char *type, enum op_fence fence)
{
	const struct cell *cell = results_find(results, c->command, type, c->scenario, fence, c->threads);

	return cell ? cell_summary(cell).p50 : NAN;
}

static void print_value(struct sheet *s, double v)
{
	if (!isfinite(v))
		sheet_cell(s, 10, "-");
	else if (v >= 1e6)
		sheet_cell(s, 10, "%.1fM", v / 1e6);
	else
		sheet_cell(s, 10, "%.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
}

/* How many times as good as the yardstick. */
static void print_ratio(struct sheet *s, double v, double yardstick, bool more_is_better)
{
	double ratio = more_is_better ? v / yardstick : yardstick / v;

	if (!isfinite(ratio))
		sheet_cell(s, 10, "-");
	else if (ratio >= 1e5)
		sheet_cell(s, 10, "%.1fMx", ratio / 1e6);
	else
		sheet_cell(s, 10, "%.*fx", ratio < 0.1 ? 4 : ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

static bool has_row(const struct results *results, const struct column *columns, const struct op *op, enum op_fence fence)
{
	for (const struct column *c = columns; c->title; c++)
		if (isfinite(median_of(results, c, op->name, fence)))
			return true;
	return false;
}

/* What kinds of slots the readers of the widest cell had. */
static const char *slots_of(const struct results *results, const struct column *columns, const struct op *op, enum op_fence fence)
{
	const struct cell *cell = NULL;

	for (const struct column *c = columns; c->title; c++)
		cell = results_find(results, c->command, op->name, c->scenario, fence, c->threads);
	return cell ? cell_slots(cell) : NULL;
}

static void print_row(struct sheet *s, const struct results *results, const struct table *table, const struct op *op,
		      enum op_fence fence)
{
	const struct column *columns = table->columns;
	const char *slots = slots_of(results, columns, op, fence);

	sheet_cell(s, -22, "%s", op->name);
	sheet_cell(s, -5, "%s", fence ? fence_name(fence) : "-");
	for (const struct column *c = columns; c->title; c++)
		print_value(s, median_of(results, c, op->name, fence));
	sheet_bar(s);
	for (const struct column *c = columns; c->title; c++)
		print_ratio(s, median_of(results, c, op->name, fence),
			    median_of(results, c, table->yardstick, OP_FENCE_NONE), c->more_is_better);
	if (table->slots)
		sheet_cell(s, 0, "%s", slots ? slots : "");
	sheet_end_row(s);
}

static bool in_table(const struct table *table, const struct op *op)
{
	return (!table->only || run_listed(table->only, op->name)) && (!table->without || !run_listed(table->without, op->name));
}

/* How far the figures of a table can be trusted: the widest spread among its cells, and the usual one. */
static void print_spread(struct sheet *s, const struct results *results, const struct table *table)
{
	double worst = 0, sum = 0;
	size_t samples = 0, disturbed = 0;
	char others[80] = "";
	int n = 0;

	for (size_t i = 0; i < results->nr; i++)
		for (const struct column *c = table->columns; c->title; c++) {
			const struct cell *cell = &results->cell[i];
			double spread;

			if (cell->command != c->command || cell->scenario != c->scenario || cell->threads != c->threads ||
			    !in_table(table, cell->op))
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
	if (disturbed)
		snprintf(others, sizeof(others), "; %zu of %zu samples disturbed by other processes", disturbed, samples);
	if (n && worst > 10)
		sheet_note(s, "spread: more than tenfold between rounds: look at the subcommand, and at what else runs here%s", others);
	else if (n)
		sheet_note(s, "spread: %.0f %% on average, %.0f %% at most%s", 100 * sum / n, 100 * worst, others);
}

static void table_head(struct sheet *s, const struct table *table)
{
	sheet_title(s, "%s", table->title);
	sheet_cell(s, -22, "type");
	sheet_cell(s, -5, "fence");
	for (int side = 0; side < 2; side++) {
		if (side)
			sheet_bar(s);
		for (const struct column *c = table->columns; c->title; c++)
			sheet_cell(s, 10, "%s%s", side && s->markdown ? "x " : "", c->title);
	}
	if (table->slots)
		sheet_cell(s, 0, "slots of 64");
	sheet_end_head(s);
}

static void print_table(struct sheet *s, const struct results *results, struct table table)
{
	table_head(s, &table);
	for (const struct op *const *op = table.types; *op; op++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++)
			if (in_table(&table, *op) && has_row(results, table.columns, *op, fence))
				print_row(s, results, &table, *op, fence);
	sheet_note(s, "x: times as good as %s", table.yardstick);
	print_spread(s, results, &table);
}

static void print_retire(struct sheet *s, const struct results *results)
{
	const struct column columns[] = {
		{ "1 thread", &retirescale_command, SCENARIO_RETIRE_IDLE, 1, true },
		{ "2 threads", &retirescale_command, SCENARIO_RETIRE_IDLE, 2, true },
		{ "stalled, 1", &retirescale_command, SCENARIO_RETIRE_STALLED, 1, true },
		{ "garbage", &retirescale_command, retire_more(RETIRE_GARBAGE_SECOND, SCENARIO_RETIRE_STALLED), 1, false },
		LAST_COLUMN,
	};

	print_table(s, results, (struct table){ "Deferred reclamation: objects allocated, retired and freed per second, while nobody "
		    "reads; while one reader stays all the time, and how many are then waiting", RUN_YARDSTICK, columns,
		    retire_table, NULL, NULL, false });
}

static void print_lookups(struct sheet *s, const struct results *results)
{
	const struct column columns[] = {
		{ "1000: 1", &hashscale_command, hash_scenario(0, 0), 1, true },
		{ "2 threads", &hashscale_command, hash_scenario(0, 0), 2, true },
		{ "1000000: 1", &hashscale_command, hash_scenario(1, 0), 1, true },
		{ "2 threads", &hashscale_command, hash_scenario(1, 0), 2, true },
		LAST_COLUMN,
	};

	print_table(s, results, (struct table){ "Hash tables: lookups per second of all threads, in tables of 1000 and of 1000000 "
		    "elements of 16 bytes", RUN_LOOKUP_YARDSTICK, columns, hash_types, NULL, NULL, false });
}

void run_print(FILE *out, bool markdown, const struct results *results)
{
	struct sheet sheet = { out, markdown, 0 }, *s = &sheet;

	if (markdown)
		fputs("# Performance\n\n"
		      "Written by `quiesce run --markdown`; not edited. What each type is: `quiesce refscale --help` and the other\n"
		      "subcommands, which show spreads and percentiles too. Read ratios, not absolutes: below 2 ns the placement of\n"
		      "code alone moves figures by tens of percent, and a few cores do not show what 256 do.\n\n"
		      "Machine: ", out);
	emit_head(out);
	print_document(s, results);
	print_table(s, results, (struct table){ "Waiting for readers of the very object, median us: back to back; 8 that hold it 1 ms "
		    "each; from the end of one that held it 100 ms, and CPU time of the process meanwhile", RUN_YARDSTICK,
		    same_columns, op_table, NULL, NULL, false });
	print_table(s, results, (struct table){ "Waiting beside readers of other objects, median us", RUN_YARDSTICK, others_columns,
		    op_table, NULL, NULL, false });
	print_table(s, results, (struct table){ "Read side: CPU ns per section with a pointer load and a field load in it",
		    RUN_YARDSTICK, read_columns, op_table, NULL, run_no_reads, true });
	print_table(s, results, (struct table){ "Holding one object: the same, by hazard pointers and counts", "refcnt", read_columns,
		    op_table, run_hazard_types, NULL, true });
	print_table(s, results, (struct table){ "Locks and counts, read side: the same", "pthread_rwlock", read_columns, op_table,
		    run_lock_types, NULL, false });
	run_print_bursts(s, results);
	print_retire(s, results);
	print_lookups(s, results);
	for (size_t i = 0; i < results->nr_notes; i++)
		sheet_note(s, "note: %s", results->note[i]);
}
