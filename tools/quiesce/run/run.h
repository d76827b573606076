/* SPDX-License-Identifier: MIT */
/* run.h - the headline: what is measured (run.c), and its tables (run_tables.c). */
#ifndef QUIESCE_TOOL_RUN_H
#define QUIESCE_TOOL_RUN_H

#include "tool.h"

#define RUN_YARDSTICK "liburcu_memb"
#define RUN_LOOKUP_YARDSTICK "spinlock"

/* The types of the document's table, NULL at the end; how many readers run beside its updater. */
extern const char *const run_document_types[];
int run_document_readers(void);

/* Types of the table of ways to hold one object; of locks and counts; those that are not in the table of readers because
 * they are in one of these; locks that bursts are for. */
extern const char *const run_hazard_types[], *const run_lock_types[], *const run_no_reads[], *const run_burst_types[];
bool run_listed(const char *const *list, const char *name);

extern const struct hash_plan run_hash_plan;

struct sheet;
void run_print(FILE *out, bool markdown, const struct results *results);
void run_print_bursts(struct sheet *s, const struct results *results); /* run_bursts.c */

#endif
