/* SPDX-License-Identifier: MIT */
/* pace.c - the pause of callbacks before they are called, and its clock. */
#define _GNU_SOURCE
#include "pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>

#define MOST_PACE_MS 10000u

#ifdef QUIESCE_URCU_SEM_CLOCKWAIT
#define CLOCK CLOCK_MONOTONIC
static int wait_until(sem_t *sem, const struct timespec *until) { return sem_clockwait(sem, CLOCK_MONOTONIC, until); }
#else
#define CLOCK CLOCK_REALTIME
static int wait_until(sem_t *sem, const struct timespec *until) { return sem_timedwait(sem, until); }
#endif

uint64_t urcu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool urcu_await_until(sem_t *sem, uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	return !wait_until(sem, &until);
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
