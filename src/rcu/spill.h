/* SPDX-License-Identifier: MIT */
/* spill.h - what a pass does with objects that are linked by their heads; called by the holder of pass.lock. */
#ifndef QUIESCE_SPILL_H
#define QUIESCE_SPILL_H

#include <quiesce/rcu.h>
#include <stdbool.h>

/* Take what is in @list, of a queue that the pass takes; of all shards: true if anything was taken. */
void quiesce__spill_take(struct rcu_head **list);
bool quiesce__spill_take_of_shards(void);
/* The grace period is over: run what was taken. */
void quiesce__spill_run(void);
/* A callback has ended its thread: what has not run is left to another pass. */
void quiesce__spill_ended(void);
/* In the child, before its queues are listed. */
void quiesce__spill_fork_child(bool in_callback);

#endif
