/* SPDX-License-Identifier: MIT */
/* host.c - a host that loads a plug-in; both read and replace, by the same or by different libraries, in the same threads.
 *
 *     host PLUGIN shared|apart
 *
 * shared: both have one RCU.  Then each side also reads the other's cell in sections of its own, and a thread registers once.
 * Exit status: 0 all objects were reclaimed, and none too early; 1 some are left; a signal: one was reclaimed too early. */
#define _GNU_SOURCE
#include "side.h"

#include <dlfcn.h>
#include <pthread.h>
#include <quiesce/atomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NR_READERS = 2, NR_READS = 3000, NR_ROUNDS = 40 }; /* least numbers of reads and rounds */

static const struct side *loaded;
static struct cell of_host, of_plugin;
static int stop, nr_reads; /* Relaxed: the test needs no order of them. */
static int shared;

static void begin(void)
{
	host.begin();
	if (!shared)
		loaded->begin();
}

static void end(void)
{
	if (!shared)
		loaded->end();
	host.end();
}

static void *reader(void *unused)
{
	begin();
	while (!quiesce_load_relaxed(&stop)) { /* Relaxed: a flag of the test. */
		host.read(&of_host, loaded, &of_plugin);
		loaded->read(&of_plugin, &host, &of_host);
		if (shared) {
			host.read(&of_plugin, NULL, NULL);
			loaded->read(&of_host, NULL, NULL);
		}
		quiesce_fetch_add_relaxed(&nr_reads, 1); /* Relaxed: a count of the test. */
		host.quiet();
		loaded->quiet();
	}
	end();
	return unused;
}

/* Replace an object of @side; during its wait the thread is no reader of @other. */
static void replace(const struct side *side, const struct side *other, struct cell *cell, int by_callback)
{
	if (!shared)
		other->leave();
	side->replace(cell, by_callback);
	if (!shared)
		other->come_back();
}

static void barrier(const struct side *side, const struct side *other)
{
	if (!shared)
		other->leave();
	side->barrier();
	if (!shared)
		other->come_back();
}

static void *updater(void *unused)
{
	begin();
	/* Relaxed: a count of the test. */
	for (int i = 0; i < NR_ROUNDS || quiesce_load_relaxed(&nr_reads) < NR_READS; i++) {
		replace(&host, loaded, &of_host, i & 1);
		replace(loaded, &host, &of_plugin, i & 2);
	}
	barrier(&host, loaded);
	barrier(loaded, &host);
	end();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t readers[NR_READERS], one;
	void *object = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;

	loaded = object ? dlsym(object, "plugin") : NULL;
	if (!loaded) {
		fprintf(stderr, "host: %s\n", argc == 3 ? dlerror() : "host PLUGIN shared|apart");
		return 2;
	}
	shared = !strcmp(argv[2], "shared");
	for (int i = 0; i < NR_READERS; i++)
		if (pthread_create(&readers[i], NULL, reader, NULL))
			abort();
	if (pthread_create(&one, NULL, updater, NULL))
		abort();
	pthread_join(one, NULL);
	quiesce_store_relaxed(&stop, 1); /* Relaxed: a flag of the test. */
	for (int i = 0; i < NR_READERS; i++)
		pthread_join(readers[i], NULL);
	if (host.nr_live() == 1 && loaded->nr_live() == 1) /* only the objects in the cells are left */
		return 0;
	fprintf(stderr, "host: %d and %d objects are left\n", host.nr_live(), loaded->nr_live());
	return 1;
}
