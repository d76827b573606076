/* SPDX-License-Identifier: MIT */
/* plugin.c - a plug-in that is linked with the library, for load_plugin.c: one use of each kind of per-thread state. */
#include <quiesce/hazptr.h>
#include <quiesce/hazptr_retire.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <stdlib.h>

void plugin_hold(void (*inside)(void));
int plugin_use(void);
void plugin_wait(void);

DEFINE_STATIC_SRCU(domain);
static int nr_freed;

static void free_rcu(struct rcu_head *head)
{
	free(head);
	__atomic_fetch_add(&nr_freed, 1, __ATOMIC_RELAXED); /* raw: a count of the test */
}

static void free_hazptr(struct hazptr_head *head)
{
	free(head);
	__atomic_fetch_add(&nr_freed, 1, __ATOMIC_RELAXED); /* raw: a count of the test */
}

void plugin_hold(void (*inside)(void))
{
	rcu_read_lock();
	inside();
	rcu_read_unlock();
}

void plugin_wait(void)
{
	synchronize_rcu();
}

/* Returns how many objects have been reclaimed so far: two in each call. */
int plugin_use(void)
{
	struct rcu_head *by_rcu = calloc(1, sizeof *by_rcu); /* gcc warns of protecting what is not initialised */
	struct hazptr_head *by_hazptr = malloc(sizeof *by_hazptr);
	struct shazptr_guard guard = shazptr_acquire(by_rcu);
	hazptr_t *slot = hazptr_alloc(NULL);
	int idx = srcu_read_lock(&domain);

	if (!by_rcu || !by_hazptr || !slot)
		abort();
	hazptr_set(slot, by_hazptr);
	hazptr_clear(slot);
	hazptr_free(NULL, slot);
	srcu_read_unlock(&domain, idx);
	shazptr_clear(guard);
	synchronize_srcu(&domain);
	synchronize_shazptr(by_rcu);
	call_rcu(by_rcu, free_rcu);
	call_hazptr(by_hazptr, free_hazptr);
	rcu_barrier();
	hazptr_barrier();
	return __atomic_load_n(&nr_freed, __ATOMIC_RELAXED); /* raw: a count of the test */
}
