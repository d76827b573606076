/* SPDX-License-Identifier: MIT */
/* hashmap_walk.c - iterations over a table of 64-bit keys and values.
 *
 * HM1  see hashmap.c
 * HM2  see hashmap.c
 */
#include "hashmap.h"

#include "platform/platform.h"

/* Read a key and its value as a pair: the count shows whether the key was another one when the value was read. */
static bool read_pair(const struct quiesce__bucket *line, unsigned int i, uint64_t *ret_key, uint64_t *ret_value)
{
	for (;;) {
		/* HM1: acquire, pairs with HM1 in write_key() */
		uint64_t header = quiesce_load_acquire(HM1, &line->word[0]);

		/* HM1: acquire, pairs with HM1 in write_key() */
		*ret_key = quiesce_load_acquire(HM1, &line->word[i]);
		/* HM2: acquire, pairs with HM2 in set_value() */
		*ret_value = quiesce_load_acquire(HM2, &line->word[i + 1]);
		/* HM1: acquire, pairs with HM1 in write_key() */
		if ((quiesce_load_acquire(HM1, &line->word[0]) ^ header) <= QUIESCE_BUCKET_FLAGS)
			return *ret_value != 0;
	}
}

/* Read the pairs of the first line, each as it was when the link was loaded, or later; the link first (I3). */
static void enter(struct quiesce__table_iter *iter)
{
	/* HM2: acquire, pairs with HM2 in put_behind() and rebuild() */
	iter->seen[QUIESCE_MAP_LINK - 1] = quiesce_load_acquire(HM2, &iter->line->word[QUIESCE_MAP_LINK]);
	for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2)
		read_pair(iter->line, i, &iter->seen[i - 1], &iter->seen[i]);
	iter->first = true;
	iter->index = 1;
}

/* True if the key was in the first line when that was entered: a copy in an overflow line has been visited there. */
static bool was_seen(const struct quiesce__table_iter *iter, uint64_t key)
{
	for (unsigned int i = 1; i < QUIESCE_MAP_LINK && !QUIESCE_MUTANT(map_walk_twice); i += 2)
		if (iter->seen[i - 1] == key && iter->seen[i])
			return true;
	return false;
}

static bool next_in_line(struct quiesce__table_iter *iter, uint64_t *ret_key, uint64_t *ret_value)
{
	while (iter->index < QUIESCE_MAP_LINK) {
		unsigned int i = iter->index;

		iter->index += 2;
		if (iter->first) {
			*ret_key = iter->seen[i - 1];
			*ret_value = iter->seen[i];
			if (*ret_value)
				return true;
		} else if (read_pair(iter->line, i, ret_key, ret_value) && !was_seen(iter, *ret_key)) {
			return true;
		}
	}
	return false;
}

/* The next pair of the bucket that belongs to the position; false if there is none, and the bucket has been left. */
static bool next_of_position(const struct quiesce__table *table, struct quiesce__table_iter *iter, uint64_t *ret_key, uint64_t *ret_value)
{
	if (!iter->index)
		enter(iter);
	while (iter->line) {
		while (next_in_line(iter, ret_key, ret_value))
			if (!iter->partly || quiesce__iter_covers(iter, hash_of(table, *ret_key)))
				return true;
		iter->line = iter->first ? (const struct quiesce__bucket *)(uintptr_t)iter->seen[QUIESCE_MAP_LINK - 1]
					 : follow(iter->line);
		iter->first = false;
		iter->index = 1;
	}
	quiesce__iter_leave(iter);
	return false;
}

bool quiesce_hashmap_next(const struct hashmap *map, struct hashmap_iter *it, uint64_t *ret_key, uint64_t *ret_value)
{
	while (it->iter.line || quiesce__iter_enter(&map->table, &it->iter))
		if (next_of_position(&map->table, &it->iter, ret_key, ret_value))
			return true;
	return false;
}

bool quiesce_hashmap_walk_next(struct hashmap_walk *walk, uint64_t *ret_key, uint64_t *ret_value)
{
	while (walk->walk.iter.line || quiesce__walk_step(&walk->walk))
		if (next_of_position(walk->walk.table, &walk->walk.iter, ret_key, ret_value))
			return true;
	return false;
}
