/* SPDX-License-Identifier: MIT */
/* queue.c - Concurrency Kit's queue and stack: each pointer has a number that
 * changes with it, so nodes may be reused at once. */
#include <ck_fifo.h>
#include <ck_stack.h>

#include "types/queue.h"
#include "types/registry.h"

_Static_assert(sizeof(struct ck_fifo_mpmc_entry) <= sizeof(void *[4]), "there is room for an entry");

static ck_fifo_mpmc_t fifo QUEUE_ALONE;
static ck_stack_t stack QUEUE_ALONE;

static int fifo_create(struct queue_node *stub)
{
	ck_fifo_mpmc_init(&fifo, (struct ck_fifo_mpmc_entry *)(void *)stub);
	return 0;
}

/* The entry that a get returns is not the one that was put with the value. */
static inline void fifo_put(struct queue_node *node)
{
	ck_fifo_mpmc_enqueue(&fifo, (struct ck_fifo_mpmc_entry *)(void *)node, (void *)(uintptr_t)(node->value + 1));
}

static inline struct queue_node *fifo_get(uint64_t *ret_value)
{
	struct ck_fifo_mpmc_entry *entry;
	void *value;

	if (!ck_fifo_mpmc_dequeue(&fifo, &value, &entry))
		return NULL;
	*ret_value = (uintptr_t)value - 1;
	return (struct queue_node *)(void *)entry;
}

QUEUE_LOOPS(fifo, fifo_put, fifo_get)

static int stack_create(struct queue_node *stub)
{
	(void)stub;
	ck_stack_init(&stack);
	return 0;
}

static inline void stack_put(struct queue_node *node)
{
	ck_stack_push_mpmc(&stack, (struct ck_stack_entry *)(void *)node);
}

static inline struct queue_node *stack_get(uint64_t *ret_value)
{
	struct queue_node *node = (struct queue_node *)(void *)ck_stack_pop_mpmc(&stack);

	if (node)
		*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(stack, stack_put, stack_get)

static const struct queue_op fifo_queue = { .create = fifo_create, QUEUE_LOOPS_OF(fifo), .may_miss = true };
static const struct queue_op stack_queue = { .create = stack_create, QUEUE_LOOPS_OF(stack) };

TYPE(ck_fifo, .rank = 1100,
	.what = "ck_fifo_mpmc of Concurrency Kit", .queues = &fifo_queue);
TYPE(ck_stack, .rank = 1110,
	.what = "ck_stack_*_mpmc of Concurrency Kit", .queues = &stack_queue);
