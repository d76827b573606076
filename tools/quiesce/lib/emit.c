/* SPDX-License-Identifier: MIT */
/* emit.c - the one place that prints results: as tables, JSON or CSV. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "sheet.h"

/* ---- rows ---- */

static struct row row_of(const struct results *results, const struct cell *cell)
{
	return (struct row){ results, cell, cell_summary(cell) };
}

double row_median(const struct row *row, int metric)
{
	return cell_median(results_metric(row->results, row->cell, metric));
}

double row_most(const struct row *row, int metric)
{
	return cell_most(results_metric(row->results, row->cell, metric));
}

bool row_is_disturbed(const struct row *row)
{
	return row->cell->disturbed * 2 > row->cell->nr;
}

const char *row_remark(const struct row *row)
{
	return row_is_disturbed(row) ? "  disturbed" : "";
}

double row_ratio(const struct row *row, const char *type)
{
	const struct cell *c = row->cell;

	return row->s.p50 / cell_median(results_find(row->results, c->command, type, c->scenario, OP_FENCE_NONE, c->threads));
}

static double per(const struct row *row, double total, double of)
{
	return row->cell->costs.seconds > 0 && of > 0 ? total / of : NAN;
}

static double value_of(const struct column *column, const struct row *row)
{
	if (column->value)
		return column->value(row);
	return column->most ? row_most(row, column->metric) : row_median(row, column->metric);
}

/* ---- the columns of all rows ---- */

ROW_TEXT(command_of, row->cell->command->name)
ROW_TEXT(type_of, row->cell->op->name)
ROW_TEXT(scenario_of, cell_scenario(row->cell))
ROW_TEXT(fence_of, fence_name(row->cell->fence))
ROW_TEXT(slot_of, cell_slots(row->cell))
ROW_TEXT(unit_of, cell_unit(row->cell))
ROW_VALUE(threads_of, row->cell->command->row_threads ? row->cell->command->row_threads(row->cell) : row->cell->threads)
ROW_VALUE(n_of, (double)row->s.n)
ROW_VALUE(disturbed_of, (double)row->cell->disturbed)
ROW_VALUE(mean_of, row->s.mean)
ROW_VALUE(min_of, row->s.min)
ROW_VALUE(p50_of, row->s.p50)
ROW_VALUE(p90_of, row->s.p90)
ROW_VALUE(p99_of, row->s.p99)
ROW_VALUE(max_of, row->s.max)
ROW_VALUE(spread_of, row->s.spread)
ROW_VALUE(ipis_of, per(row, row->cell->costs.ipis, row->cell->costs.seconds))
ROW_VALUE(membarriers_of, per(row, row->cell->costs.membarriers, row->cell->costs.waits))
ROW_VALUE(wakeups_of, per(row, row->cell->costs.wakeups, row->cell->costs.waits))
ROW_VALUE(cpu_s_of, per(row, row->cell->costs.cpu_s, 1))

static const struct column common[] = {
	{ "subcommand", "`refscale`, `rcuscale`, `retirescale`, `rwscale`, `hashscale`, `walkscale`, `queuescale`, `costs` or `torture`; "
	  "for `study` see there", COLUMN_TEXT, .text = command_of },
	{ "type", "the primitive, as in `--type`", COLUMN_TEXT, .text = type_of },
	{ "scenario", "`read` for refscale, a scenario of rcuscale, retirescale or rwscale, `hash` for hashscale and walkscale (`hash2` "
	  "to `hash4` for its further sets of keys), `pairs`, `to_1` to `to_4`, or one of messages for queuescale, or the name of a count "
	  "of torture",
	  COLUMN_TEXT, .text = scenario_of },
	{ "threads", "number of threads: see below", COLUMN_COUNT, .value = threads_of },
	{ "fence", "`light` (compiler barrier in readers, membarrier in updaters) or `full`; `null` for types that have one mode only",
	  COLUMN_TEXT, .text = fence_of },
	{ "slot", "refscale, `shazptr`: the kinds of slots that the readers had, joined by `+`; else `null`: see below",
	  COLUMN_TEXT, .text = slot_of },
	{ "unit", "unit of the seven figures from `mean` to `max`", COLUMN_TEXT, .text = unit_of },
	{ "n", "number of samples", COLUMN_COUNT, .value = n_of },
	{ "disturbed", "number of samples that were taken while other processes used the same CPUs (refscale, threads bound to CPUs; "
	  "hashscale, more than a twentieth of the time); refscale uses such samples only for a code layout that has no others",
	  COLUMN_COUNT, .value = disturbed_of },
	{ "mean", "see below", COLUMN_NUMBER, .value = mean_of },
	{ "min", NULL, COLUMN_NUMBER, .value = min_of },
	{ "p50", NULL, COLUMN_NUMBER, .value = p50_of },
	{ "p90", NULL, COLUMN_NUMBER, .value = p90_of },
	{ "p99", NULL, COLUMN_NUMBER, .value = p99_of },
	{ "max", NULL, COLUMN_NUMBER, .value = max_of },
	{ "spread", "relative: (largest - smallest) / `p50` of the medians of groups; a group is a code layout in refscale, a round in "
	  "rcuscale; `null` with one group", COLUMN_NUMBER, .value = spread_of },
	{ "ipis", "function-call interrupts per second of the whole machine during the measurement; compare with the row of `noop` with "
	  "the same scenario and threads, which has those of other causes; x86 only", COLUMN_NUMBER, .value = ipis_of },
	{ "membarriers", "expedited membarriers of the process per wait", COLUMN_NUMBER, .value = membarriers_of },
	{ "wakeups", "futex wake-ups per wait: for quiesce, of updaters by readers; for peers, all of their calls",
	  COLUMN_NUMBER, .value = wakeups_of },
	{ "cpu_s", "CPU seconds of the process, readers included, over all rounds", COLUMN_NUMBER, .value = cpu_s_of },
	{ 0 }
};

/* The columns that rows of @command have beside the common ones. */
static const struct column *own_columns(const struct subcommand *command)
{
	static const struct column none[] = { { 0 } };

	return command && command->columns ? command->columns : none;
}

void emit_columns(FILE *out, const struct subcommand *command)
{
	const struct column *c = command ? own_columns(command) : common;

	if (!c->name)
		return;
	fprintf(out, "| field%s%s | meaning |\n|---|---|\n", command ? " of " : "", command ? command->name : "");
	while (c->name) {
		const char *meaning = c->meaning;

		fprintf(out, "| `%s`", c->name);
		while ((++c)->name && !c->meaning)
			fprintf(out, " `%s`", c->name);
		fprintf(out, " | %s |\n", meaning);
	}
}

/* ---- JSON ---- */

static json_t *json_value(const struct column *column, const struct row *row)
{
	double v;

	if (column->kind == COLUMN_TEXT)
		return column->text(row) ? json_string(column->text(row)) : json_null();
	v = value_of(column, row);
	if (!isfinite(v))
		return json_null();
	if (column->kind == COLUMN_TRUTH)
		return json_boolean(v != 0);
	return column->kind == COLUMN_COUNT ? json_integer((json_int_t)v) : json_real(v);
}

static void add_columns(json_t *object, const struct column *column, const struct row *row)
{
	for (; column->name; column++)
		json_object_set_new(object, column->name, json_value(column, row));
}

static json_t *rows_of(const struct results *results, bool own)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < results->nr; i++) {
		struct row row = row_of(results, &results->cell[i]);
		json_t *object;

		if (row.cell->metric)
			continue;
		object = json_object();
		add_columns(object, common, &row);
		if (own)
			add_columns(object, own_columns(row.cell->command), &row);
		json_array_append_new(rows, object);
	}
	return rows;
}

json_t *emit_rows(const struct results *results)
{
	return rows_of(results, true);
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

static void csv_names(FILE *out, const struct column *column)
{
	for (; column->name; column++)
		fprintf(out, "%s,", column->name);
}

static void csv_rows(FILE *out, json_t *rows)
{
	struct host host;
	const char *name;
	json_t *row, *v;
	size_t i;

	host_read(&host);
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

void emit_rows_csv(FILE *out, json_t *rows)
{
	const char *name;
	json_t *v;

	json_object_foreach(json_array_get(rows, 0), name, v)
		fprintf(out, "%s,", name);
	csv_rows(out, rows);
}

/* ---- tables ---- */

void emit_head(FILE *out)
{
	struct host host;

	host_read(&host);
	sheet_note(&(struct sheet){ .out = out }, "%s, %d cores, kernel %s, build type %s", host.cpu, host.cores, host.kernel,
		   host_build_type());
}

void emit_figure(FILE *out, int width, double v)
{
	double size = fabs(v);

	if (!isfinite(v))
		fprintf(out, " %*s", width, "-");
	else if (size >= 1e6 && size >= pow(10, width - 2)) /* a narrow column */
		fprintf(out, " %*.*fM", width - 1, size >= 1e8 ? 0 : 1, v / 1e6);
	else
		fprintf(out, " %*.*f", width, size > 0 && size < 10 ? 2 : size > 0 && size < 1000 ? 1 : 0, v);
}

ROW_VALUE(not_a_number, NAN)

static const struct column *find_column(const struct column *column, const char *name)
{
	while (column->name && strcmp(column->name, name))
		column++;
	return column->name ? column : NULL;
}

static const struct column *column_of(const struct view *view, const struct row *row)
{
	static const struct column nothing = { .value = not_a_number };
	const struct column *own = view->name ? find_column(own_columns(row->cell->command), view->name) : &nothing;

	return own ? own : find_column(common, view->name);
}

static void print_view(FILE *out, const struct view *view, const struct row *row)
{
	const struct column *column = column_of(view, row);
	double v;

	if (column->kind == COLUMN_TEXT) {
		fprintf(out, " %*s", view->width, column->text(row) ? column->text(row) : "-");
		return;
	}
	v = (view->value ? view->value(row) : value_of(column, row)) * (view->scale ? view->scale : 1);
	if (view->percent && isfinite(v))
		fprintf(out, " %*.0f%%", view->width - 1, v * 100);
	else if (column->kind == COLUMN_COUNT && isfinite(v))
		fprintf(out, " %*.0f", view->width, v);
	else
		emit_figure(out, view->width, v);
}

static void print_row(FILE *out, const struct table_form *table, const struct row *row, int width)
{
	fprintf(out, "%-*s %-5s", width, row->cell->op->name, row->cell->fence ? fence_name(row->cell->fence) : "-");
	for (const struct view *view = table->view; view->head; view++)
		print_view(out, view, row);
	fprintf(out, "%s\n", table->remark ? table->remark(row) : "");
}

static void print_heads(FILE *out, const struct table_form *table, const struct row *first, int width)
{
	int more = 0;

	table->title(out, first);
	fprintf(out, "%-*s %-5s", width, "type", "fence");
	for (const struct view *view = table->view; view->head; view++) {
		if (*view->head)
			fprintf(out, " %*s", view->width + (view->width < 0 ? 0 : more), view->head);
		more = *view->head ? 0 : view->width + 1;
	}
	fputc('\n', out);
}

static bool same_table(const struct cell *a, const struct cell *b)
{
	return a->command == b->command && !b->metric && a->scenario == b->scenario && a->threads == b->threads;
}

/* The length of the longest name in the tables that begin with @first. */
static int name_width(const struct results *results, const struct cell *first)
{
	size_t width = 13;

	for (size_t i = 0; i < results->nr; i++)
		if (same_table(first, &results->cell[i]) && strlen(results->cell[i].op->name) > width)
			width = strlen(results->cell[i].op->name);
	return (int)width;
}

static void print_table(FILE *out, const struct table_form *table, const struct results *results, const struct cell *first)
{
	int width = name_width(results, first);
	bool begun = false;

	for (int part = 0; part < (table->part ? MAX_PARTS : 1); part++)
		for (const struct cell *c = first; c < results->cell + results->nr; c++) {
			struct row row;

			if (!same_table(first, c))
				continue;
			row = row_of(results, c);
			if (table->part && table->part(&row) != part)
				continue;
			if (!begun)
				print_heads(out, table, &row, width);
			begun = true;
			print_row(out, table, &row, width);
		}
}

static bool is_first(const struct results *results, const struct cell *c)
{
	for (const struct cell *before = results->cell; before < c; before++)
		if (same_table(c, before))
			return false;
	return true;
}

void emit_tables(FILE *out, const struct subcommand *command, const struct results *results)
{
	for (const struct cell *c = results->cell; c < results->cell + results->nr; c++)
		for (const struct table_form *table = command->tables; !c->metric && is_first(results, c) && table->view; table++)
			print_table(out, table, results, c);
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

static void emit_csv(FILE *out, const struct subcommand *command, const struct results *results)
{
	csv_names(out, common);
	csv_names(out, own_columns(command));
	csv_rows(out, rows_of(results, command != NULL));
}

static void emit_human(FILE *out, const struct subcommand *command, const struct options *options, const struct results *results)
{
	emit_head(out);
	if (command->print)
		command->print(out, options, results);
	else
		emit_tables(out, command, results);
}

void emit_results(FILE *out, const struct subcommand *command, const struct options *options, const struct results *results)
{
	if (options->format == FORMAT_JSON)
		emit_document_print(out, emit_document(emit_rows(results), results));
	else if (options->format == FORMAT_CSV)
		emit_csv(out, command, results);
	else
		emit_human(out, command, options, results);
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
