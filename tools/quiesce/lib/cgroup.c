/* SPDX-License-Identifier: MIT */
/* cgroup.c - the tightest limit on the way from the process's control group to the root.
 *
 * /proc/self/cgroup has a line for each hierarchy: "0::/PATH" for version 2, "NUMBER:CONTROLLER,...:/PATH"
 * for version 1.  Version 2 is mounted at /sys/fs/cgroup, or at unified below it beside version 1. */
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNLIMITED 1e18 /* memory.limit_in_bytes of a group without a limit is nearly 2^63 */

/* A controller: its name in version 1, and a reader for the files of one directory in each version, which returns false
 * if they are not there, and stores UNLIMITED if they have no limit. */
struct controller {
	const char *name;
	bool (*read_v2)(const char *directory, double *value);
	bool (*read_v1)(const char *directory, double *value);
};

static bool read_words(const char *directory, const char *name, const char *format, void *first, void *second)
{
	char path[PATH_MAX];
	FILE *file;
	int nr;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	nr = second ? fscanf(file, format, first, second) : fscanf(file, format, first);
	fclose(file);
	return nr == (second ? 2 : 1);
}

/* The file has a quota and a period in microseconds; the quota "max" is none. */
static bool cpu_v2(const char *directory, double *value)
{
	char quota[32];
	double period;

	if (!read_words(directory, "cpu.max", "%31s %lf", quota, &period) || period <= 0)
		return false;
	*value = strcmp(quota, "max") ? strtod(quota, NULL) / period : UNLIMITED;
	return true;
}

/* A quota of -1 is none. */
static bool cpu_v1(const char *directory, double *value)
{
	double quota, period;

	if (!read_words(directory, "cpu.cfs_quota_us", "%lf", &quota, NULL) ||
	    !read_words(directory, "cpu.cfs_period_us", "%lf", &period, NULL) || period <= 0)
		return false;
	*value = quota > 0 ? quota / period : UNLIMITED;
	return true;
}

static bool memory_v2(const char *directory, double *value)
{
	char bytes[32];

	if (!read_words(directory, "memory.max", "%31s", bytes, NULL))
		return false;
	*value = strcmp(bytes, "max") ? strtod(bytes, NULL) : UNLIMITED;
	return true;
}

static bool memory_v1(const char *directory, double *value)
{
	return read_words(directory, "memory.limit_in_bytes", "%lf", value, NULL);
}

static const struct controller cpu = { "cpu", cpu_v2, cpu_v1 }, memory = { "memory", memory_v2, memory_v1 };

/* Search the groups from @group, a path below the directory @top, up to the root of the hierarchy.  Inside a container the path
 * may be one of the host, of which only the root is visible, so a directory that is missing is skipped. */
static enum cgroup_found tightest(const char *top, char *group, bool (*read)(const char *, double *), struct cgroup_limit *limit)
{
	enum cgroup_found found = CGROUP_UNKNOWN;
	char path[PATH_MAX];
	double value;

	for (;;) {
		if (!strstr(group, "/..") && snprintf(path, sizeof(path), "%s%s", top, group) < (int)sizeof(path) && read(path, &value)) {
			if (found == CGROUP_UNKNOWN)
				found = CGROUP_NONE;
			if (value < UNLIMITED && (found != CGROUP_LIMIT || value < limit->value)) {
				found = CGROUP_LIMIT;
				limit->value = value;
				snprintf(limit->group, sizeof(limit->group), "%s", *group ? group : "/");
			}
		}
		if (!*group)
			return found;
		*strrchr(group, '/') = '\0';
	}
}

static bool is_in(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = names; (at = strstr(at, name)); at += length)
		if ((at == names || at[-1] == ',') && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

/* The limit by one line of /proc/self/cgroup, whose parts are @names and @group. */
static enum cgroup_found limit_of(const char *root, const struct controller *controller, const char *names, char *group,
				  struct cgroup_limit *limit)
{
	static const char *const version2[] = { "", "/unified" };
	enum cgroup_found found = CGROUP_UNKNOWN;
	char top[PATH_MAX], copy[PATH_MAX];

	group[strcspn(group, "\n")] = '\0';
	if (!strcmp(group, "/"))
		*group = '\0'; /* the root */
	for (size_t i = 0; !*names && i < 2 && found == CGROUP_UNKNOWN; i++) {
		snprintf(top, sizeof(top), "%s/sys/fs/cgroup%s", root, version2[i]);
		snprintf(copy, sizeof(copy), "%s", group);
		found = tightest(top, copy, controller->read_v2, limit);
	}
	if (*names && is_in(names, controller->name)) {
		snprintf(top, sizeof(top), "%s/sys/fs/cgroup/%s", root, controller->name);
		found = tightest(top, group, controller->read_v1, limit);
	}
	return found;
}

static enum cgroup_found find(const char *root, const struct controller *controller, struct cgroup_limit *limit)
{
	enum cgroup_found found = CGROUP_UNKNOWN;
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	if (!file)
		return CGROUP_UNKNOWN;
	/* A controller is in one hierarchy, so at most one line has its limit. */
	while (found != CGROUP_LIMIT && getline(&line, &size, file) > 0) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
		enum cgroup_found one;

		if (!group || group[1] != '/')
			continue;
		*group = '\0';
		one = limit_of(root, controller, names + 1, group + 1, limit);
		if (one != CGROUP_UNKNOWN)
			found = one;
	}
	free(line);
	fclose(file);
	return found;
}

enum cgroup_found cgroup_cpus(const char *root, struct cgroup_limit *limit)
{
	return find(root, &cpu, limit);
}

enum cgroup_found cgroup_memory(const char *root, struct cgroup_limit *limit)
{
	return find(root, &memory, limit);
}
