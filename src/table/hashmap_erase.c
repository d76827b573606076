/* SPDX-License-Identifier: MIT */
/* hashmap_erase.c - removal of all keys, and of those that a function chooses.
 *
 * A pass over a bucket under its lock judges each pair and removes it: no update of its key comes between.
 */
#include "hashmap.h"

/* hashmap_remove_if(), or hashmap_clear(), which has no function. */
struct choice {
	bool (*match)(uint64_t key, uint64_t value, void *arg);
	void *arg;
	size_t removed;
};

/* A bucket that several smaller ones are moving to has also pairs of other positions, which have their turn later; a clear
 * removes them, too. */
static bool matches(const struct choice *c, const struct quiesce__table *table, const struct quiesce__table_iter *iter, uint64_t key,
		    uint64_t value)
{
	return value && (!c->match || ((!iter->partly || quiesce__iter_covers(iter, hash_of(table, key))) && c->match(key, value, c->arg)));
}

/* Remove pairs from the bucket of the position of @iter; false if there are no more buckets. */
static bool clear_bucket(struct hashmap *map, struct quiesce__table_iter *iter, struct choice *c)
{
	struct quiesce__update u = { .nr_spare = 0 };
	int nr = 0;

	quiesce__iter_skip_unused(&map->table, iter);
	rcu_read_lock();
	if (!quiesce__iter_lock(&map->table, iter, &u)) {
		rcu_read_unlock();
		return false;
	}
	for (struct quiesce__bucket *line = u.line; line; line = linked(line))
		for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2)
			if (matches(c, &map->table, iter, word_at(line, i), word_at(line, i + 1))) {
				set_value(line, i, 0);
				nr++;
			}
	if (nr && c->match)
		quiesce__bucket_shorten_all(&map->table, &u);
	else if (nr)
		quiesce__bucket_shorten_front(&map->table, &u);
	c->removed += (size_t)nr;
	quiesce__iter_leave(iter);
	quiesce__update_end(&map->table, &u, -nr);
	quiesce__update_done(&map->table, &u);
	return true;
}

static size_t clear(struct hashmap *map, struct choice c)
{
	struct quiesce__table_iter iter;

	quiesce__iter_begin(&iter);
	while (clear_bucket(map, &iter, &c))
		;
	return c.removed;
}

void quiesce_hashmap_clear(struct hashmap *map)
{
	if (quiesce__table_usable(&map->table, "hashmap_clear()"))
		clear(map, (struct choice){ .match = NULL });
}

size_t quiesce_hashmap_remove_if(struct hashmap *map, bool (*match)(uint64_t key, uint64_t value, void *arg), void *arg)
{
	if (!quiesce__table_usable(&map->table, "hashmap_remove_if()"))
		return 0;
	return clear(map, (struct choice){ .match = match, .arg = arg });
}
