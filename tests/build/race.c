/* SPDX-License-Identifier: MIT */
/* race.c - an updater that does not wait: a reader's access races with it, which ThreadSanitizer must report. */
#include <pthread.h>
#include <quiesce/rcu.h>
#include <stdio.h>

static struct item {
	long value;
} first, *current_item = &first;
static pthread_barrier_t inside;

static void *read_item(void *unused)
{
	struct item *item;

	(void)unused;
	rcu_read_lock();
	item = rcu_dereference(current_item);
	pthread_barrier_wait(&inside);
	printf("value %ld\n", item->value);
	rcu_read_unlock();
	return NULL;
}

int main(void)
{
	pthread_t reader;

	pthread_barrier_init(&inside, NULL, 2);
	if (pthread_create(&reader, NULL, read_item, NULL))
		return 1;
	pthread_barrier_wait(&inside);
	rcu_assign_pointer(current_item, NULL);
	first.value = 1; /* without synchronize_rcu() */
	pthread_join(reader, NULL);
	return 0;
}
