/* SPDX-License-Identifier: MIT */
/* emit.h - output for subcommands whose rows have additional columns. */
#ifndef QUIESCE_TOOL_EMIT_H
#define QUIESCE_TOOL_EMIT_H

#include <jansson.h>

#include "tool.h"

/* Returns all rows, each with the columns of its subcommand. */
json_t *emit_rows(const struct results *results);
/* Print @rows, whose reference the call takes over, as comma-separated values with the host's fields. */
void emit_rows_csv(FILE *out, json_t *rows);
/* The JSON object of a run: @rows, whose reference the call takes over, the host, and notes. */
json_t *emit_document(json_t *rows, const struct results *notes);
void emit_document_print(FILE *out, json_t *document);

/* Print the results in the chosen format; @table prints a table for each
 * scenario and number of threads, from its first row on. */
void emit_by_scenario(FILE *out, const struct options *options, const struct results *results,
		      void (*table)(FILE *out, const struct results *results, const struct cell *first));

#endif
