/* SPDX-License-Identifier: MIT */
/* emit.h - for subcommands whose rows have more columns than the others'. */
#ifndef QUIESCE_TOOL_EMIT_H
#define QUIESCE_TOOL_EMIT_H

#include <jansson.h>

#include "tool.h"

/* The columns that all rows have. */
json_t *emit_row(const struct cell *c);
/* The whole object, around @rows, which is used up. */
void emit_rows(FILE *out, json_t *rows, const struct results *results);

#endif
