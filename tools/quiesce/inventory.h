/* SPDX-License-Identifier: MIT */
/* inventory.h - `quiesce types`, which is for scripts and has no help. */
#ifndef QUIESCE_TOOL_INVENTORY_H
#define QUIESCE_TOOL_INVENTORY_H

#include "tool.h"

/* Prints the types of @commands.  Returns the exit status. */
int inventory(const struct subcommand *const *commands, size_t nr);

#endif
