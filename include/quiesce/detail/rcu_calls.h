/* SPDX-License-Identifier: MIT */
/* quiesce/detail/rcu_calls.h - the exported functions behind the calls of rcu.h, under names that
 * no program has. */
#ifndef QUIESCE_DETAIL_RCU_CALLS_H
#define QUIESCE_DETAIL_RCU_CALLS_H

#include <quiesce/base.h>
#include <quiesce/detail/head.h>

QUIESCE_BEGIN_DECLS

/* A cookie: a point in the sequence of grace periods.  It is a structure, so that compilers
 * distinguish it from an integer. */
struct rcu_gp_seq {
	uint64_t value;
};

QUIESCE_API void quiesce_synchronize_rcu(void);
QUIESCE_API void quiesce_synchronize_rcu_expedited(void);
QUIESCE_API struct rcu_gp_seq quiesce_get_state_synchronize_rcu(void);
QUIESCE_API struct rcu_gp_seq quiesce_start_poll_synchronize_rcu(void);
QUIESCE_API int quiesce_poll_state_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API void quiesce_cond_synchronize_rcu(struct rcu_gp_seq seq);
QUIESCE_API void quiesce_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);
QUIESCE_API void quiesce_kfree_rcu_mightsleep(void *object, size_t bytes);
QUIESCE_API void quiesce_rcu_barrier(void);
QUIESCE_API void quiesce_rcu_throttle(void);
QUIESCE_API void quiesce__call_rcu_debug(struct rcu_head *head, void (*func)(struct rcu_head *head), size_t bytes);

QUIESCE_END_DECLS

#endif
