/* SPDX-License-Identifier: MIT */
/* yield.c - readers give up the CPU to preempted readers that a waiter waits for. */
#include "yield.h"

#define SHARDS 64u
#define CLOCK_INTERVAL 64u /* one reader in so many, on a CPU that is not requested, reads the clock */

/* Counters by CPU, because all readers may count at once. */
static struct {
	uint64_t nr __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t others;
} counts[SHARDS];

static bool claim_clock(uint32_t cpu)
{
	uint32_t others = quiesce_load_relaxed(&counts[cpu].others) + 1; /* Relaxed: two readers may count as one. */

	quiesce_store_relaxed(&counts[cpu].others, others); /* Relaxed: a lost count delays the next reading of the clock. */
	return others % CLOCK_INTERVAL == 0;
}

QUIESCE_COLD bool quiesce__yield(const struct quiesce__yield *yield)
{
	uint32_t cpu = platform_cpu() % SHARDS;
	bool requested = quiesce_load_relaxed(&yield->cpus) & 1ull << cpu; /* Relaxed: a reader may see the request late. */

	if (!requested && !claim_clock(cpu))
		return true;
	if (platform_now_ns() >= quiesce_load_relaxed(&yield->until)) /* Relaxed: a reader may see the request late. */
		return false;
	if (!requested)
		return true;
	quiesce_fetch_add_relaxed(&counts[cpu].nr, (uint64_t)1); /* Relaxed: counters order nothing. */
	platform_yield();
	return true;
}

uint64_t quiesce__yields(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		sum += quiesce_load_relaxed(&counts[i].nr); /* Relaxed: counters order nothing. */
	return sum;
}
