/* SPDX-License-Identifier: MIT */
/* run.h - everything side by side: what is measured (run.c), six lines (run_headline.c), and tables (run_tables.c). */
#ifndef QUIESCE_TOOL_RUN_H
#define QUIESCE_TOOL_RUN_H

#include "sheet.h"
#include "tool.h"

#define RUN_YARDSTICK "liburcu_memb"
#define RUN_LOOKUP_YARDSTICK "spinlock"

/* How many readers run beside the updater of the document's table. */
int run_document_readers(void);

/* Lists of types end with NULL. */
bool run_listed(const char *const *list, const char *name);
extern const char *const run_document_types[], *const run_burst_types[];
/* Of the tables of ways to hold one object, and of locks and counts; those that are not in the table of readers because they
 * are in one of these. */
extern const char *const run_hazard_types[], *const run_lock_types[], *const run_no_reads[];

/* What comes before a table: @s begins with it. */
void run_print_head(struct sheet *s);
/* Each prints what there is in @results of it, or nothing. */
void run_print_headline(struct sheet *s, const struct results *results);
void run_print_document(struct sheet *s, const struct results *results);
void run_print_same(struct sheet *s, const struct results *results);
void run_print_others(struct sheet *s, const struct results *results);
void run_print_reads(struct sheet *s, const struct results *results);
void run_print_bursts(struct sheet *s, const struct results *results);
void run_print_retire(struct sheet *s, const struct results *results);
void run_print_lookups(struct sheet *s, const struct results *results);

/* The fence mode that the six lines are about: what programs have that ask for none. */
enum op_fence run_default_fence(void);

#endif
