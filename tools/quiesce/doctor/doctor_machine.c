/* SPDX-License-Identifier: MIT */
/* doctor_machine.c - CPUs, limits, restartable sequences, versions. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <quiesce/control.h>

#include "cgroup.h"
#include "doctor.h"

#if defined(__has_include) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
unsigned int rseq_registered(void)
{
	return __rseq_size;
}
#else
unsigned int rseq_registered(void)
{
	return 0;
}
#endif

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define RSEQ_MM_CID_END 28 /* end of the field mm_cid in the rseq area */
/* linux/prctl.h has this prctl() option since 7.0. */
#define RSEQ_SLICE_EXTENSION 79
#define RSEQ_SLICE_EXTENSION_GET 1

static void find_versions(struct findings *f)
{
	struct host host;
	int major, minor;

	host_read(&host);
	finding(f, "quiesce", NULL, "%s (headers %s)", quiesce_version(), QUIESCE_VERSION);
	finding(f, "C library", NULL, "glibc %s", gnu_get_libc_version());
	finding(f, "kernel", sscanf(host.kernel, "%d.%d", &major, &minor) == 2 && (major < 6 || (major == 6 && minor <= 12)) ?
		"up to 6.12 one system-wide mutex serialises the membarriers of all processes" : NULL, "%s", host.kernel);
}

/* Returns the first line of a small file, or NULL. */
static const char *first_line(const char *path)
{
	static char line[128];
	FILE *file = fopen(path, "re");
	bool good = file && fgets(line, sizeof(line), file);

	if (file)
		fclose(file);
	if (!good)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void find_quota(struct findings *f)
{
	const char *topic = "CPU limit of control groups";
	struct cgroup_limit limit;

	switch (cgroup_cpus("", &limit)) {
	case CGROUP_LIMIT:
		finding(f, topic, "a reader that is throttled delays every grace period", "%.2f CPUs (%s)", limit.value, limit.group);
		return;
	case CGROUP_NONE: finding(f, topic, NULL, "none"); return;
	default: finding(f, topic, NULL, "unknown: the control groups of this process cannot be read");
	}
}

static void find_cpus(struct findings *f)
{
	int allowed = cpus_online();

	finding(f, "CPUs", allowed == 1 ? "with one CPU a reader runs only while the updater does not" : NULL,
		"%d for this process, %ld online, %ld possible", allowed, sysconf(_SC_NPROCESSORS_ONLN),
		sysconf(_SC_NPROCESSORS_CONF));
	find_quota(f);
}

static void find_limit(struct findings *f, const char *topic, int resource, const char *note)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		finding(f, topic, NULL, "unknown: %s", strerror(errno));
	else if (limit.rlim_cur == RLIM_INFINITY)
		finding(f, topic, NULL, "unlimited");
	else
		finding(f, topic, note, "%llu", (unsigned long long)limit.rlim_cur);
}

static void find_limits(struct findings *f)
{
	const char *threads = first_line("/proc/sys/kernel/threads-max");

	find_limit(f, "limit of address space", RLIMIT_AS, "the registry of readers reserves address space it does not use");
	find_limit(f, "limit of processes", RLIMIT_NPROC, "without a worker thread the callers run the callbacks");
	finding(f, "threads of the system", NULL, "%s", threads ? threads : "unknown");
}

static void find_rseq(struct findings *f)
{
	unsigned long size = getauxval(AT_RSEQ_FEATURE_SIZE);

	finding(f, "rseq", NULL, "%s", rseq_registered() ? "registered by the C library" : "not registered by the C library");
	if (size)
		finding(f, "rseq features", "decided by AT_RSEQ_FEATURE_SIZE, not by the C library's __rseq_size",
			"%lu bytes, so %s concurrency ids (mm_cid)", size, size >= RSEQ_MM_CID_END ? "with" : "without");
	else
		finding(f, "rseq features", NULL, "not reported by the kernel (before 6.3)");
}

/* Kernels from 7.0 on may extend a thread's time slice on request. */
static void find_time_slices(struct findings *f)
{
	int state = prctl(RSEQ_SLICE_EXTENSION, RSEQ_SLICE_EXTENSION_GET, 0, 0, 0);

	finding_of(f, "time slices of rseq", (const struct choice[]){
		{ state >= 0, "the kernel can extend them", "the library does not ask: docs/platforms.md says why" },
		{ errno == EINVAL, "the kernel cannot extend them (before 7.0)", NULL },
		{ errno == ENXIO, "the kernel can extend them, but rseq is not registered", NULL },
		{ true, "the kernel cannot extend them: not built in, or disabled", NULL },
	});
}

void doctor_machine(struct findings *f)
{
	find_versions(f);
	find_cpus(f);
	find_limits(f);
	find_rseq(f);
	find_time_slices(f);
}
