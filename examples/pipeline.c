/* SPDX-License-Identifier: MIT */
/* pipeline.c - work that goes through stages, each with several threads: producers, workers, and a thread that collects results.
 *
 * Problem.  Workers sleep while there is no work.  A producer that is faster than they are must wait, or memory grows without
 *   a limit.  At the end each worker returns when all work has been done, and not before.
 * Without it.  A deque with a mutex and two condition variables makes each thread wait for one that was preempted with the lock
 *   held, and each push and pop takes the lock.  To end the workers, a program pushes a special job for each of them.
 * Primitive.  value_queue: jobs and results are copied into the cells of a ring.  The queue of jobs is bounded, so producers wait;
 *   the other one is not, so workers never do.  A close lets the pops return what is left, and then -EPIPE.
 *
 *	cc pipeline.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/ds/value_queue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { NR_PRODUCERS = 2, NR_WORKERS = 3, NR_JOBS = 20000, AT_ONCE = 16 };

struct job {
	unsigned int producer, number;
};

struct result {
	struct job job;
	unsigned long value;
};

static struct value_queue jobs, results;

static unsigned long compute(struct job job)
{
	return (unsigned long)job.number * job.number + job.producer;
}

static void *produce(void *producer)
{
	for (unsigned int i = 0; i < NR_JOBS; i++) {
		struct job job = { (unsigned int)(size_t)producer, i };

		if (value_queue_push(&jobs, &job)) /* waits while the queue is full */
			abort();                   /* -EPIPE: it was closed too early */
	}
	return NULL;
}

/* A worker takes as many jobs as there are, at most 16: one operation on the shared words for all of them. */
static void *work(void *unused)
{
	struct job taken[AT_ONCE];
	struct result done[AT_ONCE];
	long nr;

	while ((nr = value_queue_pop_many_timeout(&jobs, taken, AT_ONCE, UINT64_MAX)) > 0) {
		for (long i = 0; i < nr; i++)
			done[i] = (struct result){ taken[i], compute(taken[i]) };
		if (value_queue_push_many(&results, done, (size_t)nr) != nr)
			abort(); /* no memory */
	}
	return unused; /* the queue is closed, and empty */
}

static unsigned long sum, nr_results; /* those of the collector, until it has been joined */

static void *collect(void *unused)
{
	struct result result;

	while (value_queue_pop(&results, &result) == 0) {
		sum += result.value;
		nr_results++;
	}
	return unused;
}

static void start(pthread_t *thread, void *(*run)(void *), size_t arg)
{
	if (pthread_create(thread, NULL, run, (void *)arg))
		abort();
}

int main(void)
{
	pthread_t producer[NR_PRODUCERS], worker[NR_WORKERS], collector;
	unsigned long expected = 0;

	if (value_queue_init(&jobs, sizeof(struct job), 64) || value_queue_init(&results, sizeof(struct result), 0))
		return 1;
	start(&collector, collect, 0);
	for (size_t i = 0; i < NR_WORKERS; i++)
		start(&worker[i], work, 0);
	for (size_t i = 0; i < NR_PRODUCERS; i++)
		start(&producer[i], produce, i);

	/* From the first stage to the last: a queue is closed when all threads that push to it have returned. */
	for (size_t i = 0; i < NR_PRODUCERS; i++)
		pthread_join(producer[i], NULL);
	value_queue_close(&jobs);
	for (size_t i = 0; i < NR_WORKERS; i++)
		pthread_join(worker[i], NULL);
	value_queue_close(&results);
	pthread_join(collector, NULL);
	value_queue_destroy(&jobs, NULL, NULL);
	value_queue_destroy(&results, NULL, NULL);

	for (unsigned int p = 0; p < NR_PRODUCERS; p++)
		for (unsigned int i = 0; i < NR_JOBS; i++)
			expected += compute((struct job){ p, i });
	printf("pipeline: %lu of %d results, sum %lu, expected %lu\n", nr_results, NR_PRODUCERS * NR_JOBS, sum, expected);
	return nr_results != NR_PRODUCERS * NR_JOBS || sum != expected;
}
