/* SPDX-License-Identifier: MIT */
/* hashtable.c - quiesce/ds/hashtable.h, recorded: objects that are freed after a grace period, or,
 * where lookups protect them by hazard pointers, when no slot protects them. */
#include <quiesce/ds/hashtable.h>

#include <errno.h>
#include <stdlib.h>

#include "record.h"

#define ALIVE 0x600dc0deu
#define DEAD 0xdeadc0deu

struct entry {
	union {
		struct rcu_head rcu;
		struct hazptr_head hazptr;
	};
	uint64_t key;
	uint64_t value; /* an update may change it where it is */
	uint32_t state, index; /* the history's name for the key */
};

HASHTABLE_TYPE(entry, struct entry, key);

static struct hashtable table;
static uint64_t table_seed;
static bool by_hazptr;

static void set_up(uint64_t seed)
{
	table_seed = seed;
	succeeded(hashtable_init_seeded(&table, &entry_type, seed), 0);
}

static void set_up_hazptr(uint64_t seed)
{
	by_hazptr = true;
	set_up(seed);
}

static struct entry *make(const struct op *op)
{
	struct entry *e = allocate(sizeof *e);

	e->key = op->key;
	e->value = op->event.value;
	e->index = op->event.key;
	e->state = ALIVE;
	return e;
}

static void bury(struct entry *e)
{
	e->state = DEAD;
	free(e);
}

static void bury_rcu(struct rcu_head *head)
{
	bury((struct entry *)head);
}

static void bury_hazptr(struct hazptr_head *head)
{
	bury((struct entry *)head);
}

static void retire(struct entry *e)
{
	if (e && by_hazptr)
		call_hazptr(&e->hazptr, bury_hazptr);
	else if (e)
		call_rcu(&e->rcu, bury_rcu);
}

/* Return the value of an object that a call returned, or 0. */
static uint64_t value_in(const struct entry *e, uint64_t key)
{
	if (!e)
		return 0;
	if (e->state != ALIVE || e->key != key)
		wrong("hashtable: a call for key %#llx returned an object of key %#llx, state %#x", (unsigned long long)key,
		      (unsigned long long)e->key, (unsigned int)e->state);
	return quiesce_load_relaxed(&e->value); /* Relaxed: a number that is the answer. */
}

/* ---- an object that is protected until its section ends ---- */

static struct entry *find(struct op *op)
{
	if (by_hazptr) {
		op->slot = hazptr_alloc(NULL);
		op->held = hashtable_lookup_hazptr(&table, &entry_type, &op->key, op->slot, offsetof(struct entry, hazptr));
	} else {
		rcu_read_lock();
		op->held = entry_lookup(&table, &op->key);
	}
	return op->held;
}

/* End the section; some threads stay for long, and then read the object once more. */
static void let_go(struct op *op)
{
	if (op->held && op->event.call % 256 == 0) {
		for (int i = 0; i < 1000; i++)
			quiesce_cpu_relax();
		(void)value_in(op->held, op->key);
	}
	if (by_hazptr)
		hazptr_free(NULL, op->slot);
	else
		rcu_read_unlock();
}

/* ---- operations ---- */

/* A caller that replaces or removes an object finds it before, and stays in its section. */
static void prepare(struct op *op)
{
	struct event *e = &op->event;

	if (e->kind == OP_REPLACE || e->kind == OP_DISCARD) {
		op->target = find(op);
		if (!op->target) {
			let_go(op);
			e->kind = OP_LOOKUP;
		}
	}
	if (e->kind == OP_INSERT || e->kind == OP_SET || e->kind == OP_REPLACE || e->kind == OP_UPDATE)
		op->fresh = make(op);
}

/* Without a slot that protects the existing object its value cannot be loaded. */
static void insert(struct op *op)
{
	void *existing = NULL;

	rcu_read_lock();
	op->event.done = succeeded(hashtable_insert_unique(&table, op->fresh, &existing), -EEXIST);
	if (by_hazptr)
		op->event.found = existing ? UNKNOWN : 0;
	else
		op->event.found = value_in(existing, op->key);
	rcu_read_unlock();
}

static void lookup(struct op *op)
{
	op->event.found = value_in(find(op), op->key);
}

/* The update's function may leave the object and change its value: a lookup then returns a value that it had during the lookup. */
static void *ask(void *object, void *arg)
{
	struct op *op = arg;
	uint64_t value = op->event.value, next;

	op->event.found = value_in(object, op->key);
	next = updated(value, op->event.found);
	if (next == op->event.found)
		return object;
	if (!next || !object || value >> 42 & 1)
		return next ? op->fresh : NULL;
	quiesce_store_relaxed(&((struct entry *)object)->value, next); /* Relaxed: a value may be read at any time. */
	return object;
}

/* An object that was removed belongs to the caller; one that was inserted does not any more. */
static void update(struct op *op)
{
	struct event *e = &op->event;
	uint64_t next;

	e->done = succeeded(hashtable_update(&table, &op->key, ask, op, &op->target), 0);
	next = updated(e->value, e->found);
	if (op->target && value_in(op->target, op->key) != e->found)
		wrong("hashtable: an update took out another object than its function got");
	if (next == e->value && (!e->found || op->target))
		op->fresh = NULL;
}

static void drop_one(void *object, void *arg)
{
	struct entry *e = object;

	if (e->index != NO_KEY)
		dropped(arg, e->index, value_in(e, key_of_worker(e->index)));
	retire(e);
}

static bool choose(void *object, void *unused)
{
	const struct entry *e = object;

	(void)unused;
	return e->index != NO_KEY && is_chosen(value_in(e, e->key));
}

static void erase(struct op *op)
{
	size_t nr = hashtable_remove_if(&table, choose, drop_one, op);

	if (nr != op->nr_drops)
		wrong("hashtable: hashtable_remove_if() says that it removed %zu objects, and dropped %u", nr, (unsigned int)op->nr_drops);
	for (uint32_t i = 0; i < op->nr_drops; i++)
		if (!is_chosen(op->drops[i].found))
			wrong("hashtable: hashtable_remove_if() dropped an object that its function had not chosen");
}

static void drop_target(void *object, void *arg)
{
	struct op *op = arg;

	if (op->target)
		wrong("hashtable: hashtable_remove_all() dropped two objects of a key that had one");
	op->target = object;
}

/* Half of the removals are of all objects with the key. */
static void *take_out(struct op *op)
{
	if (op->event.call % 2)
		return hashtable_remove_key(&table, &op->key);
	if (hashtable_remove_all(&table, &op->key, drop_target, op) != (op->target != NULL))
		wrong("hashtable: hashtable_remove_all() reports another number of objects than it dropped");
	return op->target;
}

static void perform(struct op *op)
{
	struct event *e = &op->event;

	e->done = 1;
	switch (e->kind) {
	case OP_LOOKUP: lookup(op); break;
	case OP_INSERT: insert(op); break;
	case OP_SET: e->done = succeeded(hashtable_set(&table, op->fresh, &op->target), 0); break;
	case OP_REMOVE: op->target = take_out(op); break;
	case OP_REPLACE: e->done = succeeded(hashtable_replace(&table, op->target, op->fresh), -ENOENT); break;
	case OP_DISCARD: e->done = succeeded(hashtable_remove(&table, op->target), -ENOENT); break;
	case OP_UPDATE: update(op); break;
	case OP_CLEAR: hashtable_clear(&table, drop_one, op); break;
	case OP_ERASE: erase(op); break;
	}
	if (e->kind == OP_REPLACE || e->kind == OP_DISCARD)
		e->expected = value_in(op->target, op->key); /* the last value: the object has left the table */
	if (e->kind == OP_SET || e->kind == OP_REMOVE)
		e->found = value_in(op->target, op->key); /* the caller alone may free the object */
}

static void finish(struct op *op)
{
	struct event *e = &op->event;

	if (e->done && e->kind != OP_LOOKUP)
		retire(op->target);
	if (!e->done || e->kind == OP_LOOKUP || e->kind == OP_UPDATE)
		free(op->fresh); /* the object was never published */
	if (e->kind == OP_REPLACE || e->kind == OP_DISCARD || e->kind == OP_LOOKUP)
		let_go(op);
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
	succeeded(hashtable_reserve(&table, nr), 0);
}

static uint64_t resizes(void)
{
	struct quiesce_table_stats stats;

	hashtable_stats(&table, &stats);
	return stats.resizes;
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
	hazptr_barrier();
}

#define OF_ALL                                                                                                  \
	.model = MODEL_MAP, .prepare = prepare, .perform = perform, .finish = finish, .reserve = reserve,        \
	.resizes = resizes, .hash = hash, .teardown = tear_down

const struct type hashtable_type_objects = { .name = "hashtable", .erases = true, .setup = set_up, .iterate = iterate, OF_ALL };

/* There is no iteration, because it would not protect the objects that it reads. */
const struct type hashtable_type_hazptr = { .name = "hashtable_hazptr", .erases = true, .setup = set_up_hazptr, OF_ALL };
const struct type hashtable_cleared = { .name = "hashtable_cleared", .clears = true, .setup = set_up, OF_ALL };
const struct type hashtable_cleared_hazptr = { .name = "hashtable_cleared_hazptr", .clears = true, .setup = set_up_hazptr, OF_ALL };
