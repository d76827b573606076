/* SPDX-License-Identifier: MIT */
/* rcu_sync.h - rcu_sync_enter() in parts, for callers that enter many objects with one wait. */
#ifndef QUIESCE_SRC_RCU_SYNC_H
#define QUIESCE_SRC_RCU_SYNC_H

#include <quiesce/rcu_sync.h>

/* True: the caller must call the wait function before it ends the entry; false: another updater does. */
bool quiesce__rcu_sync_enter_begin(struct rcu_sync *rss);
void quiesce__rcu_sync_wait(struct rcu_sync *rss);
/* @first: the value that quiesce__rcu_sync_enter_begin() returned. */
void quiesce__rcu_sync_enter_end(struct rcu_sync *rss, bool first);

/* In the child of a fork: set the state of objects whose callback waits in quiesce__delayed_call(), as it will not be
 * called. */
void quiesce__rcu_sync_fork_child(void);

/* percpu_rwsem.c: open or close the fast path of readers. */
void quiesce__rwsem_set_idle(struct rcu_sync *rss, bool idle);

#endif
