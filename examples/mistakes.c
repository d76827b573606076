/* SPDX-License-Identifier: MIT */
/* mistakes.c - five mistakes with RCU, to be made on purpose: what they look like in a test run.
 *
 *	cc -g -DQUIESCE_DEBUG mistakes.c $(pkg-config --cflags --libs quiesce)
 *	./a.out wait-inside
 *	QUIESCE_STALL_MS=500 ./a.out sleep-inside
 *
 * free-too-early is found by AddressSanitizer, not by the library: add -fsanitize=address.
 */
#include <quiesce/rcu.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config {
	int limit;
	struct rcu_head rcu;
};

static struct config *config;
static sem_t inside, freed;

static struct config *config_new(int limit)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		exit(2);
	c->limit = limit;
	return c;
}

static void config_free(struct rcu_head *head)
{
	struct config *c = (struct config *)((char *)head - offsetof(struct config, rcu));

	free(c);
}

static void *read_slowly(void *arg)
{
	const struct config *c;

	rcu_read_lock();
	c = rcu_dereference(config);
	sem_post(&inside);
	if (arg)
		usleep(800000); /* sleep-inside: the section lasts as long */
	else
		sem_wait(&freed);
	printf("limit %d\n", c->limit);
	rcu_read_unlock();
	return NULL;
}

/* The updater replaces what a reader is using; @wait is what is missing in free-too-early. */
static int replace(bool wait)
{
	struct config *old;
	pthread_t reader;

	if (pthread_create(&reader, NULL, read_slowly, wait ? &inside : NULL) != 0)
		return 2;
	sem_wait(&inside);
	old = rcu_xchg_pointer(&config, config_new(2));
	if (wait)
		synchronize_rcu();
	free(old);
	sem_post(&freed);
	return pthread_join(reader, NULL);
}

static int wait_inside(void)
{
	rcu_read_lock();
	synchronize_rcu(); /* for itself, for ever */
	rcu_read_unlock();
	return 0;
}

static int retire_twice(void)
{
	struct config *old = rcu_xchg_pointer(&config, config_new(2));

	rcu_read_lock(); /* so that the first call cannot run before the second */
	call_rcu(&old->rcu, config_free);
	call_rcu(&old->rcu, config_free); /* it would be freed twice */
	rcu_read_unlock();
	rcu_barrier();
	return 0;
}

int main(int argc, char **argv)
{
	const char *mistake = argc == 2 ? argv[1] : "";

	sem_init(&inside, 0, 0);
	sem_init(&freed, 0, 0);
	config = config_new(1);
	if (!strcmp(mistake, "free-too-early"))
		return replace(false);
	if (!strcmp(mistake, "sleep-inside"))
		return replace(true);
	if (!strcmp(mistake, "wait-inside"))
		return wait_inside();
	if (!strcmp(mistake, "retire-twice"))
		return retire_twice();
	if (!strcmp(mistake, "no-section"))
		return rcu_dereference(config)->limit != 1; /* nothing keeps the object */
	fprintf(stderr, "usage: %s free-too-early|wait-inside|no-section|retire-twice|sleep-inside\n", argv[0]);
	return 2;
}
