/* SPDX-License-Identifier: MIT */
/* run.h - all measurements side by side: the parts (run.c), six lines (run_headline.c), tables (run_tables.c), and the cells in
 * which others are faster (run_faster.c). */
#ifndef QUIESCE_TOOL_RUN_H
#define QUIESCE_TOOL_RUN_H

#include <jansson.h>

#include "sheet.h"
#include "tool.h"
#include "registry.h"

#define RUN_YARDSTICK "liburcu_memb"
#define RUN_LOOKUP_YARDSTICK "spinlock"
#define RUN_TAIL 10 /* a 99th percentile stands beside the median from this multiple of it on */

/* A column of a table: the figures of one scenario with one number of threads. */
struct run_column {
	const char *title;
	const struct subcommand *command;
	int scenario;
	int threads;
	bool more_is_better;
	int most_of; /* the figure is the largest value of this metric; 0: the median of the row, or */
	double (*figure)(const struct results *results, const struct cell *cell);
	const char *field; /* its name in the row; NULL: p50 */
};
/* Each ends with a column without a title. */
extern const struct run_column run_reads[], run_waits_same[], run_waits_others[], run_bursts[], run_retirements[], run_lookups[];

/* A cell of a column; its samples are those whose spread counts. */
struct run_figure {
	double value; /* NAN: it was not measured */
	double spread; /* half of the distance between the best and the worst round, in the unit of @value; 0: one round */
};
struct run_figure run_figure_of(const struct results *results, const struct run_column *c, const char *type, enum op_fence fence);
/* The rule by which a peer is ahead: its figure is better than ours by more than both spreads together. */
bool run_is_ahead(const struct run_figure *theirs, const struct run_figure *ours, bool more_is_better);

/* Returns the number of readers beside the updater in the document's table. */
int run_document_readers(void);

/* Prints the lines before the first table; initialises @s. */
void run_print_head(struct sheet *s);
/* Each prints what @results have of it, or nothing. */
void run_print_headline(struct sheet *s, const struct results *results);
void run_print_document(struct sheet *s, const struct results *results);
void run_print_same(struct sheet *s, const struct results *results);
void run_print_others(struct sheet *s, const struct results *results);
void run_print_reads(struct sheet *s, const struct results *results);
void run_print_bursts(struct sheet *s, const struct results *results);
void run_print_retire(struct sheet *s, const struct results *results);
void run_print_lookups(struct sheet *s, const struct results *results);
void run_print_faster(struct sheet *s, const struct results *results);
/* The same as a list of objects, and the table of their fields for docs/json.md. */
json_t *run_faster_rows(const struct results *results);
void run_faster_fields(FILE *out);

/* Returns the fence mode of the six lines, which is that of a program that selects none. */
enum op_fence run_default_fence(void);

#endif
