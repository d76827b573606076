/* SPDX-License-Identifier: MIT */
/* emit.h - for subcommands whose rows have more columns than the others'. */
#ifndef QUIESCE_TOOL_EMIT_H
#define QUIESCE_TOOL_EMIT_H

#include <jansson.h>

#include "tool.h"

/* Every row, with the columns of its subcommand. */
json_t *emit_rows(const struct results *results);
/* @rows, whose reference it takes, as comma-separated values, and the host's fields. */
void emit_rows_csv(FILE *out, json_t *rows);
/* The JSON object of a run: @rows, whose reference it takes, the host, and notes. */
json_t *emit_document(json_t *rows, const struct results *notes);
void emit_document_print(FILE *out, json_t *document);

/* In the format asked for; of tables one for each scenario and number of threads, printed by @table from its first row on. */
void emit_by_scenario(FILE *out, const struct options *options, const struct results *results,
		      void (*table)(FILE *out, const struct results *results, const struct cell *first));

#endif
