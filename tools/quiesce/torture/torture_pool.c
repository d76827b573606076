/* SPDX-License-Identifier: MIT */
/* torture_pool.c - elements that are poisoned when freed and kept for a while before they are reused. */
#include "torture.h"

static void append(struct element *e)
{
	e->next = NULL;
	if (torture.last)
		torture.last->next = e;
	else
		torture.first = e;
	torture.last = e;
	torture.nr_free++;
}

void pool_init(void)
{
	pthread_mutex_init(&torture.lock, NULL);
	for (int i = 0; i < ELEMENTS; i++) {
		quiesce_store_relaxed(&torture.element[i].magic, POISON);
		append(&torture.element[i]);
	}
}

struct element *pool_get(void)
{
	struct element *e = NULL;

	pthread_mutex_lock(&torture.lock);
	if (torture.nr_free > FIFO_DEPTH) {
		e = torture.first;
		torture.first = e->next;
		torture.nr_free--;
		quiesce_store_relaxed(&torture.reused, torture.reused + (e->serial != 0));
	}
	pthread_mutex_unlock(&torture.lock);
	if (!e) {
		torture_count(torture.empty);
		return NULL;
	}
	quiesce_store_relaxed(&e->serial, e->serial + 1);
	quiesce_store_relaxed(&e->age, 0);
	quiesce_store_relaxed(&e->magic, MAGIC);
	quiesce_store_relaxed(&e->canary, 1);
	return e;
}

void pool_put(struct element *e)
{
	quiesce_store_relaxed(&e->canary, 0);
	quiesce_store_relaxed(&e->magic, POISON);
	pthread_mutex_lock(&torture.lock);
	append(e);
	pthread_mutex_unlock(&torture.lock);
}
