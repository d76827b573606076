/* SPDX-License-Identifier: MIT */
/* rcu_sync.h - rcu_sync_enter() in parts, for who enters many at once. */
#ifndef QUIESCE_SRC_RCU_SYNC_H
#define QUIESCE_SRC_RCU_SYNC_H

#include <quiesce/rcu_sync.h>

/* True: nobody else waits for the grace period; the caller does before it ends the entry. */
bool quiesce__rcu_sync_enter_begin(struct rcu_sync *rss);
void quiesce__rcu_sync_wait(struct rcu_sync *rss);
/* @first: what the beginning said. */
void quiesce__rcu_sync_enter_end(struct rcu_sync *rss, bool first);

/* In the child: those whose grace period will not be waited for end it now. */
void quiesce__rcu_sync_fork_child(void);

/* percpu_rwsem.c: may readers count by themselves? */
void quiesce__rwsem_idle(struct rcu_sync *rss, bool idle);

#endif
