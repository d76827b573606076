/* SPDX-License-Identifier: MIT */
/* leaks.c - ends with objects where LeakSanitizer must find them, or not: leaks PLACE.
 *
 * Objects in a queue or list of the library are not leaked, with quiesce_shutdown() and without.  This
 * program is linked with LeakSanitizer, which makes its exit status 23 if it finds a leak; "lost" is one.
 */
#include <quiesce/hazptr.h>
#include <quiesce/rcu.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NR 3000 /* several batches' worth would run: this leaves some in the queue */

struct inner {
	char payload[64];
	struct hazptr_head hazptr;
};

static hazptr_t *slot;
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;

static void free_inner(struct hazptr_head *head)
{
	free((char *)head - offsetof(struct inner, hazptr));
}

static struct inner *inner_new(void)
{
	struct inner *o = malloc(sizeof *o);

	if (!o)
		abort();
	return o;
}

/* A slot protects one of the objects. */
static void retire(void)
{
	for (int i = 0; i < NR; i++) {
		struct inner *o = inner_new();

		if (i == 10) {
			void *place = o;

			slot = hazptr_alloc(NULL);
			hazptr_protect(slot, (struct inner **)(void *)&place, hazptr);
		}
		if (i % 2)
			call_hazptr(&o->hazptr, free_inner);
		else
			kfree_hazptr(o, hazptr);
	}
}

static void *retire_in_thread(void *unused)
{
	retire();
	return unused;
}

/* Leave the object in a list of the worker, or of the next barrier. */
static void sweep(void)
{
	struct quiesce_stats stats;

	do
		quiesce_get_stats(&stats, sizeof stats);
	while (stats.hazptr_reclaimed + 1 < stats.hazptr_retired);
}

static void retire_into_cohort(void)
{
	for (int i = 0; i < 100; i++)
		call_hazptr_cohort(&cohort, &inner_new()->hazptr, free_inner);
}

static void retire_in_callback(struct hazptr_head *head)
{
	free_inner(head);
	for (int i = 0; i < 3 * HAZPTR_BATCH_MAX; i++)
		call_hazptr(&inner_new()->hazptr, free_inner);
}

static void act(const char *place)
{
	pthread_t thread;

	if (!strcmp(place, "lost")) {
		inner_new()->payload[0] = 1;
	} else if (!strcmp(place, "cohort")) {
		retire_into_cohort();
	} else if (!strcmp(place, "callback")) {
		call_hazptr(&inner_new()->hazptr, retire_in_callback);
		hazptr_barrier();
	} else if (!strcmp(place, "thread") && !pthread_create(&thread, NULL, retire_in_thread, NULL)) {
		pthread_join(thread, NULL);
	} else {
		retire();
	}
	if (!strcmp(place, "list"))
		sweep();
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	act(argv[1]);
	if (!strcmp(argv[1], "shutdown")) {
		hazptr_free(NULL, slot);
		return quiesce_shutdown(0) != 0;
	}
	return 0;
}
