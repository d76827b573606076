/* SPDX-License-Identifier: MIT */
/* test_shim.c - what programs may expect of a pthread_rwlock_t, and where the shim differs.
 *
 *	test_shim --shim     with the shim linked or preloaded: everything
 *	test_shim --plain    without: what POSIX says and both do; the control that shows that the test is fair
 *
 * Cases that wait for a thread to sleep read /proc; none depends on how long something takes.
 * raw, whole file: flags and counters of the test itself, without the layer's labels.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rwlock_shim.h"
#include "test_shim.h"

#define SECOND 1000000000l
#define MANY 80 /* locks: more than a thread may hold */

bool shim;
int failures;
static int refused; /* how many the shim should have counted */

void check(long got, long want, const char *what, int line)
{
	if (got == want)
		return;
	printf("# line %d: %s is %ld, want %ld\n", line, what, got, want);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

struct timespec in_ns(clockid_t clock, long ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += ns / SECOND;
	t.tv_nsec += ns % SECOND;
	if (t.tv_nsec >= SECOND) {
		t.tv_nsec -= SECOND;
		t.tv_sec++;
	}
	return t;
}

/* ---- another thread that makes one call ---- */

struct other {
	pthread_t thread;
	pthread_rwlock_t *lock;
	enum call call;
	pid_t tid;
	int result;
};

static int make(pthread_rwlock_t *lock, enum call call)
{
	int result;

	switch (call) {
	case RDLOCK: return pthread_rwlock_rdlock(lock);
	case TRYRD: return pthread_rwlock_tryrdlock(lock);
	case WRLOCK: return pthread_rwlock_wrlock(lock);
	case TRYWR: return pthread_rwlock_trywrlock(lock);
	case UNLOCK: return pthread_rwlock_unlock(lock);
	case TRYRD_UNLOCK: result = pthread_rwlock_tryrdlock(lock); break;
	case TRYWR_UNLOCK: result = pthread_rwlock_trywrlock(lock); break;
	case RDLOCK_UNLOCK: result = pthread_rwlock_rdlock(lock); break;
	default: result = pthread_rwlock_wrlock(lock); break;
	}
	return result ? result : pthread_rwlock_unlock(lock);
}

static void *other_main(void *arg)
{
	struct other *other = arg;

	__atomic_store_n(&other->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	other->result = make(other->lock, other->call);
	return NULL;
}

static void start(struct other *other, pthread_rwlock_t *lock, enum call call)
{
	*other = (struct other){ .lock = lock, .call = call };
	if (pthread_create(&other->thread, NULL, other_main, other))
		abort();
}

static int finish(struct other *other)
{
	pthread_join(other->thread, NULL);
	return other->result;
}

int in_other(pthread_rwlock_t *lock, enum call call)
{
	struct other other;

	start(&other, lock, call);
	return finish(&other);
}

/* Wait until @other sleeps, which it does in the lock only. */
static void until_asleep(struct other *other)
{
	char name[64], text[256] = "", *state;
	pid_t tid;

	while (!(tid = __atomic_load_n(&other->tid, __ATOMIC_ACQUIRE)))
		sched_yield();
	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	do {
		FILE *f = fopen(name, "r");

		sched_yield();
		if (!f)
			return; /* the thread has ended, and the check that follows fails */
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		fclose(f);
		state = strrchr(text, ')');
	} while (!state || state[2] != 'S');
}

/* ---- one thread, or one after the other ---- */

static void static_initialiser(void)
{
	static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, unused = PTHREAD_RWLOCK_INITIALIZER;

	for (int i = 0; i < 3; i++) {
		CHECK(pthread_rwlock_rdlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
		CHECK(pthread_rwlock_wrlock(&lock), 0);
		CHECK(pthread_rwlock_unlock(&lock), 0);
	}
	CHECK(pthread_rwlock_destroy(&lock), 0);
	CHECK(pthread_rwlock_destroy(&unused), 0);
}

static void sides(void)
{
	pthread_rwlock_t lock;

	CHECK(pthread_rwlock_init(&lock, NULL), 0);
	CHECK(in_other(&lock, TRYWR_UNLOCK), 0);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(in_other(&lock, TRYRD_UNLOCK), 0);
	CHECK(in_other(&lock, RDLOCK_UNLOCK), 0);
	CHECK(in_other(&lock, TRYWR), EBUSY);
	CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(in_other(&lock, TRYRD), EBUSY);
	CHECK(in_other(&lock, TRYWR), EBUSY);
	CHECK(pthread_rwlock_tryrdlock(&lock), EBUSY);
	CHECK(pthread_rwlock_trywrlock(&lock), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_tryrdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_trywrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(in_other(&lock, WRLOCK_UNLOCK), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void own_deadlock(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	struct timespec later = in_ns(CLOCK_REALTIME, SECOND);

	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(pthread_rwlock_wrlock(&lock), EDEADLK);
	CHECK(pthread_rwlock_rdlock(&lock), EDEADLK);
	CHECK(pthread_rwlock_timedwrlock(&lock, &later), EDEADLK);
	CHECK(pthread_rwlock_timedrdlock(&lock, &later), EDEADLK);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(in_other(&lock, TRYWR_UNLOCK), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

/* The C library's lock waits for ever here, so the control leaves it out. */
static void own_deadlock_of_a_reader(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_wrlock(&lock), EDEADLK);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(in_other(&lock, TRYWR_UNLOCK), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void timed(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	struct timespec past = { 0, 0 }, bad = { 0, SECOND }, soon, far;
	struct other holder;

	start(&holder, &lock, WRLOCK);
	finish(&holder); /* the thread keeps the lock */
	for (int i = 0; i < 2; i++) {
		soon = in_ns(clocks[i], 2000000);
		CHECK(pthread_rwlock_clockrdlock(&lock, clocks[i], &past), ETIMEDOUT);
		CHECK(pthread_rwlock_clockwrlock(&lock, clocks[i], &past), ETIMEDOUT);
		CHECK(pthread_rwlock_clockrdlock(&lock, clocks[i], &soon), ETIMEDOUT);
		CHECK(pthread_rwlock_clockwrlock(&lock, clocks[i], &soon), ETIMEDOUT);
		CHECK(pthread_rwlock_clockrdlock(&lock, clocks[i], &bad), EINVAL);
		CHECK(pthread_rwlock_clockwrlock(&lock, clocks[i], &bad), EINVAL);
	}
	CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK(pthread_rwlock_clockwrlock(&lock, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	CHECK(pthread_rwlock_timedrdlock(&lock, &past), ETIMEDOUT);
	CHECK(pthread_rwlock_timedwrlock(&lock, &past), ETIMEDOUT);

	/* Nothing that gave up is left behind: free locks are taken at once. */
	CHECK(pthread_rwlock_init(&lock, NULL), 0);
	far = (struct timespec){ .tv_sec = (time_t)(~0ull >> 1) };
	CHECK(pthread_rwlock_timedrdlock(&lock, &past), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_timedwrlock(&lock, &far), 0);
	CHECK(in_other(&lock, TRYRD), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

/* A timed wait that gets the lock, and one that gives up while others queue behind it. */
static void timed_in_the_queue(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	struct timespec soon;
	struct other writer, reader;

	CHECK(pthread_rwlock_rdlock(&lock), 0);
	start(&writer, &lock, WRLOCK_UNLOCK);
	until_asleep(&writer);
	start(&reader, &lock, RDLOCK_UNLOCK);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(finish(&writer), 0);
	CHECK(finish(&reader), 0);
	soon = in_ns(CLOCK_REALTIME, 60 * SECOND);
	CHECK(pthread_rwlock_timedwrlock(&lock, &soon), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);

	start(&reader, &lock, RDLOCK); /* ends, and keeps it */
	finish(&reader);
	soon = in_ns(CLOCK_REALTIME, 5000000);
	CHECK(pthread_rwlock_timedwrlock(&lock, &soon), ETIMEDOUT);
	CHECK(in_other(&lock, TRYRD_UNLOCK), 0);
	CHECK(in_other(&lock, TRYWR), EBUSY);
}

/* A thread reads again while a writer waits for it. */
static void again(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	struct other writer;

	CHECK(pthread_rwlock_rdlock(&lock), 0);
	start(&writer, &lock, WRLOCK_UNLOCK);
	until_asleep(&writer);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(pthread_rwlock_tryrdlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(in_other(&lock, TRYWR), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(finish(&writer), 0);
	CHECK(pthread_rwlock_trywrlock(&lock), 0);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

static void refusals(void)
{
	pthread_rwlock_t lock;
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	CHECK(pthread_rwlock_init(&lock, &attr), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
	CHECK(pthread_rwlock_rdlock(&lock), EINVAL);
	CHECK(pthread_rwlock_wrlock(&lock), EINVAL);
	CHECK(pthread_rwlock_unlock(&lock), EINVAL);
	CHECK(pthread_rwlock_destroy(&lock), EINVAL);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	CHECK(pthread_rwlock_init(&lock, &attr), ENOTSUP);
	refused += 4;
	pthread_rwlockattr_destroy(&attr);

	CHECK(pthread_rwlock_init(&lock, NULL), 0);
	CHECK(pthread_rwlock_unlock(&lock), EPERM);
	CHECK(pthread_rwlock_rdlock(&lock), 0);
	CHECK(in_other(&lock, UNLOCK), EPERM);
	CHECK(in_other(&lock, TRYWR), EBUSY);
	CHECK(pthread_rwlock_destroy(&lock), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_wrlock(&lock), 0);
	CHECK(in_other(&lock, UNLOCK), EPERM);
	CHECK(in_other(&lock, TRYRD), EBUSY);
	CHECK(pthread_rwlock_destroy(&lock), EBUSY);
	CHECK(pthread_rwlock_unlock(&lock), 0);
	CHECK(pthread_rwlock_destroy(&lock), 0);
}

#ifdef __GLIBC__
/* As another process initialised it, that has no shim. */
static void alien(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	lock.__data.__shared = 1;
	CHECK(pthread_rwlock_rdlock(&lock), ENOTSUP);
	CHECK(pthread_rwlock_trywrlock(&lock), ENOTSUP);
	refused += 2;
}
#endif

static void too_many(void)
{
	static pthread_rwlock_t locks[MANY];
	int nr = 0;

	for (int i = 0; i < MANY; i++)
		CHECK(pthread_rwlock_init(&locks[i], NULL), 0);
	while (nr < MANY && !pthread_rwlock_rdlock(&locks[nr]))
		nr++;
	CHECK(nr, 64);
	refused += 3;
	CHECK(pthread_rwlock_wrlock(&locks[nr]), EAGAIN);
	CHECK(pthread_rwlock_tryrdlock(&locks[nr]), EAGAIN);
	CHECK(pthread_rwlock_rdlock(&locks[0]), 0); /* again is no more */
	CHECK(in_other(&locks[nr], WRLOCK_UNLOCK), 0);
	CHECK(pthread_rwlock_unlock(&locks[0]), 0);
	for (int i = 0; i < nr; i++) /* the oldest first */
		CHECK(pthread_rwlock_unlock(&locks[i]), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK(in_other(&locks[i], TRYWR_UNLOCK), 0);
		CHECK(pthread_rwlock_destroy(&locks[i]), 0);
	}
}

static void counted(void)
{
	struct rwlock_shim_counts c = { 0 };

	rwlock_shim_get_counts(&c);
	printf("# %lu inits, %lu destroys, %lu read locks (%lu again), %lu write locks, %lu unlocks, %lu refusals\n",
	       (unsigned long)c.init, (unsigned long)c.destroy, (unsigned long)c.read, (unsigned long)c.again, (unsigned long)c.write,
	       (unsigned long)c.unlock, (unsigned long)c.refused);
	/* Two threads of the timed cases have ended while they held a lock. */
	CHECK((long)(c.read + c.write - c.unlock), 2);
	CHECK(c.read > 1000, true);
	CHECK(c.write > 1000, true);
	CHECK(c.again > 2, true);
	CHECK((long)c.refused, refused);
}

static const struct {
	const char *name;
	void (*run)(void);
	const char *shim_only; /* why the control leaves it out */
} cases[] = {
	{ "static initialiser", static_initialiser, NULL },
	{ "each side keeps the right sides out", sides, NULL },
	{ "a writer that locks again gets EDEADLK", own_deadlock, NULL },
	{ "a reader that wants to write gets EDEADLK", own_deadlock_of_a_reader, "the C library waits for ever" },
	{ "timed", timed, NULL },
	{ "timed, with a queue", timed_in_the_queue, NULL },
	{ "reading again while a writer waits", again, NULL },
	{ "refusals", refusals, "the C library lets these pass" },
#ifdef __GLIBC__
	{ "a lock that another process initialised", alien, "the C library shares locks" },
#endif
	{ "more locks than a thread may hold", too_many, "the C library has no bound" },
	{ "first use by many threads", first_use_race, NULL },
	{ "exclusion", exclusion, NULL },
	{ "the last one frees", last_one_frees, NULL },
	{ "locks in destructors", locks_in_destructors, NULL },
	{ "fork", forks, NULL },
	{ "what was counted", counted, "the C library does not count" },
};

int main(int argc, char **argv)
{
	int failed = 0, nr = (int)(sizeof(cases) / sizeof(*cases));

	shim = argc == 2 && !strcmp(argv[1], "--shim");
	if (!shim && (argc != 2 || strcmp(argv[1], "--plain"))) {
		fprintf(stderr, "usage: test_shim --shim|--plain\n");
		return 2;
	}
	if (shim != (rwlock_shim_get_counts != NULL)) {
		fprintf(stderr, "test_shim %s: the shim is %sthere\n", argv[1], shim ? "not " : "");
		return 2;
	}
	printf("1..%d\n", nr);
	for (int i = 0; i < nr; i++) {
		bool skip = !shim && cases[i].shim_only;

		failures = 0;
		if (!skip)
			cases[i].run();
		printf("%sok %d - %s%s%s\n", failures ? "not " : "", i + 1, cases[i].name, skip ? " # SKIP " : "",
		       skip ? cases[i].shim_only : "");
		fflush(stdout);
		failed += failures != 0;
	}
	return failed != 0;
}
