/* SPDX-License-Identifier: MIT */
/* use.h - one use of each primitive by one thread, and by several threads; returns whether it worked. */
#ifndef USE_H
#define USE_H

#include <quiesce/control.h>
#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

struct use_object {
	struct rcu_head rcu;
	struct hazptr_head hazptr;
	int value;
};

static int use_nr_run;
static struct use_object *use_shared; /* RCU protects it */
static struct use_object *use_single; /* simple hazard pointers protect it */
static struct use_object *use_retired; /* general hazard pointers, whose slots readers own, protect it */

static inline void use_run(struct rcu_head *head)
{
	struct use_object *o = (struct use_object *)(void *)head;

	o->value = -1;
	free(o);
	quiesce_fetch_add_relaxed(&use_nr_run, 1); /* Relaxed: rcu_barrier() orders it. */
}

static inline void use_run_hazptr(struct hazptr_head *head)
{
	use_run((struct rcu_head *)(void *)((char *)head - offsetof(struct use_object, hazptr)));
}

static inline struct use_object *use_new(void)
{
	struct use_object *o = malloc(sizeof *o);

	if (o)
		o->value = 42;
	return o;
}

/* Take two guards of one object, and clear the first one first. */
static inline int use_guards(void)
{
	struct shazptr_guard first = shazptr_protect(&use_single);
	struct shazptr_guard second = shazptr_protect(&use_single);
	struct use_object *a = shazptr_ptr(first), *b = shazptr_ptr(second);
	int ok = !a || a->value == 42;

	shazptr_clear(first);
	ok &= !b || b->value == 42;
	shazptr_clear(second);
	return ok;
}

/* Use a slot of the thread's own and one of a context; there may be no memory for either. */
static inline int use_slots(void)
{
	struct hazptr_context ctx;
	hazptr_t *first = hazptr_alloc(NULL), *second = init_hazptr_context(&ctx) ? NULL : hazptr_alloc(&ctx);
	struct use_object *a = first ? hazptr_protect(first, &use_retired, hazptr) : NULL;
	struct use_object *b = second ? hazptr_protect(second, &use_retired, hazptr) : NULL;
	int ok = !a || a->value == 42;

	hazptr_free(NULL, first);
	ok &= !b || b->value == 42;
	hazptr_free(&ctx, second);
	cleanup_hazptr_context(&ctx);
	return ok;
}

static inline int use_reader(void)
{
	struct use_object *o;
	int ok = use_guards() & use_slots();

	rcu_read_lock();
	rcu_read_lock();
	o = rcu_dereference(use_shared);
	rcu_read_unlock();
	ok &= rcu_read_lock_held() && (!o || o->value == 42);
	rcu_read_unlock();
	return ok && !rcu_read_lock_held();
}

/* Retire the shared object by each call of RCU in turn. */
static inline void use_replace(int way)
{
	struct use_object *old = rcu_xchg_pointer(&use_shared, use_new());

	if (!old)
		return;
	if (way == 0)
		call_rcu(&old->rcu, use_run);
	else if (way == 1)
		kfree_rcu(old, rcu);
	else if (way == 2)
		kfree_rcu_mightsleep(old);
	else {
		if (way == 3)
			synchronize_rcu();
		else
			synchronize_rcu_expedited();
		old->value = -1;
		free(old);
	}
}

/* Wait for the guards of one object: by the caller's own scan first, or by the scan thread at once. */
static inline void use_replace_single(int skip_self_scan)
{
	struct use_object *old = rcu_xchg_pointer(&use_single, use_new());

	if (!old)
		return;
	quiesce_set_skip_self_scan(skip_self_scan);
	synchronize_shazptr(old);
	quiesce_set_skip_self_scan(0);
	old->value = -1;
	free(old);
}

/* Retire by each call of hazard pointers in turn. */
static inline void use_retire(int way)
{
	static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
	struct use_object *old = rcu_xchg_pointer(&use_retired, use_new());

	if (!old)
		return;
	if (way == 0)
		call_hazptr(&old->hazptr, use_run_hazptr);
	else if (way == 1)
		kfree_hazptr(old, hazptr);
	else if (way == 2)
		call_hazptr_cohort(&cohort, &old->hazptr, use_run_hazptr);
	else {
		synchronize_hazptr(&old->hazptr);
		old->value = -1;
		free(old);
	}
	if (way == 2)
		synchronize_hazptr_cohort(&cohort);
	if (way == 1)
		hazptr_barrier();
}

static inline int use_poll(void)
{
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		sched_yield();
	seq = get_state_synchronize_rcu();
	cond_synchronize_rcu(seq);
	return poll_state_synchronize_rcu(seq);
}

static inline int use_callback(void)
{
	int before = quiesce_load_relaxed(&use_nr_run); /* Relaxed: a count. */
	struct use_object *o = use_new();

	if (!o)
		return 1;
	call_rcu(&o->rcu, use_run);
	rcu_barrier();
	return quiesce_load_relaxed(&use_nr_run) > before; /* Relaxed: after a barrier. */
}

static inline int use_everything(void)
{
	int ok = use_reader();

	for (int way = 0; way < 10; way++)
		use_replace(way % 5);
	for (int i = 0; i < 4; i++)
		use_replace_single(i % 2);
	for (int i = 0; i < 8; i++)
		use_retire(i % 4);
	ok &= use_poll();
	ok &= use_callback();
	return ok && use_reader();
}

/* ---- with threads ---- */

static int use_stop, use_bad;

static inline void *use_reader_main(void *started)
{
	int first = 1;

	while (!quiesce_load_relaxed(&use_stop)) { /* Relaxed: ends some time. */
		if (!use_reader())
			quiesce_store_relaxed(&use_bad, 1); /* Relaxed: joined before it is read. */
		if (first)
			sem_post(started);
		first = 0;
	}
	return NULL;
}

static inline int use_with_threads(int nr_readers, int rounds)
{
	pthread_t thread[16];
	sem_t started;
	int n = 0, ok = 1;

	sem_init(&started, 0, 0);
	quiesce_store_relaxed(&use_stop, 0); /* Relaxed: before the threads begin. */
	while (n < nr_readers && pthread_create(&thread[n], NULL, use_reader_main, &started) == 0)
		n++;
	for (int i = 0; i < n; i++)
		sem_wait(&started);
	for (int i = 0; i < rounds; i++)
		ok &= use_everything();
	quiesce_store_relaxed(&use_stop, 1); /* Relaxed: before the threads begin. */
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return ok && n == nr_readers && !use_bad;
}

#endif
