/* SPDX-License-Identifier: MIT */
/* world.h - the surroundings of a call: an object of each kind, and threads that read and retire all the time. */
#ifndef CALLERS_WORLD_H
#define CALLERS_WORLD_H

#include "callers.h"

#include <quiesce/counted_ptr.h>
#include <quiesce/ds/hashmap.h>
#include <quiesce/ds/hashtable.h>
#include <quiesce/ds/ida.h>
#include <quiesce/ds/idr.h>
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/value_queue.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/ds/xarray.h>
#include <quiesce/hazptr.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <semaphore.h>

/* Objects that readers find are ALIVE; reclaimed ones are DEAD, as long as the allocator leaves their memory alone. */
#define ALIVE 42
#define DEAD (-1)

struct object {
	struct hazptr_head hazptr; /* first member: protections without a field use its address */
	struct rcu_head rcu;
	struct counted counted;
	struct world *world;
	unsigned int generation;
	int value;
	uint64_t key;
};

HASHTABLE_TYPE(object, struct object, key);

/* Keys, ids and indices of the world's containers, which stay. */
enum { NR_KEYS = 40, NR_BYSTANDERS = 3, NR_GENERATIONS = 4 };

struct bystander {
	struct world *world;
	pthread_t thread;
	int number;
};

struct world {
	/* Objects that calls replace; readers protect each by its own primitive. */
	struct object *shared, *guarded, *retired, *counted;
	/* Containers for reading; no thread updates them beside a fork. */
	struct hashtable table;
	struct hashmap map;
	struct idr idr;
	struct xarray xa;
	struct ida ida;
	struct object *fixed[NR_KEYS];
	/* Primitives that all threads use. */
	struct srcu_struct srcu;
	struct percpu_rw_semaphore rwsem;
	struct percpu_ref ref;
	struct rcu_sync sync;
	struct hazptr_cohort cohort, bystanders_cohort[NR_GENERATIONS];
	/* Counts of objects that were retired, and whose callbacks have run. */
	/* The generation is the number of forks: each process has its own bystanders and cohort, because the parent's may be locked. */
	unsigned int generation;
	pid_t process;
	int owed, paid;
	int ref_released;
	/* Threads that are active beside the call, and the state of the world that they see. */
	struct bystander bystander[NR_BYSTANDERS];
	int nr_bystanders;
	int stop, park, parked;
	int bad;           /* a reader found a reclaimed object */
	bool memory_fails; /* -ENOMEM is an allowed result */
	bool alone;        /* no thread can be created */
	bool has_hook;     /* the situation has set its own hook, which calls do not replace */
	bool beside;       /* another world is in use at the same time */
	bool is_child;     /* references of the parent's bystanders, and counts that a thread was just changing, have no owner */
};

enum { PARK_RETIRERS = 1, PARK_READERS };

void world_begin(struct world *w, int nr_bystanders);
void bystanders_begin(struct world *w, int nr);
void bystanders_end(struct world *w);
/* Park bystanders, two of them inside of all sections and guards; retired objects have been reclaimed. */
void world_park(struct world *w);
void world_unpark(struct world *w);
/* Adapt the world to the child of a fork, where the caller is the only thread. */
void world_in_child(struct world *w);
/* Check all that is promised after a call, and end the world. */
void world_settle(struct world *w);
/* Make the call, which has to keep its promise. */
void world_call(struct world *w, const struct call *call);

/* Read by each primitive: false if a reader found a reclaimed object. */
bool world_read(struct world *w);
/* A thread enters all sections, and leaves one after the other: each wait must last until its own leave. */
void waits_are_real(struct world *w);

/* ---- a thread inside of sections or guards, which leaves after waiters have waited for a while ---- */

enum { BY_RCU, BY_SRCU, BY_GUARD, BY_SLOT, BY_LOCK, NR_WAYS, ALL_WAYS = (1 << NR_WAYS) - 1 };

struct insider {
	struct srcu_struct *srcu;
	struct percpu_rw_semaphore *rwsem;
	struct object *guarded, *slotted;
	unsigned int ways;
	int idx;
	struct shazptr_guard guard;
	hazptr_t *slot;
	int inside, waited_for, left;
};

void insider_enter(struct insider *in);
void insider_leave_each(struct insider *in);
/* Leave all sections and guards where there is no waiter. */
void insider_leave_all(struct insider *in);
/* Leave in another thread: each wait must last until then. */
void insider_wait_each(struct insider *in);

/* ---- objects ---- */

bool object_is_fixed(const struct world *w, const void *object);
struct object *object_new(struct world *w);
/* Return a new object whose callback is owed. */
struct object *object_owed(struct world *w);
/* End an object that no reader can find any more. */
void object_end(struct object *o);
/* Callbacks that count the debt as paid, and end the object. */
void object_rcu(struct rcu_head *head);
void object_hazptr(struct hazptr_head *head);
void object_counted(struct counted *counted);
void object_delete(void *object);

static inline bool is_alive(const struct object *o)
{
	return !o || quiesce_load_relaxed(&o->value) == ALIVE; /* Relaxed: the protection that is tested orders. */
}

/* True if @err is an allowed result in @w: -ENOMEM without memory, or 0. */
static inline bool done(const struct world *w, int err)
{
	return err == 0 || (err == -ENOMEM && w->memory_fails);
}

#endif
