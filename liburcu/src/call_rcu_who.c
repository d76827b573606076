/* SPDX-License-Identifier: MIT */
/* call_rcu_who.c - the queue that a thread's call_rcu() uses: the thread's, its CPU's, or the default; and the thread
 * that calls its callbacks. */
#define _GNU_SOURCE
#include "call_rcu_data.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void urcu_die(const char *call, int err)
{
	fprintf(stderr, "quiesce: %s(): %s; the program cannot go on\n", call, strerror(err));
	abort();
}

static __thread struct call_rcu_data *of_thread[NR_FLAVORS];

static int nr_cpus(void)
{
	static int nr;
	int n = quiesce_load_relaxed(&nr); /* Relaxed: the value is the same for all threads. */

	if (!n) {
		n = (int)sysconf(_SC_NPROCESSORS_CONF);
		n = n > 0 ? n : 1;
		quiesce_store_relaxed(&nr, n); /* Relaxed: all threads store the same value. */
	}
	return n;
}

struct call_rcu_data *flavor_of_thread(struct flavor *f)
{
	return of_thread[f->index];
}

void flavor_set_of_thread(struct flavor *f, struct call_rcu_data *c)
{
	of_thread[f->index] = c;
}

struct call_rcu_data *flavor_of_cpu(struct flavor *f, int cpu)
{
	/* RU3: acquire, pairs with RU3 in make_table() and set_of_cpu() */
	struct call_rcu_data **of_cpu = quiesce_load_acquire(RU3, &f->of_cpu);

	if (quiesce_likely(!of_cpu) || cpu < 0 || cpu >= nr_cpus())
		return NULL;
	/* RU3: acquire, pairs with RU3 in make_table() and set_of_cpu() */
	return quiesce_load_acquire(RU3, &of_cpu[cpu]);
}

struct call_rcu_data *flavor_chosen(struct flavor *f)
{
	struct call_rcu_data *c = of_thread[f->index];

	if (!c && quiesce_load_relaxed(&f->of_cpu)) /* Relaxed: a hint. */
		c = flavor_of_cpu(f, sched_getcpu());
	return c ? c : flavor_default(f);
}

/* The caller holds the lock. */
static bool make_table(struct flavor *f)
{
	struct call_rcu_data **of_cpu;

	if (f->of_cpu)
		return true;
	of_cpu = calloc((size_t)nr_cpus(), sizeof *of_cpu);
	/* RU3: release, pairs with RU3 in flavor_of_cpu() */
	quiesce_store_release(RU3, &f->of_cpu, of_cpu);
	return of_cpu;
}

static int set_of_cpu(struct flavor *f, int cpu, struct call_rcu_data *c)
{
	if (cpu < 0 || cpu >= nr_cpus())
		return EINVAL;
	if (!make_table(f))
		return ENOMEM;
	if (c && f->of_cpu[cpu])
		return EEXIST;
	/* RU3: release, pairs with RU3 in flavor_of_cpu() */
	quiesce_store_release(RU3, &f->of_cpu[cpu], c);
	return 0;
}

int flavor_set_of_cpu(struct flavor *f, int cpu, struct call_rcu_data *c)
{
	int err;

	pthread_mutex_lock(&f->lock);
	err = set_of_cpu(f, cpu, c);
	pthread_mutex_unlock(&f->lock);
	if (!err)
		return 0;
	errno = err;
	return -1;
}

int flavor_create_all(struct flavor *f, unsigned long flags)
{
	for (int cpu = 0; cpu < nr_cpus(); cpu++) {
		struct call_rcu_data *c;

		if (flavor_of_cpu(f, cpu))
			continue;
		c = flavor_create(f, flags, cpu);
		if (!c)
			return -1;
		if (flavor_set_of_cpu(f, cpu, c)) {
			flavor_free(f, c);
			if (errno != EEXIST) /* otherwise another thread has set one */
				return -1;
		}
	}
	return 0;
}

void flavor_free_all(struct flavor *f)
{
	struct call_rcu_data **gone = calloc((size_t)nr_cpus(), sizeof *gone);

	if (!gone)
		return; /* the queues that are set already may stay */
	for (int cpu = 0; cpu < nr_cpus(); cpu++) {
		gone[cpu] = flavor_of_cpu(f, cpu);
		if (gone[cpu])
			(void)flavor_set_of_cpu(f, cpu, NULL);
	}
	f->synchronize(); /* waits for callers that are about to queue */
	for (int cpu = 0; cpu < nr_cpus(); cpu++)
		flavor_free(f, gone[cpu]);
	free(gone);
}

void flavor_forget_all(struct flavor *f)
{
	of_thread[f->index] = NULL;
	for (int cpu = 0; f->of_cpu && cpu < nr_cpus(); cpu++)
		/* RU3: release, pairs with RU3 in flavor_of_cpu() */
		quiesce_store_release(RU3, &f->of_cpu[cpu], (struct call_rcu_data *)NULL);
}

/* I8 of call_rcu.c. */
pthread_t flavor_thread_of(struct call_rcu_data *c)
{
	pthread_t thread;

	if (!call_rcu_data_ensure_thread(c))
		urcu_die("get_call_rcu_thread", EAGAIN);
	pthread_mutex_lock(&c->flavor->lock);
	c->asked_for = true;
	thread = c->thread;
	pthread_mutex_unlock(&c->flavor->lock);
	return thread;
}
