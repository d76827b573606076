/* SPDX-License-Identifier: MIT */
/* holders.h - threads that hold a guard until asked to clear it, and threads that wait for one. */
#ifndef HOLDERS_H
#define HOLDERS_H

#include "../unit/testing.h"

#include <quiesce/shazptr.h>

struct holder {
	pthread_t thread;
	sem_t inside, leave;
	struct shazptr_guard guard;
};

static inline void *holder_main(void *arg)
{
	struct holder *h = arg;

	h->guard = shazptr_acquire(h->guard.ptr);
	sem_post(&h->inside);
	wait_for(&h->leave);
	shazptr_clear(h->guard);
	return NULL;
}

static inline void holder_begin(struct holder *h, void *object)
{
	sem_init(&h->inside, 0, 0);
	sem_init(&h->leave, 0, 0);
	h->guard.ptr = object;
	thread_must(pthread_create(&h->thread, NULL, holder_main, h));
	wait_for(&h->inside);
}

static inline void holder_end(struct holder *h)
{
	sem_post(&h->leave);
	pthread_join(h->thread, NULL);
}

struct waiter {
	pthread_t thread;
	void *object;
	pid_t tid; /* 0 until it is about to call */
	int done;
};

static inline void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	quiesce_store_relaxed(&w->tid, my_tid()); /* Relaxed: a handshake. */
	synchronize_shazptr(w->object);
	flag_set(&w->done);
	return NULL;
}

static inline void waiter_begin(struct waiter *w, void *object)
{
	*w = (struct waiter){ .object = object };
	thread_must(pthread_create(&w->thread, NULL, waiter_main, w));
	wait_until(flag_get(&w->tid) != 0);
}

/* True as soon as a guard has blocked @w and it sleeps; false if it returns. */
static inline int waiter_is_blocked(struct waiter *w)
{
	uint64_t scans = stats_now().scans;

	wait_until(flag_get(&w->done) || (thread_state(flag_get(&w->tid)) == 'S' && stats_now().scans > scans + 1));
	return !flag_get(&w->done);
}

static inline void waiter_end(struct waiter *w)
{
	pthread_join(w->thread, NULL);
}

/* Check that another thread's @guard protects @object, and that a wait ends when it is cleared. */
static inline int ends_with(struct shazptr_guard guard, void *object)
{
	struct waiter w;
	int blocked;

	waiter_begin(&w, object);
	blocked = waiter_is_blocked(&w);
	shazptr_clear(guard);
	waiter_end(&w);
	return blocked;
}

static inline int is_free(void *object)
{
	synchronize_shazptr(object); /* the watchdog ends the test if it is not */
	return 1;
}

#endif
