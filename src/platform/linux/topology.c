/* SPDX-License-Identifier: MIT */
/* topology.c - how many CPUs there can be, and which of them this thread may call its own. */
#define _GNU_SOURCE
#include "../platform.h"

#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

/* The kernel's struct rseq, as far as it is used. */
struct rseq_area {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags;
	uint32_t node_id;
	uint32_t mm_cid;
};

int platform_nr_possible_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (int)n : 1;
}

/* glibc registers the rseq area of every thread and tells where; other libcs do not,
 * and then the area is nobody's or somebody else's: we leave it alone. */
extern __attribute__((weak)) const ptrdiff_t __rseq_offset;
extern __attribute__((weak)) const unsigned int __rseq_size;

static const volatile struct rseq_area *area(void)
{
	return (const volatile struct rseq_area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

enum platform_rseq_kind platform_rseq_kind(void)
{
	if (!&__rseq_size || __rseq_size == 0 || (int32_t)area()->cpu_id < 0)
		return PLATFORM_RSEQ_NONE;
	/* The kernel's word, not glibc's: its __rseq_size may be smaller than what the kernel fills. */
	if (getauxval(AT_RSEQ_FEATURE_SIZE) >= offsetof(struct rseq_area, mm_cid) + sizeof(uint32_t))
		return PLATFORM_RSEQ_MM_CID;
	return PLATFORM_RSEQ_CPU_ID;
}

uint32_t platform_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (uint32_t)cpu;
}

uint32_t platform_cpu_of(int64_t distance)
{
	int32_t cpu;

	if (platform_rseq_kind() == PLATFORM_RSEQ_NONE)
		return PLATFORM_NO_CPU;
	cpu = (int32_t)((const volatile struct rseq_area *)((const volatile char *)area() + distance))->cpu_id;
	return cpu < 0 ? PLATFORM_NO_CPU : (uint32_t)cpu;
}

int64_t platform_rseq_area(void)
{
	return platform_rseq_kind() == PLATFORM_RSEQ_NONE ? 0 : (int64_t)__rseq_offset;
}

int64_t platform_rseq_id(bool mm_cid)
{
	if (platform_rseq_kind() == PLATFORM_RSEQ_NONE)
		return 0;
	return (int64_t)(__rseq_offset + (ptrdiff_t)(mm_cid ? offsetof(struct rseq_area, mm_cid)
							    : offsetof(struct rseq_area, cpu_id)));
}
