/* SPDX-License-Identifier: MIT */
/* yield.c - readers give up the CPU to those in the way of a wait. */
#include "yield.h"

#define SHARDS 64u
#define LOOK_EVERY 64u /* readers that are not meant, on a CPU: one of so many reads the clock */

/* By CPU: all readers may count at once. */
static struct {
	uint64_t nr __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t others;
} counts[SHARDS];

static bool reads_clock(uint32_t cpu)
{
	uint32_t others = quiesce_load_relaxed(&counts[cpu].others) + 1; /* Relaxed: if two count as one it is a little later. */

	quiesce_store_relaxed(&counts[cpu].others, others); /* Relaxed: as above. */
	return others % LOOK_EVERY == 0;
}

QUIESCE_COLD bool quiesce__yield(const struct quiesce__yield *yield)
{
	uint32_t cpu = platform_cpu() % SHARDS;
	bool meant = quiesce_load_relaxed(&yield->cpus) & 1ull << cpu; /* Relaxed: a request that comes a little late. */

	if (!meant && !reads_clock(cpu))
		return true;
	if (platform_now_ns() >= quiesce_load_relaxed(&yield->until)) /* Relaxed: as above. */
		return false;
	if (!meant)
		return true;
	quiesce_fetch_add_relaxed(&counts[cpu].nr, (uint64_t)1); /* Relaxed: counters order nothing. */
	platform_yield();
	return true;
}

uint64_t quiesce__yields(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		sum += quiesce_load_relaxed(&counts[i].nr); /* Relaxed: as above. */
	return sum;
}
