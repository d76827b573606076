/* SPDX-License-Identifier: MIT */
/* percpu_rwsem.h - declarations that percpu_rwsem.c, percpu_rwsem_debug.c, percpu_rwsem_many.c and
 * percpu_rwsem_report.c share. */
#ifndef QUIESCE_SRC_PERCPU_RWSEM_H
#define QUIESCE_SRC_PERCPU_RWSEM_H

#include <quiesce/percpu_rwsem.h>

#include "runtime/wait_policy.h"
#include "percpu.h"

enum { QUIESCE_RWSEM_ENTERED, QUIESCE_RWSEM_LEFT }; /* indexes of the counter words */

struct quiesce__rwsem_waiter {
	struct quiesce__rwsem_waiter *next;
	uint64_t nr;    /* one more than that of the waiter in front */
	uint64_t ahead; /* number of waiters in front at first, or more if some had given up */
	uint64_t slept_on; /* bit of the CPU where the waiter last fell asleep; 0: it has not slept */
	uint32_t state;
	bool writer;
};

static inline uint64_t quiesce__rwsem_inside(const struct percpu_rw_semaphore *sem)
{
	return quiesce__percpu_inside(&sem->percpu, sem->shared, QUIESCE_RWSEM_ENTERED, QUIESCE_RWSEM_LEFT);
}

/* Set the operations of an all-zero lock before its first use by a writer. */
void quiesce__rwsem_ensure_ops(struct percpu_rw_semaphore *sem);
/* Acquire the lock for writing; false if @deadline came first.  The caller has entered rcu_sync, so readers take the slow
 * path; a call that fails has exited it. */
bool quiesce__rwsem_write_until(struct percpu_rw_semaphore *sem, uint64_t deadline);
/* Do the work of percpu_up_write(), which was called at @caller. */
void quiesce__rwsem_up_write(struct percpu_rw_semaphore *sem, const void *caller);

/* Report that a writer, which owns block, has waited since @p->start for the readers inside. */
void quiesce__rwsem_report_drain(struct percpu_rw_semaphore *sem, bool timeout, const struct quiesce__wait_policy *p);
/* Report that @w has been in the queue since @p->start, if it is the first there. */
void quiesce__rwsem_report_queue(struct percpu_rw_semaphore *sem, const struct quiesce__rwsem_waiter *w,
				 const struct quiesce__wait_policy *p);

#endif
