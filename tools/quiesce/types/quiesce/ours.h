/* SPDX-License-Identifier: MIT */
/* ours.h - what the types of this library share; rcu.c has the functions. */
#ifndef QUIESCE_TOOL_OURS_H
#define QUIESCE_TOOL_OURS_H

#include <quiesce/rcu.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif
int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);
/* The objects that wait for a grace period, and for a scan of hazard pointers. */
uint64_t op_rcu_waiting(void);
uint64_t op_hazptr_waiting(void);
/* The objects that were ever reclaimed after a grace period, and after a scan. */
uint64_t op_rcu_freed(void);
uint64_t op_hazptr_freed(void);
#ifdef __cplusplus
}
#endif

/* The first section registers the thread. */
static inline void rcu_first_section(void)
{
	rcu_read_lock();
	rcu_read_unlock();
}

static inline void rcu_run_callback(struct rcu_head *head)
{
	struct op_head *op_head = (struct op_head *)head;

	op_head->fn(op_head);
}

/* Members of struct op, for types that are measured once with light and once with full fences. */
#define OURS .fence_modes = true, .init = op_rcu_init, .stats = op_rcu_stats

#endif
