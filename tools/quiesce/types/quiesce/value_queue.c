/* SPDX-License-Identifier: MIT */
/* value_queue.c - value_queue of quiesce, of pointers to nodes and messages: a message is freed by the thread that gets it. */
#include <quiesce/ds/value_queue.h>

#include "ours.h"
#include "types/queue.h"
#include "registry.h"

#define BOUND 65536 /* more than are ever in a queue */

static struct value_queue queue;

static int create(struct queue_node *stub)
{
	(void)stub;
	return value_queue_init(&queue, sizeof(stub), 0);
}

static int create_bounded(struct queue_node *stub)
{
	(void)stub;
	return value_queue_init(&queue, sizeof(stub), BOUND);
}

static inline void put(struct queue_node *node)
{
	if (quiesce_unlikely(value_queue_push(&queue, &node)))
		abort();
}

static inline struct queue_node *get(uint64_t *ret_value)
{
	struct queue_node *node;

	if (value_queue_pop_try(&queue, &node))
		return NULL;
	*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(single, put, get)
QUEUE_MESSAGES(single, put, get, free)

/* ---- a call for each burst ---- */

static void many_send(struct queue_hand *hand, uint32_t nr)
{
	struct queue_node *node[QUEUE_BATCH];

	for (uint32_t i = 0; i < nr; i++)
		node[i] = queue_message(hand);
	for (uint32_t i = 0; i < nr;) {
		long done = value_queue_push_many(&queue, node + i, nr - i);

		if (done < 0)
			abort(); /* an unbounded queue is never full */
		i += (uint32_t)done;
	}
	hand->nr_put += nr;
}

static uint32_t many_receive(struct queue_hand *hand, uint32_t nr)
{
	struct queue_node *node[QUEUE_BATCH];
	long got = value_queue_pop_many(&queue, node, nr);

	for (long i = 0; i < got; i++) {
		hand->sum_got += node[i]->value;
		free(node[i]);
	}
	got = got < 0 ? 0 : got;
	hand->nr_empty += got < nr;
	hand->nr_got += (uint64_t)got;
	return (uint32_t)got;
}

/* Arrays that a queue has outgrown are freed after a grace period. */
OP_FUNCTION(drain, rcu_barrier())

TYPE(value_queue, .rank = 316,
	.what = "quiesce's queue of values, unbounded, of pointers", OURS,
	.queues = &(const struct queue_op){ .create = create, QUEUE_LOOPS_OF(single), QUEUE_MESSAGES_OF(single), .drain = drain,
		.may_miss = true },
	.thread_enter = rcu_first_section);
TYPE(value_queue_bounded, .rank = 317,
	.what = "quiesce's queue of values, bounded, of pointers",
	.queues = &(const struct queue_op){ .create = create_bounded, QUEUE_LOOPS_OF(single), QUEUE_MESSAGES_OF(single),
		.may_miss = true });
TYPE(value_queue_many, .rank = 318,
	.what = "quiesce's queue of values, unbounded, of pointers: one call for each burst of messages", OURS,
	.queues = &(const struct queue_op){ .create = create, QUEUE_MESSAGES_OF(many), .drain = drain, .may_miss = true },
	.thread_enter = rcu_first_section);
