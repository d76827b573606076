/* SPDX-License-Identifier: MIT */
/* config.c - a configuration that every thread reads, and that is replaced now and then.
 *
 * Problem.  Each request reads a few settings that belong together.  An operator changes them meanwhile.
 * Without it.  A thread loads the pointer to the configuration and is preempted before it reads through it.  The
 *   updater publishes a new configuration and frees the old one; the thread then reads freed memory.  A lock or a
 *   reference count prevents that, but then every request writes a cache line that all CPUs share.
 * Primitive.  RCU.  A section costs a few instructions on the thread's own memory, and everything that is found in
 *   it stays.  kfree_rcu() frees the old configuration after the sections that may use it; the updater does not wait.
 *
 *	cc config.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/rcu.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_READERS = 3, NR_UPDATES = 200, TIMEOUT = 30 };

struct config {
	int limit;
	int burst; /* always twice the limit: both are replaced together */
	int timeout;
	struct rcu_head rcu;
};

static struct config *config;
static pthread_mutex_t updates_lock = PTHREAD_MUTEX_INITIALIZER; /* readers do not take it */
static atomic_bool stop;
static atomic_ulong nr_reads, nr_torn;

/* Readers: any thread, without registration. */
static bool limits_agree(void)
{
	const struct config *c;
	bool agree;

	rcu_read_lock();
	c = rcu_dereference(config); /* once: a second load could find another configuration */
	agree = c->burst == 2 * c->limit;
	rcu_read_unlock();
	return agree; /* a copy: @c must not be used after the section */
}

/* The updater: any thread.  Without the lock two updaters could copy the same version, and the change of one be lost. */
static bool set_limit(int limit)
{
	struct config *fresh = malloc(sizeof(*fresh)), *old;

	if (!fresh)
		return false; /* the old configuration stays in force */
	pthread_mutex_lock(&updates_lock);
	old = rcu_dereference_protected(config, true); /* true: updates_lock, taken above, excludes other updaters */
	*fresh = *old;                                 /* the timeout stays */
	fresh->limit = limit;
	fresh->burst = 2 * limit;
	rcu_assign_pointer(config, fresh); /* complete before it is published */
	pthread_mutex_unlock(&updates_lock);
	kfree_rcu(old, rcu);
	return true;
}

static void *serve(void *arg)
{
	unsigned long reads = 0, torn = 0; /* of this thread: readers share no line */

	do {
		torn += !limits_agree();
		reads++;
	} while (!stop);
	nr_reads += reads;
	nr_torn += torn;
	return arg;
}

int main(void)
{
	pthread_t readers[NR_READERS];
	int nr = 0, updates = 0, timeout;

	config = calloc(1, sizeof(*config)); /* no other thread exists yet, so a plain store will do */
	if (!config)
		return 1;
	config->timeout = TIMEOUT;
	while (nr < NR_READERS && pthread_create(&readers[nr], NULL, serve, NULL) == 0)
		nr++;
	while (updates < NR_UPDATES && set_limit(1 + updates)) {
		updates++;
		usleep(100);
	}
	timeout = config->timeout; /* this thread is the only updater */
	stop = true;
	while (nr > 0)
		pthread_join(readers[--nr], NULL);

	free(config);  /* all readers have been joined, so what is still published may be freed directly */
	rcu_barrier(); /* what kfree_rcu() has queued is the library's until it has been freed */
	printf("config: %d updates, %lu reads, %lu torn\n", updates, nr_reads, nr_torn);
	return updates != NR_UPDATES || !nr_reads || nr_torn || timeout != TIMEOUT;
}
