/* SPDX-License-Identifier: MIT */
/* defer.c - functions to be called after a grace period: liburcu's defer_rcu().
 *
 * Each thread has a ring of its own, so to defer a call takes two stores.  One thread of the flavour calls items that have waited
 * for 0.1 s; a thread that finds its ring full calls the items in it.
 *
 * I1. A ring's owner writes @in; the thread that calls writes @out, under the lock of all rings of the flavour.  The lock is held
 *     during the wait for readers and the calls: so its holder is offline, and in no section.
 * I2. The flavour's thread exists from the first ring on.  An owner that puts an item into its ring and finds no request pending
 *     makes one.
 * I3. A forked child has the rings of its one thread only.  Items of other threads are not called there.
 * I4. A function that ends its thread counts as called.  The next thread that calls finds the rest in the rings; if the thread was
 *     the flavour's, another one takes its place, and an item that the thread was about to defer has been deferred.
 *
 * RU3  item filled in, then @in | @in read, then the item
 * DF1  @in, then request read   | request taken back, then @in read
 */
#include "flavor.h"

#include <quiesce/detail/thread.h>

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define RING_SIZE 4096u
#define DELAY_NS 100000000L

struct item {
	void (*func)(void *arg);
	void *arg;
};

struct ring {
	uint64_t in;   /* number of items ever put in */
	uint64_t out;  /* number of items ever called */
	uint64_t until; /* value of @in when the grace period began; used by the thread that calls */
	struct ring *next, **at;
	struct item item[RING_SIZE];
};

static struct deferred {
	pthread_mutex_t lock;
	struct ring *rings;
	uint32_t has_thread; /* the thread never ends: it sleeps */
	uint32_t asked;
	sem_t work;
} all[NR_FLAVORS] = { [0 ... NR_FLAVORS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static __thread struct ring *mine[NR_FLAVORS];

/* ---- calling ---- */

/* Notes the items in @r now.  Returns true if there are any. */
static bool look(struct ring *r)
{
	/* RU3: acquire, pairs with RU3 in put() */
	r->until = quiesce_load_acquire(RU3, &r->in);
	return r->until != r->out;
}

/* The state of one thread that holds the lock and calls items. */
struct calling {
	struct quiesce__callbacks callbacks;
	struct flavor *f;
	struct ring *only; /* the only ring to call; NULL: all rings */
	struct item next;  /* an item to put into @only when there is room; its function may be NULL */
	bool online;       /* true: the thread was online before */
};

static void call_ring(struct ring *r, struct quiesce__callbacks *callbacks)
{
	while (r->out != r->until) {
		struct item item = r->item[r->out % RING_SIZE];

		/* RU3: release, pairs with RU3 in flavor_defer() */
		quiesce_store_release(RU3, &r->out, r->out + 1);
		callbacks->func = (uintptr_t)item.func;
		item.func(item.arg);
	}
}

/* One grace period for all rings. */
static void call_rings(struct quiesce__callbacks *callbacks)
{
	const struct calling *c = (const struct calling *)(const void *)callbacks;
	struct deferred *d = &all[c->f->index];
	bool any = false;

	for (struct ring *r = d->rings; r; r = r->next)
		if (!c->only || r == c->only)
			any |= look(r);
	if (!any)
		return;
	c->f->synchronize();
	for (struct ring *r = d->rings; r; r = r->next)
		if (!c->only || r == c->only)
			call_ring(r, callbacks);
	callbacks->func = 0;
}

static void put(struct deferred *d, struct ring *r, const struct item *item)
{
	r->item[r->in % RING_SIZE] = *item;
	/* RU3: release, pairs with RU3 in look() */
	quiesce_store_release(RU3, &r->in, r->in + 1);
	/* DF1: full, pairs with DF1 in serve() */
	quiesce_fence_full(DF1);
	if (!quiesce_load_relaxed(&d->asked)) {       /* Relaxed: DF1. */
		quiesce_store_relaxed(&d->asked, 1u); /* Relaxed: a second request does no harm. */
		sem_post(&d->work);
	}
}

/* I4. */
static void calls_ended(struct quiesce__callbacks *callbacks)
{
	const struct calling *c = (const struct calling *)(const void *)callbacks;
	struct deferred *d = &all[c->f->index];

	pthread_mutex_unlock(&d->lock);
	sem_post(&d->work);
	flavor_return(c->f, c->online);
	if (c->next.func)
		put(d, c->only, &c->next);
}

static void call_offline(struct flavor *f, struct ring *only, const struct item *next)
{
	struct calling c = { .callbacks = { call_rings, calls_ended, "defer_rcu()", 0 }, .f = f, .only = only };

	if (next)
		c.next = *next;
	c.online = flavor_leave(f);
	pthread_mutex_lock(&all[f->index].lock);
	quiesce__callbacks_run(&c.callbacks);
	pthread_mutex_unlock(&all[f->index].lock);
	flavor_return(f, c.online);
}

void flavor_defer_barrier(struct flavor *f, bool mine_only)
{
	if (!mine_only)
		call_offline(f, NULL, NULL);
	else if (mine[f->index])
		call_offline(f, mine[f->index], NULL);
}

/* ---- the thread ---- */

/* The main function of the flavour's thread, guarded against functions that end it. */
struct life {
	struct quiesce__callbacks callbacks;
	struct flavor *f;
};

static void serve(struct quiesce__callbacks *callbacks)
{
	struct flavor *f = ((struct life *)(void *)callbacks)->f;
	struct deferred *d = &all[f->index];
	const struct timespec delay = { 0, DELAY_NS };

	for (;;) {
		while (sem_wait(&d->work))
			;
		nanosleep(&delay, NULL);
		/* DF1: full, pairs with DF1 in put() */
		quiesce_xchg(DF1, &d->asked, 0u);
		call_offline(f, NULL, NULL);
	}
}

static int start_thread(struct flavor *f, struct deferred *d);

/* I4. */
static void life_ended(struct quiesce__callbacks *callbacks)
{
	struct flavor *f = ((struct life *)(void *)callbacks)->f;

	pthread_mutex_lock(&all[f->index].lock);
	start_thread(f, &all[f->index]);
	pthread_mutex_unlock(&all[f->index].lock);
}

static void *thread_main(void *arg)
{
	struct life life = { .callbacks = { serve, life_ended, NULL, 0 }, .f = arg };

	quiesce__thread_begin("defer_rcu");
	quiesce__callbacks_run(&life.callbacks);
	return NULL;
}

/* The caller holds the lock.  Returns 0 or -errno. */
static int start_thread(struct flavor *f, struct deferred *d)
{
	pthread_t thread;
	int err = quiesce__thread_create(&thread, thread_main, f);

	if (!err)
		pthread_detach(thread);
	quiesce_store_relaxed(&d->has_thread, !err); /* Relaxed: under the lock. */
	return err;
}

/* Called for the first ring, under the lock. */
static int start(struct flavor *f, struct deferred *d)
{
	sem_init(&d->work, 0, 0);
	quiesce_store_relaxed(&d->asked, 0); /* Relaxed: no thread has a ring. */
	return start_thread(f, d);
}

/* ---- rings ---- */

static int insert(struct flavor *f, struct ring *r)
{
	struct deferred *d = &all[f->index];
	int err = d->has_thread ? 0 : start(f, d);

	if (err)
		return err;
	r->next = d->rings;
	r->at = &d->rings;
	if (r->next)
		r->next->at = &r->next;
	d->rings = r;
	mine[f->index] = r;
	return 0;
}

int flavor_defer_register(struct flavor *f)
{
	struct ring *r;
	bool online;
	int err;

	if (mine[f->index])
		return 0;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	online = flavor_leave(f);
	pthread_mutex_lock(&all[f->index].lock);
	err = insert(f, r);
	pthread_mutex_unlock(&all[f->index].lock);
	flavor_return(f, online);
	if (err)
		free(r);
	return err;
}

void flavor_defer_unregister(struct flavor *f)
{
	struct deferred *d = &all[f->index];
	struct ring *r = mine[f->index];
	bool online;

	if (!r)
		return;
	call_offline(f, r, NULL); /* no other thread puts items into this ring */
	online = flavor_leave(f);
	pthread_mutex_lock(&d->lock);
	mine[f->index] = NULL;
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	pthread_mutex_unlock(&d->lock);
	free(r);
	flavor_return(f, online);
}

void flavor_defer(struct flavor *f, void (*func)(void *arg), void *arg)
{
	struct deferred *d = &all[f->index];
	const struct item item = { func, arg };
	struct ring *r = mine[f->index];

	if (!r && flavor_defer_register(f)) {
		f->synchronize(); /* no memory for a ring: wait and call now */
		func(arg);
		return;
	}
	r = mine[f->index];
	/* RU3: acquire, pairs with RU3 in call_ring() */
	if (r->in - quiesce_load_acquire(RU3, &r->out) == RING_SIZE)
		call_offline(f, r, &item);
	put(d, r, &item);
}

/* ---- forked children ---- */

static void in_child(void)
{
	for (int i = 0; i < NR_FLAVORS; i++) {
		pthread_mutex_init(&all[i].lock, NULL);
		all[i].rings = mine[i];
		all[i].has_thread = 0;
		if (!mine[i])
			continue;
		mine[i]->next = NULL;
		mine[i]->at = &all[i].rings;
		if (!start(flavors[i], &all[i]))
			sem_post(&all[i].work);
	}
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}
