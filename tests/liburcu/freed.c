/* SPDX-License-Identifier: MIT */
/* freed.c - a stack or a queue between two threads, measured until the last element has been freed by call_rcu().
 *
 * liburcu's own benchmarks count what one second moves, and leave out the elements that are in the queue and the callbacks that have not
 * run when it ends.
 *
 *	freed 1 1 SCALE lfs|lfq -a CPU -a CPU
 *
 * Moves ELEMENTS for each unit of SCALE, and prints how many that makes in SCALE seconds.
 */
#include <urcu.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ELEMENTS 2000000ul

struct element {
	struct rcu_head rcu;
	struct cds_lfs_node stacked;
	struct cds_lfq_node_rcu queued;
};

static struct cds_lfs_stack stack;
static struct cds_lfq_queue_rcu queue;
static int queues;
static unsigned long elements;
static int cpus[2];

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void element_free(struct rcu_head *head) { free(caa_container_of(head, struct element, rcu)); }

static void put(struct element *e)
{
	rcu_read_lock();
	if (queues) {
		cds_lfq_node_init_rcu(&e->queued);
		cds_lfq_enqueue_rcu(&queue, &e->queued);
	} else {
		cds_lfs_node_init(&e->stacked);
		cds_lfs_push(&stack, &e->stacked);
	}
	rcu_read_unlock();
}

static struct element *take(void)
{
	struct cds_lfq_node_rcu *queued = NULL;
	struct cds_lfs_node *stacked = NULL;

	rcu_read_lock();
	if (queues)
		queued = cds_lfq_dequeue_rcu(&queue);
	else
		stacked = __cds_lfs_pop(&stack);
	rcu_read_unlock();
	if (queued)
		return caa_container_of(queued, struct element, queued);
	return stacked ? caa_container_of(stacked, struct element, stacked) : NULL;
}

static void *producer(void *unused)
{
	pin(cpus[0]);
	rcu_register_thread();
	for (unsigned long i = 0; i < elements; i++) {
		struct element *e = malloc(sizeof *e);

		if (!e)
			abort();
		put(e);
	}
	rcu_unregister_thread();
	return unused;
}

static void *consumer(void *unused)
{
	pin(cpus[1]);
	rcu_register_thread();
	for (unsigned long i = 0; i < elements;) {
		struct element *e = take();

		if (!e)
			continue;
		call_rcu(&e->rcu, element_free);
		i++;
	}
	rcu_unregister_thread();
	return unused;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double run(void)
{
	pthread_t thread[2];
	double start = now();

	if (pthread_create(&thread[0], NULL, producer, NULL) || pthread_create(&thread[1], NULL, consumer, NULL))
		abort();
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	rcu_barrier();
	return now() - start;
}

int main(int argc, char **argv)
{
	unsigned long scale;

	if (argc != 9)
		return 2;
	scale = strtoul(argv[3], NULL, 10);
	queues = !strcmp(argv[4], "lfq");
	cpus[0] = atoi(argv[6]);
	cpus[1] = atoi(argv[8]);
	elements = scale * ELEMENTS;
	rcu_register_thread();
	cds_lfs_init(&stack);
	cds_lfq_init_rcu(&queue, call_rcu);
	rcu_unregister_thread();
	printf("SUMMARY %s nr_freed %.0f\n", argv[0], elements * scale / run());
	return 0;
}
