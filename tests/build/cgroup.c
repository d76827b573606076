/* SPDX-License-Identifier: MIT */
/* cgroup.c - the tool finds the tightest limit of the control groups of a process, in a tree of files that the test writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cgroup.h"

static char root[PATH_MAX];
static int nr_tests, nr_failed;

/* Write @text to the file at @path below the root, and create the directories on the way. */
static void put(const char *path, const char *text)
{
	char whole[2 * PATH_MAX];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		mkdir(whole, 0700);
	}
	file = fopen(whole, "w");
	if (!file || fputs(text, file) < 0 || fclose(file))
		exit(2);
}

static void begin(const char *cgroup)
{
	snprintf(root, sizeof(root), "%s/quiesce-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(root))
		exit(2);
	put("/proc/self/cgroup", cgroup);
}

/* Compare what is found with the tightest @value in @group; 0 is no limit, a negative value that nothing can be read. */
static void end(const char *what, enum cgroup_found (*find)(const char *, struct cgroup_limit *), double value, const char *group)
{
	enum cgroup_found wanted = value > 0 ? CGROUP_LIMIT : value < 0 ? CGROUP_UNKNOWN : CGROUP_NONE, found;
	struct cgroup_limit limit = { 0 };
	char command[2 * PATH_MAX];
	bool good;

	found = find(root, &limit);
	good = found == wanted && (found != CGROUP_LIMIT || (limit.value == value && !strcmp(limit.group, group)));
	printf("%sok %d - %s\n", good ? "" : "not ", ++nr_tests, what);
	if (!good)
		fprintf(stderr, "%s: found %d, %g in '%s'\n", what, found, limit.value, limit.group);
	nr_failed += !good;
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	if (system(command))
		exit(2);
}

static void test_version_2(void)
{
	begin("0::/web.slice/nginx.service\n");
	put("/sys/fs/cgroup/web.slice/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/web.slice/nginx.service/cpu.max", "max 100000\n");
	end("the quota of a slice above the service", cgroup_cpus, 1.5, "/web.slice");

	begin("0::/web.slice/nginx.service\n");
	put("/sys/fs/cgroup/web.slice/cpu.max", "150000 100000\n");
	put("/sys/fs/cgroup/web.slice/nginx.service/cpu.max", "25000 50000\n");
	end("the tightest of two quotas", cgroup_cpus, 0.5, "/web.slice/nginx.service");

	begin("0::/user.slice\n");
	put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
	end("no quota", cgroup_cpus, 0, "");

	begin("0::/\n");
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	end("the quota at the root of a container", cgroup_cpus, 2, "/");

	begin("0::/../../outside\n");
	put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
	put("/outside/cpu.max", "1000 100000\n");
	end("a path that leads out of the container is not followed", cgroup_cpus, 2, "/");

	begin("0::/a\n");
	put("/sys/fs/cgroup/a/memory.max", "1048576\n");
	end("a limit of memory", cgroup_memory, 1048576, "/a");
}

static void test_version_1(void)
{
	begin("4:memory:/box\n3:cpuacct,cpu:/box\n2:cpuset:/\n");
	put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	end("a quota of version 1", cgroup_cpus, 0.5, "/box");

	begin("2:cpuset:/a\n1:cpuacct:/a\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	end("a controller whose name begins with the same letters has no quota", cgroup_cpus, -1, "");

	begin("4:memory:/box\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	end("the number that means no limit of memory", cgroup_memory, 0, "");

	begin("5:cpu:/a\n0::/b\n");
	put("/sys/fs/cgroup/unified/b/cpu.max", "30000 60000\n");
	end("version 2 beside version 1", cgroup_cpus, 0.5, "/b");
}

int main(void)
{
	test_version_2();
	test_version_1();
	begin("");
	end("no control group", cgroup_cpus, -1, "");
	printf("1..%d\n", nr_tests);
	return nr_failed != 0;
}
