/* SPDX-License-Identifier: MIT */
/* queue_lfqueue.c - lfqueue of quiesce, with its gets in sections of RCU. */
#include <quiesce/ds/lfqueue.h>

#include "ours.h"
#include "types/queue.h"
#include "types/registry.h"

static struct lfq_queue lfq QUEUE_ALONE;

static int lfq_create(struct queue_node *stub)
{
	(void)stub;
	lfq_init(&lfq);
	return 0;
}

static inline void lfq_put(struct queue_node *node)
{
	rcu_read_lock();
	lfq_enqueue(&lfq, (struct lfq_node *)(void *)node);
	rcu_read_unlock();
}

static inline struct queue_node *lfq_get(uint64_t *ret_value)
{
	struct queue_node *node;

	rcu_read_lock();
	node = (struct queue_node *)(void *)lfq_dequeue(&lfq);
	rcu_read_unlock();
	if (node)
		*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(lfq, lfq_put, lfq_get)

OP_FUNCTION(lfq_wait, synchronize_rcu())
static const struct queue_op lfq_queue = { .create = lfq_create, QUEUE_LOOPS_OF(lfq), .wait = lfq_wait, .peer = "liburcu_lfq" };

TYPE(lfqueue, .rank = 310,
	.what = "quiesce's lock-free queue, in sections",
	OURS,
	.queues = &lfq_queue,
	.thread_enter = rcu_first_section);
