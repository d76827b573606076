/* SPDX-License-Identifier: MIT */
/* hashtable.c - quiesce/ds/hashtable.h, recorded: objects that are freed after a grace period. */
#include <quiesce/ds/hashtable.h>

#include <errno.h>
#include <stdlib.h>

#include "record.h"

#define ALIVE 0x600dc0deu
#define DEAD 0xdeadc0deu

struct entry {
	struct rcu_head head;
	uint64_t key, value;
	uint32_t state;
};

HASHTABLE_TYPE(entry, struct entry, key);

static struct hashtable table;
static uint64_t table_seed;

static void set_up(uint64_t seed)
{
	table_seed = seed;
	if (hashtable_init_seeded(&table, &entry_type, seed))
		give_up("hashtable_init_seeded() failed");
}

static struct entry *make(uint64_t key, uint64_t value)
{
	struct entry *e = allocate(sizeof *e);

	e->key = key;
	e->value = value;
	e->state = ALIVE;
	return e;
}

static void bury(struct rcu_head *head)
{
	struct entry *e = (struct entry *)head;

	e->state = DEAD;
	e->value = ~0ull;
	free(e);
}

static void retire(struct entry *e)
{
	if (e)
		call_rcu(&e->head, bury);
}

/* The value of what a call returned, or 0. */
static uint64_t value_in(const struct entry *e, uint64_t key)
{
	if (!e)
		return 0;
	if (e->state != ALIVE || e->key != key)
		wrong("hashtable: a call for key %#llx returned an object of key %#llx, state %#x", (unsigned long long)key,
		      (unsigned long long)e->key, (unsigned int)e->state);
	return e->value;
}

/* Who replaces or removes an object has looked it up in the same section. */
static void prepare(struct op *op)
{
	struct event *e = &op->event;

	if (e->kind == OP_REPLACE || e->kind == OP_DISCARD) {
		rcu_read_lock();
		op->target = entry_lookup(&table, &op->key);
		e->expected = value_in(op->target, op->key);
		if (!op->target) {
			e->kind = OP_LOOKUP;
			rcu_read_unlock();
		}
	}
	if (e->kind == OP_INSERT || e->kind == OP_SET || e->kind == OP_REPLACE)
		op->fresh = make(op->key, e->value);
}

/* What a call said: 0, or @failure. */
static uint8_t succeeded(int rc, int failure)
{
	if (rc && rc != failure)
		give_up("hashtable: an operation said %d", rc);
	return !rc;
}

static void insert(struct op *op)
{
	void *existing = NULL;

	rcu_read_lock();
	op->event.done = succeeded(hashtable_insert_unique(&table, op->fresh, &existing), -EEXIST);
	op->event.found = value_in(existing, op->key);
	rcu_read_unlock();
}

static void lookup(struct op *op)
{
	rcu_read_lock();
	op->event.found = value_in(entry_lookup(&table, &op->key), op->key);
	rcu_read_unlock();
}

static void perform(struct op *op)
{
	struct event *e = &op->event;

	e->done = 1;
	switch (e->kind) {
	case OP_LOOKUP: lookup(op); break;
	case OP_INSERT: insert(op); break;
	case OP_SET: e->done = succeeded(hashtable_set(&table, op->fresh, &op->target), 0); break;
	case OP_REMOVE: op->target = hashtable_remove_key(&table, &op->key); break;
	case OP_REPLACE: e->done = succeeded(hashtable_replace(&table, op->target, op->fresh), -ENOENT); break;
	case OP_DISCARD: e->done = succeeded(hashtable_remove(&table, op->target), -ENOENT); break;
	}
	if (e->kind == OP_SET || e->kind == OP_REMOVE)
		e->found = value_in(op->target, op->key); /* ours: nobody else frees it */
}

static void finish(struct op *op)
{
	struct event *e = &op->event;

	if (e->done && e->kind != OP_LOOKUP)
		retire(op->target);
	else
		free(op->fresh); /* nobody has seen it */
	if (e->kind == OP_REPLACE || e->kind == OP_DISCARD)
		rcu_read_unlock();
}

static void iterate(struct pass *pass)
{
	struct hashtable_iter iter;
	struct entry *e;

	rcu_read_lock();
	hashtable_for_each(e, &iter, &table)
		visit(pass, &hashtable_type_objects, e->key, value_in(e, e->key));
	rcu_read_unlock();
}

static void reserve(size_t nr)
{
	if (hashtable_reserve(&table, nr))
		give_up("hashtable_reserve() failed");
}

static uint64_t resizes(void)
{
	struct hashtable_stats stats;

	hashtable_stats(&table, &stats);
	return stats.nr_resizes;
}

static uint64_t hash(uint64_t key)
{
	return entry_type.hash(&key, table_seed);
}

static void drop(void *object, void *arg)
{
	(void)arg;
	retire(object);
}

static void tear_down(void)
{
	hashtable_destroy(&table, drop, NULL);
	rcu_barrier();
}

const struct type hashtable_type_objects = {
	.name = "hashtable",
	.model = MODEL_MAP,
	.weights = { [OP_LOOKUP] = 12, [OP_INSERT] = 4, [OP_SET] = 2, [OP_REMOVE] = 4, [OP_REPLACE] = 3, [OP_DISCARD] = 2 },
	.setup = set_up,
	.prepare = prepare,
	.perform = perform,
	.finish = finish,
	.iterate = iterate,
	.reserve = reserve,
	.resizes = resizes,
	.hash = hash,
	.teardown = tear_down,
};
