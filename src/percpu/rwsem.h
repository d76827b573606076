/* SPDX-License-Identifier: MIT */
/* rwsem.h - what percpu_rwsem.c and its reports share. */
#ifndef QUIESCE_SRC_RWSEM_H
#define QUIESCE_SRC_RWSEM_H

#include <quiesce/percpu_rwsem.h>

#include "runtime/wait_policy.h"
#include "percpu.h"

enum { QUIESCE_RWSEM_ENTERED, QUIESCE_RWSEM_LEFT }; /* words of the counters */

struct quiesce__rwsem_waiter {
	struct quiesce__rwsem_waiter *next;
	uint32_t state;
	bool writer;
};

static inline uint64_t quiesce__rwsem_inside(const struct percpu_rw_semaphore *sem)
{
	return quiesce__percpu_inside(&sem->percpu, sem->shared, QUIESCE_RWSEM_ENTERED, QUIESCE_RWSEM_LEFT);
}

/* percpu_up_write(), called at @caller. */
void quiesce__rwsem_up_write(struct percpu_rw_semaphore *sem, const void *caller);

/* percpu_rwsem_report.c: block is a writer's, which waits for readers inside since @p->start: tell of it. */
void quiesce__rwsem_report_drain(struct percpu_rw_semaphore *sem, bool timeout, const struct quiesce__wait_policy *p);
/* @w is in the queue since then; tell of it if it is the first. */
void quiesce__rwsem_report_queue(struct percpu_rw_semaphore *sem, const struct quiesce__rwsem_waiter *w,
				 const struct quiesce__wait_policy *p);

#endif
