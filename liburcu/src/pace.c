/* SPDX-License-Identifier: MIT */
/* pace.c - the pause of callbacks before they are called, and its clock. */
#define _GNU_SOURCE
#include "pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>

#define MOST_PACE_MS 10000u

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t urcu_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

bool urcu_await_until(sem_t *sem, uint64_t ns)
{
#ifdef QUIESCE_URCU_SEM_CLOCKWAIT
	struct timespec until = time_of(ns);

	return !sem_clockwait(sem, CLOCK_MONOTONIC, &until);
#else
	uint64_t now = urcu_now_ns();
	struct timespec until = time_of(read_clock(CLOCK_REALTIME) + (ns > now ? ns - now : 0));

	return !sem_timedwait(sem, &until); /* It returns early or late if this clock is set meanwhile. */
#endif
}

uint64_t urcu_pace_ns = 10000000u;

__attribute__((constructor)) static void choose_pace(void)
{
	const char *text = getauxval(AT_SECURE) ? NULL : getenv("QUIESCE_URCU_PACE_MS");
	char *end;
	unsigned long ms;

	if (!text || !*text)
		return;
	ms = strtoul(text, &end, 10);
	if (*end || *text < '0' || *text > '9' || ms > MOST_PACE_MS)
		fprintf(stderr, "quiesce: QUIESCE_URCU_PACE_MS=%s is no number of milliseconds, which has no unit, up to %u; using 10\n",
			text, MOST_PACE_MS);
	else
		urcu_pace_ns = ms * 1000000u;
}
