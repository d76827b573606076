/* SPDX-License-Identifier: MIT */
/* victim.c - a program that uses each primitive, to be run where a resource is missing.
 *
 *	victim FENCE WORKER SLOTS
 *
 * FENCE: the fences that the library must have chosen: light, full or any.  WORKER: "threads"
 * where threads can be started, "alone" where none can: then the caller must do the work.
 * SLOTS: "thread" where slots near a CPU must not have been chosen, else any.
 */
#include "use.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
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

static int slots_are(const char *wanted)
{
	static const char *const name[] = { "thread", "cpu_id", "mm_cid" };

	printf("slots: %s\n", name[quiesce_slots()]);
	return !strcmp(wanted, "any") || !strcmp(wanted, name[quiesce_slots()]);
}

/* Hold more guards at once than a CPU and a thread have slots.  There may be no other thread, so the
 * guard that is waited for is handed over to a signal handler, which clears it some ticks later. */
static struct shazptr_guard waited_for;
static int ticks_left;

static void tick(int sig)
{
	(void)sig;
	if (waited_for.ptr && --ticks_left <= 0) {
		shazptr_clear(waited_for);
		waited_for.ptr = NULL;
	}
}

static int a_handler_ends_the_wait(int skip_self_scan)
{
	enum { N = 100 };
	static int object[N + 1];
	struct itimerspec each_ms = { { 0, 1000000 }, { 0, 1000000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct shazptr_guard guard[N];
	timer_t timer;
	int ok;

	signal(SIGUSR1, tick);
	for (int i = 0; i < N; i++)
		guard[i] = shazptr_acquire(&object[i]);
	synchronize_shazptr(&object[N]);
	ticks_left = 3;
	waited_for = shazptr_acquire(&object[N]);
	quiesce_set_skip_self_scan(skip_self_scan);
	ok = !timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &each_ms, NULL);
	synchronize_shazptr(&object[N]);
	ok &= !waited_for.ptr;
	timer_settime(timer, 0, &never, NULL);
	quiesce_set_skip_self_scan(0);
	for (int i = 0; i < N; i++)
		shazptr_clear(guard[i]);
	return ok;
}

/* A section must not wait: callbacks that do not fit into a queue must still not be lost. */
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
	check(!stats.worker_running && !stats.scan_thread_running, "no worker and no scan thread runs");
}

int main(int argc, char **argv)
{
	struct quiesce_stats stats;

	if (argc != 4) {
		fprintf(stderr, "usage: victim light|full|any threads|alone thread|any\n");
		return 2;
	}
	alarm(30);
	check(fence_is(argv[1]), "the fences are those expected");
	check(slots_are(argv[3]), "the slots are those expected");
	if (!strcmp(argv[2], "alone"))
		use_alone();
	else
		check(use_with_threads(3, 20), "everything works beside readers");
	check(a_handler_ends_the_wait(0), "a wait that a signal handler ends");
	check(a_handler_ends_the_wait(1), "the same by the scan at once");
	check(many_in_a_section(), "more callbacks than fit a queue");
	check(quiesce_shutdown(0) == 0, "shutdown");
	quiesce_get_stats(&stats, sizeof stats);
	check(stats.garbage_objects == 0 && stats.garbage_bytes == 0, "no garbage left");
	check(stats.hazptr_retired == stats.hazptr_reclaimed && stats.hazptr_retired > 0, "none of hazard pointers, either");
	check((stats.membarriers > 0) == (quiesce_fence() == QUIESCE_FENCE_LIGHT), "membarriers only with light fences");
	return failures != 0;
}
