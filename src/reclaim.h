/* SPDX-License-Identifier: MIT */
/* reclaim.h - deferred callbacks: queues, worker, barrier. */
#ifndef QUIESCE_RECLAIM_H
#define QUIESCE_RECLAIM_H

#include "core.h"

/* Let the worker run a grace period that completes @cookie. */
void quiesce__reclaim_request_gp(uint64_t cookie);
bool quiesce__reclaim_has_worker(void);
/* Has every callback of call_rcu() that this thread can know of run? */
bool quiesce__nothing_queued(void);
/* Would a wait for callbacks be one for oneself?  Then it is reported. */
bool quiesce__barrier_is_misuse(void);
/* After a section in which something was queued: where there is no worker nobody has made a pass for it yet. */
void quiesce__reclaim_rouse(void);
void quiesce__reclaim_thread_exit(struct quiesce_tls_v1 *self);
/* Before fork(): hold the worker between two callbacks.  After: let it go on. */
void quiesce__reclaim_fork_prepare(void);
void quiesce__reclaim_fork_parent(void);
void quiesce__reclaim_fork_child(void);
void quiesce__reclaim_stats(struct quiesce_stats *stats);

#endif
