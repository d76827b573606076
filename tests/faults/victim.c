/* SPDX-License-Identifier: MIT */
/* victim.c - a program that uses everything, to be run where something is missing.
 *
 *	victim FENCE WORKER
 *
 * FENCE: light, full or any, what the library must have chosen.  WORKER: "threads"
 * where threads can be had, "alone" where none can: then the caller must do the work.
 */
#include "use.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures;

static void check(int ok, const char *what)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", what);
	failures += !ok;
}

static int fence_is(const char *wanted)
{
	const char *fence = quiesce_fence() == QUIESCE_FENCE_LIGHT ? "light" : "full";

	printf("fences: %s\n", fence);
	return !strcmp(wanted, "any") || !strcmp(wanted, fence);
}

/* In a section nobody may wait: what does not fit a queue must still not be lost. */
static int many_in_a_section(void)
{
	enum { N = 30000 };
	static struct rcu_head *head[N];
	int before;

	for (int i = 0; i < N; i++) {
		head[i] = (struct rcu_head *)(void *)use_new();
		if (!head[i])
			abort();
	}
	rcu_barrier();
	before = use_nr_run;
	rcu_read_lock();
	for (int i = 0; i < N; i++)
		call_rcu(head[i], use_run);
	rcu_read_unlock();
	rcu_barrier();
	return use_nr_run == before + N;
}

static void *do_nothing(void *unused)
{
	return unused;
}

static void use_alone(void)
{
	struct quiesce_stats stats;
	pthread_t thread;

	check(pthread_create(&thread, NULL, do_nothing, NULL) != 0, "no thread can be had");
	for (int i = 0; i < 300; i++)
		if (!use_everything())
			failures++;
	check(failures == 0, "everything works without a worker");
	quiesce_get_stats(&stats, sizeof stats);
	check(!stats.worker_running, "no worker runs");
}

int main(int argc, char **argv)
{
	struct quiesce_stats stats;

	if (argc != 3) {
		fprintf(stderr, "usage: victim light|full|any threads|alone\n");
		return 2;
	}
	alarm(30);
	check(fence_is(argv[1]), "the fences are those expected");
	if (!strcmp(argv[2], "alone"))
		use_alone();
	else
		check(use_with_threads(3, 20), "everything works beside readers");
	check(many_in_a_section(), "more callbacks than fit a queue");
	check(quiesce_shutdown(0) == 0, "shutdown");
	quiesce_get_stats(&stats, sizeof stats);
	check(stats.garbage_objects == 0 && stats.garbage_bytes == 0, "no garbage left");
	check((stats.membarriers > 0) == (quiesce_fence() == QUIESCE_FENCE_LIGHT), "membarriers only with light fences");
	return failures != 0;
}
