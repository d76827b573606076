/* SPDX-License-Identifier: MIT */
/* quiesce/detail/head.h - struct rcu_head, the member of an object for call_rcu(); for rcu.h. */
#ifndef QUIESCE_DETAIL_HEAD_H
#define QUIESCE_DETAIL_HEAD_H

/* A member of the object.  It belongs to the library from call_rcu() until the callback runs. */
struct rcu_head {
	struct rcu_head *next;
	void (*func)(struct rcu_head *head);
};

#endif
