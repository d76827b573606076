/* SPDX-License-Identifier: MIT */
/* consumer.c - a user of the installed library: every kind of call once, in C and in C++. */
#include <quiesce/control.h>
#include <quiesce/rcu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	int value;
	struct rcu_head rcu;
};

static struct item *current_item;
static int nr_freed;

static void item_free(struct rcu_head *head)
{
	free((char *)head - offsetof(struct item, rcu));
	nr_freed++;
}

static struct item *item_new(int value)
{
	struct item *item = (struct item *)calloc(1, sizeof(*item));

	if (!item)
		exit(1);
	item->value = value;
	return item;
}

static int item_read(void)
{
	int value;

	rcu_read_lock();
	value = rcu_dereference(current_item)->value;
	rcu_read_unlock();
	return value;
}

int main(void)
{
	struct item *old;
	int sum = 0;

	rcu_assign_pointer(current_item, item_new(1));
	sum += item_read();
	old = rcu_xchg_pointer(&current_item, item_new(20));
	synchronize_rcu();
	free(old);
	sum += item_read();
	old = rcu_xchg_pointer(&current_item, item_new(300));
	call_rcu(&old->rcu, item_free);
	rcu_barrier();
	sum += item_read();
	free(current_item);
	printf("quiesce %s: sum %d, freed %d\n", quiesce_version(), sum, nr_freed);
	return strcmp(quiesce_version(), QUIESCE_VERSION) || sum != 321 || nr_freed != 1;
}
