/* SPDX-License-Identifier: MIT */
/* value_queue.c - quiesce/ds/value_queue.h, recorded: each key is an unbounded queue of pointers of its own. */
#include <quiesce/ds/value_queue.h>
#include <quiesce/rcu.h>

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

/* Items have no node: a pointer to this member stands for the item. */
struct no_node {
	char none;
};

static void init_pointers(struct value_queue *q)
{
	if (value_queue_init(q, sizeof(struct no_node *), 0))
		abort();
}

static void put_pointer(struct value_queue *q, struct no_node *node)
{
	if (value_queue_push(q, &node))
		abort();
}

/* -EBUSY claims nothing. */
static struct no_node *take_pointer(struct value_queue *q)
{
	struct no_node *node = NULL;
	int err;

	while ((err = value_queue_pop_try(q, &node)) == -EBUSY)
		sched_yield();
	if (err && err != -EAGAIN)
		abort();
	return err ? NULL : node;
}

static void destroy_pointers(struct value_queue *q)
{
	value_queue_destroy(q, NULL, NULL);
}

#define CONTAINER struct value_queue
#define NODE struct no_node
#define INIT init_pointers
#define DESTROY destroy_pointers
#define PUT put_pointer
#define TAKE take_pointer
#define IS_EMPTY(q) (value_queue_count(q) == 0)
#define ENTRY(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))
#define TYPE value_queue_type
#define NAME "value_queue"
#define MODEL MODEL_QUEUE
#include "ends.h"
