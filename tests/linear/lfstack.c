/* SPDX-License-Identifier: MIT */
/* lfstack.c - quiesce/ds/lfstack.h, recorded: each key is a stack of its own. */
#include <quiesce/ds/lfstack.h>

#include <stdlib.h>

#include "record.h"

struct item {
	struct rcu_head rcu;
	struct lfs_node node;
	uint64_t value;
};

static struct lfs_stack stacks[NR_QUEUES];

static void item_free(struct rcu_head *head)
{
	free(head);
}

static void put(struct lfs_stack *s, struct item *it)
{
	rcu_read_lock();
	lfs_push(s, &it->node);
	rcu_read_unlock();
}

static struct item *take(struct lfs_stack *s)
{
	struct lfs_node *node;

	rcu_read_lock();
	node = lfs_pop(s);
	rcu_read_unlock();
	return node ? lfs_entry(node, struct item, node) : NULL;
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
		lfs_init(&stacks[i]);
}

static void prepare(struct op *op)
{
	if (op->event.kind == OP_INSERT)
		op->fresh = item_new(op->event.value);
}

static void perform(struct op *op)
{
	struct lfs_stack *s = &stacks[op->key];
	struct event *e = &op->event;

	e->done = 1;
	if (e->kind == OP_INSERT) {
		put(s, op->fresh);
	} else if (e->kind == OP_REMOVE) {
		op->target = take(s);
	} else if (op->key < MAX_KEYS) {
		e->done = !lfs_empty(s);
	} else { /* the owner checks whether it is empty */
		op->target = take(s);
		put(s, item_new(op->target ? ((struct item *)op->target)->value : 0));
	}
	e->found = op->target ? ((struct item *)op->target)->value : 0;
}

/* The last removal of a round leaves nothing behind. */
static void finish(struct op *op)
{
	end(op->target);
	if (op->event.client == MAX_WORKERS)
		while (end(take(&stacks[op->key])))
			;
}

/* Check the stacks of this thread alone, one after the other. */
static void iterate(struct pass *pass)
{
	for (uint32_t i = 0; i < NR_FIXED; i++) {
		struct op op = { .event = { .kind = OP_LOOKUP }, .key = key_fixed(&lfstack_type, i) };

		perform(&op);
		visit(pass, &lfstack_type, op.key, op.event.found);
		finish(&op);
	}
}

static void tear_down(void)
{
	for (int i = 0; i < NR_QUEUES; i++)
		while (end(take(&stacks[i])))
			;
	rcu_barrier();
}

const struct type lfstack_type = {
	.name = "lfstack",
	.model = MODEL_STACK,
	.setup = setup,
	.prepare = prepare,
	.perform = perform,
	.finish = finish,
	.iterate = iterate,
	.teardown = tear_down,
};
