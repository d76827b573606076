/* SPDX-License-Identifier: MIT */
/* call_rcu.c - queues of callbacks with threads of their own: liburcu's call_rcu_data.
 *
 * Who queues exchanges the tail of a wait-free queue, and posts a semaphore if the queue was empty: neither waits, and neither
 * allocates.  Its thread takes all that is there, waits for readers once, and calls them.
 *
 * I1. Who finds a queue empty posts; the thread looks after each post.  So nothing stays in a queue that has a thread.
 * I2. A queue may be without a thread: none could be had, or the process is a forked child.  Then calls try again to start it, each
 *     RETRY_NS one of them, and rcu_barrier() calls what is there itself.
 * I3. One at a time takes from a queue: who holds @caller.
 */
#define _GNU_SOURCE
#include "call_rcu_data.h"

#include <quiesce/detail/thread.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS 10000000L
#define RETRY_NS 10000000u /* between two attempts to start a thread: system calls, under the lock */

void urcu_die(const char *call, int err)
{
	fprintf(stderr, "quiesce: %s(): %s; the program cannot go on\n", call, strerror(err));
	abort();
}

/* ---- calling ---- */

static struct rcu_head *head_of(struct wfcq_node *node)
{
	return (struct rcu_head *)(void *)node; /* the link is its first word */
}

static struct wfcq_node *node_of(struct rcu_head *head)
{
	return (struct wfcq_node *)(void *)head;
}

/* Callbacks run online, as in liburcu, and in no section. */
static void call_each(struct flavor *f, struct wfcq_head *head, struct wfcq_tail *tail)
{
	struct wfcq_node *node;

	f->online();
	while ((node = wfcq_dequeue_blocking(head, tail)))
		head_of(node)->func(head_of(node));
	f->offline();
}

/* Call what is in @c after a grace period; false: nothing is.  The caller is registered, and offline. */
static bool call_batch(struct call_rcu_data *c)
{
	struct wfcq_head head;
	struct wfcq_tail tail;
	bool any;

	wfcq_init(&head, &tail);
	pthread_mutex_lock(&c->caller);
	any = wfcq_splice_blocking(&head, &tail, &c->head, &c->tail) != WFCQ_RET_SRC_EMPTY;
	if (any) {
		c->flavor->synchronize();
		call_each(c->flavor, &head, &tail);
	}
	pthread_mutex_unlock(&c->caller);
	return any;
}

/* ---- the thread ---- */

static void await_work(struct call_rcu_data *c)
{
	struct timespec until;

	if (!c->polls) {
		while (sem_wait(&c->work) && errno == EINTR)
			;
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	sem_timedwait(&c->work, &until);
}

static void pause_for_fork(struct call_rcu_data *c)
{
	if (!quiesce_load_relaxed(&c->pause)) /* Relaxed: the semaphore orders it. */
		return;
	sem_post(&c->paused);
	while (sem_wait(&c->resume))
		;
}

static __thread struct call_rcu_data *served; /* by this thread */

static void *thread_main(void *arg)
{
	struct call_rcu_data *c = arg;
	struct flavor *f = c->flavor;
	bool stop;

	quiesce__thread_begin("call_rcu");
	f->register_thread();
	f->offline();
	flavor_set_of_thread(f, c);
	served = c;
	do {
		await_work(c);
		pause_for_fork(c);
		stop = quiesce_load_relaxed(&c->stop); /* Relaxed: the semaphore orders it. */
		(void)call_batch(c); /* the last time what is queued meanwhile is left: flavor_free() moves it */
	} while (!stop);
	f->online();
	f->unregister_thread();
	return NULL;
}

static void pin(const struct call_rcu_data *c)
{
	size_t size = CPU_ALLOC_SIZE((size_t)c->cpu + 1);
	cpu_set_t *set = CPU_ALLOC((size_t)c->cpu + 1);

	if (!set)
		return;
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)c->cpu, size, set);
	(void)pthread_setaffinity_np(c->thread, size, set); /* a CPU that is not there, or not ours: it runs anywhere */
	CPU_FREE(set);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Under the flavour's lock.  Returns an errno. */
static int start_thread(struct call_rcu_data *c)
{
	int err = -quiesce__thread_create(&c->thread, thread_main, c);

	if (!err && c->cpu >= 0)
		pin(c);
	if (err)
		quiesce_store_relaxed(&c->retry_at, now_ns() + RETRY_NS); /* Relaxed: a rate limit. */
	quiesce_store_relaxed(&c->has_thread, !err); /* Relaxed: under the lock. */
	return err;
}

static bool may_retry(const struct call_rcu_data *c)
{
	return now_ns() >= quiesce_load_relaxed(&c->retry_at); /* Relaxed: a rate limit. */
}

/* @at_once: although an attempt has just failed. */
static QUIESCE_COLD bool start_if_none(struct call_rcu_data *c, bool at_once)
{
	if (!at_once && !may_retry(c))
		return false;
	pthread_mutex_lock(&c->flavor->lock);
	/* Relaxed: under the lock. */
	if (!quiesce_load_relaxed(&c->has_thread) && !c->flavor->paused && (at_once || may_retry(c)))
		start_thread(c);
	pthread_mutex_unlock(&c->flavor->lock);
	return quiesce_load_relaxed(&c->has_thread); /* Relaxed: a hint. */
}

bool call_rcu_data_ensure_thread(struct call_rcu_data *c)
{
	return quiesce_likely(quiesce_load_relaxed(&c->has_thread)) || start_if_none(c, true); /* Relaxed: a hint. */
}

void call_rcu_data_wake(struct call_rcu_data *c)
{
	sem_post(&c->work);
}

/* ---- making and ending ---- */

/* Under the flavour's lock. */
static struct call_rcu_data *make(struct flavor *f, unsigned long flags, int cpu)
{
	struct call_rcu_data *c = aligned_alloc(QUIESCE_CACHELINE, sizeof *c);

	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	wfcq_init(&c->head, &c->tail);
	c->flavor = f;
	c->polls = (flags & URCU_CALL_RCU_RT) != 0;
	c->cpu = cpu;
	sem_init(&c->work, 0, 0);
	sem_init(&c->paused, 0, 0);
	sem_init(&c->resume, 0, 0);
	pthread_mutex_init(&c->caller, NULL);
	c->next = f->list;
	c->at = &f->list;
	if (c->next)
		c->next->at = &c->next;
	f->list = c;
	return c;
}

void call_rcu_data_release(struct call_rcu_data *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	sem_destroy(&c->work);
	sem_destroy(&c->paused);
	sem_destroy(&c->resume);
	pthread_mutex_destroy(&c->caller);
	free(c);
}

struct call_rcu_data *flavor_create(struct flavor *f, unsigned long flags, int cpu)
{
	struct call_rcu_data *c;
	int err = ENOMEM;

	pthread_mutex_lock(&f->lock);
	c = make(f, flags, cpu);
	if (c) {
		err = start_thread(c);
		if (err) {
			call_rcu_data_release(c);
			c = NULL;
		}
	}
	pthread_mutex_unlock(&f->lock);
	if (!c)
		errno = err;
	return c;
}

struct call_rcu_data *flavor_default(struct flavor *f)
{
	/* RU3: acquire, pairs with RU3 in flavor_default() */
	struct call_rcu_data *c = quiesce_load_acquire(RU3, &f->dflt);

	if (quiesce_likely(c))
		return c;
	pthread_mutex_lock(&f->lock);
	c = f->dflt;
	if (!c) {
		c = make(f, 0, -1);
		/* RU3: release, pairs with RU3 in flavor_default() */
		quiesce_store_release(RU3, &f->dflt, c);
		if (c && !f->paused)
			start_thread(c);
	}
	pthread_mutex_unlock(&f->lock);
	if (!c)
		urcu_die("get_default_call_rcu_data", ENOMEM);
	return c;
}

void call_rcu_data_move_to_default(struct call_rcu_data *c)
{
	struct flavor *f = c->flavor;
	struct wfcq_node *node;

	while ((node = wfcq_dequeue_blocking(&c->head, &c->tail)))
		flavor_call_rcu(f, head_of(node), head_of(node)->func);
}

void flavor_free(struct flavor *f, struct call_rcu_data *c)
{
	bool online;

	if (!c || c == f->dflt) /* which others may be queueing to */
		return;
	online = flavor_leave(f);
	quiesce_store_relaxed(&c->stop, 1); /* Relaxed: the semaphore orders it. */
	if (call_rcu_data_ensure_thread(c)) {
		call_rcu_data_wake(c);
		pthread_join(c->thread, NULL);
	}
	if (flavor_of_thread(f) == c)
		flavor_set_of_thread(f, NULL);
	call_rcu_data_move_to_default(c);
	pthread_mutex_lock(&f->lock);
	call_rcu_data_release(c);
	pthread_mutex_unlock(&f->lock);
	flavor_return(f, online);
}

pthread_t flavor_thread_of(struct call_rcu_data *c)
{
	if (!call_rcu_data_ensure_thread(c))
		urcu_die("get_call_rcu_thread", EAGAIN);
	return c->thread;
}

/* ---- queueing ---- */

static void enqueue(struct call_rcu_data *c, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	head->func = func;
	if (!wfcq_enqueue(&c->head, &c->tail, node_of(head)) && !c->polls)
		call_rcu_data_wake(c);
	if (quiesce_unlikely(!quiesce_load_relaxed(&c->has_thread))) /* Relaxed: a hint. */
		start_if_none(c, false);
}

void flavor_call_rcu(struct flavor *f, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	struct call_rcu_data *c;

	f->read_lock(); /* a CPU's queue is freed after a grace period */
	c = flavor_chosen(f);
	if (c)
		enqueue(c, head, func);
	else
		f->queue(head, func, 64); /* what an object counts as whose size is not known */
	f->read_unlock();
}

/* ---- the barrier ---- */

struct marker {
	struct rcu_head head;
	sem_t *reached;
};

static void marker_reached(struct rcu_head *head)
{
	struct marker *m = (struct marker *)(void *)head;
	sem_t *reached = m->reached;

	free(m);
	sem_post(reached);
}

/* A queue without a thread: its callbacks are called here. */
static void call_here(struct call_rcu_data *c)
{
	while (call_batch(c))
		;
}

/* Under the flavour's lock.  Returns how many, and sets @ret_err where that is not all. */
static uint32_t mark_all(struct flavor *f, sem_t *reached, int *ret_err)
{
	uint32_t nr = 0;

	for (struct call_rcu_data *c = f->list; c; c = c->next, nr++) {
		struct marker *m = malloc(sizeof *m);

		if (!m) {
			*ret_err = ENOMEM;
			break;
		}
		m->reached = reached;
		m->head.func = marker_reached;
		if (!wfcq_enqueue(&c->head, &c->tail, node_of(&m->head)))
			call_rcu_data_wake(c);
	}
	return nr;
}

/* One that has no thread, can have none, and is not empty. */
static struct call_rcu_data *find_alone(struct flavor *f)
{
	struct call_rcu_data *alone = NULL;

	pthread_mutex_lock(&f->lock);
	for (struct call_rcu_data *c = f->list; c && !alone; c = c->next)
		/* Relaxed: under the lock. */
		if (!quiesce_load_relaxed(&c->has_thread) && !wfcq_empty(&c->head, &c->tail) && start_thread(c))
			alone = c;
	pthread_mutex_unlock(&f->lock);
	return alone;
}

void flavor_barrier(struct flavor *f)
{
	struct call_rcu_data *alone;
	int err = 0;
	uint32_t nr;
	sem_t reached;
	bool online;

	if (served) /* a callback: it would wait for itself */
		urcu_die("rcu_barrier", EDEADLK);
	if (f->queue_barrier)
		f->queue_barrier(); /* in a section it reports, and aborts */
	online = flavor_leave(f);
	sem_init(&reached, 0, 0);
	pthread_mutex_lock(&f->lock);
	nr = mark_all(f, &reached, &err);
	pthread_mutex_unlock(&f->lock);
	while ((alone = find_alone(f)))
		call_here(alone);
	while (nr)
		nr -= !sem_wait(&reached);
	sem_destroy(&reached);
	if (err)
		urcu_die("rcu_barrier", err);
	flavor_return(f, online);
}
