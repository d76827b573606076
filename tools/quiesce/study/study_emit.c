/* SPDX-License-Identifier: MIT */
/* study_emit.c - tables of a case; JSON and CSV of all cases. */
#include <math.h>
#include <string.h>

#include "emit.h"
#include "sheet.h"
#include "study.h"

#define MIN_WIDTH 8

/* ---- JSON and CSV ---- */

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *text(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *value_row(const struct study_value *v)
{
	struct study_range r = study_range(v);

	return json_pack("{ss ss ss ss so ss sI so so so so}", "subcommand", "study", "case", v->study->name, "scenario", v->scenario,
			 "variant", v->variant, "fence", text(v->fence), "metric", v->metric, "n", (json_int_t)v->nr, "median",
			 number(r.median), "min", number(r.min), "max", number(r.max), "spread", number(r.spread));
}

static json_t *shape_row(const struct study_results *results, const struct study *study, const struct study_shape *shape)
{
	struct study_range r = study_shape_range(results, study, shape);

	return json_pack("{ss ss so so so so}", "case", study->name, "what", shape->what, "published", text(shape->published),
			 "median", number(r.median), "min", number(r.min), "max", number(r.max));
}

void study_emit_rows(FILE *out, const struct options *options, const struct study_results *results, const struct study *const *studies)
{
	json_t *rows = json_array(), *shapes = json_array(), *document;

	for (size_t i = 0; i < results->nr; i++)
		json_array_append_new(rows, value_row(&results->value[i]));
	for (; *studies; studies++)
		for (const struct study_shape *shape = (*studies)->shapes; shape && shape->what; shape++)
			json_array_append_new(shapes, shape_row(results, *studies, shape));
	if (options->format == FORMAT_JSON) {
		document = emit_document(rows, &results->notes);
		json_object_set_new(document, "shapes", shapes);
		emit_document_print(out, document);
	} else {
		emit_rows_csv(out, rows);
		json_decref(shapes);
	}
}

void study_emit_list(FILE *out)
{
	json_t *cases = json_array(), *document = emit_document(json_array(), &(struct results){ 0 });

	for (const struct study *const *s = study_table; *s; s++)
		json_array_append_new(cases, json_pack("{ss ss so so sb}", "name", (*s)->name, "what", (*s)->what, "document",
						       text((*s)->document), "honesty", text((*s)->honesty), "built",
						       study_has_program(*s)));
	json_object_set_new(document, "cases", cases);
	emit_document_print(out, document);
}

/* ---- tables ---- */

/* Prints three significant figures. */
static void figure(struct sheet *s, int width, double v)
{
	double size = fabs(v);

	if (!isfinite(v))
		sheet_cell(s, width, "-");
	else if (size >= 1e6)
		sheet_cell(s, width, "%.*fM", size >= 1e8 ? 0 : 1, v / 1e6);
	else
		sheet_cell(s, width, "%.*f", v == floor(v) && size >= 10 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0, v);
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

static int width_of(const char *title)
{
	return most(MIN_WIDTH, (int)strlen(title));
}

/* The properties that all rows of a table share. */
struct table {
	struct sheet *sheet;
	const struct study_results *results;
	const struct study *study;
	const char *scenario;
	int name_width;
	bool fences;
};

static const struct study_value *value_at(const struct table *t, const struct study_variant *variant, const char *metric)
{
	return study_find(t->results, t->study, &(struct study_place){ variant->name, variant->fence, t->scenario, metric });
}

/* True if any row has a value in this column. */
static bool shown(const struct table *t, const struct study_column *column)
{
	for (const struct study_variant *v = t->study->variants; v->name; v++)
		if (value_at(t, v, column->metric))
			return true;
	return false;
}

/* Prints the row of @variant; NULL: the head. */
static void print_row(const struct table *t, const struct study_variant *variant)
{
	bool headline = true;

	sheet_cell(t->sheet, -t->name_width, "%s", variant ? variant->name : "variant");
	if (t->fences)
		sheet_cell(t->sheet, -5, "%s", !variant ? "fence" : variant->fence ? variant->fence : "-");
	for (const struct study_column *c = t->study->columns; c->metric; c++) {
		struct study_range r = study_range(variant ? value_at(t, variant, c->metric) : NULL);

		if (!shown(t, c))
			continue;
		if (variant)
			figure(t->sheet, width_of(c->title), c->total ? r.max : r.median);
		else
			sheet_cell(t->sheet, width_of(c->title), "%s", c->title);
		if (headline && isfinite(r.spread))
			sheet_cell(t->sheet, 6, "%.0f%%", r.spread * 100);
		else if (headline)
			sheet_cell(t->sheet, 6, "%s", variant ? "-" : "spread");
		headline = false;
	}
	(variant ? sheet_end_row : sheet_end_head)(t->sheet);
}

static bool has_row(const struct table *t, const struct study_variant *variant)
{
	for (const struct study_column *c = t->study->columns; c->metric; c++)
		if (value_at(t, variant, c->metric))
			return true;
	return false;
}

static void print_table(struct table *t, bool first)
{
	t->name_width = 7;
	t->fences = false;
	for (const struct study_variant *v = t->study->variants; v->name; v++) {
		if (!has_row(t, v))
			continue;
		t->name_width = most(t->name_width, (int)strlen(v->name));
		t->fences = t->fences || v->fence;
	}
	if (first)
		sheet_title(t->sheet, "%s: %s", t->study->name, t->study->what);
	sheet_note(t->sheet, "%s%s", t->scenario, *t->scenario && !t->sheet->markdown ? ":" : "");
	print_row(t, NULL);
	for (const struct study_variant *v = t->study->variants; v->name; v++)
		if (has_row(t, v))
			print_row(t, v);
}

/* True for the first value of its scenario that is in a table. */
static bool begins(const struct table *t, const struct study_value *v)
{
	if (v->study != t->study)
		return false;
	for (const struct study_value *before = t->results->value; before < v; before++)
		if (before->study == v->study && !strcmp(before->scenario, v->scenario))
			return false;
	return true;
}

static void print_shapes(struct sheet *s, const struct study_results *results, const struct study *study)
{
	int width = 0;

	for (const struct study_shape *shape = study->shapes; shape && shape->what; shape++)
		width = most(width, (int)strlen(shape->what));
	if (!width)
		return;
	sheet_end_table(s);
	fputs(s->markdown ? "" : "\n", s->out);
	sheet_note(s, "%s%s", study->document ? "Published: " : "Here:", study->document ? study->document : "");
	sheet_cell(s, -width, "shape");
	sheet_cell(s, -9, "published");
	sheet_cell(s, 8, "here (from, to)");
	sheet_end_head(s);
	for (const struct study_shape *shape = study->shapes; shape->what; shape++) {
		struct study_range r = study_shape_range(results, study, shape);

		sheet_cell(s, -width, "%s", shape->what);
		sheet_cell(s, -9, "%s", shape->published ? shape->published : "-");
		if (isfinite(r.median))
			sheet_cell(s, 8, "%.3g (%.3g, %.3g)", r.median, r.min, r.max);
		else
			sheet_cell(s, 8, "not measured");
		sheet_end_row(s);
	}
}

static void print_legend(struct sheet *s, const struct study *study)
{
	const char *last = "";
	char line[1000];

	sheet_end_table(s);
	if (!s->markdown)
		fputc('\n', s->out);
	for (const struct study_variant *v = study->variants; v->name; last = v->name, v++) {
		if (!v->what || !strcmp(v->name, last))
			continue;
		snprintf(line, sizeof(line), "%s%s: %s", s->markdown ? "- " : "", v->name, v->what);
		sheet_text(s, 4, line);
	}
	if (study->honesty)
		sheet_text(s, 0, study->honesty);
}

void study_emit(FILE *out, const struct options *options, const struct study_results *results, const struct study *study)
{
	struct sheet sheet = { .out = out, .markdown = options->format == FORMAT_MARKDOWN };
	struct table t = { .sheet = &sheet, .results = results, .study = study };
	bool first = true;

	for (size_t i = 0; i < results->nr; i++) {
		if (!begins(&t, &results->value[i]))
			continue;
		t.scenario = results->value[i].scenario;
		print_table(&t, first);
		first = false;
	}
	print_shapes(&sheet, results, study);
	print_legend(&sheet, study);
}
