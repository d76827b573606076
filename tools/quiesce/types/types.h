/* SPDX-License-Identifier: MIT */
/* types.h - `quiesce types`, which is for scripts and has no help. */
#ifndef QUIESCE_TOOL_TYPES_H
#define QUIESCE_TOOL_TYPES_H

#include "tool.h"

/* Prints the types of @commands.  Returns the exit status. */
int types_main(const struct subcommand *const *commands, size_t nr);

#endif
