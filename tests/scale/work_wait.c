/* SPDX-License-Identifier: MIT */
/* work_wait.c - each wait for readers, which are idle, busy or asleep in sections. */
#include "workload.h"

#include <quiesce/hazptr.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/rcu.h>
#include <quiesce/rcu_sync.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

#include <string.h>

static uint64_t object, other;
static struct srcu_struct srcu;
static struct percpu_rw_semaphore sem;

#define NR_SYNCS 32 /* more than a caller has operations */
static struct rcu_sync sync_of[SCALE_CPUS][NR_SYNCS];

static void setup(void)
{
	if (init_srcu_struct(&srcu) || percpu_init_rwsem(&sem))
		scale_fail("an initialisation has failed");
}

/* Ten thousand threads have used the library at the same time, and have ended. */
#define NR_ENDED 10000

static struct scale_barrier all_there;
static bool with_many_guards;

/* More guards than its CPU's line has slots for: lines of the threads' own are needed. */
static void hold_many(void)
{
	struct shazptr_guard guard[12];

	for (int i = 0; i < 12; i++)
		guard[i] = shazptr_acquire_detached(&other);
	scale_barrier(&all_there, NR_ENDED, NULL);
	for (int i = 0; i < 12; i++)
		shazptr_clear(guard[i]);
}

static void one_of_many(void *arg)
{
	uint64_t *published = &other;
	hazptr_t *slot;

	(void)arg;
	rcu_read_lock();
	rcu_read_unlock();
	shazptr_clear(shazptr_protect(&published));
	slot = hazptr_alloc(NULL);
	hazptr_free(NULL, slot);
	if (with_many_guards)
		hold_many();
	scale_barrier(&all_there, NR_ENDED, NULL);
}

static void setup_many(void)
{
	setup();
	for (int i = 0; i < NR_ENDED; i++) {
		scale_spawn(one_of_many, NULL, i % scale_nr_cpus(), SCALE_SETUP);
		scale_sleep(5000);
	}
	scale_join();
}

static void setup_many_guards(void)
{
	with_many_guards = true;
	setup_many();
}

static void rcu_op(struct actor *a)
{
	(void)a;
	synchronize_rcu();
}

static void rcu_expedited_op(struct actor *a)
{
	(void)a;
	synchronize_rcu_expedited();
}

static void rcu_enter(struct actor *a)
{
	(void)a;
	rcu_read_lock();
}

static void rcu_leave(struct actor *a)
{
	(void)a;
	rcu_read_unlock();
}

/* A busy reader guards another object than the one that is waited for: most do. */
static void shazptr_op(struct actor *a)
{
	(void)a;
	synchronize_shazptr(&object);
}

static void shazptr_enter(struct actor *a)
{
	struct shazptr_guard guard = shazptr_acquire(&other);

	memcpy(a->object, &guard, sizeof guard);
}

static void shazptr_leave(struct actor *a)
{
	struct shazptr_guard guard;

	memcpy(&guard, a->object, sizeof guard);
	shazptr_clear(guard);
}

static void hazptr_op(struct actor *a)
{
	(void)a;
	synchronize_hazptr(&object);
}

static void hazptr_enter(struct actor *a)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	hazptr_set(slot, &other);
	a->object[0] = slot;
}

static void hazptr_leave(struct actor *a)
{
	hazptr_free(NULL, a->object[0]);
}

static void srcu_op(struct actor *a)
{
	(void)a;
	synchronize_srcu(&srcu);
}

static void srcu_enter(struct actor *a)
{
	a->object[0] = (void *)(uintptr_t)srcu_read_lock(&srcu);
}

static void srcu_leave(struct actor *a)
{
	srcu_read_unlock(&srcu, (int)(uintptr_t)a->object[0]);
}

/* Each operation has an rcu_sync of its own, whose readers were fast: so it waits for a grace period. */
static void sync_op(struct actor *a)
{
	struct rcu_sync *rss = &sync_of[a->number][(uintptr_t)a->object[1]];

	a->object[1] = (char *)a->object[1] + 1;
	rcu_sync_enter(rss);
	rcu_sync_exit(rss);
}

static void rwsem_op(struct actor *a)
{
	(void)a;
	percpu_down_write(&sem);
	percpu_up_write(&sem);
}

static void rwsem_enter(struct actor *a)
{
	(void)a;
	percpu_down_read(&sem);
}

static void rwsem_leave(struct actor *a)
{
	(void)a;
	percpu_up_read(&sem);
}

#define WAIT_AFTER(what, before, f)                                                                               \
	{ .group = "wait", .name = what, .setup = before, .op = f##_op, .enter = f##_enter, .leave = f##_leave, .warm = 3, .ops = 20, \
	  .waits = true }
#define WAIT(what, f) WAIT_AFTER(what, setup, f)
#define AFTER(what, f) WAIT_AFTER(what "_after_10000", setup_many, f)
#define rcu_expedited_enter rcu_enter
#define sync_enter rcu_enter
#define sync_leave rcu_leave
#define rcu_expedited_leave rcu_leave
const struct workload scale_waits[] = {
	WAIT("synchronize_rcu", rcu),
	WAIT("synchronize_rcu_expedited", rcu_expedited),
	WAIT("synchronize_shazptr", shazptr),
	WAIT("synchronize_hazptr", hazptr),
	WAIT("synchronize_srcu", srcu),
	WAIT("percpu_down_write", rwsem),
	WAIT("rcu_sync_enter_exit", sync),
	AFTER("synchronize_rcu", rcu),
	AFTER("synchronize_shazptr", shazptr),
	WAIT_AFTER("synchronize_shazptr_guards_after_10000", setup_many_guards, shazptr),
	AFTER("synchronize_hazptr", hazptr),
	AFTER("synchronize_srcu", srcu),
	{ 0 }
};
