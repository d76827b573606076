/* SPDX-License-Identifier: MIT */
/* guards.h - shared by the tests of simple hazard pointers: waiters that are watched, threads that
 * hold guards for a test, and guards in every place where a slot can live.
 */
#ifndef GUARDS_H
#define GUARDS_H

#include <quiesce/hazptr.h>
#include <quiesce/shazptr.h>

#include "testing.h"

/* ---- a thread that waits for one address ---- */

struct waiter {
	pthread_t thread;
	const void *address;
	const int *flag; /* set by the holder before it clears; NULL: none */
	pid_t tid;
	int returned, seen;
};

static inline void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	quiesce_store_relaxed(&w->tid, my_tid()); /* Relaxed: for waiter_must_wait() only. */
	synchronize_shazptr(w->address);
	if (w->flag)
		w->seen = flag_get(w->flag);
	flag_set(&w->returned);
	return NULL;
}

/* Start @w, and return when it has found a guard that blocks it, or has ended. */
static inline void waiter_begin(struct waiter *w, const void *address, const int *flag)
{
	uint64_t blocked = stats_now().shazptr_blocked;

	*w = (struct waiter){ .address = address, .flag = flag };
	thread_must(pthread_create(&w->thread, NULL, waiter_main, w));
	wait_until(flag_get(&w->returned) || stats_now().shazptr_blocked > blocked);
}

/* Three scans counted: the first may have begun earlier, the last may not have notified its waiters yet, so one is whole. */
#define SCANS_ENOUGH 3

/* True if the waiter has returned, or sleeps, so that other waiters do its scans. */
static inline int waiter_settled(struct waiter *w)
{
	return flag_get(&w->returned) || thread_state(quiesce_load_relaxed(&w->tid)) == 'S';
}

/* True if none of @nr waiters has returned, although scans have searched for their addresses. */
static inline int waiters_wait(struct waiter *w, int nr)
{
	uint64_t scans = stats_now().scans;
	int returned = 0;

	for (int i = 0; i < nr; i++)
		wait_until(waiter_settled(&w[i]));
	wait_until(flag_get(&w->returned) || stats_now().scans >= scans + SCANS_ENOUGH);
	for (int i = 0; i < nr; i++)
		returned += flag_get(&w[i].returned);
	return !returned;
}

static inline void waiter_end(struct waiter *w)
{
	pthread_join(w->thread, NULL);
}

#define assert_waits(w) assert_true(waiters_wait((w), 1))
#define assert_all_wait(w) assert_true(waiters_wait((w), sizeof(w) / sizeof(*(w))))

/* Check that the wait ends when @end is called for @slot, and not before. */
static inline void waits_until(void (*end)(hazptr_t *slot), hazptr_t *slot, const void *address)
{
	struct waiter w;
	int flag = 0;

	waiter_begin(&w, address, &flag);
	assert_waits(&w);
	flag_set(&flag);
	end(slot);
	waiter_end(&w);
	assert_int_equal(w.seen, 1);
}

/* ---- a thread that acts on the test's requests ---- */

struct actor {
	pthread_t thread;
	sem_t asked, answered;
	void (*fn)(void *);
	void *arg;
};

static inline void *actor_main(void *arg)
{
	struct actor *a = arg;

	for (;;) {
		wait_for(&a->asked);
		if (!a->fn)
			return NULL;
		a->fn(a->arg);
		sem_post(&a->answered);
	}
}

static inline void actor_begin(struct actor *a)
{
	sem_init(&a->asked, 0, 0);
	sem_init(&a->answered, 0, 0);
	thread_must(pthread_create(&a->thread, NULL, actor_main, a));
}

static inline void actor_do(struct actor *a, void (*fn)(void *), void *arg)
{
	a->fn = fn;
	a->arg = arg;
	sem_post(&a->asked);
	wait_for(&a->answered);
}

static inline void actor_end(struct actor *a)
{
	a->fn = NULL;
	sem_post(&a->asked);
	pthread_join(a->thread, NULL);
}

struct take {
	const void *ptr;
	struct shazptr_guard guard;
};

static inline void do_acquire(void *arg)
{
	struct take *t = arg;

	t->guard = shazptr_acquire(t->ptr);
}

static inline void do_clear(void *arg)
{
	struct take *t = arg;

	shazptr_clear(t->guard);
}

/* ---- places ---- */

/* There are more threads than lines of slots at the start. */
#define MAX_SETTLERS 100

static inline void do_probe(void *arg)
{
	struct take *t = arg;

	do_acquire(t);
	t->ptr = NULL;
	if (quiesce_shazptr_slot(t->guard) == QUIESCE_SLOTS_THREAD)
		t->ptr = t; /* the thread has a line of its own */
	do_clear(t);
}

/* Start actors that take all of these lines and hold no guard; return their number. */
static inline int settlers_begin(struct actor settler[MAX_SETTLERS])
{
	int nr = 0, settled = quiesce_fence() == QUIESCE_FENCE_LIGHT && quiesce_slots() != QUIESCE_SLOTS_THREAD;

	while (settled && nr < MAX_SETTLERS) {
		struct take t = { .ptr = &t };

		actor_begin(&settler[nr]);
		actor_do(&settler[nr++], do_probe, &t);
		settled = t.ptr != NULL;
	}
	return nr;
}

static inline void settlers_end(struct actor settler[MAX_SETTLERS], int nr)
{
	while (nr--)
		actor_end(&settler[nr]);
}

/* Find the kinds of slots that a later thread can get; return their number. */
static inline int kinds_of_places(enum quiesce_slots place[3])
{
	int nr = 0;

	place[nr++] = quiesce_slots();
	if (quiesce_fence() == QUIESCE_FENCE_LIGHT && quiesce_slots() != QUIESCE_SLOTS_THREAD)
		place[nr++] = QUIESCE_SLOTS_THREAD; /* with full fences a thread's own line has no advantage */
	place[nr++] = QUIESCE_SLOTS_SHARED;
	return nr;
}

/* Request a guard of @ptr that is the one after @skip others in a slot of kind @place. */
#define MAX_FILLERS 2000

struct placement {
	const void *ptr;
	enum quiesce_slots place;
	int skip;
	struct shazptr_guard guard;
	int nr_fillers; /* more than MAX_FILLERS if there is no such place */
	struct shazptr_guard filler[MAX_FILLERS];
};

/* Fill slots with guards of unused addresses until one of @p->ptr gets a slot of that kind. */
static inline void do_place(void *arg)
{
	static int filler;
	struct placement *p = arg;
	int skip = p->skip;

	for (p->nr_fillers = 0; p->nr_fillers < MAX_FILLERS; p->nr_fillers++) {
		p->guard = shazptr_acquire(p->ptr);
		if (quiesce_shazptr_slot(p->guard) == p->place && skip-- <= 0)
			break;
		shazptr_clear(p->guard);
		p->filler[p->nr_fillers] = shazptr_acquire(&filler);
	}
	for (int i = 0; i < p->nr_fillers; i++)
		shazptr_clear(p->filler[i]);
}

static inline void do_clear_placed(void *arg)
{
	struct placement *p = arg;

	shazptr_clear(p->guard);
}

#endif
