/* SPDX-License-Identifier: MIT */
/* plug.c - the plug-in of all hosts: quiesce_try() uses every primitive in the calling thread and in threads of its own. */
#include "plug.h"

#include <pthread.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>
#include <stddef.h>
#include <stdlib.h>

#define THREADS 2
#define ROUNDS 200
#define LIVE 42

struct item {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	int value;
};

/* Every pointer is protected by the primitive of its name. */
static struct item *of_rcu, *of_srcu, *of_shazptr, *of_hazptr;
static struct hashmap map = HASHMAP_INIT;
static int stop, nr_bad;

DEFINE_STATIC_SRCU(domain);
DEFINE_PERCPU_RWSEM(lock);

static void check(const struct item *item)
{
	if (item && item->value != LIVE)
		quiesce_fetch_add_relaxed(&nr_bad, 1); /* Relaxed: a count. */
}

static void read_all(void)
{
	struct shazptr_guard guard;
	hazptr_t *slot;
	int idx;

	rcu_read_lock();
	check(rcu_dereference(of_rcu));
	rcu_read_unlock();

	idx = srcu_read_lock(&domain);
	check(srcu_dereference(of_srcu, &domain));
	srcu_read_unlock(&domain, idx);

	guard = shazptr_protect(&of_shazptr);
	check(shazptr_ptr(guard));
	shazptr_clear(guard);

	slot = hazptr_alloc(NULL);
	if (slot)
		check(hazptr_protect(slot, &of_hazptr, hazptr));
	hazptr_free(NULL, slot);

	percpu_down_read(&lock);
	percpu_up_read(&lock);
	(void)hashmap_lookup(&map, 1);
}

static void *reader(void *unused)
{
	(void)unused;
	while (!quiesce_load_relaxed(&stop)) /* Relaxed: it is set some time. */
		read_all();
	return NULL;
}

static struct item *fresh(void)
{
	struct item *item = calloc(1, sizeof(*item));

	if (item)
		item->value = LIVE;
	return item;
}

/* An object that a reader still has would be seen with another value. */
static void end(struct item *item)
{
	if (item)
		item->value = 0;
	free(item);
}

static void end_callback(struct rcu_head *head)
{
	end((struct item *)(void *)head); /* the first field */
}

static void end_hazptr(struct hazptr_head *head)
{
	end((struct item *)(void *)((char *)head - offsetof(struct item, hazptr)));
}

static void replace_all(void)
{
	struct item *old = rcu_xchg_pointer(&of_rcu, fresh());

	if (old)
		call_rcu(&old->rcu, end_callback);

	old = rcu_xchg_pointer(&of_srcu, fresh());
	synchronize_srcu(&domain);
	end(old);

	old = rcu_xchg_pointer(&of_shazptr, fresh());
	if (old)
		synchronize_shazptr(old);
	end(old);

	old = rcu_xchg_pointer(&of_hazptr, fresh());
	if (old)
		call_hazptr(&old->hazptr, end_hazptr);

	percpu_down_write(&lock);
	percpu_up_write(&lock);
	hashmap_set(&map, 1, 2, NULL);
}

int quiesce_try(void)
{
	pthread_t thread[THREADS];
	int nr = 0;

	quiesce_store_relaxed(&stop, 0); /* Relaxed: before the threads start. */
	while (nr < THREADS && pthread_create(&thread[nr], NULL, reader, NULL) == 0)
		nr++;
	for (int i = 0; i < ROUNDS; i++) {
		replace_all();
		read_all();
	}
	quiesce_store_relaxed(&stop, 1); /* Relaxed: the threads see it some time. */
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	rcu_barrier();
	hazptr_barrier();
	return nr == THREADS ? quiesce_load_relaxed(&nr_bad) : -1; /* Relaxed: the threads have been joined. */
}
