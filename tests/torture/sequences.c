/* SPDX-License-Identifier: MIT */
/* sequences.c - no object of a cache is allocated twice, and no count of a reference is lost.
 *
 * More threads than CPUs allocate objects, one by one and in rows, write their own number into each, check it before they
 * free the object, and count references in between.  The library stays inside its restartable sequences for a random
 * while, and signals interrupt threads there, whose handler yields the CPU.
 * Exit status: 0, 1 if an object or a count was lost, 2 usage, 77 if this machine has no such sequences and a mutant is asked for.
 */
#include <quiesce/percpu_ref.h>
#include <quiesce/slab.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "perturbed.h"
#include "slots/slots.h"

#define THREADS 16
#define MAX_HELD 12

/* The owner is behind what the cache may overwrite in a free object. */
struct object {
	uint64_t free[4];
	uint64_t owner; /* 0: none */
};

static struct kmem_cache *cache;
static struct percpu_ref ref;
static uint32_t stop, released;
static uint64_t twice, allocated, counted; /* sums of all threads */

/* raw: the test's own flags and sums; only the library's accesses are to be perturbed. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
/* raw: the test's own flags. */
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* raw: the test's own sums. */
#define ADD(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL))
/* raw: the test's own words. */
#define XCHG(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

static void construct(void *object)
{
	((struct object *)object)->owner = 0;
}

static void own(struct object *object, uint64_t from, uint64_t to)
{
	if (XCHG(&object->owner, to) == from)
		return;
	ADD(&twice, (uint64_t)1);
	STORE(&stop, 1u);
}

static void one_by_one(uint64_t me, unsigned int nr)
{
	struct object *held[MAX_HELD];

	for (unsigned int i = 0; i < nr; i++) {
		held[i] = kmem_cache_alloc(cache);
		if (held[i])
			own(held[i], 0, me);
		percpu_ref_get(&ref);
	}
	for (unsigned int i = 0; i < nr; i++) {
		if (held[i]) {
			own(held[i], me, 0);
			kmem_cache_free(cache, held[i]);
		}
		percpu_ref_put(&ref);
	}
}

static unsigned int in_a_row(uint64_t me, unsigned int nr)
{
	void *held[MAX_HELD];

	if (!kmem_cache_alloc_bulk(cache, nr, held))
		return 0;
	for (unsigned int i = 0; i < nr; i++)
		own(held[i], 0, me);
	for (unsigned int i = 0; i < nr; i++)
		own(held[i], me, 0);
	kmem_cache_free_bulk(cache, nr, held);
	return nr;
}

static void *work(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg, random = me * 0x9e3779b97f4a7c15u, objects = 0, counts = 0;

	while (!LOAD(&stop)) {
		unsigned int nr;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		nr = 1 + (unsigned int)(random >> 40) % MAX_HELD;
		one_by_one(me, nr);
		counts += nr;
		objects += nr + in_a_row(me, nr);
		if (random >> 60 == 0)
			sched_yield();
	}
	ADD(&allocated, objects);
	ADD(&counted, counts);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	sched_yield();
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_signals(const pthread_t *thread, double end)
{
	for (unsigned int i = 0; !LOAD(&stop) && now() < end; i++) {
		pthread_kill(thread[i % THREADS], SIGUSR1);
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	STORE(&stop, 1u);
}

static void on_release(struct percpu_ref *unused)
{
	(void)unused;
	STORE(&released, 1u);
}

static int run(double seconds)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t thread[THREADS];
	bool zero;

	sigaction(SIGUSR1, &action, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(i + 1))) {
			perror("pthread_create");
			exit(1);
		}
	send_signals(thread, now() + seconds);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	percpu_ref_switch_to_atomic_sync(&ref);
	percpu_ref_kill(&ref);
	zero = percpu_ref_is_zero(&ref) && LOAD(&released);
	printf("%llu objects, %llu of them twice; %llu references, %s\n", (unsigned long long)allocated, (unsigned long long)twice,
	       (unsigned long long)counted, zero ? "all put" : "not as many put as got");
	if (!allocated || !counted)
		printf("proves nothing: some of that did not happen\n");
	return twice || !zero || !allocated || !counted;
}

int main(int argc, char **argv)
{
	struct perturbed_options options;

	if (!perturbed_options(&options, argc, argv))
		return 2;
	cache = kmem_cache_create("sequences", sizeof(struct object), 0, SLAB_TYPESAFE_BY_RCU, construct);
	if (!cache || percpu_ref_init(&ref, on_release, 0)) {
		fprintf(stderr, "no memory\n");
		return 2;
	}
	if (!quiesce_shazptr_v1.rseq) {
		fprintf(stderr, "no restartable sequences in use here\n");
		if (options.mutant)
			return 77;
	}
	alarm((unsigned int)options.seconds + 30); /* a hang ends in a crash */
	return run(options.seconds);
}
