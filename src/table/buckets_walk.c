/* SPDX-License-Identifier: MIT */
/* buckets_walk.c - iteration over all buckets of a table while it changes.
 *
 * Buckets are visited in the order of their bit-reversed number: the two buckets that replace one when the table grows
 * stand where that one stood, and likewise when it shrinks.  A position is the bit-reversed part of a hash that selects
 * the bucket.  So a position alone says which elements have been visited, whatever the array.
 *
 * BK1, BK2, BK3  see buckets.c
 * BK5  see buckets_lines.c
 */
#include "buckets.h"

static uint64_t reverse(uint64_t x)
{
	x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
	x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
	x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
	return __builtin_bswap64(x);
}

#define POSITION_SHIFT 6 /* lower bits do not select a bucket: they would be bytes of a line */
_Static_assert(sizeof(struct quiesce__bucket) == 1 << POSITION_SHIFT, "a mask begins with the bit of a line");

static uint64_t position_of(uint64_t hash)
{
	return reverse(hash >> POSITION_SHIFT);
}

static uint64_t hash_at(uint64_t position)
{
	return reverse(position) << POSITION_SHIFT;
}

/* Set @iter to the bucket of its position, which is in @array and begins with @line.  @mask: union of the masks of
 * all arrays on the way. */
static void set_bucket(struct quiesce__table_iter *iter, const struct quiesce__buckets *array, const struct quiesce__bucket *line,
		       uint64_t mask)
{
	iter->line = line;
	iter->index = 0;
	/* In a smaller array that is being filled, visit only the elements that come from this one bucket: those of
	 * its other sources may not be there yet. */
	iter->mask = QUIESCE_MUTANT(table_walk_wide) ? array->mask : mask;
	iter->partly = array->mask != mask || position_of(hash_at(iter->position) & mask) != iter->position;
}

bool quiesce__iter_enter(const struct quiesce__table *table, struct quiesce__table_iter *iter)
{
	const struct quiesce__buckets *array;
	const struct quiesce__bucket *line;
	uint64_t hash = hash_at(iter->position), mask = 0;

	if (iter->end)
		return false;
	/* BK3: acquire, pairs with BK3 in table_switch() */
	array = quiesce_load_consume(BK3, &table->array);
	if (!array)
		return false;
	for (;;) {
		mask |= array->mask;
		line = quiesce__bucket_in(array, hash);
		/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
		if (!(quiesce_load_acquire(BK1, &line->word[0]) & QUIESCE_BUCKET_MOVED))
			break;
		array = quiesce_load_relaxed(&array->next); /* Relaxed: set before any bucket moved, which was acquired. */
	}
	set_bucket(iter, array, line, mask);
	return true;
}

/* True if no word of the first line was ever written.  (The key 0 of a hashmap leaves the header 0.) */
static bool is_unused(const struct quiesce__bucket *line)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < 8; i++)
		any |= quiesce_load_relaxed(&line->word[i]); /* Relaxed: an element that was there before the call is seen. */
	return !any;
}

/* Pass over the bucket of the position if no element was ever in it; false if there was, or there are no more buckets. */
static bool skip_unused(const struct quiesce__table *table, struct quiesce__table_iter *iter)
{
	if (!quiesce__iter_enter(table, iter) || !is_unused(iter->line))
		return false;
	quiesce__iter_leave(iter);
	return true;
}

void quiesce__iter_skip_unused(const struct quiesce__table *table, struct quiesce__table_iter *iter)
{
	uint32_t left = 0;

	while (!left) {
		rcu_read_lock();
		left = QUIESCE_WALK_BUCKETS;
		while (left && skip_unused(table, iter))
			left--;
		rcu_read_unlock();
	}
}

bool quiesce__iter_lock(const struct quiesce__table *table, struct quiesce__table_iter *iter, struct quiesce__update *u)
{
	uint64_t mask = 0;

	u->hash = hash_at(iter->position);
	/* BK3: acquire, pairs with BK3 in table_switch() */
	u->array = iter->end ? NULL : quiesce_load_consume(BK3, &table->array);
	if (!u->array)
		return false;
	for (;;) {
		mask |= u->array->mask;
		u->line = quiesce__bucket_in(u->array, u->hash);
		if (quiesce__bucket_lock(u->line))
			break;
		/* Relaxed: set before any bucket moved, which was acquired. */
		u->array = quiesce_load_relaxed(&u->array->next);
	}
	set_bucket(iter, u->array, u->line, mask);
	return true;
}

/* The bits of a mask are the upper ones of a position, so the positions of the visited bucket end here. */
static uint64_t last_position(const struct quiesce__table_iter *iter)
{
	return iter->position | ~position_of(iter->mask);
}

void quiesce__iter_leave(struct quiesce__table_iter *iter)
{
	iter->position = last_position(iter) + 1;
	iter->end = iter->position == 0;
	iter->line = NULL;
}

bool quiesce__iter_covers(const struct quiesce__table_iter *iter, uint64_t hash)
{
	uint64_t position = position_of(hash);

	return position >= iter->position && position <= last_position(iter);
}

/* ---- statistics ---- */

static void stats_of_array(const struct quiesce__table *table, const struct quiesce__buckets *array, struct quiesce_table_stats *ret)
{
	/* BK5: acquire, pairs with BK5 in take_new() */
	for (const struct quiesce__extra *more = quiesce_load_acquire(BK5, &array->more); more; more = more->next)
		ret->bytes += sizeof(*more);
	ret->bytes += quiesce__buckets_bytes(array);
	for (uint64_t i = 0; i < lines_of(array); i++) {
		const struct quiesce__bucket *line = lines_from(array) + i;
		uint64_t length = 0;

		/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
		if (quiesce_load_acquire(BK1, &line->word[0]) & QUIESCE_BUCKET_MOVED)
			continue;
		for (; line; line = table->kind->follow(line))
			length++;
		ret->full += length > 1;
		if (length > ret->longest)
			ret->longest = length;
	}
	ret->buckets = lines_of(array);
}

void quiesce__table_stats(const struct quiesce__table *table, struct quiesce_table_stats *ret)
{
	const struct quiesce__buckets *array;

	*ret = (struct quiesce_table_stats){
		.resizes = quiesce_load_relaxed(&table->resizes),   /* Relaxed: a statistic. */
		.failures = quiesce_load_relaxed(&table->failures), /* Relaxed: a statistic. */
	};
	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	array = quiesce_load_consume(BK3, &table->array);
	ret->elements = array ? quiesce__table_sum(table) : 0;
	ret->bytes = array ? sizeof(struct quiesce__counts) : 0;
	while (array) {
		stats_of_array(table, array, ret);
		/* BK2: acquire, pairs with BK2 in resize() */
		array = quiesce_load_consume(BK2, &array->next);
	}
	rcu_read_unlock();
}
