/* SPDX-License-Identifier: MIT */
/* idr.c - quiesce/ds/idr.h, recorded: allocations anywhere in a group of ids, or of one id. */
#include <quiesce/ds/idr.h>

#include <errno.h>

#include "record.h"

static DEFINE_IDR(ids);

static void *stored(const struct event *e)
{
	return (void *)(uintptr_t)e->value;
}

/* Allocate the lowest free id from @first on, of @nr, by each of the calls in turn; negative if there is none. */
static int alloc(struct event *e, uint64_t first, uint32_t nr)
{
	uint32_t next = (uint32_t)first;
	int end = first + nr > INT_MAX ? 0 : (int)(first + nr), id;

	if ((e->value >> 16) % 2) {
		id = idr_alloc_u32(&ids, stored(e), &next, first + nr - 1);
		id = id ? id : (int)next;
	} else {
		id = idr_alloc(&ids, stored(e), (int)first, end);
	}
	if (id < 0)
		succeeded(id, -ENOSPC);
	return id;
}

static uint64_t lookup(uint64_t id)
{
	void *found;

	rcu_read_lock();
	found = idr_find(&ids, id);
	rcu_read_unlock();
	return (uintptr_t)found;
}

static void exchange(struct op *op)
{
	void *old = NULL;

	op->event.done = succeeded(idr_replace(&ids, stored(&op->event), op->key, &old), -ENOENT);
	op->event.found = (uintptr_t)old;
}

static void perform(struct op *op)
{
	struct event *e = &op->event;
	int id = 0;

	switch (e->kind) {
	case OP_LOOKUP: e->found = lookup(op->key); break;
	case OP_INSERT: id = alloc(e, op->key, 1); break;
	case OP_ALLOC: id = alloc(e, op->key, GROUP); break;
	case OP_REMOVE: e->found = (uintptr_t)idr_remove(&ids, op->key); break;
	}
	e->done = id >= 0;
	if (e->kind == OP_ALLOC && e->done)
		e->found = e->key + ((uint64_t)id - op->key);
	if (e->kind == OP_EXCHANGE)
		exchange(op);
}

static void iterate(struct pass *pass)
{
	void *found;
	int id;

	rcu_read_lock();
	idr_for_each_entry(&ids, found, id)
		visit(pass, &idr_type, (uint64_t)id, (uintptr_t)found);
	rcu_read_unlock();
}

static void tear_down(void)
{
	idr_destroy(&ids);
	rcu_barrier();
}

const struct type idr_type = {
	.name = "idr",
	.model = MODEL_IDS,
	.in_order = true,
	.perform = perform,
	.iterate = iterate,
	.teardown = tear_down,
};
