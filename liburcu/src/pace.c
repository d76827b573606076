/* SPDX-License-Identifier: MIT */
/* pace.c - the pause of callbacks before they are called, and its clock. */
#define _GNU_SOURCE
#include "pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>

#define MOST_PACE_MS 10000u

uint64_t urcu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef QUIESCE_URCU_SEM_CLOCKWAIT
bool urcu_await_until(sem_t *sem, uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	return !sem_clockwait(sem, CLOCK_MONOTONIC, &until);
}
#else
/* sem_timedwait() goes by a clock that can be set, for any time, so the semaphore is polled. */
bool urcu_await_until(sem_t *sem, uint64_t ns)
{
	static const struct timespec turn = { .tv_nsec = 1000000 };

	while (sem_trywait(sem)) {
		if (urcu_now_ns() >= ns)
			return false;
		nanosleep(&turn, NULL);
	}
	return true;
}
#endif

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
