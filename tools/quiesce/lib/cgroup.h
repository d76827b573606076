/* SPDX-License-Identifier: MIT */
/* cgroup.h - limits of the control groups that this process is in. */
#ifndef QUIESCE_TOOL_CGROUP_H
#define QUIESCE_TOOL_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* A limit applies to a group and all groups below it: of a slice, a service or a container, and
 * each of them may have one.  @group is the path of the group with the tightest one. */
struct cgroup_limit {
	double value;
	char group[PATH_MAX];
};

enum cgroup_found {
	CGROUP_UNKNOWN, /* no control group of this process can be read */
	CGROUP_NONE,    /* the groups of the process have no such limit */
	CGROUP_LIMIT,
};

/* The CPUs' worth of time that the process may consume (cpu.max, or cpu.cfs_quota_us of version 1),
 * and its bytes of memory (memory.max, memory.limit_in_bytes).  The paths /proc/self/cgroup and
 * /sys/fs/cgroup begin at @root: "" is this machine. */
enum cgroup_found cgroup_cpus(const char *root, struct cgroup_limit *limit);
enum cgroup_found cgroup_memory(const char *root, struct cgroup_limit *limit);

#endif
