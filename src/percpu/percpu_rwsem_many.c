/* SPDX-License-Identifier: MIT */
/* percpu_rwsem_many.c - percpu_down_write_many(): several locks enter rcu_sync together, for one fence.
 *
 * I1. Each lock in the array has entered rcu_sync as often as it will exit.
 */
#include "percpu_rwsem.h"

#include "rcu_sync.h"

#define CHUNK 1024u /* number of locks that share a fence */

static bool begin_enter(struct percpu_rw_semaphore *sem)
{
	quiesce__rwsem_ensure_ops(sem);
	return quiesce__rcu_sync_enter_begin(&sem->rss);
}

/* Enter rcu_sync of all locks, with one fence for those whose readers are still on the fast path. */
static void enter_all(struct percpu_rw_semaphore *const *sems, size_t nr)
{
	bool first[CHUNK];
	struct percpu_rw_semaphore *any = NULL;

	for (size_t i = 0; i < nr; i++) {
		first[i] = sems[i] && begin_enter(sems[i]);
		any = first[i] ? sems[i] : any;
	}
	if (any)
		quiesce__rcu_sync_wait(&any->rss);
	/* Finish these before waiting for any other enter: other threads may wait for them. */
	for (size_t i = 0; i < nr; i++)
		if (first[i])
			quiesce__rcu_sync_enter_end(&sems[i]->rss, true);
	for (size_t i = 0; i < nr; i++)
		if (sems[i] && !first[i])
			quiesce__rcu_sync_enter_end(&sems[i]->rss, false);
}

/* True if this call has acquired the lock at @i before.  A lock that the thread already held, or that another
 * thread is to release, does not count. */
static bool acquired_before(struct percpu_rw_semaphore *const *sems, size_t i)
{
	if (quiesce_likely(!quiesce_percpu_is_write_locked_by_me(sems[i])))
		return false;
	for (size_t k = 0; k < i; k++)
		if (sems[k] == sems[i] && !QUIESCE_MUTANT(rwsem_many_twice))
			return true;
	return false;
}

/* Acquire the lock at @i, or exit rcu_sync once if it is not acquired (I1). */
static void write_next(struct percpu_rw_semaphore *const *sems, size_t i)
{
	if (quiesce_unlikely(!sems[i])) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "percpu_down_write_many() with NULL among the locks");
	} else if (quiesce_unlikely(acquired_before(sems, i))) {
		if (!QUIESCE_MUTANT(rwsem_many_kept))
			quiesce_rcu_sync_exit(&sems[i]->rss);
		quiesce__misuse(QUIESCE_MISUSE_TWICE, "percpu_down_write_many() of %p twice: it is acquired once", (void *)sems[i]);
	} else {
		quiesce__rwsem_write_until(sems[i], PLATFORM_FOREVER);
	}
}

void quiesce_percpu_down_write_many(struct percpu_rw_semaphore *const *sems, size_t nr)
{
	quiesce__init();
	for (size_t i = 0; i < nr; i += CHUNK)
		enter_all(sems + i, nr - i < CHUNK ? nr - i : CHUNK);
	for (size_t i = 0; i < nr; i++)
		write_next(sems, i);
}
