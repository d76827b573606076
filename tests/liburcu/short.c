/* SPDX-License-Identifier: MIT */
/* short.c - sleep() that sleeps at most $LIBURCU_TESTS_SECONDS seconds: tests that sleep for their duration become short. */
#include <stdlib.h>
#include <time.h>

unsigned int sleep(unsigned int seconds)
{
	const char *most = getenv("LIBURCU_TESTS_SECONDS");
	struct timespec time = { .tv_sec = seconds };

	if (most && (unsigned int)atoi(most) < seconds)
		time.tv_sec = atoi(most);
	nanosleep(&time, NULL);
	return 0;
}
