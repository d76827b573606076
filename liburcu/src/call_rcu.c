/* SPDX-License-Identifier: MIT */
/* call_rcu.c - queues of callbacks with threads of their own: liburcu's call_rcu_data.
 *
 * call_rcu() exchanges the tail of a wait-free queue, and posts a semaphore if the queue was empty: neither waits, and neither
 * allocates.  The queue's thread takes all callbacks, waits for readers once, and calls them.
 *
 * I1. A caller that finds the queue empty posts; the thread checks it after each post.  So no callback stays in a queue with a thread.
 * I2. A queue may lack a thread: none could be started, or the process is a forked child.  Then calls of call_rcu() try again to
 *     start it, one of them in each RETRY_NS, and rcu_barrier() calls the callbacks itself.
 * I3. One thread at a time takes callbacks from a queue: the holder of the mutex @caller.
 * I4. Callbacks are called in the order in which they were queued: the marker of a barrier is one of them.  So if a callback ends
 *     its thread, the rest of the batch goes to the front.  If that thread was the queue's, another one takes its place, unless
 *     the queue is to stop: then the thread is joined as it is, and the queue never has a thread again.
 * I5. A queue leaves the flavour's list while its @caller and the flavour's lock are held and it is empty.  Barriers put markers into
 *     listed queues under that lock, so no marker is freed with its queue: it is moved to the default, behind the callbacks before it.
 * I6. Between the first callback and the calls liburcu's thread pauses for 10 ms, and programs rely on that, knowingly or not: they
 *     use an object that they have just given to call_rcu().  So the thread here keeps that pace, unless a caller waits for callbacks.
 * I7. The flavour's lock is not held while memory is allocated, because the program's allocator may call call_rcu().  The
 *     exception is the start of a thread, during which call_rcu() starts none.
 * I8. The program joins a thread whose id get_call_rcu_thread() has returned, as with liburcu up to 0.13, also after its queue was
 *     freed: the free waits for the thread's last access to the queue, not for its end.  Other threads are joined or detached here.
 */
#define _GNU_SOURCE
#include "call_rcu_data.h"
#include "pace.h"

#include <quiesce/detail/thread.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_NS 10000000u
#define RETRY_NS 10000000u /* pause between two attempts to start a thread, which are system calls under the lock */

/* ---- calling ---- */

static struct rcu_head *head_of(struct wfcq_node *node)
{
	return (struct rcu_head *)(void *)node; /* the link is the first word of the head */
}

static struct wfcq_node *node_of(struct rcu_head *head)
{
	return (struct wfcq_node *)(void *)head;
}

/* The callbacks that the holder of @caller has taken from its queue. */
struct batch {
	struct quiesce__callbacks callbacks;
	struct call_rcu_data *c;
	struct wfcq_head head;
	struct wfcq_tail tail;
};

static struct batch *batch_of(struct quiesce__callbacks *callbacks)
{
	return (struct batch *)(void *)callbacks;
}

static __thread struct call_rcu_data *served[NR_FLAVORS]; /* the queue whose callbacks this thread is calling */

/* Callbacks run online, as in liburcu, and in no section. */
static void call_each(struct quiesce__callbacks *callbacks)
{
	struct batch *b = batch_of(callbacks);
	struct flavor *f = b->c->flavor;
	struct wfcq_node *node;

	served[f->index] = b->c;
	f->online();
	while ((node = wfcq_dequeue_blocking(&b->head, &b->tail))) {
		callbacks->func = (uintptr_t)head_of(node)->func;
		head_of(node)->func(head_of(node));
	}
	f->offline();
	served[f->index] = NULL;
}

/* I4. */
static void batch_ended(struct quiesce__callbacks *callbacks)
{
	struct batch *b = batch_of(callbacks);
	struct call_rcu_data *c = b->c;

	c->flavor->offline();
	served[c->flavor->index] = NULL;
	(void)wfcq_splice_blocking(&c->rest_head, &c->rest_tail, &b->head, &b->tail);
	call_rcu_data_wake(c); /* before the unlock: the queue may be freed as soon as @caller is released */
	pthread_mutex_unlock(&c->caller);
}

/* Calls the callbacks of @c after a grace period.  The caller is registered, offline,
 * and holds the mutex @caller of @c, which is released. */
static void call_held(struct call_rcu_data *c)
{
	struct batch b = { .callbacks = { call_each, batch_ended, "call_rcu()", 0 }, .c = c };
	bool any;

	wfcq_init(&b.head, &b.tail);
	any = wfcq_splice_blocking(&b.head, &b.tail, &c->rest_head, &c->rest_tail) != WFCQ_RET_SRC_EMPTY;
	any |= wfcq_splice_blocking(&b.head, &b.tail, &c->head, &c->tail) != WFCQ_RET_SRC_EMPTY;
	if (any) {
		c->flavor->synchronize();
		quiesce__callbacks_run(&b.callbacks);
	}
	pthread_mutex_unlock(&c->caller);
}

static void call_batch(struct call_rcu_data *c)
{
	pthread_mutex_lock(&c->caller);
	call_held(c);
}

/* ---- the thread ---- */

/* Waits for at most POLL_NS.  Returns true if the semaphore was posted. */
static bool await_for_a_while(sem_t *sem)
{
	return urcu_await_until(sem, urcu_now_ns() + POLL_NS);
}

/* I6.  Posts during the pause are consumed: the caller checks the queue next. */
static void keep_pace(struct call_rcu_data *c)
{
	uint64_t until = urcu_now_ns() + urcu_pace_ns;

	/* Relaxed: a hint; at worst a waiter waits for the pace, too. */
	while (!quiesce_load_relaxed(&c->awaited) && urcu_now_ns() < until)
		(void)urcu_await_until(&c->work, until);
	quiesce_store_relaxed(&c->awaited, 0u); /* Relaxed: as above. */
	while (!sem_trywait(&c->work))
		;
}

static void await_work(struct call_rcu_data *c)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* a callback may have changed it */
	if (c->polls) {
		(void)await_for_a_while(&c->work);
		return;
	}
	while (sem_wait(&c->work) && errno == EINTR)
		;
	if (urcu_pace_ns)
		keep_pace(c);
}

static void pause_for_fork(struct call_rcu_data *c)
{
	if (!quiesce_load_relaxed(&c->pause)) /* Relaxed: the semaphore orders it. */
		return;
	sem_post(&c->paused);
	while (sem_wait(&c->resume))
		;
}

/* The main function of a queue's thread, guarded against callbacks that end it. */
struct life {
	struct quiesce__callbacks callbacks;
	struct call_rcu_data *c;
};

static void live(struct quiesce__callbacks *callbacks)
{
	struct call_rcu_data *c = ((struct life *)(void *)callbacks)->c;
	bool stop;

	do {
		await_work(c);
		pause_for_fork(c);
		stop = quiesce_load_relaxed(&c->stop); /* Relaxed: the semaphore orders it. */
		call_batch(c); /* in the last turn, flavor_free() moves callbacks that are queued meanwhile */
	} while (!stop);
}

static int start_thread(struct call_rcu_data *c);

/* I4.  A queue without a thread is not asked to pause. */
static void leave(struct call_rcu_data *c)
{
	c->flavor->online();
	c->flavor->unregister_thread();
	pthread_mutex_lock(&c->flavor->lock);
	while (quiesce_load_relaxed(&c->pause)) { /* Relaxed: under the lock. */
		pthread_mutex_unlock(&c->flavor->lock);
		pause_for_fork(c);
		pthread_mutex_lock(&c->flavor->lock);
	}
	quiesce_store_relaxed(&c->has_thread, 0); /* Relaxed: under the lock. */
	if (quiesce_load_relaxed(&c->stop)) {     /* Relaxed: under the lock. */
		sem_post(&c->gone); /* I8: the queue is unlisted under the lock, and freed after that */
	} else {
		if (!c->asked_for)
			pthread_detach(pthread_self());
		start_thread(c);
	}
	pthread_mutex_unlock(&c->flavor->lock);
}

static void life_ended(struct quiesce__callbacks *callbacks)
{
	leave(((struct life *)(void *)callbacks)->c);
}

static void *thread_main(void *arg)
{
	struct life life = { .callbacks = { live, life_ended, NULL, 0 }, .c = arg };
	struct call_rcu_data *c = arg;

	quiesce__thread_begin("call_rcu");
	c->flavor->register_thread();
	c->flavor->offline();
	flavor_set_of_thread(c->flavor, c);
	quiesce__callbacks_run(&life.callbacks);
	leave(c);
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
	(void)pthread_setaffinity_np(c->thread, size, set); /* on failure (no such CPU, or not allowed) it may run anywhere */
	CPU_FREE(set);
}

/* The caller holds the flavour's lock.  Returns an errno. */
static int start_thread(struct call_rcu_data *c)
{
	int err;

	if (quiesce_load_relaxed(&c->stop)) /* Relaxed: under the lock. */
		return ECANCELED;
	if (c->flavor->paused) {
		quiesce_store_relaxed(&c->pause, PAUSE_ASKED); /* Relaxed: under the lock. */
		sem_post(&c->work);
	}
	c->asked_for = false;
	err = -quiesce__thread_create(&c->thread, thread_main, c);
	if (!err && c->cpu >= 0)
		pin(c);
	if (err) {
		quiesce_store_relaxed(&c->pause, PAUSE_NONE); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&c->retry_at, urcu_now_ns() + RETRY_NS); /* Relaxed: a rate limit. */
	}
	quiesce_store_relaxed(&c->has_thread, !err); /* Relaxed: under the lock. */
	return err;
}

static bool may_retry(const struct call_rcu_data *c)
{
	return urcu_now_ns() >= quiesce_load_relaxed(&c->retry_at); /* Relaxed: a rate limit. */
}

/* @at_once: try even if an attempt has just failed. */
static QUIESCE_COLD bool start_if_none(struct call_rcu_data *c, bool at_once)
{
	if (at_once)
		pthread_mutex_lock(&c->flavor->lock);
	else if (!may_retry(c) || pthread_mutex_trylock(&c->flavor->lock)) /* I7 */
		return false;
	if (!quiesce_load_relaxed(&c->has_thread) && (at_once || may_retry(c))) /* Relaxed: under the lock. */
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
	quiesce_store_relaxed(&c->awaited, 1u); /* Relaxed: a hint. */
	sem_post(&c->work);
}

/* ---- creation and destruction ---- */

static void init(struct call_rcu_data *c, struct flavor *f, unsigned long flags, int cpu)
{
	memset(c, 0, sizeof *c);
	wfcq_init(&c->head, &c->tail);
	wfcq_init(&c->rest_head, &c->rest_tail);
	c->flavor = f;
	c->polls = (flags & URCU_CALL_RCU_RT) != 0;
	c->cpu = cpu;
	sem_init(&c->work, 0, 0);
	sem_init(&c->paused, 0, 0);
	sem_init(&c->resume, 0, 0);
	sem_init(&c->gone, 0, 0);
	pthread_mutex_init(&c->caller, NULL);
}

/* The caller holds the flavour's lock. */
static void list(struct call_rcu_data *c)
{
	struct flavor *f = c->flavor;

	c->next = f->list;
	c->at = &f->list;
	if (c->next)
		c->next->at = &c->next;
	f->list = c;
}

void call_rcu_data_unlist(struct call_rcu_data *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
}

void call_rcu_data_release(struct call_rcu_data *c)
{
	sem_destroy(&c->work);
	sem_destroy(&c->paused);
	sem_destroy(&c->resume);
	sem_destroy(&c->gone);
	pthread_mutex_destroy(&c->caller);
	free(c);
}

struct call_rcu_data *flavor_create(struct flavor *f, unsigned long flags, int cpu)
{
	struct call_rcu_data *c = aligned_alloc(QUIESCE_CACHELINE, sizeof *c);
	int err;

	if (!c) {
		errno = ENOMEM;
		return NULL;
	}
	init(c, f, flags, cpu);
	pthread_mutex_lock(&f->lock);
	err = start_thread(c);
	if (!err)
		list(c);
	pthread_mutex_unlock(&f->lock);
	if (!err)
		return c;
	call_rcu_data_release(c);
	errno = err;
	return NULL;
}

/* I7: static, because the program's allocator may be the first to queue a callback. */
static struct call_rcu_data defaults[NR_FLAVORS];

struct call_rcu_data *flavor_default(struct flavor *f)
{
	/* RU3: acquire, pairs with RU3 in flavor_default() */
	struct call_rcu_data *c = quiesce_load_acquire(RU3, &f->dflt);

	if (quiesce_likely(c))
		return c;
	c = &defaults[f->index];
	pthread_mutex_lock(&f->lock);
	if (!f->dflt) {
		init(c, f, 0, -1);
		list(c);
		/* RU3: release, pairs with RU3 in flavor_default() */
		quiesce_store_release(RU3, &f->dflt, c);
		start_thread(c);
	}
	pthread_mutex_unlock(&f->lock);
	return c;
}

static void enqueue(struct call_rcu_data *c, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	head->func = func;
	if (!wfcq_enqueue(&c->head, &c->tail, node_of(head)) && !c->polls)
		sem_post(&c->work);
	if (quiesce_unlikely(!quiesce_load_relaxed(&c->has_thread))) /* Relaxed: a hint. */
		start_if_none(c, false);
}

/* Makes the default queue, and starts its thread, only if there are callbacks to move. */
void call_rcu_data_move_to_default(struct call_rcu_data *c)
{
	struct wfcq_node *node;

	while ((node = wfcq_dequeue_blocking(&c->rest_head, &c->rest_tail)) || (node = wfcq_dequeue_blocking(&c->head, &c->tail)))
		enqueue(flavor_default(c->flavor), head_of(node), head_of(node)->func);
}

/* Ends the thread of @c, or one that is started here for the queued callbacks.  No thread is started for @c later. */
static void stop_thread(struct call_rcu_data *c)
{
	struct flavor *f = c->flavor;
	pthread_t thread;
	bool any, asked_for;

	pthread_mutex_lock(&f->lock);
	any = quiesce_load_relaxed(&c->has_thread) || !start_thread(c); /* Relaxed: under the lock. */
	quiesce_store_relaxed(&c->stop, 1); /* Relaxed: the semaphore orders it. */
	thread = c->thread;
	pthread_mutex_unlock(&f->lock);
	call_rcu_data_wake(c);
	while (any && sem_wait(&c->gone))
		;
	pthread_mutex_lock(&f->lock);
	asked_for = c->asked_for; /* a callback may have asked for the id until now */
	pthread_mutex_unlock(&f->lock);
	if (any && !asked_for) /* I8 */
		pthread_join(thread, NULL);
}

static bool anything_in(struct call_rcu_data *c)
{
	return !wfcq_empty(&c->head, &c->tail) || !wfcq_empty(&c->rest_head, &c->rest_tail);
}

/* I5.  @c has no thread any more. */
static void empty_and_unlist(struct call_rcu_data *c)
{
	struct flavor *f = c->flavor;

	pthread_mutex_lock(&c->caller);
	call_rcu_data_move_to_default(c);
	pthread_mutex_lock(&f->lock);
	while (anything_in(c)) {
		pthread_mutex_unlock(&f->lock);
		call_rcu_data_move_to_default(c);
		pthread_mutex_lock(&f->lock);
	}
	call_rcu_data_unlist(c);
	pthread_mutex_unlock(&f->lock);
	pthread_mutex_unlock(&c->caller);
}

void flavor_free(struct flavor *f, struct call_rcu_data *c)
{
	bool online;
	int cancelable;

	if (!c || c == f->dflt) /* callers may be queueing to the default */
		return;
	if (served[f->index] == c) /* a callback of @c: it would wait for itself */
		urcu_die("call_rcu_data_free", EDEADLK);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
	online = flavor_leave(f);
	stop_thread(c);
	if (flavor_of_thread(f) == c)
		flavor_set_of_thread(f, NULL);
	empty_and_unlist(c);
	call_rcu_data_release(c);
	flavor_return(f, online);
	pthread_setcancelstate(cancelable, NULL);
}

/* ---- queueing ---- */

void flavor_call_rcu(struct flavor *f, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	f->read_lock(); /* the queue of a CPU is freed after a grace period */
	enqueue(flavor_chosen(f), head, func);
	f->read_unlock();
}

/* ---- the barrier ---- */

struct marker {
	struct rcu_head head;
	sem_t *reached;
};

/* On the heap: if a callback runs during the wait and ends its thread, markers are left in other queues. */
struct barrier {
	sem_t reached;
	uint32_t room;
	struct marker marker[];
};

static void marker_reached(struct rcu_head *head)
{
	sem_post(((struct marker *)(void *)head)->reached);
}

/* The caller holds the flavour's lock. */
static uint32_t nr_queues(const struct flavor *f)
{
	uint32_t nr = 0;

	for (const struct call_rcu_data *c = f->list; c; c = c->next)
		nr++;
	return nr;
}

static struct barrier *barrier_new(struct flavor *f)
{
	struct barrier *b;
	uint32_t nr;

	pthread_mutex_lock(&f->lock);
	nr = nr_queues(f);
	pthread_mutex_unlock(&f->lock);
	b = malloc(sizeof *b + nr * sizeof b->marker[0]);
	if (!b)
		urcu_die("rcu_barrier", ENOMEM);
	sem_init(&b->reached, 0, 0);
	b->room = nr;
	return b;
}

/* Returns the number of marked queues.  False: there are more queues than there is room for. */
static bool mark_all(struct flavor *f, struct barrier *b, uint32_t *ret_nr)
{
	bool all;

	*ret_nr = 0;
	pthread_mutex_lock(&f->lock);
	all = nr_queues(f) <= b->room;
	for (struct call_rcu_data *c = f->list; all && c; c = c->next) {
		struct marker *m = &b->marker[(*ret_nr)++];

		m->reached = &b->reached;
		m->head.func = marker_reached;
		(void)wfcq_enqueue(&c->head, &c->tail, node_of(&m->head));
		call_rcu_data_wake(c);
	}
	pthread_mutex_unlock(&f->lock);
	return all;
}

/* Finds a queue that is not empty, has no thread and can have none, and whose callbacks no other thread is calling.
 * Its @caller is held on return. */
static struct call_rcu_data *take_alone(struct flavor *f)
{
	struct call_rcu_data *alone = NULL;

	pthread_mutex_lock(&f->lock);
	for (struct call_rcu_data *c = f->list; c && !alone; c = c->next)
		/* Relaxed: under the lock.  The callbacks of a queue that is to stop are moved to the default. */
		if (!quiesce_load_relaxed(&c->has_thread) && !quiesce_load_relaxed(&c->stop) && anything_in(c) && start_thread(c) &&
		    !pthread_mutex_trylock(&c->caller))
			alone = c;
	pthread_mutex_unlock(&f->lock);
	return alone;
}

/* Waits for all callbacks that were in the queues of @f.  The caller cannot be cancelled, and is offline. */
static void wait_for_queues(struct flavor *f)
{
	struct call_rcu_data *alone;
	struct barrier *b;
	uint32_t nr;

	for (b = barrier_new(f); !mark_all(f, b, &nr); b = barrier_new(f))
		free(b);
	while (nr) {
		alone = take_alone(f); /* a thread may end meanwhile, so that its queue has none */
		if (alone)
			call_held(alone);
		nr -= alone ? !sem_trywait(&b->reached) : await_for_a_while(&b->reached);
	}
	sem_destroy(&b->reached);
	free(b);
}

/* Reports and returns, as liburcu does: a program may make this call where no callback that it waits for is queued. */
static void report_section(void)
{
	static uint32_t reported;

	if (quiesce_load_relaxed(&reported)) /* Relaxed: at worst it is reported again. */
		return;
	quiesce_store_relaxed(&reported, 1u); /* Relaxed: as above. */
	fputs("quiesce: rcu_barrier() in a section, for whose end it would wait: it returns, and has waited for nothing\n", stderr);
}

void flavor_barrier(struct flavor *f)
{
	int cancelable;
	bool online;

	if (served[f->index]) /* in a callback: it would wait for itself */
		urcu_die("rcu_barrier", EDEADLK);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable); /* markers are in the queues */
	online = flavor_leave(f);
	if (f->ongoing()) {
		report_section();
	} else {
		wait_for_queues(f);
		if (f->native_barrier)
			f->native_barrier();
	}
	flavor_return(f, online);
	pthread_setcancelstate(cancelable, NULL);
}
