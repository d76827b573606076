/* SPDX-License-Identifier: MIT */
/* run.h - all measurements side by side: the parts (run.c), six lines (run_headline.c), and tables (run_tables.c). */
#ifndef QUIESCE_TOOL_RUN_H
#define QUIESCE_TOOL_RUN_H

#include "sheet.h"
#include "tool.h"
#include "registry.h"

#define RUN_YARDSTICK "liburcu_memb"
#define RUN_LOOKUP_YARDSTICK "spinlock"
#define RUN_TAIL 10 /* a 99th percentile stands beside the median from this multiple of it on */

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

/* Returns the fence mode of the six lines, which is that of a program that selects none. */
enum op_fence run_default_fence(void);

#endif
