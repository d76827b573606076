/* SPDX-License-Identifier: MIT */
/* reclaim_debug.h - how an object that was noted in debug_pending.h comes back: for call_srcu() too, whose heads are those of RCU. */
#ifndef QUIESCE_RECLAIM_DEBUG_H
#define QUIESCE_RECLAIM_DEBUG_H

#include <quiesce/rcu.h>

void quiesce__rcu_run_noted(struct rcu_head *head);

#endif
