/* SPDX-License-Identifier: MIT */
/* topology.c - the number of possible CPUs, and the CPU and concurrency id of a thread. */
#define _GNU_SOURCE
#include "platform/platform.h"
#include "file.h"
#include "renew.h"
#include "restarts.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

#define RSEQ_BYTES 32 /* the length that every kernel accepts */
/* The word that precedes the addresses where interrupted sequences begin anew.  On arm64 it is an instruction, whose bytes have one
 * order on every such CPU. */
#if defined(__aarch64__)
#define RSEQ_SIGNATURE (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 0x00bc28d4u : 0xd428bc00u)
#else
#define RSEQ_SIGNATURE 0x53053053u
#endif

/* The kernel's struct rseq, as far as the library uses it. */
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

/* ---- ids ---- */

#define MAX_IDS 65536u
#define IDS_UNKNOWN 8192u /* distributions build kernels for as many */

/* The kernel's CPU masks have a bit for each number that it was built for, and the call returns their length. */
static size_t nr_ids_of_masks(void)
{
	static unsigned char mask[MAX_IDS / 8];
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);

	return bytes > 0 ? 8 * (size_t)bytes : IDS_UNKNOWN;
}

/* The kernel prints such a mask with a digit for every four CPU numbers that this machine can have; 0:
 * unknown. */
static size_t nr_ids_of_status(void)
{
	static char text[16384];
	static const char name[] = "\nCpus_allowed:";
	size_t digits = 0;
	const char *at;

	platform_read_file("/proc/self/status", text, sizeof text);
	at = strstr(text, name);
	for (at = at ? at + strlen(name) : ""; *at && *at != '\n'; at++)
		digits += (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f');
	return 4 * digits;
}

/* Used where /proc is missing: containers replace this file less often. */
static size_t nr_ids_possible(void)
{
	static struct platform_cpus cpus;
	size_t nr = 0;

	if (!platform_cpus_of_list("cpu/possible", &cpus))
		return 0;
	for (size_t i = 0; i < 8 * sizeof cpus; i++)
		if (cpus.bits[i / PLATFORM_CPUS_PER_WORD] >> i % PLATFORM_CPUS_PER_WORD & 1)
			nr = i + 1;
	return nr;
}

size_t platform_nr_ids(size_t *ret_max)
{
	int saved = errno;
	size_t max = nr_ids_of_masks(), nr = nr_ids_of_status();

	if (!nr)
		nr = nr_ids_possible();
	errno = saved;
	*ret_max = max;
	return nr && nr < max ? nr : max;
}

/* ---- rseq ---- */

/* glibc registers the rseq area of every thread and exports its offset; other C libraries do not, and then
 * the area has another owner or none, and is not used. */
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
	/* The kernel's value, not glibc's: glibc's __rseq_size may be smaller than the part that the kernel
	 * fills. */
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

/* Returns true if the kernel restarts every sequence that it interrupts. */
static bool kernel_restarts(void)
{
#if defined(__aarch64__)
	struct utsname kernel;

	return uname(&kernel) == 0 && release_restarts_on_arm64(kernel.release);
#else
	return true;
#endif
}

static bool sequences_used; /* the library has read the offset of the area */

int64_t platform_rseq_area(void)
{
	sequences_used = platform_rseq_kind() != PLATFORM_RSEQ_NONE && kernel_restarts();
	return sequences_used ? (int64_t)__rseq_offset : 0;
}

/* The C library has registered the area of each thread, so a second registration fails.  If it succeeds,
 * sequences of this process have not been restarted since it was restored: two threads may have claimed one
 * slot, and counts may be lost. */
int platform_renew_rseq(void)
{
	int saved = errno;
	bool lost = sequences_used && syscall(SYS_rseq, area(), RSEQ_BYTES, 0, RSEQ_SIGNATURE) == 0;

	errno = saved;
	return lost ? -ESTALE : 0;
}

int64_t platform_rseq_id(bool mm_cid)
{
	if (platform_rseq_kind() == PLATFORM_RSEQ_NONE)
		return 0;
	return (int64_t)(__rseq_offset + (ptrdiff_t)(mm_cid ? offsetof(struct rseq_area, mm_cid)
							    : offsetof(struct rseq_area, cpu_id)));
}
