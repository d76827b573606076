/* SPDX-License-Identifier: MIT */
/* turns.c - a heavy fence without membarrier: the caller runs, in turn, on each CPU where another thread of
 * the process was.
 *
 * A switch from one thread to another is a full fence for both, and restarts restartable sequences.
 *
 * I1. A thread that runs without interruption since the call began does so on one CPU, which the kernel names
 *     whenever it is read. A thread that leaves its CPU is switched out.
 * I2. When the caller runs on that CPU, the thread does not.  So it has left the CPU since the call began, or
 *     did not run.
 * I3. A thread that is created meanwhile starts after the beginning of the call, by system calls.
 * I4. The kernel ends a list of threads early if the thread that it has just listed is gone.  So a list is
 *     valid only if all threads in it exist after it was read.
 */
#define _GNU_SOURCE
#include "platform/platform.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TASKS "/proc/self/task"
#define TRIES 10000 /* tries at intervals of 1 ms, while threads start and end, or files or memory are exhausted */
#define FIRST_BYTES ((size_t)65536)
#define MAX_BYTES ((size_t)256 << 20)
#define CPU_FIELD 39 /* field of /proc/PID/stat */
#define NR_CPUS (8 * sizeof(struct platform_cpus))

struct list {
	char *entries; /* result of getdents64() */
	size_t bytes, capacity;
};

/* The kernel's struct linux_dirent64 has this layout on 64-bit systems. */
static long tid_of(const struct dirent *entry)
{
	return strtol(entry->d_name, NULL, 10); /* 0: "." or ".." */
}

/* ---- the list of threads ---- */

static int read_list(int dir, struct list *l)
{
	long n;

	l->bytes = 0;
	while ((n = syscall(SYS_getdents64, dir, l->entries + l->bytes, l->capacity - l->bytes)) > 0)
		l->bytes += (size_t)n;
	return n < 0 ? -errno : 0;
}

static int list_threads(struct list *l)
{
	int dir = (int)syscall(SYS_openat, AT_FDCWD, TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 ? -errno : read_list(dir, l);

	if (dir >= 0)
		syscall(SYS_close, dir);
	return err;
}

/* The next entry after @at, NULL: the first one; returns NULL at the end. */
static const struct dirent *next_entry(const struct list *l, const struct dirent *at)
{
	const char *next = at ? (const char *)at + at->d_reclen : l->entries;

	return next < l->entries + l->bytes ? (const struct dirent *)(const void *)next : NULL;
}

/* True if the list is valid (I4). */
static bool all_are_there(const struct list *l)
{
	for (const struct dirent *e = next_entry(l, NULL); e; e = next_entry(l, e))
		if (tid_of(e) && syscall(SYS_tgkill, getpid(), tid_of(e), 0) && errno == ESRCH)
			return false;
	return true;
}

/* ---- the CPUs of threads ---- */

/* Find the CPU on which thread @tid runs, or ran last; NR_CPUS: it has ended. */
static int find_cpu(long tid, size_t *ret)
{
	char path[48], text[1024], *at;
	int field = 2;

	snprintf(path, sizeof path, TASKS "/%ld/stat", tid);
	*ret = NR_CPUS;
	if (!platform_read_file(path, text, sizeof text))
		return syscall(SYS_tgkill, getpid(), tid, 0) && errno == ESRCH ? 0 : -EMFILE;
	for (at = strrchr(text, ')'); at && field < CPU_FIELD; field++) /* the name before it may contain any character */
		at = strchr(at + 1, ' ');
	if (!at)
		return -ENOSYS;
	*ret = strtoul(at, NULL, 10);
	return *ret < NR_CPUS ? 0 : -ENOSYS;
}

static int find_cpus(const struct list *l, struct platform_cpus *ret)
{
	size_t cpu;
	int err;

	memset(ret, 0, sizeof *ret);
	for (const struct dirent *e = next_entry(l, NULL); e; e = next_entry(l, e)) {
		if (!tid_of(e))
			continue;
		err = find_cpu(tid_of(e), &cpu);
		if (err)
			return err;
		if (cpu < NR_CPUS)
			ret->bits[cpu / PLATFORM_CPUS_PER_WORD] |= 1ul << cpu % PLATFORM_CPUS_PER_WORD;
	}
	return 0;
}

static int cpus_of_threads(struct list *l, struct platform_cpus *ret)
{
	int err = list_threads(l);

	if (err)
		return err;
	return all_are_there(l) ? find_cpus(l, ret) : -EAGAIN;
}

/* Retry while threads end or resources are exhausted; -EINVAL: the buffer is too small for the list. */
static int try_for_long(struct list *l, struct platform_cpus *ret)
{
	struct timespec pause = { .tv_sec = 0, .tv_nsec = 1000000 };
	int err = cpus_of_threads(l, ret);

	for (int i = 0; i < TRIES && (err == -EAGAIN || err == -EMFILE || err == -ENFILE || err == -ENOMEM); i++) {
		syscall(SYS_nanosleep, &pause, NULL);
		err = cpus_of_threads(l, ret);
	}
	return err;
}

static int where_threads_are(struct platform_cpus *ret)
{
	int err = -EINVAL;

	for (size_t capacity = FIRST_BYTES; err == -EINVAL && capacity <= MAX_BYTES; capacity *= 4) {
		struct list l = { .entries = platform_pages_get(capacity), .capacity = capacity };

		if (!l.entries)
			return -ENOMEM;
		err = try_for_long(&l, ret);
		platform_pages_put(l.entries, capacity);
	}
	return err;
}

/* ---- turns ---- */

static bool is_offline(size_t cpu)
{
	struct platform_cpus online;

	return platform_cpus_of_list("cpu/online", &online) &&
	       !(online.bits[cpu / PLATFORM_CPUS_PER_WORD] >> cpu % PLATFORM_CPUS_PER_WORD & 1);
}

/* When the call returns the caller runs on @cpu.  A concurrent change of the caller's CPUs by the program is
 * detected. */
static int take_turn(size_t cpu)
{
	struct platform_cpus only = { .bits = { 0 } };
	unsigned int here;
	int err;

	only.bits[cpu / PLATFORM_CPUS_PER_WORD] = 1ul << cpu % PLATFORM_CPUS_PER_WORD;
	if (syscall(SYS_sched_setaffinity, 0, sizeof only, only.bits) == 0)
		return syscall(SYS_getcpu, &here, NULL, NULL) ? -errno : here == cpu ? 0 : -EAGAIN;
	err = -errno;
	return err == -EINVAL && is_offline(cpu) ? 0 : err;
}

static int take_turns(const struct platform_cpus *cpus)
{
	int err = 0;

	for (size_t cpu = 0; cpu < NR_CPUS && !err; cpu++) {
		if (!(cpus->bits[cpu / PLATFORM_CPUS_PER_WORD] >> cpu % PLATFORM_CPUS_PER_WORD & 1))
			continue;
		for (int i = 0; i < TRIES && (!i || err == -EAGAIN); i++)
			err = take_turn(cpu);
	}
	return err;
}

static int fence_by_turns(void)
{
	struct platform_cpus cpus, mine;
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mine, mine.bits);
	int err = bytes < 0 ? -errno : where_threads_are(&cpus);

	if (err)
		return err;
	err = take_turns(&cpus);
	syscall(SYS_sched_setaffinity, 0, bytes, mine.bits);
	return err;
}

int platform_fence_by_turns(void)
{
	struct platform_sigmask mask;
	int saved = errno, err;

	platform_signals_block(&mask); /* a signal handler might run for long, on CPUs that its program did not choose */
	quiesce__arch_fence_full();
	err = fence_by_turns();
	quiesce__arch_fence_full();
	platform_signals_restore(&mask);
	errno = saved;
	return err;
}
