/* SPDX-License-Identifier: MIT */
/* emit.h - the columns of a subcommand's rows, and of its tables.
 *
 * Each field of a row is described once, by a struct column: JSON, CSV, tables and docs/json.md have it from there.  A
 * table shows some of them, in its order and under its heads: struct view.
 */
#ifndef QUIESCE_TOOL_EMIT_H
#define QUIESCE_TOOL_EMIT_H

#include <jansson.h>

#include "tool.h"

/* A row is a cell of metric 0. */
struct row {
	const struct results *results;
	const struct cell *cell;
	struct summary s;
};
/* The median, and the largest value, of another metric of the row. */
double row_median(const struct row *row, int metric);
double row_most(const struct row *row, int metric);
bool row_is_disturbed(const struct row *row); /* true: in most rounds */
const char *row_remark(const struct row *row);
/* The medians of the row and of @type's in the same scenario, as a ratio; NAN: there is no such row. */
double row_ratio(const struct row *row, const char *type);

struct column {
	const char *name;
	const char *meaning; /* for docs/json.md; NULL: the column before it explains this one, too */
	enum { COLUMN_NUMBER, COLUMN_COUNT, COLUMN_TEXT, COLUMN_TRUTH } kind;
	double (*value)(const struct row *row); /* NAN: null */
	const char *(*text)(const struct row *row); /* for COLUMN_TEXT; NULL: null */
	int metric; /* without @value: the median of this metric, */
	bool most;  /* or its largest value */
};

struct view {
	const char *head; /* "": the next head stands above this column, too */
	int width;        /* negative: aligned to the left */
	const char *name; /* the column; NULL: @value, or nothing */
	double scale;     /* factor; 0: none */
	bool percent;
	double (*value)(const struct row *row); /* for a figure that only the table has */
};

#define V(head_, width_, name_, ...) { .head = head_, .width = width_, .name = name_, ##__VA_ARGS__ }

#define VIEW_MILLIONS \
	V("median", 8, "p50", .scale = 1e-6), V("min", 8, "min", .scale = 1e-6), V("max", 8, "max", .scale = 1e-6)

/* A function of one expression. */
#define ROW_FUNCTION(type, function, ...) static type function(const struct row *row) { (void)row; return __VA_ARGS__; }
#define ROW_VALUE(function, ...) ROW_FUNCTION(double, function, __VA_ARGS__)
#define ROW_TEXT(function, ...) ROW_FUNCTION(const char *, function, __VA_ARGS__)
#define ROW_PART(function, ...) ROW_FUNCTION(int, function, __VA_ARGS__)
/* Three functions: the ratio of two cells, and the ends of its interval. */
#define ROW_RATIO(function, cell, other) \
	ROW_VALUE(function, cell_ratio(cell, other).median) \
	ROW_VALUE(function##_low, cell_ratio(cell, other).low) \
	ROW_VALUE(function##_high, cell_ratio(cell, other).high)

#define MAX_PARTS 4

struct table_form {
	/* The part of the table that has the row; -1: it has not.  NULL: all rows are in one part. */
	int (*part)(const struct row *row);
	void (*title)(FILE *out, const struct row *first); /* lines above the heads */
	const struct view *view;
	const char *(*remark)(const struct row *row); /* at the end of a line; NULL: none */
};

/* The JSON object of a run: @rows, whose reference the call takes over, the host, and notes. */
json_t *emit_rows(const struct results *results);
json_t *emit_document(json_t *rows, const struct results *notes);
void emit_document_print(FILE *out, json_t *document);
/* Print @rows, whose reference the call takes over, as comma-separated values with the host's fields. */
void emit_rows_csv(FILE *out, json_t *rows);

/* Prints the tables of @command: for each scenario and number of threads those that have rows. */
void emit_tables(FILE *out, const struct subcommand *command, const struct results *results);
/* Prints a value with three or four figures; " -" if it is not finite. */
void emit_figure(FILE *out, int width, double v);
/* Prints the tables of docs/json.md: the fields that all rows have for NULL, otherwise those of @command's. */
void emit_columns(FILE *out, const struct subcommand *command);

#endif
