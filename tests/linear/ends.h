/* SPDX-License-Identifier: MIT */
/* ends.h - queues and stacks, recorded: each key is one of its own.  The file that includes this defines CONTAINER, NODE and the
 * calls INIT, PUT, TAKE, IS_EMPTY and ENTRY of its container, DESTROY if it has one, the name TYPE of its description, and the NAME and the
 * MODEL in it. */
#include <stdlib.h>

#include "record.h"

struct item {
	struct rcu_head rcu;
	NODE node;
	uint64_t value;
};

static CONTAINER queues[NR_QUEUES];

static void item_free(struct rcu_head *head)
{
	free(head);
}

static void put(CONTAINER *q, struct item *it)
{
	rcu_read_lock();
	PUT(q, &it->node);
	rcu_read_unlock();
}

static struct item *take(CONTAINER *q)
{
	NODE *node;

	rcu_read_lock();
	node = TAKE(q);
	rcu_read_unlock();
	return node ? ENTRY(node, struct item, node) : NULL;
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
		INIT(&queues[i]);
}

static void prepare(struct op *op)
{
	if (op->event.kind == OP_INSERT)
		op->fresh = item_new(op->event.value);
}

static void perform(struct op *op)
{
	CONTAINER *q = &queues[op->key];
	struct event *e = &op->event;

	e->done = 1;
	if (e->kind == OP_INSERT) {
		put(q, op->fresh);
	} else if (e->kind == OP_REMOVE) {
		op->target = take(q);
	} else if (op->key < MAX_KEYS) {
		e->done = !IS_EMPTY(q);
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
		struct op op = { .event = { .kind = OP_LOOKUP }, .key = key_fixed(&TYPE, i) };

		perform(&op);
		visit(pass, &TYPE, op.key, op.event.found);
		finish(&op);
	}
}

static void tear_down(void)
{
	for (int i = 0; i < NR_QUEUES; i++) {
		while (end(take(&queues[i])))
			;
#ifdef DESTROY
		DESTROY(&queues[i]);
#endif
	}
	rcu_barrier();
}

const struct type TYPE = {
	.name = NAME,
	.model = MODEL,
	.setup = setup,
	.prepare = prepare,
	.perform = perform,
	.finish = finish,
	.iterate = iterate,
	.teardown = tear_down,
};
