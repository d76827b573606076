/* SPDX-License-Identifier: MIT */
/* emit.c - the one place that prints results: as tables, JSON or CSV. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "emit.h"
#include "sheet.h"
#include "tool.h"

/* The columns of a row; docs/json.md explains them. */
struct row {
	const struct cell *cell;
	struct summary s;
	double ipis, membarriers, wakeups, cpu_s;
};

static double per(double total, double of)
{
	return of > 0 ? total / of : NAN;
}

static struct row row_of(const struct cell *c)
{
	bool costs = c->costs.seconds > 0;

	return (struct row){
		.cell = c,
		.s = cell_summary(c),
		.ipis = costs ? per(c->costs.ipis, c->costs.seconds) : NAN,
		.membarriers = costs ? per(c->costs.membarriers, c->costs.waits) : NAN,
		.wakeups = costs ? per(c->costs.wakeups, c->costs.waits) : NAN,
		.cpu_s = costs ? c->costs.cpu_s : NAN,
	};
}

/* ---- JSON ---- */

static json_t *json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *json_text(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *json_row(const struct cell *c)
{
	struct row r = row_of(c);

	return json_pack("{so so so si so so so sI sI so so so so so so so so so so so}",
			 "subcommand", json_text(c->command->name), "type", json_text(c->op->name),
			 "scenario", json_text(cell_scenario(c)), "threads", c->threads,
			 "fence", json_text(fence_name(c->fence)), "slot", json_text(cell_slots(c)), "unit", json_text(cell_unit(c)),
			 "n", (json_int_t)r.s.n, "disturbed", (json_int_t)c->disturbed,
			 "mean", json_number(r.s.mean), "min", json_number(r.s.min),
			 "p50", json_number(r.s.p50), "p90", json_number(r.s.p90), "p99", json_number(r.s.p99),
			 "max", json_number(r.s.max), "spread", json_number(r.s.spread), "ipis", json_number(r.ipis),
			 "membarriers", json_number(r.membarriers), "wakeups", json_number(r.wakeups),
			 "cpu_s", json_number(r.cpu_s));
}

json_t *emit_rows(const struct results *results)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];
		json_t *row = !c->metric ? json_row(c) : NULL;

		if (row && c->command->columns)
			c->command->columns(row, results, c);
		if (row)
			json_array_append_new(rows, row);
	}
	return rows;
}

json_t *emit_document(json_t *rows, const struct results *results)
{
	json_t *notes = json_array();
	struct host host;

	host_read(&host);
	for (size_t i = 0; i < results->nr_notes; i++)
		json_array_append_new(notes, json_string(results->note[i]));
	return json_pack("{si s{ss si ss ss} so so}", "schema", 1, "host", "cpu", host.cpu, "cores", host.cores, "kernel", host.kernel,
			 "build", host_build_type(), "rows", rows, "notes", notes);
}

void emit_document_print(FILE *out, json_t *document)
{
	json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	fputc('\n', out);
	json_decref(document);
}

/* ---- CSV ---- */

static const char *or_else(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static void csv_number(FILE *out, double v)
{
	if (isfinite(v))
		fprintf(out, ",%.6g", v);
	else
		fputc(',', out);
}

static void emit_csv(FILE *out, const struct results *results)
{
	struct host host;

	host_read(&host);
	fprintf(out, "subcommand,type,scenario,threads,fence,slot,unit,n,disturbed,mean,min,p50,p90,p99,max,spread,"
		     "ipis,membarriers,wakeups,cpu_s,cpu,cores,kernel,build\n");
	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *c = &results->cell[i];
		struct row r = row_of(c);
		const double v[] = { r.s.mean, r.s.min, r.s.p50, r.s.p90, r.s.p99, r.s.max, r.s.spread,
				     r.ipis, r.membarriers, r.wakeups, r.cpu_s };

		if (c->metric)
			continue;
		fprintf(out, "%s,%s,%s,%d,%s,%s,%s,%zu,%zu", c->command->name, c->op->name,
			cell_scenario(c), c->threads, or_else(fence_name(c->fence), ""),
			or_else(cell_slots(c), ""), cell_unit(c), r.s.n, c->disturbed);
		for (size_t k = 0; k < sizeof(v) / sizeof(v[0]); k++)
			csv_number(out, v[k]);
		fprintf(out, ",\"%s\",%d,%s,%s\n", host.cpu, host.cores, host.kernel, host_build_type());
	}
}

static void csv_value(FILE *out, const json_t *v)
{
	const char *text = json_string_value(v);

	if (text)
		fprintf(out, strchr(text, ',') ? "\"%s\"" : "%s", text);
	else if (json_is_integer(v))
		fprintf(out, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fprintf(out, "%.6g", json_real_value(v));
}

/* For rows that have columns of their own. */
void emit_rows_csv(FILE *out, json_t *rows)
{
	struct host host;
	const char *name;
	json_t *row, *v;
	size_t i;

	host_read(&host);
	json_object_foreach(json_array_get(rows, 0), name, v)
		fprintf(out, "%s,", name);
	fprintf(out, "cpu,cores,kernel,build\n");
	json_array_foreach(rows, i, row) {
		json_object_foreach(row, name, v) {
			csv_value(out, v);
			fputc(',', out);
		}
		fprintf(out, "\"%s\",%d,%s,%s\n", host.cpu, host.cores, host.kernel, host_build_type());
	}
	json_decref(rows);
}

/* ---- tables ---- */

void emit_head(FILE *out)
{
	struct host host;

	host_read(&host);
	sheet_note(&(struct sheet){ .out = out }, "%s, %d cores, kernel %s, build type %s", host.cpu, host.cores, host.kernel,
		   host_build_type());
}

/* Prints three or four significant figures. */
static void table_number(FILE *out, int width, double v)
{
	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else if (fabs(v) >= 1e6)
		fprintf(out, " %*.*fM", width - 1, v >= 1e8 ? 0 : 1, v / 1e6);
	else
		fprintf(out, " %*.*f", width, fabs(v) < 10 ? 2 : fabs(v) < 1000 ? 1 : 0, v);
}

static void table_spread(FILE *out, double spread)
{
	if (isfinite(spread))
		fprintf(out, " %6.0f%%", spread * 100);
	else
		fprintf(out, " %7s", "-");
}

static void table_short(FILE *out, const struct row *r)
{
	table_number(out, 8, r->s.p50);
	fprintf(out, "  ");
	table_number(out, 8, r->s.min);
	table_number(out, 8, r->s.max);
	table_spread(out, r->s.spread);
	fprintf(out, " %6zu", r->s.n);
	if (r->cell->command == &refscale_command)
		fprintf(out, " %-*s", r->cell->disturbed ? 13 : 0, or_else(cell_slots(r->cell), "-"));
	fprintf(out, "%s\n", r->cell->disturbed ? " disturbed" : "");
}

static void table_wait(FILE *out, const struct row *r)
{
	const double v[] = { r->s.mean, r->s.min, r->s.p50, r->s.p90, r->s.p99, r->s.max };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		table_number(out, 8, v[i]);
	table_spread(out, r->s.spread);
	fprintf(out, " %7zu", r->s.n);
	table_number(out, 8, r->ipis);
	table_number(out, 7, r->membarriers);
	table_number(out, 7, r->wakeups);
	table_number(out, 7, r->cpu_s);
	fputc('\n', out);
}

/* True for cells of few values, for which percentiles and costs get no columns. */
static bool is_short(const struct cell *c)
{
	return strcmp(cell_unit(c), "us") != 0;
}

static void table_title(FILE *out, const struct cell *c, int width)
{
	const struct scenario_info *s = &c->command->scenarios[c->scenario];

	if (is_short(c))
		fprintf(out, "\n%s %s, %d threads: %s; %s, %s\n%-*s %-5s %8s   %8s %8s %7s %6s%s\n", c->command->name,
			s->name, c->threads, s->what, s->unit,
			c->command->layouts ? "median over code layouts" : "median over rounds", width, "type",
			"fence", "median", "min", "max", "spread", "n", c->command == &refscale_command ? " slot" : "");
	else
		fprintf(out, "\n%s %s, %d threads: %s; %s\n"
			     "%-*s %-5s %8s %8s %8s %8s %8s %8s %7s %7s %8s %7s %7s %7s\n",
			c->command->name, s->name, c->threads, s->what, s->unit, width, "type", "fence", "mean", "min", "p50",
			"p90", "p99", "max", "spread", "n", "IPI/s", "mb/wait", "wk/wait", "CPU s");
}

static bool same_table(const struct cell *a, const struct cell *b)
{
	return a->command == b->command && a->metric == b->metric && a->scenario == b->scenario && a->threads == b->threads;
}

/* The length of the longest name in the table that begins with @first. */
static int name_width(const struct results *results, const struct cell *first)
{
	size_t width = 18;

	for (size_t i = 0; i < results->nr; i++)
		if (same_table(first, &results->cell[i]) && strlen(results->cell[i].op->name) > width)
			width = strlen(results->cell[i].op->name);
	return (int)width;
}

/* Print one table per scenario and number of threads, in the order of first appearance. */
static void emit_table(FILE *out, const struct results *results)
{
	int width;

	emit_head(out);
	for (size_t i = 0; i < results->nr; i++) {
		const struct cell *first = &results->cell[i];
		bool shown = false;

		for (size_t k = 0; k < i; k++)
			shown = shown || same_table(first, &results->cell[k]);
		if (shown)
			continue;
		width = name_width(results, first);
		table_title(out, first, width);
		for (size_t k = i; k < results->nr; k++) {
			const struct cell *c = &results->cell[k];
			struct row r;

			if (!same_table(first, c))
				continue;
			r = row_of(c);
			fprintf(out, "%-*s %-5s", width, c->op->name, or_else(fence_name(c->fence), "-"));
			(is_short(c) ? table_short : table_wait)(out, &r);
		}
	}
}

/* ---- */

FILE *emit_open(const struct options *options)
{
	FILE *out = options->output ? fopen(options->output, "we") : stdout;

	if (!out)
		usage_error("cannot write '%s': %s", options->output, strerror(errno));
	return out;
}

void emit_notes(const struct results *results)
{
	for (size_t i = 0; i < results->nr_notes; i++)
		fprintf(stderr, "quiesce: %s\n", results->note[i]);
}

void emit_results(FILE *out, const struct options *options, const struct results *results)
{
	if (options->format == FORMAT_JSON)
		emit_document_print(out, emit_document(emit_rows(results), results));
	else if (options->format == FORMAT_CSV)
		emit_csv(out, results);
	else
		emit_table(out, results);
	emit_notes(results);
}

int emit_close(FILE *out, const struct options *options)
{
	bool bad;

	errno = 0; /* the errno of an earlier failed write is lost by now */
	bad = fflush(out) || ferror(out);
	if (out != stdout)
		bad = fclose(out) || bad;
	if (!bad)
		return 0;
	fprintf(stderr, "quiesce: cannot write %s: %s\n", options->output ? options->output : "the output",
		errno ? strerror(errno) : "a write failed");
	return EXIT_FAILED;
}

static bool is_first(const struct results *results, const struct cell *c)
{
	for (const struct cell *before = results->cell; before < c; before++)
		if (!before->metric && before->scenario == c->scenario && before->threads == c->threads)
			return false;
	return true;
}

void emit_by_scenario(FILE *out, const struct options *options, const struct results *results,
		      void (*table)(FILE *out, const struct results *results, const struct cell *first))
{
	if (options->format == FORMAT_JSON) {
		emit_results(out, options, results);
		return;
	}
	if (options->format == FORMAT_CSV) {
		emit_rows_csv(out, emit_rows(results));
	} else {
		emit_head(out);
		for (size_t i = 0; i < results->nr; i++)
			if (!results->cell[i].metric && is_first(results, &results->cell[i]))
				table(out, results, &results->cell[i]);
	}
	emit_notes(results);
}
