/* SPDX-License-Identifier: MIT */
/* reclaim_debug.h - the callback of objects that debug_pending.h has recorded; call_srcu(), whose heads are those of RCU, uses it, too. */
#ifndef QUIESCE_RECLAIM_DEBUG_H
#define QUIESCE_RECLAIM_DEBUG_H

#include <quiesce/rcu.h>

/* Run the program's function, or free the object, as it was recorded for @head. */
void quiesce__rcu_run_recorded(struct rcu_head *head);

#endif
