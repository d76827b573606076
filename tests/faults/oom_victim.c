/* SPDX-License-Identifier: MIT */
/* oom_victim.c - uses each primitive, tolerates that its own allocations fail, and checks the guarantees that hold even then. */
#include "use.h"

#include <stdio.h>
#include <unistd.h>

static struct rcu_head heads[10000];
static struct hazptr_head hazptr_heads[10000];
static int nr_run;

static void count_run(struct rcu_head *head)
{
	(void)head;
	quiesce_fetch_add_relaxed(&nr_run, 1); /* Relaxed: rcu_barrier() orders it. */
}

/* Calls for which the program itself allocates nothing must never fail. */
static int callbacks(void)
{
	for (int i = 0; i < 5000; i++)
		call_rcu(&heads[i], count_run);
	rcu_read_lock();
	for (int i = 5000; i < 10000; i++)
		call_rcu(&heads[i], count_run);
	rcu_read_unlock();
	rcu_barrier();
	return nr_run == 10000;
}

static void count_hazptr(struct hazptr_head *head)
{
	(void)head;
	quiesce_fetch_add_relaxed(&nr_run, 1); /* Relaxed: hazptr_barrier() orders it. */
}

static int retired(void)
{
	nr_run = 0;
	for (int i = 0; i < 10000; i++)
		call_hazptr(&hazptr_heads[i], count_hazptr);
	hazptr_barrier();
	return nr_run == 10000;
}

int main(void)
{
	struct quiesce_stats stats;
	pthread_t thread[2];
	sem_t started;
	int n = 0, ok = 1;

	alarm(25);
	ok &= use_everything();
	sem_init(&started, 0, 0);
	while (n < 2 && pthread_create(&thread[n], NULL, use_reader_main, &started) == 0)
		n++;
	ok &= use_everything();
	ok &= callbacks();
	ok &= retired();
	quiesce_store_relaxed(&use_stop, 1); /* Relaxed: ends some time. */
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	ok &= quiesce_shutdown(0) == 0;
	ok &= use_everything();
	ok &= quiesce_shutdown(0) == 0;
	quiesce_get_stats(&stats, sizeof stats);
	ok &= stats.garbage_objects == 0 && stats.hazptr_retired == stats.hazptr_reclaimed && !use_bad;
	return !ok;
}
