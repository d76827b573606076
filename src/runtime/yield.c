/* SPDX-License-Identifier: MIT */
/* yield.c - readers give up the CPU to those in the way of a wait. */
#include "yield.h"

#define SHARDS 64u

/* By CPU: all readers may count at once. */
static struct {
	uint64_t nr __attribute__((aligned(QUIESCE_CACHELINE)));
} counts[SHARDS];

QUIESCE_COLD void quiesce__yield(const struct quiesce__yield *yield)
{
	uint32_t cpu = platform_cpu() % SHARDS;

	/* Relaxed: a request that comes a little late. */
	if (!(quiesce_load_relaxed(&yield->cpus) & 1ull << cpu))
		return;
	if (platform_now_ns() >= quiesce_load_relaxed(&yield->until)) /* Relaxed: as above. */
		return;
	quiesce_fetch_add_relaxed(&counts[cpu].nr, (uint64_t)1); /* Relaxed: counters order nothing. */
	platform_yield();
}

uint64_t quiesce__yields(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		sum += quiesce_load_relaxed(&counts[i].nr); /* Relaxed: as above. */
	return sum;
}
