/* SPDX-License-Identifier: MIT */
/* test_threads.c - the cases of test_shim.c with threads that run at the same time, that end, and that fork.
 * raw, whole file: flags and counters of the test itself, without the layer's labels.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_shim.h"

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#define THREADS 6

static pthread_barrier_t barrier;
static pthread_t threads[THREADS];
static bool stop;

static void start_threads(void *(*function)(void *))
{
	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, function, (void *)i))
			abort();
}

static void join_threads(void)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* Two threads take a lock for the first time at the same moment; had they got two semaphores, a count would be lost. */
#define ROUNDS 4000
static pthread_rwlock_t fresh[ROUNDS];
static int fresh_counts[ROUNDS], arrived[ROUNDS];

static void meet(int round)
{
	__atomic_add_fetch(&arrived[round], 1, __ATOMIC_RELAXED);
	for (int i = 1; __atomic_load_n(&arrived[round], __ATOMIC_RELAXED) < 2; i++)
		if (i % 1000 == 0)
			sched_yield();
}

static void *first_use(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int seen;

		meet(i);
		CHECK(pthread_rwlock_wrlock(&fresh[i]), 0);
		seen = fresh_counts[i];
		for (int k = 0; k < 200; k++)
			__asm__ __volatile__("" ::: "memory");
		fresh_counts[i] = seen + 1;
		CHECK(pthread_rwlock_unlock(&fresh[i]), 0);
	}
	return arg;
}

void first_use_race(void)
{
	pthread_t two[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&two[i], NULL, first_use, NULL))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(two[i], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(fresh_counts[i], 2);
		CHECK(pthread_rwlock_destroy(&fresh[i]), 0);
	}
}

/* Plain data under the lock: readers see both halves equal, no write is lost. */
static pthread_rwlock_t data_lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long half[2], reads, writes;

static int lock_one_way_or_another(bool write, unsigned int turn)
{
	struct timespec t = in_ns(CLOCK_REALTIME, turn % 3 ? 1000 : 100000);

	switch (turn % 4) {
	case 0: return write ? pthread_rwlock_trywrlock(&data_lock) : pthread_rwlock_tryrdlock(&data_lock);
	case 1: return write ? pthread_rwlock_timedwrlock(&data_lock, &t) : pthread_rwlock_timedrdlock(&data_lock, &t);
	default: return write ? pthread_rwlock_wrlock(&data_lock) : pthread_rwlock_rdlock(&data_lock);
	}
}

static void read_both(unsigned int turn)
{
	CHECK((long)(half[0] - half[1]), 0);
	if (turn % 16 == 0) {
		CHECK(pthread_rwlock_rdlock(&data_lock), 0);
		sched_yield();
		CHECK((long)(half[0] - half[1]), 0);
		CHECK(pthread_rwlock_unlock(&data_lock), 0);
	}
	__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
}

static void write_both(unsigned int turn)
{
	half[0]++;
	if (turn % 16 == 0)
		sched_yield();
	half[1]++;
	__atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
}

static void *reader_or_writer(void *arg)
{
	bool writes_too = (long)arg < 2;
	unsigned int turn = (unsigned int)(long)arg;

	for (; !stopped(); turn++) {
		bool write = writes_too && turn % 8 < 4;

		if (lock_one_way_or_another(write, turn))
			continue;
		if (write)
			write_both(turn);
		else
			read_both(turn);
		CHECK(pthread_rwlock_unlock(&data_lock), 0);
		if (writes_too && turn % 64 == 0)
			usleep(15000); /* readers become fast again */
	}
	return NULL;
}

static void run_threads(void *(*function)(void *), long ms)
{
	long end = now_ms() + ms;

	start_threads(function);
	while (now_ms() < end)
		usleep(10000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	join_threads();
}

void exclusion(void)
{
	run_threads(reader_or_writer, 500);
	CHECK((long)half[0], (long)writes);
	CHECK((long)half[1], (long)writes);
	/* The C library prefers readers: beside four of them its writers may get nothing at all. */
	CHECK(!shim || writes > 10, true);
	CHECK(reads > 10, true);
	CHECK(pthread_rwlock_destroy(&data_lock), 0);
}

/* The last to leave an object destroys its lock and frees it, while others may still be returning from unlock. */
struct object {
	int refs;
	pthread_rwlock_t lock;
};
static struct object *objects[THREADS];

static void put_object(struct object *object)
{
	bool last;

	CHECK(pthread_rwlock_wrlock(&object->lock), 0);
	last = !--object->refs;
	CHECK(pthread_rwlock_unlock(&object->lock), 0);
	if (!last)
		return;
	CHECK(pthread_rwlock_destroy(&object->lock), 0);
	memset(object, 0xff, sizeof(*object));
	free(object);
}

static struct object *new_object(void)
{
	struct object *object = malloc(sizeof(*object));

	if (!object)
		abort();
	object->refs = THREADS;
	CHECK(pthread_rwlock_init(&object->lock, NULL), 0);
	return object;
}

static void *use_and_put(void *arg)
{
	for (int i = 0; i < 200; i++) {
		if (!arg)
			for (int k = 0; k < THREADS; k++)
				objects[k] = k ? objects[0] : new_object();
		pthread_barrier_wait(&barrier);
		struct object *object = objects[(long)arg];
		CHECK(pthread_rwlock_rdlock(&object->lock), 0);
		CHECK(object->refs > 0, true);
		CHECK(pthread_rwlock_unlock(&object->lock), 0);
		put_object(object);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

void last_one_frees(void)
{
	pthread_barrier_init(&barrier, NULL, THREADS);
	start_threads(use_and_put);
	join_threads();
	pthread_barrier_destroy(&barrier);
}

/* ---- the ends of threads and processes ---- */

static pthread_key_t late_key;
static pthread_rwlock_t late_lock = PTHREAD_RWLOCK_INITIALIZER;

static void late(void *round)
{
	CHECK(pthread_rwlock_rdlock(&late_lock), 0);
	CHECK(pthread_rwlock_unlock(&late_lock), 0);
	if ((long)round > 1)
		pthread_setspecific(late_key, (void *)((long)round - 1));
}

static void *ends_late(void *arg)
{
	pthread_setspecific(late_key, (void *)3l);
	CHECK(pthread_rwlock_wrlock(&late_lock), 0);
	CHECK(pthread_rwlock_unlock(&late_lock), 0);
	return arg;
}

void locks_in_destructors(void)
{
	pthread_key_create(&late_key, late);
	start_threads(ends_late);
	join_threads();
	pthread_key_delete(late_key);
	CHECK(pthread_rwlock_trywrlock(&late_lock), 0);
	CHECK(pthread_rwlock_unlock(&late_lock), 0);
}

static void make_lock(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void *makes_locks(void *arg)
{
	make_lock();
	pthread_barrier_wait(&barrier);
	while (!stopped())
		make_lock();
	return arg;
}

/* In the child: what this thread holds it still holds. */
static void in_child(pthread_rwlock_t *reading, pthread_rwlock_t *writing)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	alarm(20); /* a child that hangs must not keep its parent waiting */
	failures = 0;
	CHECK(in_other(reading, TRYWR), EBUSY);
	CHECK(pthread_rwlock_unlock(reading), 0);
	CHECK(in_other(reading, WRLOCK_UNLOCK), 0);
	if (shim) { /* the C library knows its writer by the number of the thread, which is another here */
		CHECK(in_other(writing, TRYRD), EBUSY);
		CHECK(pthread_rwlock_unlock(writing), 0);
		CHECK(in_other(writing, WRLOCK_UNLOCK), 0);
	}
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	fflush(stdout);
	_exit(failures != 0);
}

void forks(void)
{
	pthread_rwlock_t reading = PTHREAD_RWLOCK_INITIALIZER, writing = PTHREAD_RWLOCK_INITIALIZER;

	/* A thread that starts allocates, and the allocator of gcc 12's AddressSanitizer does not mind forks: a child that is
	 * forked while its lock is held waits for ever.  So the first child comes when all have started. */
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	start_threads(makes_locks);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20; i++) {
		int status = -1;
		pid_t child;

		CHECK(pthread_rwlock_rdlock(&reading), 0);
		CHECK(pthread_rwlock_wrlock(&writing), 0);
		fflush(stdout);
		child = fork();
		if (!child)
			in_child(&reading, &writing);
		CHECK(pthread_rwlock_unlock(&reading), 0);
		CHECK(pthread_rwlock_unlock(&writing), 0);
		CHECK(waitpid(child, &status, 0), child);
		CHECK(status, 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	join_threads();
	pthread_barrier_destroy(&barrier);
}
