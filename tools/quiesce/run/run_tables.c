/* SPDX-License-Identifier: MIT */
/* run_tables.c - the tables of `quiesce run`.  A narrow terminal splits them at their bars. */
#include <math.h>
#include <string.h>

#include "hashscale/hashscale.h"
#include "rcuscale/rcuscale.h"
#include "refscale/refscale.h"
#include "retirescale/retirescale.h"
#include "run.h"
#include "rwscale/rwscale.h"

void run_print_head(struct sheet *s)
{
	if (s->markdown) {
		fputs("# Performance\n", s->out);
		sheet_note(s, "Written by `quiesce run --markdown`; not edited. `quiesce refscale --help` and that of the other "
			      "subcommands explain the types; these commands show spreads and percentiles too. Compare ratios, not "
			      "absolute figures: below 2 ns the placement of code alone moves figures by tens of percent, and a few "
			      "cores do not show what 256 do.");
		fputs("\nMachine: ", s->out);
	}
	emit_head(s->out);
	fflush(s->out);
}

/* ---- the document's table ---- */

/* These microseconds are what B. Feng published of the kernel implementation. */
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

/* Prints a duration with three or four figures. */
static void print_us(struct sheet *s, double v)
{
	if (isfinite(v))
		sheet_cell(s, 1, "%.*f", v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0, v);
	else
		sheet_cell(s, 1, "-");
}

static void print_six(struct sheet *s, const char *type, const char *where, struct summary sum, double rcu_mean)
{
	const double v[] = { sum.p50, sum.min, sum.p90, sum.p99, sum.max };

	sheet_cell(s, -1, "%s", type);
	sheet_cell(s, -1, "%s", where);
	print_us(s, sum.mean);
	if (isfinite(rcu_mean))
		sheet_cell(s, 1, "%.*f", rcu_mean / sum.mean < 100 ? 2 : 0, rcu_mean / sum.mean);
	else
		sheet_cell(s, 1, "-");
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		print_us(s, v[i]);
	sheet_end_row(s);
}

static void document_head(struct sheet *s)
{
	static const char *const column[] = { "mean", "rcu/mean", "p50", "min", "p90", "p99", "max" };

	sheet_title(s, "Waiting: the test of the document that proposed simple hazard pointers");
	sheet_note(s, "Microseconds that an updater waits for its own key while %d readers protect keys of their own; lower is better. "
		      "rcu/mean: how many times as long RCU takes, on average; higher is better.", run_document_readers());
	sheet_cell(s, -1, "type");
	sheet_cell(s, -1, "fence");
	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]); i++) {
		if (i == 0 || i == 3)
			sheet_bar(s);
		sheet_cell(s, 1, "%s", column[i]);
	}
	sheet_end_head(s);
}

static void document_rows(struct sheet *s, const struct results *results, size_t i)
{
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

void run_print_document(struct sheet *s, const struct results *results)
{
	if (!document_cell(results, "rcu", OP_FENCE_LIGHT) && !document_cell(results, "rcu", OP_FENCE_FULL))
		return;
	document_head(s);
	for (size_t i = 0; i < sizeof(document) / sizeof(document[0]); i++)
		document_rows(s, results, i);
	sheet_note(s, "document: " DOCUMENT_WHERE ". Its rows and ours do not measure the same thing: the kernel's RCU waits for ticks "
		      "and context switches on 96 CPUs, RCU here only until its own readers have left; and what a wait costs here is, with "
		      "light fences, a system call that interrupts the CPUs where readers run. Compare shapes and ratios, not "
		      "microseconds.");
}

/* ---- the other tables: one figure per cell, and its ratio to the yardstick ---- */

#define COLUMN(title_, of, scenario_, threads_, ...) \
	{ .title = title_, .command = &of##_command, .scenario = scenario_, .threads = threads_, ##__VA_ARGS__ }
#define READS(title, readers) COLUMN(title, refscale, SCENARIO_READ, readers)
#define WAITS(title, scenario, readers) COLUMN(title, rcuscale, SCENARIO_##scenario, readers)
#define RETIRE(title, scenario, threads) COLUMN(title, retirescale, SCENARIO_RETIRE_##scenario, threads, .more_is_better = true)
#define GARBAGE(title, threads) \
	COLUMN(title, retirescale, SCENARIO_RETIRE_STALLED, threads, .most_of = RETIRE_GARBAGE_SECOND, .field = "garbage_second")
#define LOOKUP(title, set, threads) COLUMN(title, hashscale, (set) * HASH_MAX_UPDATES, threads, .more_is_better = true)
#define BURST(title, scenario) \
	COLUMN(title, rwscale, SCENARIO_RW_##scenario, 2, .figure = rwscale_section_us, .field = "section_us")
#define LAST_COLUMN { 0 }

const struct run_column run_reads[] = { READS("1 reader", 1), READS("2", 2), READS("64", 64), LAST_COLUMN };
const struct run_column run_waits_same[] = {
	WAITS("1 reader", SAME, 1), WAITS("2", SAME, 2), WAITS("64", SAME, 64), WAITS("8, 1 ms", LONG, 8), WAITS("1, 100 ms", HELD, 1),
	WAITS("its CPU", HELD_CPU, 1), LAST_COLUMN
};
const struct run_column run_waits_others[] = {
	WAITS("1 asleep", IDLE, 1), WAITS("64 asleep", IDLE, 64), WAITS("1 reader", OTHERS, 1), WAITS("64 readers", OTHERS, 64), LAST_COLUMN
};
const struct run_column run_bursts[] = { BURST("sparse", SPARSE), BURST("busy", DENSE), LAST_COLUMN };
const struct run_column run_retirements[] = {
	RETIRE("1 thread", IDLE, 1), RETIRE("2 threads", IDLE, 2), RETIRE("stalled, 1", STALLED, 1),
	GARBAGE("garbage", 1), LAST_COLUMN
};
const struct run_column run_lookups[] = {
	LOOKUP("1000: 1", 0, 1), LOOKUP("1000: 2", 0, 2), LOOKUP("1M: 1", 1, 1), LOOKUP("1M: 2", 1, 2), LAST_COLUMN
};

/* Each table below is described by one of these. */
struct table {
	const char *title;
	const char *what; /* content, unit, and which figures are better */
	const char *yardstick;
	const struct run_column *columns;
	uint32_t groups; /* its types: bits of enum type_group */
};

struct run_figure run_figure_of(const struct results *results, const struct run_column *c, const char *type, enum op_fence fence)
{
	const struct cell *cell = results_find(results, c->command, type, c->scenario, fence, c->threads), *of = cell;
	struct run_figure figure = { NAN, 0 };
	struct summary s;

	if (cell && c->most_of)
		of = results_metric(results, cell, c->most_of);
	if (!of)
		return figure;
	s = cell_summary(of);
	figure.value = c->figure ? c->figure(results, cell) : c->most_of ? s.max : s.p50;
	if (isfinite(s.spread))
		figure.spread = figure.value * s.spread / 2;
	return figure;
}

static double figure_of(const struct results *results, const struct run_column *c, const char *type, enum op_fence fence)
{
	return run_figure_of(results, c, type, fence).value;
}

/* The 99th percentile of a wait; NAN for other cells, whose samples are rounds. */
static double tail_of(const struct results *results, const struct run_column *c, const char *type, enum op_fence fence)
{
	const struct cell *cell = results_find(results, c->command, type, c->scenario, fence, c->threads);

	return cell && c->command == &rcuscale_command ? cell_summary(cell).p99 : NAN;
}

static int digits_of(double v)
{
	return v < 10 ? 2 : v < 1000 ? 1 : 0;
}

static void print_value(struct sheet *s, double v, double tail)
{
	if (!isfinite(v))
		sheet_cell(s, 1, "-");
	else if (v >= 1e6)
		sheet_cell(s, 1, "%.1fM", v / 1e6);
	else if (tail >= RUN_TAIL * v)
		sheet_cell(s, 1, "%.*f (p99 %.*f)", digits_of(v), v, digits_of(tail), tail);
	else
		sheet_cell(s, 1, "%.*f", digits_of(v), v);
}

/* Prints how many times as good as the yardstick a figure is. */
static void print_ratio(struct sheet *s, double v, double yardstick, bool more_is_better)
{
	double ratio = more_is_better ? v / yardstick : yardstick / v;

	if (!isfinite(ratio))
		sheet_cell(s, 1, "-");
	else if (ratio >= 1e5)
		sheet_cell(s, 1, "%.1fMx", ratio / 1e6);
	else
		sheet_cell(s, 1, "%.*fx", ratio < 0.1 ? 3 : ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

static bool has_row(const struct results *results, const struct table *table, const struct op *op, enum op_fence fence)
{
	for (const struct run_column *c = table->columns; c->title; c++)
		if (op->groups & table->groups && isfinite(figure_of(results, c, op->name, fence)))
			return true;
	return false;
}

static void print_row(struct sheet *s, const struct results *results, const struct table *table, const struct op *op,
		      enum op_fence fence)
{
	sheet_cell(s, -1, "%s", op->name);
	sheet_cell(s, -1, "%s", fence ? fence_name(fence) : "-");
	for (const struct run_column *c = table->columns; c->title; c++) {
		double v = figure_of(results, c, op->name, fence);

		print_value(s, v, tail_of(results, c, op->name, fence));
		/* The type noop does nothing, so its figure is the cost of loop and clock, and a ratio of that says nothing. */
		print_ratio(s, strcmp(op->name, "noop") ? v : NAN, figure_of(results, c, table->yardstick, OP_FENCE_NONE),
			    c->more_is_better);
	}
	sheet_end_row(s);
}

/* The widest spread among the cells of a table, and the usual one, show how reliable its figures are. */
struct trust {
	double worst, sum;
	int n;
	size_t samples, disturbed;
};

static void trust_add(struct trust *trust, const struct cell *cell)
{
	double spread = cell_summary(cell).spread;

	trust->samples += cell->nr;
	trust->disturbed += cell->disturbed;
	if (!isfinite(spread))
		return;
	trust->worst = spread > trust->worst ? spread : trust->worst;
	trust->sum += spread;
	trust->n++;
}

static void print_trust(struct sheet *s, const struct results *results, const struct table *table)
{
	struct trust t = { 0 };
	char spread[120] = "", others[80] = "";

	for (size_t i = 0; i < results->nr; i++)
		for (const struct run_column *c = table->columns; c->title; c++) {
			const struct cell *cell = &results->cell[i];

			if (cell->command == c->command && cell->scenario == c->scenario && cell->metric == c->most_of &&
			    cell->threads == c->threads &&
			    cell->op->groups & table->groups)
				trust_add(&t, cell);
		}
	if (t.n && t.worst > 10)
		snprintf(spread, sizeof(spread), "; spread: more than tenfold between rounds, see the subcommand, and what else runs here");
	else if (t.n)
		snprintf(spread, sizeof(spread), "; spread: %.0f %% on average, %.0f %% at most", 100 * t.sum / t.n, 100 * t.worst);
	if (t.disturbed)
		snprintf(others, sizeof(others), "; %zu of %zu samples disturbed by other processes", t.disturbed, t.samples);
	sheet_note(s, "x: times as good as %s%s%s", table->yardstick, spread, others);
}

static void table_head(struct sheet *s, const struct table *table)
{
	sheet_title(s, "%s", table->title);
	sheet_note(s, "%s", table->what);
	sheet_cell(s, -1, "type");
	sheet_cell(s, -1, "fence");
	for (const struct run_column *c = table->columns; c->title; c++) {
		sheet_bar(s);
		sheet_cell(s, 1, "%s", c->title);
		sheet_cell(s, 1, "x");
	}
	sheet_end_head(s);
}

static void print_table(struct sheet *s, const struct results *results, struct table table)
{
	const struct op *types[MAX_TYPES];
	int nr = types_all(table.columns->command->fits, types, MAX_TYPES);
	bool begun = false;

	for (int i = 0; i < nr; i++)
		for (enum op_fence fence = OP_FENCE_NONE; fence < OP_NR_FENCES; fence++) {
			if (!has_row(results, &table, types[i], fence))
				continue;
			if (!begun)
				table_head(s, &table);
			begun = true;
			print_row(s, results, &table, types[i], fence);
		}
	if (begun)
		print_trust(s, results, &table);
}

/* ---- waits ---- */

void run_print_same(struct sheet *s, const struct results *results)
{
	print_table(s, results, (struct table){ "Waiting for readers of the very object",
		    "Median microseconds, lower is better: beside 1, 2 and 64 readers back to back; beside 8 that hold it 1 ms each; from "
		    "the end of one that held it 100 ms, and CPU time of the process meanwhile. p99: where it is ten times the "
		    "median.",
		    RUN_YARDSTICK, run_waits_same, RUN_WAITS });
}

void run_print_others(struct sheet *s, const struct results *results)
{
	print_table(s, results, (struct table){ "Waiting beside readers of other objects",
		    "Median microseconds, lower is better: while readers are asleep, and back to back. p99: where it is ten times the "
		    "median.", RUN_YARDSTICK, run_waits_others, RUN_WAITS });
}

/* ---- reads ---- */

void run_print_reads(struct sheet *s, const struct results *results)
{
	print_table(s, results, (struct table){ "Reading",
		    "CPU nanoseconds of a section with a pointer load and a field load in it, by 1, 2 and 64 readers; lower is better.",
		    RUN_YARDSTICK, run_reads, RUN_READ });
	print_table(s, results, (struct table){ "Reading one object that is held",
		    "The same by hazard pointers and reference counts: CPU nanoseconds, lower is better.", "refcnt", run_reads,
		    RUN_OBJECT });
	print_table(s, results, (struct table){ "Read locks and reference counts",
		    "The same between lock and unlock, or up and down: CPU nanoseconds, lower is better.", "pthread_rwlock", run_reads,
		    RUN_LOCK });
}

/* ---- reclamation, tables ---- */

void run_print_retire(struct sheet *s, const struct results *results)
{
	print_table(s, results, (struct table){ "Deferred reclamation",
		    "Objects allocated, retired and freed per second, higher is better: without readers, by 1 and 2 threads; "
		    "stalled: while one reader stays in its section. Garbage: the largest number of objects that then wait; "
		    "lower is better.",
		    RUN_YARDSTICK, run_retirements, RUN_TABLE | RUN_SIX | PEER_ANY });
}

void run_print_lookups(struct sheet *s, const struct results *results)
{
	print_table(s, results, (struct table){ "Hash tables",
		    "Lookups per second of all threads, higher is better, in tables of 1000 and of 1000000 elements of 16 bytes.",
		    RUN_LOOKUP_YARDSTICK, run_lookups, RUN_TABLE | RUN_SIX | PEER_ANY });
}
