/* SPDX-License-Identifier: MIT */
/* queue_busted.c - a broken queue, which loses values. */
#include "types/queue.h"
#include "registry.h"

static struct queue_node *only;
static uint64_t nr_puts;

static int busted_create(struct queue_node *stub)
{
	(void)stub;
	only = NULL;
	return 0;
}

/* For one thread: of a thousand values it loses one, and returns another one twice instead. */
static inline void busted_put(struct queue_node *node)
{
	only = node;
	if (++nr_puts % 1000 == 0)
		node->value++;
}

static inline struct queue_node *busted_get(uint64_t *ret_value)
{
	struct queue_node *node = only;

	only = NULL;
	*ret_value = node ? node->value : 0;
	return node;
}

QUEUE_LOOPS(busted, busted_put, busted_get)
QUEUE_MESSAGES(busted, busted_put, busted_get, free)

static const struct queue_op busted = { .create = busted_create, QUEUE_LOOPS_OF(busted), QUEUE_MESSAGES_OF(busted) };

TYPE(busted, .rank = 2000,
	.what = "a queue that loses values: queuescale must notice", .broken = true, .queues = &busted);
