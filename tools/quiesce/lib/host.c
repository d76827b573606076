/* SPDX-License-Identifier: MIT */
/* host.c - the machine that a result was measured on, without its name. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tool.h"

#ifndef TOOL_BUILD_TYPE
#define TOOL_BUILD_TYPE "unknown"
#endif

static void read_cpu_model(char *model, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *value;

	snprintf(model, size, "unknown CPU");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) && strncmp(line, "Model", 5))
			continue;
		value = strchr(line, ':');
		if (!value)
			continue;
		value[strcspn(value, "\n")] = '\0';
		snprintf(model, size, "%s", value + 1 + strspn(value + 1, " \t"));
		break;
	}
	if (f)
		fclose(f);
}

void host_read(struct host *ret)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	read_cpu_model(ret->cpu, sizeof(ret->cpu));
	ret->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		snprintf(ret->kernel, sizeof(ret->kernel), "unknown");
	else
		snprintf(ret->kernel, sizeof(ret->kernel), "%u.%u", major, minor);
}

const char *host_build_type(void)
{
	return TOOL_BUILD_TYPE;
}
