/* SPDX-License-Identifier: MIT */
/* place.h - what belongs to the tool and is not in it: beside it in the build, or where both are installed. */
#ifndef QUIESCE_TOOL_PLACE_H
#define QUIESCE_TOOL_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define PLACE_MAX 8192

/* The tool's own path. */
bool place_self(char *path, size_t size);
/* Look beside @program instead. */
void place_beside(const char *program);
/* @in_build: from the tool's directory; @installed: below libexec/quiesce of its prefix.  False: it is at neither
 * place, and @path is the second one. */
bool place_find(char *path, size_t size, const char *in_build, const char *installed);

#endif
