/* SPDX-License-Identifier: MIT */
/* readmostly.c - read locks in a second, of threads that share one pthread_rwlock_t and rarely write.
 *
 *	readmostly THREADS SECONDS WRITE_EVERY_MS      prints: reads, and writes that got in
 *
 * It knows nothing of the shim: run it with and without, several times in turn, and compare.
 * raw, whole file: a flag, and counters of the program itself.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 256
#define SECOND 1000000000l

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long data[2];
static bool stop;

struct reader {
	unsigned long reads, wrong;
	pthread_t thread;
} __attribute__((aligned(128)));
static struct reader readers[MAX_THREADS];

static void *read_on(void *arg)
{
	struct reader *self = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (pthread_rwlock_rdlock(&lock))
			abort();
		self->wrong += data[0] != data[1];
		if (pthread_rwlock_unlock(&lock))
			abort();
		self->reads++;
	}
	return NULL;
}

/* At most as long as until the next write is due: the C library's writers may not get in for seconds. */
static unsigned long write_for(long seconds, long every_ms)
{
	unsigned long writes = 0;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	for (long ms = 0; ms < seconds * 1000; ms += every_ms) {
		until.tv_nsec += every_ms * 1000000;
		until.tv_sec += until.tv_nsec / SECOND;
		until.tv_nsec %= SECOND;
		if (!pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until)) {
			data[0]++;
			data[1]++;
			writes++;
			if (pthread_rwlock_unlock(&lock))
				abort();
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return writes;
}

int main(int argc, char **argv)
{
	long nr = argc == 4 ? atol(argv[1]) : 0, seconds = argc == 4 ? atol(argv[2]) : 0, ms = argc == 4 ? atol(argv[3]) : 0;
	unsigned long reads = 0, writes, wrong = 0;

	if (nr < 1 || nr > MAX_THREADS || seconds < 1 || ms < 1 || ms > 1000) {
		fprintf(stderr, "usage: readmostly THREADS SECONDS WRITE_EVERY_MS\n");
		return 2;
	}
	for (long i = 0; i < nr; i++)
		if (pthread_create(&readers[i].thread, NULL, read_on, &readers[i]))
			abort();
	writes = write_for(seconds, ms);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (long i = 0; i < nr; i++) {
		pthread_join(readers[i].thread, NULL);
		reads += readers[i].reads;
		wrong += readers[i].wrong;
	}
	printf("%lu %lu\n", reads, writes);
	return wrong || !reads;
}
