/* SPDX-License-Identifier: MIT */
/* hash_raw.c - limits: tables without any synchronisation, where only the memory counts.
 *
 * Updates are made in place: a value is cleared and set again, and nothing is freed.  That is less than any table for
 * several threads can do.
 */
#include <quiesce/atomic.h>

#include "types/hash_array.h"
#include "types/hash.h"
#include "registry.h"

/* ---- open addressing: pairs in cache lines of four, half of them empty at least ---- */

#define LINE_SLOTS 4

struct open_slot {
	uint64_t key;   /* 0: this entry and those after it in the line are empty */
	uint64_t value; /* 0: removed */
};

struct open_line {
	struct open_slot slot[LINE_SLOTS];
};

struct open_table {
	struct open_line *line;
	uint64_t mask;
};

static void *open_create(uint64_t nr_keys)
{
	struct open_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = hash_power(2 * nr_keys < LINE_SLOTS ? 1 : (2 * nr_keys + LINE_SLOTS - 1) / LINE_SLOTS) - 1;
	t->line = hash_array_alloc((t->mask + 1) * sizeof(*t->line));
	if (t->line)
		return t;
	free(t);
	return NULL;
}

static void open_destroy(void *table)
{
	struct open_table *t = table;

	hash_array_free(t->line, (t->mask + 1) * sizeof(*t->line));
	free(t);
}

static uint64_t open_mapped(const void *table)
{
	const struct open_table *t = table;

	return hash_array_mapped((t->mask + 1) * sizeof(*t->line));
}

/* Selects among the keys of a line without a branch, which no CPU could predict.  NULL: the key is not there. */
static inline struct open_slot *open_find(const struct open_table *t, uint64_t key)
{
	for (uint64_t i = hash_mix(key);; i++) {
		struct open_line *l = &t->line[i & t->mask];
		uint64_t is1 = quiesce_load_relaxed(&l->slot[1].key) == key, is2 = quiesce_load_relaxed(&l->slot[2].key) == key;
		uint64_t is3 = quiesce_load_relaxed(&l->slot[3].key) == key, at = (is1 | is3) + ((is2 | is3) << 1);

		if (quiesce_likely(quiesce_load_relaxed(&l->slot[at].key) == key))
			return &l->slot[at];
		if (!l->slot[LINE_SLOTS - 1].key)
			return NULL;
	}
}

HASH_LOOKUP open_lookup(struct open_table *t, uint64_t key)
{
	struct open_slot *s = open_find(t, key);

	return quiesce_likely(s != NULL) ? quiesce_load_relaxed(&s->value) : 0;
}

static struct open_slot *open_empty(const struct open_table *t, uint64_t key)
{
	for (uint64_t i = hash_mix(key);; i++) {
		struct open_line *l = &t->line[i & t->mask];

		for (unsigned int at = 0; at < LINE_SLOTS; at++)
			if (!l->slot[at].key)
				return &l->slot[at];
	}
}

static bool open_insert(struct open_table *t, uint64_t key, uint64_t value)
{
	struct open_slot *s = open_find(t, key);

	if (s && s->value)
		return false;
	if (!s) {
		s = open_empty(t, key); /* the table is filled by one thread, before others use it */
		s->key = key;
	}
	quiesce_store_relaxed(&s->value, value);
	return true;
}

static bool open_remove(struct open_table *t, uint64_t key)
{
	struct open_slot *s = open_find(t, key);

	if (!s || !s->value)
		return false;
	quiesce_store_relaxed(&s->value, 0);
	return true;
}

HASH_RUN(open, struct open_table)

TYPE(raw_open_addressing, .rank = 100, .groups = RUN_TABLE,
	.what = "limit: pairs in cache lines of four, at most half full, no synchronisation",
	.hash = &(const struct hash_op){ .create = open_create, .destroy = open_destroy, .run = open_run, .mapped = open_mapped });

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

HASH_LOOKUP chained_lookup(struct chained_table *t, uint64_t key)
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
		*head = n; /* the table is filled by one thread, before others use it */
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

TYPE(raw_chained, .rank = 110,
	.what = "limit: chains of nodes from malloc(), no synchronisation",
	.hash = &chained_hash);

/* ---- a table that misses some keys ---- */

HASH_LOOKUP busted_lookup(struct open_table *t, uint64_t key)
{
	return hash_mix(key) >> 58 ? open_lookup(t, key) : 0;
}

#define busted_insert open_insert
#define busted_remove open_remove
HASH_RUN(busted, struct open_table)

TYPE(busted, .rank = 120,
	.what = "does not find some keys: hashscale must notice",
	.broken = true, .hash = &(const struct hash_op){ .create = open_create, .destroy = open_destroy, .run = busted_run });
