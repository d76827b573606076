/* SPDX-License-Identifier: MIT */
/* queue_lfqueue.c - lfqueue of quiesce, with its gets in sections of RCU. */
#include <quiesce/ds/lfqueue.h>

#include "types/queue.h"
#include "types/registry.h"

int op_rcu_init(enum op_fence fence);
void op_rcu_stats(struct op_stats *ret);

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
OP_FUNCTION(first_section, rcu_read_lock(); rcu_read_unlock())

static const struct queue_op lfq_queue = { .create = lfq_create, QUEUE_LOOPS_OF(lfq), .wait = lfq_wait, .peer = "liburcu_lfq" };

TYPE(lfqueue, .rank = 310,
	.what = "quiesce's lock-free queue, in sections",
	.fence_modes = true,
	.queues = &lfq_queue,
	.init = op_rcu_init,
	.thread_enter = first_section,
	.stats = op_rcu_stats);
