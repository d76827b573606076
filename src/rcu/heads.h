/* SPDX-License-Identifier: MIT */
/* heads.h - lists of objects that are linked by their rcu_head. */
#ifndef QUIESCE_RCU_HEADS_H
#define QUIESCE_RCU_HEADS_H

#include <quiesce/rcu.h>

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t quiesce__heads_count(const struct rcu_head *list)
{
	uint64_t nr = 0;

	for (; list; list = list->next)
		nr++;
	return nr;
}

/* True if @head is in @list. */
static inline bool quiesce__heads_have(const struct rcu_head *list, const struct rcu_head *head)
{
	while (list && list != head)
		list = list->next;
	return list;
}

#endif
