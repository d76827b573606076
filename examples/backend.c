/* SPDX-License-Identifier: MIT */
/* backend.c - a reference count that every request takes, on an object that goes away once.
 *
 * Problem.  Requests use a backend for as long as they last, perhaps across sleep and from one thread to another.
 *   When it is taken out of service new requests are refused, and those under way end before it is freed.
 * Without it.  An atomic counter is correct, but each request writes its cache line twice, and all CPUs wait for
 *   that line.  Without a count the backend is freed under requests that still use it.
 * Primitive.  percpu_ref.  A request adds one to a word of its CPU when it comes and to another when it goes.
 *   percpu_ref_kill() makes the words one shared count, and the last request calls the release function.
 *   RCU keeps the memory while a request that has found the pointer tries to take its reference.
 *
 *	cc backend.c $(pkg-config --cflags --libs quiesce)
 */
#include <quiesce/percpu_ref.h>
#include <quiesce/rcu.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NR_THREADS = 3, NR_BACKENDS = 20 };

struct backend {
	struct percpu_ref users;
	sem_t unused;         /* posted by the release function */
	atomic_bool in_order; /* false after the end of service: no request may find it so */
};

static struct backend *backend;
static atomic_bool stop;
static atomic_ulong nr_requests, nr_late;

/* Called by the thread that puts the last reference, once. */
static void backend_unused(struct percpu_ref *users)
{
	struct backend *b = (struct backend *)((char *)users - offsetof(struct backend, users));

	sem_post(&b->unused);
}

/* A backend with a reference, or NULL: none is in service. */
static struct backend *backend_get(void)
{
	struct backend *b;

	rcu_read_lock();
	b = rcu_dereference(backend);
	if (b && !percpu_ref_tryget_live(&b->users))
		b = NULL; /* killed after the pointer was loaded */
	rcu_read_unlock();
	return b;
}

static struct backend *backend_start(void)
{
	struct backend *b = malloc(sizeof(*b));

	if (!b)
		return NULL;
	/* Without memory for counters of each CPU the count is one word: correct, and slower. */
	(void)percpu_ref_init(&b->users, backend_unused, 0);
	sem_init(&b->unused, 0, 0);
	atomic_init(&b->in_order, true);
	rcu_assign_pointer(backend, b);
	return b;
}

static void backend_stop(struct backend *b)
{
	rcu_assign_pointer(backend, NULL); /* 1. no new request finds it */
	percpu_ref_kill(&b->users);        /* 2. no request that has found it gets a reference */
	while (sem_wait(&b->unused) != 0)  /* 3. all requests have put theirs */
		;
	b->in_order = false;
	synchronize_rcu();                 /* 4. no thread is between its load of the pointer and its tryget */
	percpu_ref_exit(&b->users);
	sem_destroy(&b->unused);
	free(b);
}

static void *serve(void *arg)
{
	unsigned long requests = 0, late = 0; /* of this thread: requests share no line */

	while (!stop) {
		struct backend *b = backend_get();

		if (!b || requests++ % 16 == 0)
			usleep(10); /* a request may sleep: it is in no section of RCU */
		if (!b)
			continue;
		late += !b->in_order;
		percpu_ref_put(&b->users); /* @b may be gone from here on */
	}
	nr_requests += requests;
	nr_late += late;
	return arg;
}

int main(void)
{
	pthread_t threads[NR_THREADS];
	int nr = 0, backends = 0;
	struct backend *b;

	while (nr < NR_THREADS && pthread_create(&threads[nr], NULL, serve, NULL) == 0)
		nr++;
	for (; backends < NR_BACKENDS && (b = backend_start()); backends++) {
		usleep(2000);
		backend_stop(b);
	}
	stop = true;
	while (nr > 0)
		pthread_join(threads[--nr], NULL);
	printf("backend: %d backends, %lu requests, %lu late\n", backends, nr_requests, nr_late);
	return backends != NR_BACKENDS || !nr_requests || nr_late;
}
