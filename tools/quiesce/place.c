/* SPDX-License-Identifier: MIT */
/* place.c - what belongs to the tool and is not in it. */
#include "place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef TOOL_LIBEXEC
#define TOOL_LIBEXEC "../libexec/quiesce" /* from the tool's directory */
#endif

bool place_self(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	return true;
}

bool place_find(char *path, size_t size, const char *in_build, const char *installed)
{
	char self[PLACE_MAX / 2];
	char *slash = place_self(self, sizeof(self)) ? strrchr(self, '/') : NULL;

	if (!slash)
		return false;
	*slash = '\0';
	snprintf(path, size, "%s/%s", self, in_build);
	if (!access(path, F_OK))
		return true;
	snprintf(path, size, "%s/" TOOL_LIBEXEC "/%s", self, installed);
	return !access(path, F_OK);
}
