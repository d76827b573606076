/* SPDX-License-Identifier: MIT */
/* hashmap.c - quiesce/ds/hashmap.h, recorded. */
#include <quiesce/ds/hashmap.h>

#include <errno.h>
#include <inttypes.h>

#include "record.h"

static struct hashmap map;
static uint64_t map_seed;

static void set_up(uint64_t seed)
{
	map_seed = seed;
	succeeded(hashmap_init_seeded(&map, seed), 0);
}

static uint64_t lookup(uint64_t key)
{
	uint64_t value;

	rcu_read_lock();
	value = hashmap_lookup(&map, key);
	rcu_read_unlock();
	return value;
}

static void prepare(struct op *op)
{
	if (op->event.kind != OP_REPLACE && op->event.kind != OP_DISCARD)
		return;
	op->event.expected = lookup(op->key);
	if (!op->event.expected)
		op->event.kind = OP_LOOKUP;
}

static uint64_t ask(uint64_t there, void *arg)
{
	struct event *e = arg;

	e->found = there;
	return updated(e->value, there);
}

static void update(struct op *op)
{
	uint64_t old = UNKNOWN;

	op->event.done = succeeded(hashmap_update(&map, op->key, ask, &op->event, &old), 0);
	if (old != op->event.found)
		wrong("hashmap: an update says that there was %#" PRIx64 ", and its function got %#" PRIx64, old, op->event.found);
}

static void clear(struct event *e)
{
	hashmap_clear(&map);
	e->found = UNKNOWN;
}

static bool choose(uint64_t key, uint64_t value, void *op)
{
	uint32_t index = is_chosen(value) ? worker_of_key(key) : NO_KEY;

	if (index != NO_KEY)
		dropped(op, index, value);
	return index != NO_KEY;
}

static void erase(struct op *op)
{
	size_t nr = hashmap_remove_if(&map, choose, op);

	if (nr != op->nr_drops)
		wrong("hashmap: hashmap_remove_if() says that it removed %zu keys, and its function chose %u", nr,
		      (unsigned int)op->nr_drops);
}

static void perform(struct op *op)
{
	struct event *e = &op->event;

	e->done = 1;
	switch (e->kind) {
	case OP_LOOKUP: e->found = lookup(op->key); break;
	case OP_INSERT: e->done = succeeded(hashmap_insert(&map, op->key, e->value, &e->found), -EEXIST); break;
	case OP_SET: e->done = succeeded(hashmap_set(&map, op->key, e->value, &e->found), 0); break;
	case OP_REMOVE: e->found = hashmap_remove(&map, op->key); break;
	case OP_DISCARD: e->done = succeeded(hashmap_remove_value(&map, op->key, e->expected), -ENOENT); break;
	case OP_REPLACE: e->done = succeeded(hashmap_replace(&map, op->key, e->expected, e->value), -ENOENT); break;
	case OP_UPDATE: update(op); break;
	case OP_CLEAR: clear(e); break;
	case OP_ERASE: erase(op); break;
	}
}

static void iterate(struct pass *pass)
{
	struct hashmap_iter iter;
	uint64_t key, value;

	rcu_read_lock();
	hashmap_for_each(key, value, &iter, &map)
		visit(pass, &hashmap_type, key, value);
	rcu_read_unlock();
}

static void reserve(size_t nr)
{
	succeeded(hashmap_reserve(&map, nr), 0);
}

static uint64_t resizes(void)
{
	struct quiesce_table_stats stats;

	hashmap_stats(&map, &stats);
	return stats.resizes;
}

static uint64_t hash(uint64_t key)
{
	return quiesce_hash_u64(key, map_seed);
}

static void tear_down(void)
{
	hashmap_destroy(&map);
	rcu_barrier();
}

#define OF_BOTH                                                                                                   \
	.model = MODEL_MAP, .setup = set_up, .prepare = prepare, .perform = perform, .reserve = reserve,          \
	.resizes = resizes, .hash = hash, .teardown = tear_down

const struct type hashmap_type = { .name = "hashmap", .erases = true, .iterate = iterate, OF_BOTH };
const struct type hashmap_cleared = { .name = "hashmap_cleared", .clears = true, OF_BOTH };
