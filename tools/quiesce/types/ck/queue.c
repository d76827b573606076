/* SPDX-License-Identifier: MIT */
/* queue.c - Concurrency Kit's queue and stack: each pointer has a number that
 * changes with it, so nodes may be reused at once. */
#include <ck_fifo.h>
#include <ck_stack.h>

#include "types/queue.h"
#include "registry.h"

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

QUEUE_OF(stack, ck_stack_init(&stack), ck_stack_push_mpmc(&stack, QUEUE_AS(ck_stack_entry, node)), (void)0,
	 ck_stack_pop_mpmc(&stack), (void)0)

TYPE(ck_fifo, .rank = 1100,
	.what = "ck_fifo_mpmc of Concurrency Kit",
	.queues = &(const struct queue_op){ QUEUE_CALLS(fifo), .may_miss = true });
TYPE(ck_stack, .rank = 1110,
	.what = "ck_stack_*_mpmc of Concurrency Kit",
	.queues = &(const struct queue_op){ QUEUE_CALLS(stack) });
