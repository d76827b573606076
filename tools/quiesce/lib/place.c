/* SPDX-License-Identifier: MIT */
/* place.c - paths of files that belong to the tool. */
#include "place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TOOL_LIBEXEC
#define TOOL_LIBEXEC "../libexec/quiesce" /* relative to the tool's directory */
#endif

static const char *program = "/proc/self/exe";

void place_beside(const char *other)
{
	program = other;
}

bool place_self(char *path, size_t size)
{
	char real[PATH_MAX];

	return realpath(program, real) && (size_t)snprintf(path, size, "%s", real) < size;
}

bool place_find(char *path, size_t size, const char *in_build, const char *installed)
{
	char self[PATH_MAX];
	char *slash = place_self(self, sizeof(self)) ? strrchr(self, '/') : NULL;

	if (!slash)
		return false;
	*slash = '\0';
	snprintf(path, size, "%s/%s", self, in_build);
	if (!access(path, F_OK))
		return true;
	if (TOOL_LIBEXEC[0] == '/')
		snprintf(path, size, TOOL_LIBEXEC "/%s", installed);
	else
		snprintf(path, size, "%s/" TOOL_LIBEXEC "/%s", self, installed);
	return !access(path, F_OK);
}
