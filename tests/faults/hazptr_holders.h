/* SPDX-License-Identifier: MIT */
/* hazptr_holders.h - threads that protect objects by hazard pointers until asked to clear them, and one use of each call. */
#ifndef HAZPTR_HOLDERS_H
#define HAZPTR_HOLDERS_H

#include "../unit/hazptrs.h"
#include "holders.h"

/* ---- a thread that protects one object in a slot of its own, and one in a context ---- */

struct keeper {
	pthread_t thread;
	sem_t inside, leave;
	void *object, *in_context;
};

static inline void *keeper_main(void *arg)
{
	struct keeper *k = arg;
	struct hazptr_context ctx;
	hazptr_t *slot = slot_with(NULL, k->object), *more;

	if (init_hazptr_context(&ctx))
		abort();
	more = slot_with(&ctx, k->in_context);
	sem_post(&k->inside);
	wait_for(&k->leave);
	hazptr_free(NULL, slot);
	hazptr_free(&ctx, more);
	cleanup_hazptr_context(&ctx);
	return NULL;
}

static inline void keeper_begin(struct keeper *k, void *object, void *in_context)
{
	sem_init(&k->inside, 0, 0);
	sem_init(&k->leave, 0, 0);
	k->object = object;
	k->in_context = in_context;
	thread_must(pthread_create(&k->thread, NULL, keeper_main, k));
	wait_for(&k->inside);
}

static inline void keeper_end(struct keeper *k)
{
	sem_post(&k->leave);
	pthread_join(k->thread, NULL);
}

/* ---- does everything work? ---- */

/* Check that @slot alone protects @t: @t is reclaimed after the clear and not before. */
static inline int keeps(hazptr_t *slot, struct thing *t)
{
	struct waiter w;
	int before = runs_of(t), ok;

	thing_retire(t);
	waiter_begin(&w, t);
	ok = waiter_is_blocked(&w) && runs_of(t) == before;
	hazptr_clear(slot);
	waiter_end(&w);
	hazptr_barrier();
	return ok && runs_of(t) == before + 1;
}

/* Check that no slot protects @t. */
static inline int lets_go(struct thing *t)
{
	int before = runs_of(t);

	thing_retire(t);
	hazptr_barrier();
	return runs_of(t) == before + 1;
}

static inline int context_works(void)
{
	struct hazptr_context ctx;
	struct thing t = { .id = 0 };
	hazptr_t *slot;
	int ok;

	if (init_hazptr_context(&ctx))
		return 0;
	slot = slot_with(&ctx, &t);
	ok = keeps(slot, &t);
	hazptr_free(&ctx, slot);
	cleanup_hazptr_context(&ctx);
	return ok;
}

static inline int cohort_works(void)
{
	struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
	struct thing t[3] = { { .id = 0 } };

	for (int i = 0; i < 3; i++)
		call_hazptr_cohort(&cohort, &t[i].hazptr, thing_run);
	synchronize_hazptr_cohort(&cohort);
	return things_run(t, 3) == 3;
}

static inline int hazptrs_work(void)
{
	struct thing t = { .id = 0 };
	hazptr_t *slot = slot_with(NULL, &t);
	int ok = keeps(slot, &t);

	hazptr_free(NULL, slot);
	retire_plenty();
	return ok && context_works() && cohort_works();
}

/* Use hazard pointers without another thread. */
static inline int hazptrs_work_alone(void)
{
	struct thing t = { .id = 0 };
	hazptr_t *slot = slot_with(NULL, &t);
	int ok;

	thing_retire(&t);
	retire_plenty();
	ok = runs_of(&t) == 0;
	hazptr_free(NULL, slot);
	hazptr_barrier();
	return ok && runs_of(&t) == 1 && cohort_works();
}

/* The worker does its part, too. */
static inline int worker_works(void)
{
	static struct thing t; /* static: the worker may reclaim it after this returns */
	int before = runs_of(&t);

	thing_retire(&t);
	wait_until(runs_of(&t) == before + 1);
	return 1;
}

#endif
