/* SPDX-License-Identifier: MIT */
/* rwsems.h - shared by the tests of percpu_rwsem: threads that ask for a lock, and the reports of misuse. */
#ifndef RWSEMS_H
#define RWSEMS_H

#include <quiesce/percpu_rwsem.h>

#include "testing.h"

#define MS ((uint64_t)1000000)

/* ---- a thread that asks for the lock, and holds it until asked to leave ---- */

struct user {
	pthread_t thread;
	struct percpu_rw_semaphore *sem;
	bool write;
	uint64_t timeout_ns; /* 0: no timeout */
	int inside;          /* set when the thread has the lock */
	int refused;         /* set when the thread has given up */
	int left;
	int leave;
};

static inline bool user_down(struct user *u)
{
	if (u->timeout_ns)
		return u->write ? percpu_down_write_timeout(u->sem, u->timeout_ns) : percpu_down_read_timeout(u->sem, u->timeout_ns);
	if (u->write)
		percpu_down_write(u->sem);
	else
		percpu_down_read(u->sem);
	return true;
}

static inline void *user_main(void *arg)
{
	struct user *u = arg;

	if (!user_down(u)) {
		flag_set(&u->refused);
		wait_until(flag_get(&u->leave)); /* until then no other thread gets this stack: user_queued() compares addresses */
		return NULL;
	}
	flag_set(&u->inside);
	wait_until(flag_get(&u->leave));
	if (u->write)
		percpu_up_write(u->sem);
	else
		percpu_up_read(u->sem);
	flag_set(&u->left);
	return NULL;
}

static inline void user_begin(struct user *u, struct percpu_rw_semaphore *sem, bool write, uint64_t timeout_ns)
{
	*u = (struct user){ .sem = sem, .write = write, .timeout_ns = timeout_ns };
	thread_must(pthread_create(&u->thread, NULL, user_main, u));
}

/* Start a thread that asks for the lock; the thread holds the lock when this returns. */
static inline void user_inside(struct user *u, struct percpu_rw_semaphore *sem, bool write)
{
	user_begin(u, sem, write, 0);
	wait_until(flag_get(&u->inside));
}

/* Load a pointer of the queue from outside: only the address is of interest, so nothing orders the load, and it is hidden from
 * race detectors. */
__attribute__((noinline, unused, no_sanitize("thread"))) static const void *read_waiter(struct quiesce__rwsem_waiter *const *at)
{
	return *(struct quiesce__rwsem_waiter *const volatile *)at; /* raw: the library writes it plainly, under its lock */
}

/* Start a thread that queues for the lock; it is the last in the queue when this returns, unless it or its predecessor gave up
 * meanwhile.  A writer holds the lock, or waits for readers to leave. */
static inline void user_queued(struct user *u, struct percpu_rw_semaphore *sem, bool write, uint64_t timeout_ns)
{
	const void *first = read_waiter(&sem->first), *last = read_waiter(&sem->last);

	user_begin(u, sem, write, timeout_ns);
	/* The stack of a thread that has ended may be reused by now, so only the head shows whether the queue was empty. */
	wait_until(flag_get(&u->refused) || (first ? read_waiter(&sem->last) != last : read_waiter(&sem->first) != NULL));
}

/* Start a writer that finds readers inside, and waits until they have left. */
static inline void user_drains(struct user *u, struct percpu_rw_semaphore *sem, uint64_t timeout_ns)
{
	user_begin(u, sem, true, timeout_ns);
	wait_until(flag_get(&u->refused) || percpu_is_write_locked(sem));
}

static inline void user_leave(struct user *u)
{
	flag_set(&u->leave);
	pthread_join(u->thread, NULL);
}

static inline void user_is_refused(struct user *u)
{
	wait_until(flag_get(&u->refused) || flag_get(&u->inside));
	flag_set(&u->leave);
	pthread_join(u->thread, NULL);
	assert_true(flag_get(&u->refused));
	assert_false(flag_get(&u->inside));
}

/* ---- in another thread ---- */

struct errand {
	void (*fn)(void *);
	void *arg;
};

static inline void *errand_main(void *arg)
{
	struct errand *e = arg;

	e->fn(e->arg);
	return NULL;
}

static inline void elsewhere(void (*fn)(void *), void *arg)
{
	struct errand e = { fn, arg };
	pthread_t thread;

	thread_must(pthread_create(&thread, NULL, errand_main, &e));
	pthread_join(thread, NULL);
}

/* ---- misuse ---- */

static int nr_reported;
static enum quiesce_misuse reported_kind;
static char reported_text[400];

static inline void note_misuse(enum quiesce_misuse kind, const char *text)
{
	reported_kind = kind;
	snprintf(reported_text, sizeof reported_text, "%s", text);
	count_up(&nr_reported);
}

/* Check that @call is reported once, as @kind and with @word, and returns. */
#define REPORTED(kind, word, call)                                                   \
	do {                                                                         \
		quiesce_store_relaxed(&nr_reported, 0);                              \
		quiesce_set_misuse_hook(note_misuse);                                \
		call;                                                                \
		quiesce_set_misuse_hook(NULL);                                       \
		assert_int_equal(flag_get(&nr_reported), 1);                         \
		assert_int_equal(reported_kind, kind);                               \
		if (!strstr(reported_text, word))                                    \
			fail_msg("\"%s\" does not say \"%s\"", reported_text, word); \
	} while (0)

/* Make each call that a free lock allows. */
static inline void lock_works(struct percpu_rw_semaphore *sem)
{
	percpu_down_read(sem);
	assert_true(percpu_is_read_locked(sem));
	assert_false(percpu_down_write_trylock(sem));
	percpu_up_read(sem);
	assert_false(percpu_is_read_locked(sem));
	percpu_down_write(sem);
	assert_true(percpu_is_write_locked_by_me(sem));
	assert_false(percpu_down_read_trylock(sem));
	percpu_up_write(sem);
	assert_false(percpu_is_write_locked(sem));
	assert_true(percpu_down_read_trylock(sem));
	percpu_up_read(sem);
	assert_true(percpu_down_write_trylock(sem));
	percpu_up_write(sem);
}

/* True if threads count in restartable sequences here. */
static inline bool counts_in_sequences(const struct percpu_rw_semaphore *sem)
{
	return sem->open != 0;
}

#endif
