/* SPDX-License-Identifier: MIT */
/* retire.c - the parameters and counts that the types of retirescale share. */
#include "retire.h"

struct retire_params retire_params = { .bytes = RETIRE_MIN_BYTES, .batch = 1024 };
__thread uint64_t retire_sum;
__thread struct retire_tally *retire_mine;

#define MAX_TALLIES 1024
static struct retire_tally tally[MAX_TALLIES];
static uint32_t nr_tallies; /* number of tallies that were ever taken; it only grows */

struct retire_tally *retire_tally_take(void)
{
	for (uint32_t i = 0; i < MAX_TALLIES; i++) {
		uint32_t none = 0, nr = quiesce_load_relaxed(&nr_tallies);

		/* raw: full, with the store in retire_tally_leave(). */
		if (!__atomic_compare_exchange_n(&tally[i].taken, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* raw: the maximum; a thread that reads an older number misses
		 * only threads that have counted nothing yet. */
		while (nr < i + 1 && !__atomic_compare_exchange_n(&nr_tallies, &nr, i + 1, false, __ATOMIC_ACQ_REL,
								  __ATOMIC_RELAXED)) /* raw: the maximum. */
			;
		retire_mine = &tally[i];
		return retire_mine;
	}
	abort(); /* more threads than the tool ever starts */
}

void retire_tally_leave(void)
{
	if (retire_mine)
		/* raw: release, with the exchange in retire_tally_take(): the next thread goes on from these counts. */
		__atomic_store_n(&retire_mine->taken, 0, __ATOMIC_RELEASE);
	retire_mine = NULL;
}

uint64_t retire_all_retired(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < quiesce_load_relaxed(&nr_tallies); i++)
		sum += quiesce_load_relaxed(&tally[i].retired);
	return sum;
}

uint64_t retire_all_freed(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < quiesce_load_relaxed(&nr_tallies); i++)
		sum += quiesce_load_relaxed(&tally[i].freed);
	return sum;
}
