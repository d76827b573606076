/* SPDX-License-Identifier: MIT */
/* spill.h - the part of a pass for spilled objects, which are linked by their heads; all functions are for the holder of pass.lock. */
#ifndef QUIESCE_SPILL_H
#define QUIESCE_SPILL_H

#include <quiesce/rcu.h>
#include <stdbool.h>

/* Take all objects from @list, which belongs to a queue of the pass, or to a shard. */
void quiesce__spill_take(struct rcu_head **list);
/* Take the objects of all shards; true if the pass has any spilled object, of a shard or a queue. */
bool quiesce__spill_take_of_shards(void);
/* Reclaim the objects that were taken; their grace period is over. */
void quiesce__spill_run(void);
/* Leave the objects that are not reclaimed to another pass: a callback has ended the calling thread. */
void quiesce__spill_ended(void);
/* Reinitialise in the child of a fork, before the child lists its queues.  @in_callback: its thread is in a callback of a pass. */
void quiesce__spill_fork_child(bool in_callback);

#endif
