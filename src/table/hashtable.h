/* SPDX-License-Identifier: MIT */
/* hashtable.h - words of a line, shared by hashtable.c, hashtable_erase.c and hashtable_walk.c. */
#ifndef QUIESCE_DS_HASHTABLE_PRIVATE_H
#define QUIESCE_DS_HASHTABLE_PRIVATE_H

#include <quiesce/ds/hashtable.h>

#include "buckets.h"

#define HASHTABLE_SLOTS 7

static inline bool is_object(uint64_t word)
{
	return word && !(word & QUIESCE_TABLE_LINK);
}

static inline bool is_link(uint64_t word)
{
	return word & QUIESCE_TABLE_LINK && word != QUIESCE_TABLE_LINK;
}

static inline struct quiesce__bucket *linked(uint64_t word)
{
	return (struct quiesce__bucket *)(uintptr_t)(word - QUIESCE_TABLE_LINK);
}

/* A word of a line, for the holder of the bucket's lock. */
static inline uint64_t word_at(const struct quiesce__bucket *line, size_t i)
{
	return quiesce_load_relaxed(&line->word[i]); /* Relaxed: it changes under the lock only. */
}

static inline uint64_t tag_at(const struct quiesce__bucket *line, unsigned int i)
{
	return quiesce_load_relaxed(&line->word[0]) >> (8 * i) & 0xff; /* Relaxed: it changes under the lock only. */
}

static inline const struct quiesce__bucket *line_behind(const struct quiesce__bucket *line)
{
	/* HT1: acquire, pairs with HT1 in publish() */
	uint64_t word = quiesce_load_consume(HT1, &line->word[QUIESCE_TABLE_LAST]);

	return is_link(word) ? linked(word) : NULL;
}

static inline const struct hashtable_type *type_of(const struct quiesce__table *table)
{
	return table->type;
}

static inline uint64_t hash_of(const struct quiesce__table *table, const void *object)
{
	return type_of(table)->hash(type_of(table)->key(object), quiesce__seed_of(table));
}

static inline void take_out(uint64_t *word)
{
	/* Relaxed: a reader that finds no object accesses none, and the lock orders the next update of the word. */
	quiesce_store_relaxed(word, QUIESCE_MUTANT(table_out_zero) ? 0 : QUIESCE_TABLE_LINK);
}

/* hashtable_walk.c: return whether @object is in the table, beside updates of others only.  No object is accessed but @object: the
 * others may be freed by hazard pointers. */
bool quiesce__hashtable_holds(const struct hashtable *ht, const void *object);

#endif
