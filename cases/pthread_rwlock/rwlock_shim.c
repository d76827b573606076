/* SPDX-License-Identifier: MIT */
/* rwlock_shim.c - pthread_rwlock_t made of percpu_rwsem, for LD_PRELOAD or to link before the C library.
 *
 * A program's pthread_rwlock_t holds one pointer of ours, to a struct percpu_rw_semaphore that the lock gets when it is
 * first taken.  All bytes zero, which is what PTHREAD_RWLOCK_INITIALIZER is, means none yet.  Semaphores go from
 * destroyed locks to new ones and are never unmapped: to free one may take 20 ms, and programs
 * destroy locks by the thousand.  So the last unlock may also load from a semaphore whose lock is destroyed already.
 *
 * Each thread keeps a list of what it holds.  That is how unlock knows the side, how a second read lock of the same
 * thread gets in although a writer waits (percpu_rwsem alone would wait for ever), and how misuse becomes an error
 * instead of a wrong count.
 *
 * Not possible, and refused: locks shared between processes; unlock by another thread than the one that locked;
 * more than HELD_MAX locks held by one thread at a time.
 */
#include <quiesce/percpu_rwsem.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rwlock_shim.h"

#define HELD_MAX 64
#define SLAB_BYTES ((size_t)64 << 10)
#define SECOND 1000000000l

#define EXPORT __attribute__((visibility("default")))

/* The shim's lock in the bytes of a pthread_rwlock_t. */
struct lock {
	struct body *body; /* NULL: not taken yet */
};
_Static_assert(sizeof(struct lock) <= sizeof(pthread_rwlock_t), "there must be room for a pointer");
_Static_assert(_Alignof(pthread_rwlock_t) >= _Alignof(struct lock), "which must be aligned");

struct body {
	struct percpu_rw_semaphore sem;
	struct body *next; /* next in the list of free bodies */
};

static struct body destroyed; /* never locked: what a destroyed lock points to */

struct held {
	struct body *body;
	uint32_t depth; /* number of read locks held, or WRITING */
};
#define WRITING 0u

/* initial-exec: the shim is there from the start of the program. */
static __thread struct {
	uint32_t nr;
	bool will_flush;
	struct held held[HELD_MAX]; /* searched from the end, where the newest is as a rule */
	struct rwlock_shim_counts counts;
} self __attribute__((tls_model("initial-exec")));

/* ---- counts ---- */

static struct rwlock_shim_counts totals; /* counts of threads that have ended */
static pthread_mutex_t totals_mutex = PTHREAD_MUTEX_INITIALIZER; /* nothing nests inside */
static pthread_key_t flush_key;
static bool have_flush_key;
static const char *stats_file;

static void flush(void *unused)
{
	uint64_t *from = (uint64_t *)(void *)&self.counts, *to = (uint64_t *)(void *)&totals;

	(void)unused;
	pthread_mutex_lock(&totals_mutex);
	for (size_t i = 0; i < sizeof(totals) / sizeof(*to); i++) {
		to[i] += from[i];
		from[i] = 0;
	}
	pthread_mutex_unlock(&totals_mutex);
	self.will_flush = false; /* other destructors may lock again */
}

static QUIESCE_COLD void will_flush(void)
{
	self.will_flush = true;
	if (have_flush_key)
		pthread_setspecific(flush_key, &self);
}

#define COUNT(what)                                           \
	do {                                                  \
		self.counts.what++;                           \
		if (quiesce_unlikely(!self.will_flush))       \
			will_flush();                         \
	} while (0)

EXPORT void rwlock_shim_get_counts(struct rwlock_shim_counts *ret_counts)
{
	flush(NULL);
	pthread_mutex_lock(&totals_mutex);
	*ret_counts = totals;
	pthread_mutex_unlock(&totals_mutex);
}

/* Return an error that programs do not expect, and so do not check for: it is reported once. */
static QUIESCE_COLD int refuse(int error, const char *what)
{
	static uint32_t said;

	COUNT(refused);
	/* Relaxed: the first thread reports it. */
	if (!quiesce_fetch_add_relaxed(&said, 1))
		fprintf(stderr, "rwlock_shim: %s, process %d: %s; further refusals are counted only\n", program_invocation_short_name,
			(int)getpid(), what);
	return error;
}

/* ---- semaphores ---- */

static pthread_mutex_t bodies_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows; nothing nests inside */
static struct body *free_bodies;
static uint64_t in_use, most_in_use;

static bool new_slab(void)
{
	char *slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slab == MAP_FAILED)
		return false;
	for (size_t at = 0; at + sizeof(struct body) <= SLAB_BYTES; at += sizeof(struct body)) {
		struct body *body = (struct body *)(void *)(slab + at);

		body->sem = (struct percpu_rw_semaphore)PERCPU_RWSEM_INIT;
		body->next = free_bodies;
		free_bodies = body;
	}
	return true;
}

static struct body *get_body(void)
{
	struct body *body = NULL;

	pthread_mutex_lock(&bodies_mutex);
	if (free_bodies || new_slab()) {
		body = free_bodies;
		free_bodies = body->next;
		if (++in_use > most_in_use)
			most_in_use = in_use;
	}
	pthread_mutex_unlock(&bodies_mutex);
	return body;
}

static void put_body(struct body *body)
{
	pthread_mutex_lock(&bodies_mutex);
	body->next = free_bodies;
	free_bodies = body;
	in_use--;
	pthread_mutex_unlock(&bodies_mutex);
}

static struct lock *ours(pthread_rwlock_t *rwlock)
{
	return (struct lock *)(void *)rwlock;
}

/* The first use of a lock: give it a semaphore, unless another thread just did. */
static QUIESCE_COLD int give_body(pthread_rwlock_t *rwlock, struct body **ret_body)
{
	struct body *body, *found = NULL;

#ifdef __GLIBC__
	/* Another process has initialised the lock without the shim. */
	if (rwlock->__data.__shared)
		return refuse(ENOTSUP, "a lock shared between processes, which another one initialised");
#endif
	body = get_body();
	if (!body)
		return EAGAIN;
	/* SHIM: full, pairs with SHIM in body_of() */
	if (!quiesce_cmpxchg(SHIM, &ours(rwlock)->body, &found, body)) {
		put_body(body);
		body = found;
	}
	*ret_body = body;
	return body == &destroyed ? EINVAL : 0;
}

static inline int body_of(pthread_rwlock_t *rwlock, struct body **ret_body)
{
	/* SHIM: acquire, pairs with SHIM in give_body() */
	struct body *body = quiesce_load_acquire(SHIM, &ours(rwlock)->body);

	if (quiesce_unlikely(!body))
		return give_body(rwlock, ret_body);
	*ret_body = body;
	return quiesce_unlikely(body == &destroyed) ? EINVAL : 0;
}

/* ---- what this thread holds ---- */

static inline struct held *find(const struct body *body)
{
	for (uint32_t i = self.nr; i-- > 0;)
		if (self.held[i].body == body)
			return &self.held[i];
	return NULL;
}

static inline void add(struct body *body, uint32_t depth)
{
	self.held[self.nr++] = (struct held){ .body = body, .depth = depth };
}

static inline void forget(struct held *held)
{
	*held = self.held[--self.nr];
}

/* ---- acquire ---- */

/* How long until @abstime, in nanoseconds; 0: it is past. */
static uint64_t until(clockid_t clock, const struct timespec *abstime)
{
	struct timespec now;

	clock_gettime(clock, &now);
	if (abstime->tv_sec < now.tv_sec || (abstime->tv_sec == now.tv_sec && abstime->tv_nsec <= now.tv_nsec))
		return 0;
	if (abstime->tv_sec - now.tv_sec >= (time_t)(UINT64_MAX / SECOND) - 1)
		return UINT64_MAX;
	return (uint64_t)(abstime->tv_sec - now.tv_sec) * SECOND + (uint64_t)(abstime->tv_nsec + SECOND - now.tv_nsec) - SECOND;
}

/* POSIX checks @abstime only if the lock is not free. */
static int check_time(clockid_t clock, const struct timespec *abstime)
{
	bool known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;

	return known && abstime->tv_nsec >= 0 && abstime->tv_nsec < SECOND ? 0 : EINVAL;
}

/* Take @body for reading if this thread has it, or if there is a reason not to even try; else -1. */
static inline int read_again(struct body *body, bool wait)
{
	struct held *held = find(body);

	if (quiesce_likely(!held))
		return quiesce_likely(self.nr < HELD_MAX) ? -1 : refuse(EAGAIN, "a thread holds too many locks");
	if (held->depth == WRITING)
		return wait ? EDEADLK : EBUSY;
	if (held->depth == UINT32_MAX)
		return EAGAIN;
	/* No writer is inside while the caller is a reader, whichever writers wait. */
	held->depth++;
	COUNT(read);
	COUNT(again);
	return 0;
}

static inline int write_again(struct body *body, bool wait)
{
	if (quiesce_unlikely(find(body)))
		return wait ? EDEADLK : EBUSY;
	return quiesce_likely(self.nr < HELD_MAX) ? -1 : refuse(EAGAIN, "a thread holds too many locks");
}

static inline int got_read(struct body *body)
{
	add(body, 1);
	COUNT(read);
	return 0;
}

static inline int got_write(struct body *body)
{
	add(body, WRITING);
	COUNT(write);
	return 0;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (quiesce_unlikely(error))
		return error;
	error = read_again(body, true);
	if (quiesce_unlikely(error >= 0))
		return error;
	percpu_down_read(&body->sem);
	return got_read(body);
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (quiesce_unlikely(error))
		return error;
	error = read_again(body, false);
	if (error >= 0)
		return error;
	return percpu_down_read_trylock(&body->sem) ? got_read(body) : EBUSY;
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *abstime)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (error)
		return error;
	error = read_again(body, true);
	if (error >= 0)
		return error;
	if (percpu_down_read_trylock(&body->sem))
		return got_read(body);
	error = check_time(clock, abstime);
	if (error)
		return error;
	return percpu_down_read_timeout(&body->sem, until(clock, abstime)) ? got_read(body) : ETIMEDOUT;
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
	return pthread_rwlock_clockrdlock(rwlock, CLOCK_REALTIME, abstime);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (quiesce_unlikely(error))
		return error;
	error = write_again(body, true);
	if (quiesce_unlikely(error >= 0))
		return error;
	percpu_down_write(&body->sem);
	return got_write(body);
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (quiesce_unlikely(error))
		return error;
	error = write_again(body, false);
	if (error >= 0)
		return error;
	return percpu_down_write_trylock(&body->sem) ? got_write(body) : EBUSY;
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *abstime)
{
	struct body *body;
	int error = body_of(rwlock, &body);

	if (error)
		return error;
	error = write_again(body, true);
	if (error >= 0)
		return error;
	if (percpu_down_write_trylock(&body->sem))
		return got_write(body);
	error = check_time(clock, abstime);
	if (error)
		return error;
	return percpu_down_write_timeout(&body->sem, until(clock, abstime)) ? got_write(body) : ETIMEDOUT;
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
	return pthread_rwlock_clockwrlock(rwlock, CLOCK_REALTIME, abstime);
}

/* ---- release ---- */

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	struct body *body;
	struct held *held;
	int error = body_of(rwlock, &body);

	if (quiesce_unlikely(error))
		return error;
	held = find(body);
	if (quiesce_unlikely(!held))
		return refuse(EPERM, "unlock of a lock that this thread does not hold");
	COUNT(unlock);
	if (quiesce_unlikely(held->depth > 1)) {
		held->depth--;
		return 0;
	}
	/* The lock's own memory may be gone as soon as it is released; the semaphore never is. */
	if (held->depth == WRITING) {
		forget(held);
		percpu_up_write(&body->sem);
	} else {
		forget(held);
		percpu_up_read(&body->sem);
	}
	return 0;
}

/* ---- begin and end ---- */

EXPORT int pthread_rwlock_init(pthread_rwlock_t *rwlock, const pthread_rwlockattr_t *attr)
{
	int shared = PTHREAD_PROCESS_PRIVATE;

	if (attr && !pthread_rwlockattr_getpshared(attr, &shared) && shared != PTHREAD_PROCESS_PRIVATE)
		return refuse(ENOTSUP, "a lock shared between processes");
	memset(rwlock, 0, sizeof(*rwlock));
	COUNT(init);
	return 0;
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *rwlock)
{
	/* Relaxed: the caller has synchronised with all threads that used the lock. */
	struct body *body = quiesce_load_relaxed(&ours(rwlock)->body);

	if (body == &destroyed)
		return EINVAL;
	if (body && (percpu_is_read_locked(&body->sem) || percpu_is_write_locked(&body->sem)))
		return EBUSY;
	quiesce_store_relaxed(&ours(rwlock)->body, &destroyed); /* Relaxed: no thread uses the lock. */
	if (body)
		put_body(body);
	COUNT(destroy);
	return 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&bodies_mutex);
	pthread_mutex_lock(&totals_mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&totals_mutex);
	pthread_mutex_unlock(&bodies_mutex);
}

/* The child counts its own. */
static void after_fork_in_child(void)
{
	memset(&totals, 0, sizeof(totals));
	memset(&self.counts, 0, sizeof(self.counts));
	after_fork();
}

__attribute__((constructor)) static void begin(void)
{
	stats_file = getenv("RWLOCK_SHIM_STATS");
	have_flush_key = !pthread_key_create(&flush_key, flush);
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* A line in the file that RWLOCK_SHIM_STATS names.  Threads that still run are not in it, nor processes that
 * end by _exit() or a signal: "at least". */
__attribute__((destructor)) static void end(void)
{
	struct rwlock_shim_counts c;
	int fd;

	if (!stats_file)
		return;
	fd = open(stats_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(stderr, "rwlock_shim: %s: %s\n", stats_file, strerror(errno));
		return;
	}
	rwlock_shim_get_counts(&c);
	dprintf(fd, "%s %d init %llu destroy %llu read %llu again %llu write %llu unlock %llu refused %llu semaphores %llu\n",
		program_invocation_short_name, (int)getpid(), (unsigned long long)c.init, (unsigned long long)c.destroy,
		(unsigned long long)c.read, (unsigned long long)c.again, (unsigned long long)c.write, (unsigned long long)c.unlock,
		(unsigned long long)c.refused, (unsigned long long)most_in_use);
	close(fd);
}
