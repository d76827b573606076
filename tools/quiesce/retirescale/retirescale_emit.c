/* SPDX-License-Identifier: MIT */
/* retirescale_emit.c - the columns and tables of retirescale. */
#include <math.h>

#include "emit.h"
#include "retirescale.h"

static bool is_scan(const struct cell *c)
{
	return c->scenario >= SCENARIO_RETIRE_SCAN;
}

/* ---- columns ---- */

ROW_VALUE(bytes_of, is_scan(row->cell) ? NAN : (double)retire_params.bytes)
ROW_VALUE(batch_of, is_scan(row->cell) ? NAN : (double)retire_params.batch)

/* The most garbage of any round. */
ROW_VALUE(peak_of, fmax(row_most(row, RETIRE_GARBAGE_FIRST), row_most(row, RETIRE_GARBAGE_SECOND)))
ROW_VALUE(peak_bytes_of, peak_of(row) * bytes_of(row))

static double calls_of(const struct row *row)
{
	const struct cell *calls = results_metric(row->results, row->cell, RETIRE_CALLS);

	return calls ? cell_summary(calls).mean * (double)calls->nr : NAN;
}

/* CPU time of the whole process, readers included, divided by the number of objects. */
static double cpu_ns_of(const struct row *row)
{
	const struct costs *costs = &row->cell->costs;

	return costs->waits > 0 ? costs->cpu_s * 1e9 / costs->waits : NAN;
}

ROW_VALUE(to_raw, is_scan(row->cell) ? NAN : row_ratio(row, "raw_malloc_free"))
ROW_VALUE(to_liburcu, is_scan(row->cell) ? NAN : row_ratio(row, "liburcu_memb"))

/* In a scan the number of slots stands for the number of threads. */
ROW_VALUE(slots_of, is_scan(row->cell) ? row->cell->threads : NAN)
ROW_VALUE(objects_of, is_scan(row->cell) ? (double)scan_objects(row->cell->scenario - SCENARIO_RETIRE_SCAN) : NAN)

int retirescale_threads(const struct cell *c)
{
	return is_scan(c) ? 1 : c->threads;
}

const struct column retirescale_columns[] = {
	{ "bytes", "size of an object", COLUMN_COUNT, .value = bytes_of },
	{ "batch", "objects in a batch, for types whose batch the tool sets", COLUMN_COUNT, .value = batch_of },
	{ "garbage", "largest number of objects that were retired and not yet freed, sampled every half millisecond while threads retired",
	  COLUMN_COUNT, .value = peak_of },
	{ "garbage_bytes", "garbage in bytes", COLUMN_COUNT, .value = peak_bytes_of },
	{ "garbage_first", "garbage in the first and in the second half of the window",
	  COLUMN_COUNT, .metric = RETIRE_GARBAGE_FIRST, .most = true },
	{ "garbage_second", NULL, COLUMN_COUNT, .metric = RETIRE_GARBAGE_SECOND, .most = true },
	{ "garbage_mean", "the mean of the samples of garbage, median over rounds", COLUMN_NUMBER, .metric = RETIRE_GARBAGE_MEAN },
	{ "capped", "1: in some round the window ended early, because there were 128 MB of garbage",
	  COLUMN_COUNT, .metric = RETIRE_CAPPED, .most = true },
	{ "drain_ms", "time from the end of the window until all objects were freed, median", COLUMN_NUMBER, .metric = RETIRE_DRAIN },
	{ "cpu_ns", "CPU time of the process for each object, readers and workers included", COLUMN_NUMBER, .value = cpu_ns_of },
	{ "to_raw", "`p50` divided by that of `raw_malloc_free` and `liburcu_memb` in the same scenario with the same threads",
	  COLUMN_NUMBER, .value = to_raw },
	{ "to_liburcu", NULL, COLUMN_NUMBER, .value = to_liburcu },
	{ "calls", "number of timed calls that retire an object, all rounds", COLUMN_COUNT, .value = calls_of },
	{ "call_mean_ns", "duration of one call that retires an object: medians over rounds", COLUMN_NUMBER, .metric = RETIRE_CALL_MEAN },
	{ "call_p50_ns", NULL, COLUMN_NUMBER, .metric = RETIRE_CALL_P50 },
	{ "call_p99_ns", NULL, COLUMN_NUMBER, .metric = RETIRE_CALL_P99 },
	{ "call_p999_ns", NULL, COLUMN_NUMBER, .metric = RETIRE_CALL_P999 },
	{ "call_max_ns", "the longest of all rounds", COLUMN_NUMBER, .metric = RETIRE_CALL_MAX, .most = true },
	{ "call_capped", "as `capped`, for the window in which calls were timed",
	  COLUMN_COUNT, .metric = RETIRE_CALL_CAPPED, .most = true },
	{ "clock_ns", "time that the clock itself takes: median of an empty measurement; it is not subtracted",
	  COLUMN_NUMBER, .metric = RETIRE_CLOCK },
	{ "slots", "`scan`: slots in use", COLUMN_COUNT, .value = slots_of },
	{ "objects", "`scan`: objects retired in a row; those of `hazptr_list` have one scan of the slots",
	  COLUMN_COUNT, .value = objects_of },
	{ 0 }
};

/* ---- tables ---- */

ROW_PART(is_stalled, row->cell->scenario == SCENARIO_RETIRE_STALLED ? 0 : -1)
ROW_PART(is_other, is_scan(row->cell) ? -1 : -1 - is_stalled(row))

/* An interrupted run may lack some. */
ROW_PART(has_calls, isfinite(calls_of(row)) ? 0 : -1)

static void title(FILE *out, const struct row *first)
{
	fprintf(out, "\nretirescale %s, %d threads: %s; million objects/s, median over rounds\n", cell_scenario(first->cell),
		first->cell->threads, retirescale_command.scenarios[first->cell->scenario].what);
}

static void calls_title(FILE *out, const struct row *first)
{
	fprintf(out, "\none call of retirescale %s, %d threads: ns, with the clock's own %.0f ns; median over rounds, max of all\n",
		cell_scenario(first->cell), first->cell->threads, row_median(first, RETIRE_CLOCK));
}

ROW_TEXT(capped, row_most(row, RETIRE_CAPPED) > 0 ? "  capped" : "")
ROW_TEXT(calls_capped, row_most(row, RETIRE_CALL_CAPPED) > 0 ? "  capped" : "")

#define RATES \
	VIEW_MILLIONS, V("CPU ns", 7, "cpu_ns"), V("x raw", 7, "to_raw"), V("x liburcu", 9, "to_liburcu"), \
	 V("peak", 9, "garbage"), V("mean", 9, "garbage_mean"), V("peak KiB", 9, "garbage_bytes", .scale = 1.0 / 1024)
static const struct view rates[] = { RATES, V("drain ms", 8, "drain_ms"), { 0 } };
static const struct view stalled[] = {
	RATES, V("1st half", 9, "garbage_first"), V("2nd half", 9, "garbage_second"), V("drain ms", 8, "drain_ms"), { 0 }
};
static const struct view calls[] = {
	V("mean", 9, "call_mean_ns"), V("p50", 9, "call_p50_ns"), V("p99", 9, "call_p99_ns"), V("p99.9", 9, "call_p999_ns"),
	V("max", 11, "call_max_ns"), V("calls", 11, "calls"), { 0 }
};
const struct table_form retirescale_tables[] = {
	{ is_other, title, rates, capped }, { is_stalled, title, stalled, capped }, { has_calls, calls_title, calls, calls_capped }, { 0 }
};

/* True if another cell of @c's row of a scan comes before it. */
static bool is_later(const struct results *results, const struct cell *c)
{
	for (const struct cell *before = results->cell; before < c; before++)
		if (is_scan(before) && before->op == c->op && before->fence == c->fence && before->threads == c->threads)
			return true;
	return false;
}

static void scan_head(FILE *out)
{
	fprintf(out, "\nretirescale scan: ns for each of N objects while M slots are in use; median over rounds\n%-18s %-5s %8s", "type",
		"fence", "M");
	for (int size = 0; size < NR_SCAN_SIZES; size++)
		fprintf(out, " N=%-7.0e", (double)scan_objects(size));
	fputc('\n', out);
}

static void print_scan(FILE *out, const struct results *results)
{
	bool begun = false;

	for (const struct cell *c = results->cell; c < results->cell + results->nr; c++) {
		if (!is_scan(c) || is_later(results, c))
			continue;
		if (!begun)
			scan_head(out);
		begun = true;
		fprintf(out, "%-18s %-5s %8d", c->op->name, c->fence ? fence_name(c->fence) : "-", c->threads);
		for (int size = 0; size < NR_SCAN_SIZES; size++)
			emit_figure(out, 9, cell_median(results_metric_of(results, c, SCENARIO_RETIRE_SCAN + size, 0, c->threads)));
		fputc('\n', out);
	}
}

void retirescale_print(FILE *out, const struct options *options, const struct results *results)
{
	(void)options;
	emit_tables(out, &retirescale_command, results);
	print_scan(out, results);
}
