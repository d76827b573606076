/* SPDX-License-Identifier: MIT */
/* rwsem_gp.c - percpu_rwsem without rcu_sync: a grace period in each lock and in each unlock of a writer.
 *
 * The earlier lock of the kernel in its simplest form, for comparison only.  Without a writer a reader counts in the
 * line of its thread, in a section of RCU.  A writer announces itself and waits for a grace period: from then on
 * readers count together, under a mutex; under it they wait for the writer, and the writer for them.  After its
 * section the writer waits for another grace period, so that a reader that sees no writer sees what was written; only
 * then readers are fast again.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <quiesce/rcu.h>

#include "ours.h"
#include "registry.h"
#include "types/rwlock.h"

static struct {
	uint32_t writers; /* readers are slow unless it is 0; changed by locked instructions */
	pthread_mutex_t mutex __attribute__((aligned(128))); /* guards the fields that follow */
	pthread_cond_t changed;
	bool writing;
	int64_t slow; /* readers that entered slowly, less those that left slowly */
	struct line *lines;
} lock = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Count of one thread: readers that entered fast, less those that left fast.  It stays when the thread ends. */
struct line {
	int64_t fast;
	struct line *next;
} __attribute__((aligned(128)));

static __thread struct line *mine __attribute__((tls_model("initial-exec")));

static void thread_enter(void)
{
	mine = aligned_alloc(sizeof(*mine), sizeof(*mine));
	if (!mine)
		abort();
	pthread_mutex_lock(&lock.mutex);
	*mine = (struct line){ 0, lock.lines };
	lock.lines = mine;
	pthread_mutex_unlock(&lock.mutex);
}

/* Adds @n to the thread's count if there is no writer. */
static bool count_fast(int64_t n)
{
	bool fast;

	rcu_read_lock();
	/* raw: acquire, with the release in write_unlock_after() */
	fast = !__atomic_load_n(&lock.writers, __ATOMIC_ACQUIRE);
	if (fast)
		quiesce_store_relaxed(&mine->fast, mine->fast + n); /* the writer's grace period orders the store */
	rcu_read_unlock();
	return fast;
}

static void read_lock(void)
{
	if (quiesce_likely(count_fast(1)))
		return;
	pthread_mutex_lock(&lock.mutex);
	while (lock.writing)
		pthread_cond_wait(&lock.changed, &lock.mutex);
	lock.slow++;
	pthread_mutex_unlock(&lock.mutex);
}

static void read_unlock(void)
{
	if (quiesce_likely(count_fast(-1)))
		return;
	pthread_mutex_lock(&lock.mutex);
	lock.slow--;
	if (lock.writing)
		pthread_cond_broadcast(&lock.changed);
	pthread_mutex_unlock(&lock.mutex);
}

/* The caller holds the mutex; readers are slow. */
static bool has_readers(void)
{
	int64_t nr = lock.slow;

	for (const struct line *line = lock.lines; line; line = line->next)
		nr += quiesce_load_relaxed(&line->fast);
	return nr != 0;
}

static void write_lock_after(void (*grace_period)(void))
{
	(void)quiesce_fetch_add_relaxed(&lock.writers, 1u);
	grace_period();
	pthread_mutex_lock(&lock.mutex);
	while (lock.writing)
		pthread_cond_wait(&lock.changed, &lock.mutex);
	lock.writing = true;
	while (has_readers())
		pthread_cond_wait(&lock.changed, &lock.mutex);
	pthread_mutex_unlock(&lock.mutex);
}

static void write_unlock_after(void (*grace_period)(void))
{
	pthread_mutex_lock(&lock.mutex);
	lock.writing = false;
	pthread_cond_broadcast(&lock.changed);
	pthread_mutex_unlock(&lock.mutex);
	grace_period();
	__atomic_fetch_sub(&lock.writers, 1u, __ATOMIC_RELEASE); /* raw: with the acquire in count_fast() */
}

OP_FUNCTION(plain, synchronize_rcu())
OP_FUNCTION(expedited, synchronize_rcu_expedited())
OP_FUNCTION(plain_write_lock, write_lock_after(plain))
OP_FUNCTION(plain_write_unlock, write_unlock_after(plain))
OP_FUNCTION(expedited_write_lock, write_lock_after(expedited))
OP_FUNCTION(expedited_write_unlock, write_unlock_after(expedited))

static bool readers_are_fast(void)
{
	return !quiesce_load_relaxed(&lock.writers);
}

static const struct rwlock_op gp_lock = {
	.what = "for comparison: synchronize_rcu() in each lock and unlock",
	.thread_enter = thread_enter, .read_lock = read_lock, .read_unlock = read_unlock,
	.write_lock = plain_write_lock, .write_unlock = plain_write_unlock, .fast = readers_are_fast,
};

TYPE(gp, .rank = 700, .groups = RUN_BURST | REPORT_BURST,
	OURS, .rwlock = &gp_lock);

static const struct rwlock_op expedited_lock = {
	.what = "for comparison: synchronize_rcu_expedited() in each lock and unlock",
	.thread_enter = thread_enter, .read_lock = read_lock, .read_unlock = read_unlock,
	.write_lock = expedited_write_lock, .write_unlock = expedited_write_unlock, .fast = readers_are_fast,
};

TYPE(expedited, .rank = 710, .groups = RUN_BURST | REPORT_BURST,
	OURS, .rwlock = &expedited_lock);
