/* SPDX-License-Identifier: MIT */
/* stopwatch.c - the length of a tick, and the cost of a measurement. */
#include "stopwatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "histogram.h"

#define TRIES 20
#define EMPTY 2000 /* empty measurements */

bool stopwatch_counter;

/* True if the counter ticks at a constant rate, whatever the CPU's frequency is. */
static bool ticks_evenly(void)
{
#if defined(__x86_64__)
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx & (1u << 8);
#else
	return false;
#endif
}

/* The best of some tries: an interruption between the two clocks makes a try longer. */
static void read_both(struct stopwatch *ret)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = stopwatch_read(), ns = stopwatch_clock(), after = stopwatch_read();

		if (after - before >= best)
			continue;
		best = after - before;
		ret->ticks = before + best / 2;
		ret->ns = ns;
	}
}

void stopwatch_start(struct stopwatch *ret)
{
	stopwatch_counter = ticks_evenly();
	read_both(ret);
}

double stopwatch_tick_ns(const struct stopwatch *start)
{
	struct stopwatch now;

	if (!stopwatch_counter)
		return 1;
	read_both(&now);
	return (double)(now.ns - start->ns) / (double)(now.ticks - start->ticks);
}

uint64_t stopwatch_cost(void)
{
	static struct histogram empty;

	empty = (struct histogram){ 0 };
	for (int i = 0; i < EMPTY; i++) {
		uint64_t begin = stopwatch_begin();

		histogram_add(&empty, stopwatch_since(begin));
	}
	return histogram_quantile(&empty, 0.5);
}
