/* SPDX-License-Identifier: MIT */
/* reference.c - a hash table under one mutex, which has to pass, and a form of it with a bug, which has to be detected.
 *
 * The bug: a thread that changes the size moves bucket by bucket and drops the mutex between them,
 * while other threads search the new buckets only.
 */
#include "record.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define SMALLEST 16

struct entry {
	struct entry *next;
	uint64_t key, value;
};

static struct entry **bucket;
static size_t nr_buckets, nr_entries;
static uint64_t nr_resizes;
static bool resizing, leaky;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(uint64_t key)
{
	key ^= key >> 29;
	key *= 0xbf58476d1ce4e5b9ull;
	return key ^ key >> 32;
}

static struct entry **find(uint64_t key)
{
	struct entry **p = &bucket[hash(key) & (nr_buckets - 1)];

	while (*p && (*p)->key != key)
		p = &(*p)->next;
	return p;
}

static void move(struct entry *e)
{
	while (e) {
		struct entry *next = e->next, **to = &bucket[hash(e->key) & (nr_buckets - 1)];

		e->next = *to;
		*to = e;
		e = next;
	}
}

static void resize(size_t nr)
{
	struct entry **old = bucket;
	size_t old_nr = nr_buckets;

	resizing = true;
	bucket = allocate(nr * sizeof *bucket);
	nr_buckets = nr;
	for (size_t i = 0; i < old_nr; i++) {
		move(old[i]);
		if (leaky) {
			pthread_mutex_unlock(&mutex);
			if (i % 16 == 0)
				sched_yield();
			pthread_mutex_lock(&mutex);
		}
	}
	free(old);
	nr_resizes++;
	resizing = false;
}

static void adjust(void)
{
	if (resizing)
		return;
	if (nr_entries > 2 * nr_buckets)
		resize(2 * nr_buckets);
	else if (nr_entries < nr_buckets / 4 && nr_buckets > SMALLEST)
		resize(nr_buckets / 2);
}

static void insert(uint64_t key, uint64_t value)
{
	struct entry *e = allocate(sizeof *e), **to = find(key);

	e->key = key;
	e->value = value;
	e->next = *to;
	*to = e;
	nr_entries++;
}

static void erase(struct entry **p)
{
	struct entry *e = *p;

	*p = e->next;
	free(e);
	nr_entries--;
}

/* ---- the type ---- */

static void set_up(uint64_t seed)
{
	(void)seed;
	nr_buckets = SMALLEST;
	bucket = allocate(nr_buckets * sizeof *bucket);
}

static void set_up_leaky(uint64_t seed)
{
	leaky = true;
	set_up(seed);
}

static uint64_t find_value(uint64_t key)
{
	struct entry **p = find(key);

	return *p ? (*p)->value : 0;
}

static void prepare(struct op *op)
{
	if (op->event.kind != OP_REPLACE && op->event.kind != OP_DISCARD)
		return;
	pthread_mutex_lock(&mutex);
	op->event.expected = find_value(op->key);
	pthread_mutex_unlock(&mutex);
}

static void perform_locked(struct op *op)
{
	struct event *e = &op->event;
	struct entry **p = find(op->key);
	uint64_t there = *p ? (*p)->value : 0, next = there;
	bool matching = there && there == e->expected;

	e->found = there;
	e->done = 1;
	switch (e->kind) {
	case OP_INSERT:
		e->done = !there;
		next = there ? there : e->value;
		break;
	case OP_SET: next = e->value; break;
	case OP_REMOVE: next = 0; break;
	case OP_UPDATE: next = updated(e->value, there); break;
	case OP_REPLACE:
	case OP_DISCARD:
		e->done = matching;
		e->found = 0;
		if (matching)
			next = e->kind == OP_REPLACE ? e->value : 0;
		break;
	}
	if (there && !next)
		erase(p);
	else if (there)
		(*p)->value = next;
	else if (next)
		insert(op->key, next);
	adjust();
}

static void clear(struct event *e)
{
	for (size_t i = 0; i < nr_buckets; i++)
		while (bucket[i])
			erase(&bucket[i]);
	e->done = 1;
	e->found = UNKNOWN;
}

static void erase_chosen(struct op *op)
{
	for (size_t i = 0; i < nr_buckets; i++)
		for (struct entry **p = &bucket[i]; *p;) {
			uint32_t index = is_chosen((*p)->value) ? worker_of_key((*p)->key) : NO_KEY;

			if (index == NO_KEY) {
				p = &(*p)->next;
				continue;
			}
			dropped(op, index, (*p)->value);
			erase(p);
		}
	op->event.done = 1;
}

static void perform(struct op *op)
{
	pthread_mutex_lock(&mutex);
	if (op->event.kind == OP_CLEAR)
		clear(&op->event);
	else if (op->event.kind == OP_ERASE)
		erase_chosen(op);
	else
		perform_locked(op);
	pthread_mutex_unlock(&mutex);
}

static void iterate(struct pass *pass)
{
	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < nr_buckets; i++)
		for (struct entry *e = bucket[i]; e; e = e->next)
			visit(pass, leaky ? &broken_type : &reference_type, e->key, e->value);
	pthread_mutex_unlock(&mutex);
}

static uint64_t resizes(void)
{
	uint64_t nr;

	pthread_mutex_lock(&mutex);
	nr = nr_resizes;
	pthread_mutex_unlock(&mutex);
	return nr;
}

static void tear_down(void)
{
	for (size_t i = 0; i < nr_buckets; i++)
		while (bucket[i])
			erase(&bucket[i]);
	free(bucket);
}

#define OF_ALL                                                                                           \
	.model = MODEL_MAP, .prepare = prepare, .perform = perform, .resizes = resizes, .hash = hash, .teardown = tear_down

const struct type reference_type = { .name = "reference", .erases = true, .setup = set_up, .iterate = iterate, OF_ALL };
const struct type broken_type = { .name = "broken", .setup = set_up_leaky, .iterate = iterate, OF_ALL };
const struct type reference_cleared = { .name = "reference_cleared", .clears = true, .setup = set_up, OF_ALL };
