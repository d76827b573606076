/* SPDX-License-Identifier: MIT */
/* place.h - paths of files that belong to the tool: beside it in the build, or where both are installed. */
#ifndef QUIESCE_TOOL_PLACE_H
#define QUIESCE_TOOL_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define PLACE_MAX 8192

/* Stores the path of the tool itself. */
bool place_self(char *path, size_t size);
/* Makes later calls search beside @program. */
void place_beside(const char *program);
/* @in_build: relative to the tool's directory; @installed: below libexec/quiesce of its prefix.  Returns false if the
 * file is at neither place; @path is the second one then. */
bool place_find(char *path, size_t size, const char *in_build, const char *installed);

#endif
