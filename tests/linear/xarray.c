/* SPDX-License-Identifier: MIT */
/* xarray.c - quiesce/ds/xarray.h, recorded: as a map whose keys are indices, found by loads and by searches. */
#include <quiesce/ds/xarray.h>

#include <errno.h>

#include "record.h"

static DEFINE_XARRAY(entries);

static void *stored(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

/* Look up a key by a load, now and then by a search. */
static uint64_t lookup(uint64_t key, uint64_t turn)
{
	unsigned long index = key;
	void *found;

	rcu_read_lock();
	switch (turn % 8) {
	case 0: found = xa_find(&entries, &index, key, XA_PRESENT); break;
	case 1: found = xa_find_reverse(&entries, &index, key, XA_PRESENT); break;
	case 2: found = xa_extract(&entries, &found, key, key, 1, XA_PRESENT) ? found : NULL; break;
	default: found = xa_load(&entries, key);
	}
	rcu_read_unlock();
	return (uintptr_t)found;
}

static void prepare(struct op *op)
{
	if (op->event.kind == OP_UPDATE) /* an xarray has no such call; insertions and removals change the tree more */
		op->event.kind = op->event.value >> 41 & 1 ? OP_INSERT : OP_REMOVE;
	if (op->event.kind != OP_REPLACE && op->event.kind != OP_DISCARD)
		return;
	op->event.expected = lookup(op->key, 7);
	if (!op->event.expected)
		op->event.kind = OP_LOOKUP;
}

/* By each of the calls in turn; the first does not say what is there. */
static void insert(struct op *op)
{
	struct event *e = &op->event;
	void *there = NULL;

	if (e->value >> 40 & 1) {
		e->done = succeeded(xa_insert(&entries, op->key, stored(e->value)), -EBUSY);
		e->found = e->done ? 0 : UNKNOWN;
	} else {
		e->done = succeeded(xa_cmpxchg(&entries, op->key, NULL, stored(e->value), &there), -EBUSY);
		e->found = (uintptr_t)there;
	}
}

static void set(struct op *op)
{
	void *old = NULL;

	succeeded(xa_store(&entries, op->key, stored(op->event.value), &old), 0);
	op->event.found = (uintptr_t)old;
}

static void perform(struct op *op)
{
	struct event *e = &op->event;
	void *entry = e->kind == OP_REPLACE ? stored(e->value) : NULL;

	e->done = 1;
	switch (e->kind) {
	case OP_LOOKUP: e->found = lookup(op->key, e->value >> 40); break;
	case OP_INSERT: insert(op); break;
	case OP_SET: set(op); break;
	case OP_REMOVE: e->found = (uintptr_t)xa_erase(&entries, op->key); break;
	case OP_REPLACE: case OP_DISCARD:
		e->done = succeeded(xa_cmpxchg(&entries, op->key, stored(e->expected), entry, NULL), -EBUSY);
		break;
	}
}

/* Marks are no part of the history, but an entry that stays has its mark all the time. */
static void finish(struct op *op)
{
	if (op->event.kind == OP_INSERT && op->event.done)
		xa_set_mark(&entries, op->key, XA_MARK_0);
}

/* Iterate upwards, downwards, and by the mark. */
static void iterate(struct pass *pass)
{
	static unsigned int turn; /* used by one thread */
	unsigned long index;
	void *entry;

	turn++;
	pass->down = turn % 3 == 1;
	rcu_read_lock();
	if (pass->down)
		xa_for_each_reverse(&entries, index, entry)
			visit(pass, &xarray_type, index, (uintptr_t)entry);
	else
		xa_for_each_marked(&entries, index, entry, turn % 3 ? XA_PRESENT : XA_MARK_0)
			visit(pass, &xarray_type, index, (uintptr_t)entry);
	rcu_read_unlock();
}

static void tear_down(void)
{
	xa_destroy(&entries);
	rcu_barrier();
}

const struct type xarray_type = {
	.name = "xarray",
	.model = MODEL_MAP,
	.in_order = true,
	.prepare = prepare,
	.perform = perform,
	.finish = finish,
	.iterate = iterate,
	.teardown = tear_down,
};
