/* SPDX-License-Identifier: MIT */
/* hash_raw.c - limits: tables without any synchronisation, where only the memory counts.
 *
 * Updates are done in place, a value is taken away and given back, and nothing is freed: less than any table for
 * several threads can do.
 */
#include <quiesce/atomic.h>

#include "hash_array.h"
#include "hash_table.h"

/* ---- open addressing: pairs in one array, half of it empty at most ---- */

struct open_slot {
	uint64_t key; /* 0: empty */
	uint64_t value; /* 0: taken away */
};

struct open_table {
	struct open_slot *slot;
	uint64_t mask;
};

static void *open_create(uint64_t nr_keys)
{
	struct open_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = hash_power(2 * nr_keys) - 1;
	t->slot = hash_array_alloc((t->mask + 1) * sizeof(*t->slot));
	if (t->slot)
		return t;
	free(t);
	return NULL;
}

static void open_destroy(void *table)
{
	struct open_table *t = table;

	hash_array_free(t->slot, (t->mask + 1) * sizeof(*t->slot));
	free(t);
}

static uint64_t open_mapped(const void *table)
{
	const struct open_table *t = table;

	return hash_array_mapped((t->mask + 1) * sizeof(*t->slot));
}

/* The key's slot, or the empty one where it would be. */
static inline struct open_slot *open_find(const struct open_table *t, uint64_t key)
{
	for (uint64_t i = hash_mix(key);; i++) {
		struct open_slot *s = &t->slot[i & t->mask];
		uint64_t there = quiesce_load_relaxed(&s->key);

		if (quiesce_likely(there == key) || !there)
			return s;
	}
}

static inline uint64_t open_lookup(struct open_table *t, uint64_t key)
{
	return quiesce_load_relaxed(&open_find(t, key)->value);
}

static bool open_insert(struct open_table *t, uint64_t key, uint64_t value)
{
	struct open_slot *s = open_find(t, key);

	if (s->value)
		return false;
	s->key = key;
	quiesce_store_relaxed(&s->value, value);
	return true;
}

static bool open_remove(struct open_table *t, uint64_t key)
{
	struct open_slot *s = open_find(t, key);

	if (!s->value)
		return false;
	quiesce_store_relaxed(&s->value, 0);
	return true;
}

HASH_RUN(open, struct open_table)

static const struct hash_op open_hash = {
	.create = open_create, .destroy = open_destroy, .run = open_run, .mapped = open_mapped,
};

const struct op hash_op_raw_open_addressing = {
	.name = "raw_open_addressing",
	.what = "limit: one array of pairs, at most half full, no synchronisation",
	.hash = &open_hash,
};

/* ---- chains: a node for each pair, from the allocator ---- */

struct node {
	struct node *next;
	uint64_t key, value;
};

struct chained_table {
	struct node **head;
	uint64_t mask;
};

static void *chained_create(uint64_t nr_keys)
{
	struct chained_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = hash_power(nr_keys) - 1;
	t->head = hash_array_alloc((t->mask + 1) * sizeof(*t->head));
	if (t->head)
		return t;
	free(t);
	return NULL;
}

static void chained_destroy(void *table)
{
	struct chained_table *t = table;

	for (uint64_t i = 0; i <= t->mask; i++)
		for (struct node *n = t->head[i], *next; n; n = next) {
			next = n->next;
			free(n);
		}
	hash_array_free(t->head, (t->mask + 1) * sizeof(*t->head));
	free(t);
}

static uint64_t chained_mapped(const void *table)
{
	const struct chained_table *t = table;

	return hash_array_mapped((t->mask + 1) * sizeof(*t->head));
}

static inline struct node *chained_find(const struct chained_table *t, uint64_t key)
{
	struct node *n = t->head[hash_mix(key) & t->mask];

	while (n && quiesce_unlikely(n->key != key))
		n = n->next;
	return n;
}

static inline uint64_t chained_lookup(struct chained_table *t, uint64_t key)
{
	struct node *n = chained_find(t, key);

	return n ? quiesce_load_relaxed(&n->value) : 0;
}

static bool chained_insert(struct chained_table *t, uint64_t key, uint64_t value)
{
	struct node *n = chained_find(t, key), **head = &t->head[hash_mix(key) & t->mask];

	if (n && n->value)
		return false;
	if (!n) {
		n = malloc(sizeof(*n));
		if (!n)
			return false;
		*n = (struct node){ *head, key, value };
		*head = n; /* nobody else is there yet */
	}
	quiesce_store_relaxed(&n->value, value);
	return true;
}

static bool chained_remove(struct chained_table *t, uint64_t key)
{
	struct node *n = chained_find(t, key);

	if (!n || !n->value)
		return false;
	quiesce_store_relaxed(&n->value, 0);
	return true;
}

HASH_RUN(chained, struct chained_table)

static const struct hash_op chained_hash = {
	.create = chained_create, .destroy = chained_destroy, .run = chained_run, .mapped = chained_mapped,
};

const struct op hash_op_raw_chained = {
	.name = "raw_chained",
	.what = "limit: chains of nodes from malloc(), no synchronisation",
	.hash = &chained_hash,
};

/* ---- a table that does not find everything ---- */

static inline uint64_t busted_lookup(struct open_table *t, uint64_t key)
{
	return hash_mix(key) >> 58 ? open_lookup(t, key) : 0;
}

#define busted_insert open_insert
#define busted_remove open_remove
HASH_RUN(busted, struct open_table)

static const struct hash_op busted_hash = { .create = open_create, .destroy = open_destroy, .run = busted_run };

const struct op hash_op_busted = {
	.name = "busted",
	.what = "does not find some keys: hashscale must notice",
	.broken = true,
	.hash = &busted_hash,
};
