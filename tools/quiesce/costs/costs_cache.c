/* SPDX-License-Identifier: MIT */
/* costs_cache.c - the latency of a load whose address is the result of the load before it.
 *
 * A ring of pointers passes through every line of an area, in an order that no prefetcher predicts.  The sizes of the
 * areas come from the kernel's description of the caches: half of a level fits into it with certainty, four times the
 * last level is mostly outside of it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "cgroup.h"
#include "costs.h"
#include "team.h"

#define LINE 64
#define HUGE_BYTES (2u << 20)
#define MOST_BYTES (1ull << 30)
#define STEPS 16 /* loads in one turn */

enum level { LEVEL_1 = 1, LEVEL_2, LEVEL_3, LEVEL_MEMORY };

/* ---- sizes ---- */

/* The number of bytes in a small file, such as "48K"; 0: it has no number ("max"). */
static uint64_t read_bytes(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long value = 0;
	char unit = '\0';

	if (f && fscanf(f, "%llu%c", &value, &unit) < 1)
		value = 0;
	if (f)
		fclose(f);
	return value << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

/* Returns the size of the data cache of @level, from the kernel or else from the C library; 0: unknown, or no such cache. */
static uint64_t cache_bytes(enum level level)
{
	static const int name[] = { 0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE };
	char path[128], type[16];
	long reported;

	for (int i = 0; i < 8; i++) {
		FILE *f;
		bool data;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cost_cpu_number(0), i);
		if (read_bytes(path) != (uint64_t)level)
			continue;
		strcpy(strrchr(path, '/'), "/type");
		f = fopen(path, "re");
		data = f && fscanf(f, "%15s", type) == 1 && strcmp(type, "Instruction") != 0;
		if (f)
			fclose(f);
		strcpy(strrchr(path, '/'), "/size");
		if (data)
			return read_bytes(path);
	}
	reported = sysconf(name[level]);
	return reported > 0 ? (uint64_t)reported : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes of memory that may be used without harm to other processes. */
static uint64_t spare_bytes(void)
{
	uint64_t free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
	struct cgroup_limit limit;

	return least(MOST_BYTES, cgroup_memory("", &limit) == CGROUP_LIMIT ? least(free, (uint64_t)limit.value / 2) : free);
}

static uint64_t power_of_two(uint64_t n)
{
	return n ? 1ull << (63 - __builtin_clzll(n)) : 0;
}

/* The size of the area that measures @level; 0: there is no such level, or its size is unknown. */
static uint64_t bytes_for(enum level level)
{
	uint64_t l2 = cache_bytes(LEVEL_2), l3 = cache_bytes(LEVEL_3), last = l3 ? l3 : l2;

	switch (level) {
	case LEVEL_3: return power_of_two(least(l3 / 2, 4 * l2));
	case LEVEL_MEMORY: return power_of_two(least(last ? 4 * last : MOST_BYTES, spare_bytes()));
	default: return power_of_two(cache_bytes(level) / 2);
	}
}

/* ---- the ring ---- */

struct area {
	char *map;
	uint64_t map_bytes;
	char *start;
	uint64_t bytes; /* size of the area, a power of two */
};

static void **ring; /* current position of the walk */

/* A pseudo-random permutation: maps each number below @nr, a power of two, to another one. */
static uint64_t shuffled(uint64_t i, uint64_t nr)
{
	int half = (63 - __builtin_clzll(nr)) / 2 + 1;

	i = (i * 0x9e3779b97f4a7c15u) & (nr - 1);
	i ^= i >> half;
	i = (i * 0xd6e8feb86659fd93u) & (nr - 1);
	i ^= i >> half;
	return i;
}

static void **place(const struct area *a, uint64_t i)
{
	return (void **)(a->start + shuffled(i, a->bytes / LINE) * LINE);
}

static void build(const struct area *a)
{
	uint64_t nr = a->bytes / LINE;
	void **last = place(a, nr - 1);

	for (uint64_t i = 0; i < nr; i++) {
		void **next = place(a, i);

		*last = next;
		last = next;
	}
	ring = last;
}

static void walk(uint64_t turns)
{
	void **p = ring;

	while (turns--) {
		p = *p, p = *p, p = *p, p = *p;
		p = *p, p = *p, p = *p, p = *p;
		p = *p, p = *p, p = *p, p = *p;
		p = *p, p = *p, p = *p, p = *p;
	}
	ring = p;
}

/* ---- pages ---- */

static bool take_area(struct area *a, uint64_t bytes, bool huge)
{
	uint64_t whole = bytes < HUGE_BYTES ? HUGE_BYTES : bytes;

	a->bytes = bytes;
	a->map_bytes = whole + HUGE_BYTES;
	a->map = mmap(NULL, a->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->map == MAP_FAILED)
		return false;
	a->start = a->map + (-(uintptr_t)a->map & (HUGE_BYTES - 1));
	madvise(a->start, whole, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	madvise(a->start, bytes, MADV_POPULATE_WRITE); /* faster than page by page; a failure does no harm */
#endif
	return true;
}

/* Number of bytes at @start that are in huge pages. */
static uint64_t huge_bytes(const void *start)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long long from, to, kb = 0;
	bool here = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
			here = (uintptr_t)start >= from && (uintptr_t)start < to;
		else if (here && sscanf(line, "AnonHugePages: %llu kB", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

/* ---- */

/* Walk once through the area, to fill the cache; the walk has to end where it began. */
static bool warm_up(const struct area *a)
{
	void **begin = ring;

	for (int i = 0; i < 2; i++) {
		walk(a->bytes / LINE / STEPS);
		if (ring != begin)
			return false;
	}
	return true;
}

static int measure(const struct cost *cost, const struct job *job, enum level level, bool huge)
{
	uint64_t bytes = bytes_for(level);
	struct area a;

	if (!bytes) {
		job_send_note("left out: no such cache here, or its size is unknown");
		return EXIT_UNAVAILABLE;
	}
	if (level == LEVEL_MEMORY && bytes < 2 * cache_bytes(LEVEL_3) && job->round == 0)
		job_send_note("only %llu MB can be spared, part of which are in the cache", (unsigned long long)bytes >> 20);
	if (!take_area(&a, bytes, huge)) {
		job_send_note("left out: no memory");
		return EXIT_UNAVAILABLE;
	}
	build(&a);
	job_flush();
	if (huge && huge_bytes(a.start) < bytes / 2) {
		job_send_note("left out: the kernel gives no huge pages");
		return EXIT_UNAVAILABLE;
	}
	if (level != LEVEL_MEMORY && !warm_up(&a)) {
		job_send_note("BROKEN: the walk does not come round");
		return EXIT_FAILED;
	}
	job_send_metric(SCENARIO_COST, COST_BYTES, 1, job->round, (double)bytes);
	cost_simple(cost, job);
	munmap(a.map, a.map_bytes);
	return 0;
}

#define CACHE(symbol, level, huge, text, ...)                                                            \
	static int measure_##symbol(const struct cost *cost, const struct job *job)                      \
	{                                                                                                \
		return measure(cost, job, level, huge);                                                  \
	}                                                                                                \
	const struct cost cost_##symbol = { .op = { .name = #symbol, .what = text }, .measure = measure_##symbol, \
					    .batch = walk, .per_turn = STEPS, ##__VA_ARGS__ }

CACHE(l1, LEVEL_1, false, "a load whose address the last one brought, from L1");
CACHE(l2, LEVEL_2, false, "a load whose address the last one brought, from L2", .article = 12.9);
CACHE(l2_huge, LEVEL_2, true, "a load whose address the last one brought, from L2 with huge pages");
CACHE(l3, LEVEL_3, false, "a load whose address the last one brought, from L3");
CACHE(l3_huge, LEVEL_3, true, "a load whose address the last one brought, from L3 with huge pages");
CACHE(memory, LEVEL_MEMORY, false, "a load whose address the last one brought, from memory", .article = 162.4);
CACHE(memory_huge, LEVEL_MEMORY, true, "a load whose address the last one brought, from memory with huge pages");
