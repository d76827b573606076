/* SPDX-License-Identifier: MIT */
/* test_lifetime.c - use before every constructor, after main(), and while threads end.
 *
 * Without cmocka, because most of it happens outside main(); each stage prints a line,
 * and the last one, in a destructor, sets the exit status.
 */
#include <quiesce/control.h>
#include <quiesce/rcu.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int nr_run, failures, nr_stages;

static void count_run(struct rcu_head *head)
{
	(void)head;
	quiesce_fetch_add_relaxed(&nr_run, 1); /* Relaxed: rcu_barrier() orders it. */
}

static void say(int ok, const char *what)
{
	char line[128];
	int n = snprintf(line, sizeof line, "%s - %s\n", ok ? "ok" : "not ok", what);

	failures += !ok;
	nr_stages++;
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		failures++;
}

static int runs_a_callback(struct rcu_head *head)
{
	int before = nr_run;

	call_rcu(head, count_run);
	rcu_barrier();
	return nr_run == before + 1;
}

/* Use each primitive; true if all worked. */
static int use_everything(void)
{
	static struct rcu_head head;
	struct rcu_gp_seq seq;
	int held;

	rcu_read_lock();
	held = rcu_read_lock_held();
	rcu_read_unlock();
	synchronize_rcu();
	synchronize_rcu_expedited();
	seq = start_poll_synchronize_rcu();
	while (!poll_state_synchronize_rcu(seq))
		sched_yield();
	return held && !rcu_read_lock_held() && runs_a_callback(&head);
}

__attribute__((constructor(101))) static void before_everything(void)
{
	say(use_everything(), "constructor of priority 101");
}

__attribute__((destructor(101))) static void after_everything(void)
{
	say(use_everything(), "destructor of priority 101");
	say(quiesce_shutdown(0) == 0, "shutdown in it");
	say(use_everything(), "use after that shutdown");
	if (nr_stages != 10) /* with this very line */
		failures++;
	printf("%d stages, %d failures\n", nr_stages, failures);
	fflush(stdout);
	_exit(failures);
}

static void at_exit(void)
{
	say(use_everything(), "atexit handler");
}

/* ---- threads that take leave ---- */

static pthread_key_t late_key;
static struct rcu_head late_head[PTHREAD_DESTRUCTOR_ITERATIONS];
static int late_ok;

/* Runs after the library's own exit hook, whose key is older, and again as often as the system allows. */
static void late_destructor(void *round)
{
	uintptr_t n = (uintptr_t)round;
	int *object = malloc(sizeof *object);

	rcu_read_lock();
	rcu_read_lock();
	late_ok += rcu_read_lock_held();
	rcu_read_unlock();
	rcu_read_unlock();
	late_ok += !rcu_read_lock_held();
	synchronize_rcu();
	call_rcu(&late_head[n - 1], count_run);
	kfree_rcu_mightsleep(object);
	pthread_setspecific(late_key, (void *)(n + 1)); /* the last registration has no effect */
}

static void *leave_late(void *first)
{
	if (first)
		rcu_read_lock();
	if (first)
		rcu_read_unlock();
	pthread_setspecific(late_key, (void *)(uintptr_t)1);
	return NULL;
}

static void leave(void *first, const char *what)
{
	pthread_t thread;
	int before = nr_run;
	uint32_t readers;
	struct quiesce_stats stats;

	late_ok = 0;
	quiesce_get_stats(&stats, sizeof stats);
	readers = stats.readers;
	if (pthread_create(&thread, NULL, leave_late, first))
		abort();
	pthread_join(thread, NULL);
	rcu_barrier();
	synchronize_rcu(); /* hangs if a section of the dying thread is still counted */
	quiesce_get_stats(&stats, sizeof stats);
	say(late_ok == 2 * PTHREAD_DESTRUCTOR_ITERATIONS && nr_run == before + PTHREAD_DESTRUCTOR_ITERATIONS &&
	    stats.readers == readers, what);
}

/* C++ compilers register the destructor of a thread_local object by this call. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

static void thread_local_gone(void *unused)
{
	(void)unused;
	late_ok = use_everything();
}

static void *leave_as_cxx(void *unused)
{
	(void)unused;
	__cxa_thread_atexit_impl(thread_local_gone, NULL, &__dso_handle);
	return NULL;
}

static void leave_cxx(void)
{
	pthread_t thread;

	late_ok = 0;
	if (pthread_create(&thread, NULL, leave_as_cxx, NULL))
		abort();
	pthread_join(thread, NULL);
	synchronize_rcu();
	say(late_ok, "thread_local destructor");
}

int main(void)
{
	alarm(30);
	atexit(at_exit);
	say(use_everything(), "main");
	pthread_key_create(&late_key, late_destructor);
	leave(&late_key, "key destructor after the exit hook of a reader");
	leave(NULL, "key destructor of a thread that never read before");
	leave_cxx();
	say(nr_run > 0, "end of main");
	return 0;
}
