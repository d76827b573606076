/* SPDX-License-Identifier: MIT */
/* number.h - a number of the command line. */
#ifndef QUIESCE_TOOL_NUMBER_H
#define QUIESCE_TOOL_NUMBER_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* True if all of @text is a number from @min to @max, which is stored to *@ret. */
static inline bool number_read(const char *text, double min, double max, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(text, &end);
	return end != text && !*end && !errno && isfinite(*ret) && *ret >= min && *ret <= max;
}

#endif
