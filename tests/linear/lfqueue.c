/* SPDX-License-Identifier: MIT */
/* lfqueue.c - quiesce/ds/lfqueue.h, recorded: each key is a queue of its own. */
#include <quiesce/ds/lfqueue.h>

#include <stdlib.h>

#include "record.h"

struct item {
	struct rcu_head rcu;
	struct lfq_node node;
	uint64_t value;
};

static struct lfq_queue queues[NR_QUEUES];

static void item_free(struct rcu_head *head)
{
	free(head);
}

static void put(struct lfq_queue *q, struct item *it)
{
	rcu_read_lock();
	lfq_enqueue(q, &it->node);
	rcu_read_unlock();
}

static struct item *take(struct lfq_queue *q)
{
	struct lfq_node *node;

	rcu_read_lock();
	node = lfq_dequeue(q);
	rcu_read_unlock();
	return node ? lfq_entry(node, struct item, node) : NULL;
}

/* Retire an item, and return its value; 0 if there is none. */
static uint64_t end(struct item *it)
{
	uint64_t value;

	if (!it)
		return 0;
	value = it->value;
	call_rcu(&it->rcu, item_free);
	return value;
}

static struct item *item_new(uint64_t value)
{
	struct item *it = allocate(sizeof *it);

	it->value = value;
	return it;
}

static void setup(uint64_t seed)
{
	(void)seed;
	for (int i = 0; i < NR_QUEUES; i++)
		lfq_init(&queues[i]);
}

static void prepare(struct op *op)
{
	if (op->event.kind == OP_INSERT)
		op->fresh = item_new(op->event.value);
}

static void perform(struct op *op)
{
	struct lfq_queue *q = &queues[op->key];
	struct event *e = &op->event;

	e->done = 1;
	if (e->kind == OP_INSERT) {
		put(q, op->fresh);
	} else if (e->kind == OP_REMOVE) {
		op->target = take(q);
	} else if (op->key < MAX_KEYS) {
		e->done = !lfq_empty(q);
	} else { /* the owner checks whether it is empty */
		op->target = take(q);
		put(q, item_new(op->target ? ((struct item *)op->target)->value : 0));
	}
	e->found = op->target ? ((struct item *)op->target)->value : 0;
}

/* The last removal of a round leaves nothing behind. */
static void finish(struct op *op)
{
	end(op->target);
	if (op->event.client == MAX_WORKERS)
		while (end(take(&queues[op->key])))
			;
}

/* Check the queues of this thread alone, one after the other. */
static void iterate(struct pass *pass)
{
	for (uint32_t i = 0; i < NR_FIXED; i++) {
		struct op op = { .event = { .kind = OP_LOOKUP }, .key = key_fixed(&lfqueue_type, i) };

		perform(&op);
		visit(pass, &lfqueue_type, op.key, op.event.found);
		finish(&op);
	}
}

static void tear_down(void)
{
	for (int i = 0; i < NR_QUEUES; i++)
		while (end(take(&queues[i])))
			;
	rcu_barrier();
}

const struct type lfqueue_type = {
	.name = "lfqueue",
	.model = MODEL_QUEUE,
	.setup = setup,
	.prepare = prepare,
	.perform = perform,
	.finish = finish,
	.iterate = iterate,
	.teardown = tear_down,
};
