/* SPDX-License-Identifier: MIT */
/* hashtable_walk.c - iteration over the objects of a table, or over those with one key; and destruction of a table.
 *
 * HT1  see hashtable.c
 */
#include "hashtable.h"

#include "runtime/run.h"

/* Read the words of the first line, each as it was when the last word was loaded, or later; the last word first
 * (I2). */
static void enter(struct quiesce__table_iter *iter)
{
	/* HT1: acquire, pairs with HT1 in publish() */
	iter->seen[QUIESCE_TABLE_LAST - 1] = quiesce_load_acquire(HT1, &iter->line->word[QUIESCE_TABLE_LAST]);
	for (unsigned int i = 1; i < QUIESCE_TABLE_LAST; i++)
		/* HT1: acquire, pairs with HT1 in publish() */
		iter->seen[i - 1] = quiesce_load_consume(HT1, &iter->line->word[i]);
	iter->first = true;
	iter->index = 1;
}

/* True if the object was in the first line when that was entered: the same object in the last word, or in an
 * overflow line, has been visited there. */
static bool was_seen(const struct quiesce__table_iter *iter, uint64_t word)
{
	for (unsigned int i = 1; i < QUIESCE_TABLE_LAST && !QUIESCE_MUTANT(table_walk_twice); i++)
		if (iter->seen[i - 1] == word)
			return true;
	return false;
}

/* The next object of the bucket; NULL if there is none. */
static void *next_in_bucket(struct quiesce__table_iter *iter)
{
	while (iter->index <= HASHTABLE_SLOTS) {
		unsigned int i = iter->index++;
		/* HT1: acquire, pairs with HT1 in publish() */
		uint64_t word = iter->first ? iter->seen[i - 1] : quiesce_load_consume(HT1, &iter->line->word[i]);

		if (is_link(word)) {
			iter->line = linked(word);
			iter->first = false;
			iter->index = 1;
		} else if (is_object(word) && ((iter->first && (i < QUIESCE_TABLE_LAST || QUIESCE_MUTANT(table_walk_last))) ||
					       !was_seen(iter, word))) {
			return (void *)(uintptr_t)word;
		}
	}
	return NULL;
}

/* The next object of the bucket that belongs to the position; NULL if there is none, and the bucket has been left. */
static void *next_of_position(const struct quiesce__table *table, struct quiesce__table_iter *iter)
{
	void *object;

	if (!iter->index)
		enter(iter);
	while ((object = next_in_bucket(iter)))
		if (!iter->partly || quiesce__iter_covers(iter, hash_of(table, object)))
			return object;
	quiesce__iter_leave(iter);
	return NULL;
}

void *quiesce_hashtable_next(const struct hashtable *ht, struct hashtable_iter *it)
{
	void *object = NULL;

	while (!object && (it->iter.line || quiesce__iter_enter(&ht->table, &it->iter)))
		object = next_of_position(&ht->table, &it->iter);
	return object;
}

void *quiesce_hashtable_walk_next(struct hashtable_walk *walk)
{
	void *object = NULL;

	while (!object && (walk->walk.iter.line || quiesce__walk_step(&walk->walk)))
		object = next_of_position(walk->walk.table, &walk->walk.iter);
	return object;
}

/* Enter the bucket of @hash alone. */
static void enter_bucket(const struct hashtable *ht, struct quiesce__table_iter *iter, uint64_t hash)
{
	uint64_t header;

	iter->line = quiesce__bucket_find(quiesce__buckets_of(&ht->table), hash, &header);
	iter->end = true;
	if (iter->line)
		enter(iter);
}

bool quiesce__hashtable_holds(const struct hashtable *ht, const void *object)
{
	struct quiesce__table_iter iter;
	const void *found = NULL;

	rcu_read_lock();
	quiesce__iter_begin(&iter);
	if (!quiesce__table_is_empty(&ht->table))
		enter_bucket(ht, &iter, hash_of(&ht->table, object));
	while (iter.line && found != object && (found = next_in_bucket(&iter)))
		;
	rcu_read_unlock();
	return found == object;
}

void *quiesce_hashtable_next_match(const struct hashtable *ht, struct hashtable_iter *it, const void *key)
{
	struct quiesce__table_iter *iter = &it->iter;
	void *object;

	if (!iter->line && !iter->end && !quiesce__table_is_empty(&ht->table))
		enter_bucket(ht, iter, type_of(&ht->table)->hash(key, quiesce__seed_of(&ht->table)));
	while (iter->line && (object = next_in_bucket(iter)))
		if (type_of(&ht->table)->equal(object, key))
			return object;
	iter->line = NULL;
	return NULL;
}

/* hashtable_destroy() in progress; the program's function is called in a section. */
struct destroy_run {
	struct quiesce__run run;
	struct hashtable rest;
	void (*drop)(void *object, void *arg);
	void *arg;
};

static void drop_all(struct quiesce__run *run)
{
	struct destroy_run *e = (struct destroy_run *)run;
	struct hashtable_iter it;
	void *object;

	hashtable_for_each(object, &it, &e->rest) {
		/* A lookup by hazard pointer may still be inside, and must not take the object for one that is in
		 * the table. */
		if (!QUIESCE_MUTANT(table_end_keeps))
			take_out((uint64_t *)(uintptr_t)&it.iter.line->word[it.iter.index - 1]);
		e->drop(object, e->arg);
	}
}

static void release(struct destroy_run *e)
{
	quiesce__table_release(e->rest.table.array);
	rcu_read_unlock();
}

/* @drop has ended its thread: objects that were not dropped are leaked. */
static void drop_ended(struct quiesce__run *run)
{
	release((struct destroy_run *)run);
}

void quiesce_hashtable_destroy(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	struct destroy_run e = {
		.run = { .call = "hashtable_destroy()", .func = (uintptr_t)drop },
		.rest = { .table = { .seed = ht->table.seed, .kind = ht->table.kind, .type = ht->table.type } },
		.drop = drop,
		.arg = arg,
	};

	rcu_read_lock();
	/* Detach the array first, so that the callback of a resize does not access objects that @drop has freed. */
	e.rest.table.array = quiesce__table_detach(&ht->table);
	if (drop)
		quiesce__run(&e.run, drop_all, drop_ended);
	release(&e);
}
