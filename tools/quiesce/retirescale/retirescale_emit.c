/* SPDX-License-Identifier: MIT */
/* retirescale_emit.c - the output of retirescale: rows with additional columns, and its own tables. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "emit.h"
#include "retirescale.h"

#define RAW "raw_malloc_free"
#define PEER "liburcu_memb"

static bool is_scan(const struct cell *c)
{
	return c->scenario >= SCENARIO_RETIRE_SCAN;
}

static double most(const struct results *results, const struct cell *c, enum retire_metric metric)
{
	return cell_most(results_metric(results, c, metric));
}

double retirescale_peak(const struct results *results, const struct cell *c)
{
	return fmax(most(results, c, RETIRE_GARBAGE_FIRST), most(results, c, RETIRE_GARBAGE_SECOND));
}

static double median(const struct results *results, const struct cell *c, enum retire_metric metric)
{
	return cell_median(results_metric(results, c, metric));
}

static double calls_timed(const struct results *results, const struct cell *c)
{
	const struct cell *calls = results_metric(results, c, RETIRE_CALLS);

	return calls ? cell_summary(calls).mean * (double)calls->nr : NAN;
}

/* CPU time of the whole process, readers included, divided by the number of objects. */
static double cpu_ns(const struct cell *c)
{
	return c->costs.waits > 0 ? c->costs.cpu_s * 1e9 / c->costs.waits : NAN;
}

static double ratio_to(const struct results *results, const struct cell *c, const char *type)
{
	const struct cell *other = is_scan(c) ? NULL :
		results_find(results, c->command, type, c->scenario, OP_FENCE_NONE, c->threads);

	return other ? cell_summary(c).p50 / cell_summary(other).p50 : NAN;
}

/* ---- JSON and CSV ---- */

static void add_number(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_real(v) : json_null());
}

static void add_count(json_t *row, const char *name, double v)
{
	json_object_set_new(row, name, isfinite(v) ? json_integer((json_int_t)v) : json_null());
}

/* In a scan the number of slots stands for the number of threads. */
static void name_scan(json_t *row, const struct cell *c)
{
	if (!is_scan(c))
		return;
	json_object_set_new(row, "threads", json_integer(1));
}

void retirescale_columns(json_t *row, const struct results *results, const struct cell *c)
{
	double bytes = is_scan(c) ? NAN : (double)retire_params.bytes;

	name_scan(row, c);
	add_count(row, "bytes", bytes);
	add_count(row, "batch", is_scan(c) ? NAN : (double)retire_params.batch);
	add_count(row, "garbage", retirescale_peak(results, c));
	add_count(row, "garbage_bytes", retirescale_peak(results, c) * bytes);
	add_count(row, "garbage_first", most(results, c, RETIRE_GARBAGE_FIRST));
	add_count(row, "garbage_second", most(results, c, RETIRE_GARBAGE_SECOND));
	add_count(row, "capped", most(results, c, RETIRE_CAPPED));
	add_number(row, "drain_ms", median(results, c, RETIRE_DRAIN));
	add_number(row, "cpu_ns", cpu_ns(c));
	add_number(row, "to_raw", ratio_to(results, c, RAW));
	add_number(row, "to_liburcu", ratio_to(results, c, PEER));
	add_count(row, "calls", calls_timed(results, c));
	add_number(row, "call_mean_ns", median(results, c, RETIRE_CALL_MEAN));
	add_number(row, "call_p50_ns", median(results, c, RETIRE_CALL_P50));
	add_number(row, "call_p99_ns", median(results, c, RETIRE_CALL_P99));
	add_number(row, "call_p999_ns", median(results, c, RETIRE_CALL_P999));
	add_number(row, "call_max_ns", most(results, c, RETIRE_CALL_MAX));
	add_count(row, "call_capped", most(results, c, RETIRE_CALL_CAPPED));
	add_number(row, "clock_ns", median(results, c, RETIRE_CLOCK));
	add_count(row, "slots", is_scan(c) ? c->threads : NAN);
	add_count(row, "objects", is_scan(c) ? (double)scan_objects((int)(c->scenario - SCENARIO_RETIRE_SCAN)) : NAN);
}

/* ---- tables ---- */

static void number(FILE *out, int width, double v)
{
	if (isfinite(v))
		fprintf(out, " %*.*f", width, v < 10 ? 2 : v < 100 ? 1 : 0, v);
	else
		fprintf(out, " %*s", width, "-");
}

static void count(FILE *out, int width, double v)
{
	if (isfinite(v))
		fprintf(out, " %*.0f", width, v);
	else
		fprintf(out, " %*s", width, "-");
}

static const char *fence_of(const struct cell *c)
{
	return c->fence == OP_FENCE_NONE ? "-" : fence_name(c->fence);
}

static void print_row(FILE *out, const struct results *results, const struct cell *c)
{
	struct summary s = cell_summary(c);

	fprintf(out, "%-18s %-5s", c->op->name, fence_of(c));
	number(out, 8, s.p50 / 1e6);
	number(out, 8, s.min / 1e6);
	number(out, 8, s.max / 1e6);
	number(out, 7, cpu_ns(c));
	number(out, 7, ratio_to(results, c, RAW));
	number(out, 9, ratio_to(results, c, PEER));
	count(out, 9, retirescale_peak(results, c));
	count(out, 9, retirescale_peak(results, c) * (double)retire_params.bytes / 1024);
	if (c->scenario == SCENARIO_RETIRE_STALLED) {
		count(out, 9, most(results, c, RETIRE_GARBAGE_FIRST));
		count(out, 9, most(results, c, RETIRE_GARBAGE_SECOND));
	}
	number(out, 8, median(results, c, RETIRE_DRAIN));
	fprintf(out, "%s\n", most(results, c, RETIRE_CAPPED) > 0 ? "  capped" : "");
}

static void print_table(FILE *out, const struct results *results, int scenario, int threads)
{
	const struct scenario_info *s = &retirescale_command.scenarios[scenario];
	bool begun = false;

	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];

		if (c->metric || c->scenario != scenario || c->threads != threads)
			continue;
		if (!begun)
			fprintf(out, "\nretirescale %s, %d threads: %s; million objects/s, median over rounds\n"
				     "%-18s %-5s %8s %8s %8s %7s %7s %9s %9s %9s%s %8s\n", s->name, threads,
				s->what, "type", "fence", "median", "min", "max", "CPU ns", "x raw", "x liburcu",
				"peak", "peak KiB", scenario == SCENARIO_RETIRE_STALLED ? "  1st half  2nd half" : "", "drain ms");
		begun = true;
		print_row(out, results, c);
	}
}

static void print_calls_row(FILE *out, const struct results *results, const struct cell *c)
{
	static const enum retire_metric figures[] = { RETIRE_CALL_MEAN, RETIRE_CALL_P50, RETIRE_CALL_P99, RETIRE_CALL_P999 };

	fprintf(out, "%-18s %-5s", c->op->name, fence_of(c));
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		number(out, 9, median(results, c, figures[i]));
	number(out, 11, most(results, c, RETIRE_CALL_MAX));
	count(out, 11, calls_timed(results, c));
	fprintf(out, "%s\n", most(results, c, RETIRE_CALL_CAPPED) > 0 ? "  capped" : "");
}

/* Prints the cells that have timed calls; an interrupted run may lack some. */
static void print_calls(FILE *out, const struct results *results, int scenario, int threads)
{
	const struct scenario_info *s = &retirescale_command.scenarios[scenario];
	bool begun = false;

	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];

		if (c->metric || c->scenario != scenario || c->threads != threads || !isfinite(calls_timed(results, c)))
			continue;
		if (!begun)
			fprintf(out, "\none call of retirescale %s, %d threads: ns, with the clock's own %.0f ns; median over rounds, "
				     "max of all\n%-18s %-5s %9s %9s %9s %9s %11s %11s\n", s->name, threads,
				median(results, c, RETIRE_CLOCK), "type", "fence", "mean", "p50", "p99", "p99.9", "max", "calls");
		begun = true;
		print_calls_row(out, results, c);
	}
}

/* True if another cell of @c's row of a scan comes before it. */
static bool is_later(const struct results *results, const struct cell *c)
{
	for (const struct cell *before = results->cell; before < c; before++)
		if (is_scan(before) && before->op == c->op && before->fence == c->fence && before->threads == c->threads)
			return true;
	return false;
}

static void print_scan(FILE *out, const struct results *results)
{
	bool begun = false;

	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];

		if (!is_scan(c) || is_later(results, c))
			continue;
		if (!begun) {
			fprintf(out, "\nretirescale scan: ns for each of N objects while M slots are in use; median over rounds\n"
				     "%-18s %-5s %8s", "type", "fence", "M");
			for (int size = 0; size < NR_SCAN_SIZES; size++)
				fprintf(out, " N=%-7.0e", (double)scan_objects(size));
			fputc('\n', out);
		}
		begun = true;
		fprintf(out, "%-18s %-5s %8d", c->op->name, fence_of(c), c->threads);
		for (int size = 0; size < NR_SCAN_SIZES; size++)
			number(out, 9, cell_median(results_metric_of(results, c, SCENARIO_RETIRE_SCAN + size, 0, c->threads)));
		fputc('\n', out);
	}
}

static void emit_tables(FILE *out, const struct results *results, const struct options *options)
{
	emit_head(out);
	for (int s = 0; s < NR_RETIRE_SCENARIOS; s++)
		for (int i = 0; i < options->nr_readers; i++) {
			print_table(out, results, s, options->readers[i]);
			print_calls(out, results, s, options->readers[i]);
		}
	print_scan(out, results);
}

void retirescale_emit(FILE *out, const struct options *options, const struct results *results)
{
	if (options->format == FORMAT_JSON) {
		emit_results(out, options, results);
		return;
	}
	if (options->format == FORMAT_CSV)
		emit_rows_csv(out, emit_rows(results));
	else
		emit_tables(out, results, options);
	emit_notes(results);
}
