/* SPDX-License-Identifier: MIT */
/* rwlocks.c - the reader-writer locks of the tool's table do what their names say, and locks that do not are found.
 *
 * The checks are about which threads are inside together.  A correct lock never fails, however slow the machine:
 * the short waits are for threads that must not enter.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "place.h"
#include "peers.h"
#include "registry.h"
#include "types/rwlock.h"

#define READERS 70    /* more than the bytes of a byte lock */
#define NOT_MS 10     /* no thread may enter for this long */
#define WRITERS 2     /* number of working writers, and of working readers */
#define ROUNDS 5      /* rounds of each, at least */
#define WORK_MS 20    /* locks that spin get little done where others yield */
#define HANG_S 60
static int limit_ms = 30000; /* time limit of threads that have to enter */

static const char *name;
static const struct rwlock_op *lock;

static void fail(const char *what)
{
	printf("# %s: %s\n", name, what);
	fflush(stdout);
	_exit(1);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True if the semaphore was posted within @ms. */
static bool wait_for(sem_t *sem, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	while (sem_timedwait(sem, &until)) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

/* ---- threads that enter on request, report that, and leave on request ---- */

struct visitor {
	pthread_t thread;
	bool writes;
	sem_t ready, go, in, leave, out, done;
};

static void *visit(void *arg)
{
	struct visitor *v = arg;

	if (lock->thread_enter)
		lock->thread_enter();
	sem_post(&v->ready);
	wait_for(&v->go, 2 * limit_ms);
	(v->writes ? lock->write_lock : lock->read_lock)();
	sem_post(&v->in);
	wait_for(&v->leave, 2 * limit_ms);
	(v->writes ? lock->write_unlock : lock->read_unlock)();
	sem_post(&v->out);
	wait_for(&v->done, 2 * limit_ms);
	if (lock->thread_exit)
		lock->thread_exit();
	return NULL;
}

/* Prepare a thread before any thread enters, because a lock may register its threads then. */
static void prepare(struct visitor *v, bool writes)
{
	sem_t *const sems[] = { &v->ready, &v->go, &v->in, &v->leave, &v->out, &v->done };

	v->writes = writes;
	for (size_t i = 0; i < sizeof(sems) / sizeof(sems[0]); i++)
		sem_init(sems[i], 0, 0);
	if (pthread_create(&v->thread, NULL, visit, v) || !wait_for(&v->ready, limit_ms))
		fail("no thread");
}

static void comes_in(struct visitor *v, const char *what)
{
	sem_post(&v->go);
	if (!wait_for(&v->in, limit_ms))
		fail(what);
}

static void stays_out(struct visitor *v, const char *what)
{
	sem_post(&v->go);
	if (wait_for(&v->in, NOT_MS))
		fail(what);
}

static void leaves(struct visitor *v)
{
	sem_post(&v->leave);
	if (!wait_for(&v->out, limit_ms))
		fail("no way out");
}

/* Finish a thread when no thread is inside any more, because a lock may wait for that. */
static void finish(struct visitor *v)
{
	sem_post(&v->done);
	pthread_join(v->thread, NULL);
}

static void readers_together(void)
{
	static struct visitor readers[READERS], writer;

	for (int i = 0; i < READERS; i++)
		prepare(&readers[i], false);
	prepare(&writer, true);
	for (int i = 0; i < READERS; i++)
		comes_in(&readers[i], "a reader waits for readers");
	stays_out(&writer, "a writer among readers");
	for (int i = 0; i < READERS - 1; i++)
		leaves(&readers[i]);
	stays_out(&writer, "a writer beside the last reader");
	leaves(&readers[READERS - 1]);
	comes_in(&writer, "no writer after all readers");
	leaves(&writer);
	for (int i = 0; i < READERS; i++)
		finish(&readers[i]);
	finish(&writer);
}

static void writer_alone(void)
{
	struct visitor writers[3], reader;

	for (int i = 0; i < 3; i++)
		prepare(&writers[i], true);
	prepare(&reader, false);
	comes_in(&writers[0], "a writer of a free lock does not wait");
	stays_out(&reader, "a reader beside a writer");
	leaves(&writers[0]);
	comes_in(&reader, "no reader after the writer");
	leaves(&reader);
	comes_in(&writers[1], "a writer of a free lock does not wait");
	stays_out(&writers[2], "two writers");
	leaves(&writers[1]);
	comes_in(&writers[2], "no writer after the writer");
	leaves(&writers[2]);
	for (int i = 0; i < 3; i++)
		finish(&writers[i]);
	finish(&reader);
}

/* ---- threads that work ---- */

static struct {
	unsigned long first, second; /* under the lock: the same, except while a writer is between them */
} shared;
static unsigned long nr_read, nr_writing = WRITERS; /* sections of readers so far; writers that are not done */
static pthread_barrier_t start;

/* Return the number of sections. */
static void *write_often(void *arg)
{
	unsigned long n = 0, until;
	long end_ms;

	if (lock->thread_enter)
		lock->thread_enter();
	pthread_barrier_wait(&start);
	until = quiesce_load_relaxed(&nr_read) + ROUNDS;
	end_ms = now_ms() + WORK_MS;
	for (; n < ROUNDS || quiesce_load_relaxed(&nr_read) < until || now_ms() < end_ms; n++) {
		lock->write_lock();
		shared.first++;
		sched_yield();
		shared.second++;
		lock->write_unlock();
		sched_yield();
	}
	(void)quiesce_fetch_add_relaxed(&nr_writing, -1ul);
	if (lock->thread_exit)
		lock->thread_exit();
	*(unsigned long *)arg = n;
	return NULL;
}

/* Return how often the values differed. */
static void *read_often(void *arg)
{
	unsigned long differ = 0;

	if (lock->thread_enter)
		lock->thread_enter();
	pthread_barrier_wait(&start);
	while (quiesce_load_relaxed(&nr_writing)) {
		lock->read_lock();
		differ += shared.first != shared.second;
		lock->read_unlock();
		(void)quiesce_fetch_add_relaxed(&nr_read, 1ul);
		sched_yield(); /* gives writers a chance, where readers come first */
	}
	if (lock->thread_exit)
		lock->thread_exit();
	*(unsigned long *)arg = differ;
	return NULL;
}

static void values(void)
{
	unsigned long results[2 * WRITERS];
	pthread_t threads[2 * WRITERS];

	pthread_barrier_init(&start, NULL, 2 * WRITERS);
	for (int i = 0; i < 2 * WRITERS; i++)
		if (pthread_create(&threads[i], NULL, i < WRITERS ? write_often : read_often, &results[i]))
			fail("no thread");
	for (int i = 0; i < 2 * WRITERS; i++)
		pthread_join(threads[i], NULL);
	if (results[2] || results[3])
		fail("a reader saw half of what a writer did");
	if (shared.first != results[0] + results[1] || shared.second != shared.first)
		fail("writers lost what others did");
}

/* ---- each check in a process of its own ---- */

static const struct check {
	const char *name;
	void (*fn)(void);
} checks[] = {
	{ "readers are together, and no writer with them", readers_together },
	{ "a writer is alone", writer_alone },
	{ "what readers see is whole", values },
};

/* Return the exit status of a check in a child; -1 for another end. */
static int status_of(const struct check *check)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(HANG_S);
		if (lock->init && lock->init())
			fail("init");
		check->fn();
		if (lock->fini)
			lock->fini();
		_exit(0);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("# %s: status %x\n", name, (unsigned int)status);
	return -1;
}

static int nr_tests, nr_failed;

static void result(bool good, const struct check *check)
{
	nr_failed += !good;
	printf("%sok %d - %s: %s\n", good ? "" : "not ", ++nr_tests, name, check->name);
}

/* Check that a wrong lock is found; it may pass by luck, but not often. */
static void found(const char *what, const struct rwlock_op *bad, const struct check *check)
{
	int status = 0;

	name = what;
	lock = bad;
	for (int i = 0; i < 20 && status == 0; i++)
		status = status_of(check);
	result(status == 1, check);
}

static void nothing(void)
{
}

static bool is_lock(const struct op *op)
{
	return op->rwlock && !op->broken;
}

/* The argument is the tool, beside which the peers' modules are. */
int main(int argc, char **argv)
{
	const struct rwlock_op *model = type_find(is_lock, "pthread_rwlock")->rwlock;
	struct rwlock_op bad[] = { *model, *model, *model, *model };
	const struct op *types[128];
	int nr;

	if (argc > 1)
		place_beside(argv[1]);
	for (struct peer *peer = peers; peer->name; peer++)
		if (peer_load(peer))
			printf("# %s: %s\n", peer->name, peer_load(peer));
	nr = types_all(is_lock, types, 128);
	for (int k = 0; k < nr; k++)
		for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
			name = types[k]->name;
			lock = types[k]->rwlock;
			result(status_of(&checks[i]) == 0, &checks[i]);
		}

	/* The checks can fail. */
	limit_ms = 20;
	bad[0].read_lock = bad[0].read_unlock = nothing;
	bad[1].read_lock = model->write_lock;
	bad[2].write_lock = model->read_lock;
	bad[3].write_lock = bad[3].write_unlock = nothing;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		found("finds readers that lock nothing", &bad[0], &checks[i]);
		found("finds writers that lock nothing", &bad[3], &checks[i]);
	}
	found("finds readers that exclude each other", &bad[1], &checks[0]);
	found("finds writers that share", &bad[2], &checks[1]);
	found("finds writers that share", &bad[2], &checks[2]);
	printf("1..%d\n", nr_tests);
	return nr_failed != 0;
}
