/* SPDX-License-Identifier: MIT */
/* stopwatch.h - a clock for single calls: the CPU's time stamp counter if it ticks evenly, else CLOCK_MONOTONIC.
 *
 * Fences keep what comes before out of the time and what is timed in it.  The cost of fences and counter is part of
 * each figure; stopwatch_cost() returns it.
 */
#ifndef QUIESCE_TOOL_STOPWATCH_H
#define QUIESCE_TOOL_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

extern bool stopwatch_counter; /* false: a tick is a nanosecond */

/* A stopwatch holds the counter and the time at one moment. */
struct stopwatch {
	uint64_t ticks;
	uint64_t ns;
};
void stopwatch_start(struct stopwatch *ret);
/* Returns the nanoseconds in a tick, computed from the time since stopwatch_start(). */
double stopwatch_tick_ns(const struct stopwatch *start);
/* Returns the median duration of an empty measurement, in ticks. */
uint64_t stopwatch_cost(void);

static inline uint64_t stopwatch_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
/* raw: no shared access; the fence makes the counter wait for what came before. */
#define STOPWATCH_FENCE() __builtin_ia32_lfence()

static inline uint64_t stopwatch_read(void)
{
	if (!stopwatch_counter)
		return stopwatch_clock();
	STOPWATCH_FENCE();
	return __builtin_ia32_rdtsc();
}
#else
#define STOPWATCH_FENCE() ((void)0)

static inline uint64_t stopwatch_read(void)
{
	return stopwatch_clock();
}
#endif

static inline uint64_t stopwatch_begin(void)
{
	uint64_t begin = stopwatch_read();

	STOPWATCH_FENCE();
	return begin;
}

/* The counters of two CPUs may differ a little: a negative difference counts as 0. */
static inline uint64_t stopwatch_since(uint64_t begin)
{
	uint64_t end = stopwatch_read();

	return end > begin ? end - begin : 0;
}

#ifdef __cplusplus
}
#endif

#endif
