/* SPDX-License-Identifier: MIT */
/* probes.c - one event of each static probe, for a debugger that listens to them (probes.py). */
#include <quiesce/ds/hashmap.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/slab.h>
#include <quiesce/srcu.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#define HELD_US 60000 /* longer than the stall limit */
#define STALL_NS 10000000
#define CEILING 65536

struct object {
	struct rcu_head rcu;
	char data[CEILING];
};

static struct percpu_rw_semaphore lock;
static sem_t held;
static int target;

static void must(int ok)
{
	if (!ok)
		abort();
}

static void *holds_section(void *unused)
{
	rcu_read_lock();
	sem_post(&held);
	usleep(HELD_US);
	rcu_read_unlock();
	return unused;
}

static void *holds_object(void *unused)
{
	struct shazptr_guard guard = shazptr_acquire(&target);

	sem_post(&held);
	usleep(HELD_US);
	shazptr_clear(guard);
	return unused;
}

static void *holds_lock(void *unused)
{
	percpu_down_read(&lock);
	sem_post(&held);
	usleep(HELD_US);
	percpu_up_read(&lock);
	return unused;
}

static void *writes(void *unused)
{
	percpu_down_write(&lock);
	sem_post(&held);
	usleep(HELD_US);
	percpu_up_write(&lock);
	return unused;
}

static pthread_t beside(void *(*main)(void *))
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, main, NULL) == 0);
	sem_wait(&held);
	return thread;
}

static void free_object(struct rcu_head *head)
{
	free(head);
}

static void grace_periods_and_callbacks(void)
{
	pthread_t thread = beside(holds_section);

	synchronize_rcu();
	pthread_join(thread, NULL);
	thread = beside(holds_section);
	for (int i = 0; i < 4; i++) {
		struct object *object = malloc(sizeof *object);

		must(object != NULL);
		call_rcu_sized(&object->rcu, free_object, sizeof *object);
	}
	rcu_throttle();
	pthread_join(thread, NULL);
	rcu_barrier();
}

static void waits_for_an_object(void)
{
	pthread_t thread = beside(holds_object);

	synchronize_shazptr(&target);
	pthread_join(thread, NULL);
}

static void locks(void)
{
	pthread_t thread;

	must(percpu_init_rwsem(&lock) == 0);
	thread = beside(holds_lock);
	percpu_down_write(&lock);
	percpu_up_write(&lock);
	pthread_join(thread, NULL);
	thread = beside(writes);
	percpu_down_read(&lock);
	percpu_up_read(&lock);
	pthread_join(thread, NULL);
	percpu_free_rwsem(&lock);
}

static void release(struct percpu_ref *ref)
{
	(void)ref;
}

static void domains_references_tables_and_caches(void)
{
	struct kmem_cache *cache = kmem_cache_create("probed", 64, 0, 0, NULL);
	struct srcu_struct domain;
	struct percpu_ref ref;
	struct hashmap map;

	must(init_srcu_struct(&domain) == 0 && percpu_ref_init(&ref, release, 0) == 0 && hashmap_init(&map) == 0 && cache);
	synchronize_srcu(&domain);
	cleanup_srcu_struct(&domain);
	percpu_ref_kill(&ref);
	percpu_ref_exit(&ref);
	for (uint64_t key = 1; key < 10000; key++)
		must(hashmap_set(&map, key, key, NULL) == 0);
	rcu_barrier();
	hashmap_destroy(&map);
	kmem_cache_free(cache, kmem_cache_alloc(cache));
	kmem_cache_destroy(cache);
}

int main(void)
{
	quiesce_set_stall_timeout(STALL_NS);
	quiesce_set_garbage_ceiling(CEILING);
	must(sem_init(&held, 0, 0) == 0);
	grace_periods_and_callbacks();
	waits_for_an_object();
	locks();
	domains_references_tables_and_caches();
	return 0;
}
