/* SPDX-License-Identifier: MIT */
/* hashmap.c - updates of a table of 64-bit keys and values.
 *
 *	a line:  | header: flags, keys written | key 1 | value 1 | key 2 | value 2 | key 3 | value 3 | next line |
 *
 * I1. A key is written only where the value is 0, and then the count in the header is raised, before the value is written.
 *     A lookup that has found a key, then a value, then the same count in the header as before, has a value of that key:
 *     an earlier key would have lost its value by then, and a later key would have raised the count.
 * I2. Of the words in one line that are equal to a key, only the last may have a value: it is the one that a lookup uses.
 *     (A line begins with three words 0 that are not keys.)
 * I3. A pair keeps its index in the first line.  It keeps its index in an overflow line until all overflow lines are
 *     replaced: their pairs are copied to empty indices of the first line and to new lines, and the old lines stay unchanged.
 *     So a reader that loads the link, then the first line, then the lines of the link misses no pair; and a reader that
 *     loads the first line, then no link, has missed no pair unless the count has been raised.
 *
 * HM1  value removed, then another key written                     | key read, then the value
 *      key written, then count raised                              | count read, then the keys; value read, then the count again
 * HM2  count raised, then the value; a line filled in, then linked | found, then used
 */
#include "hashmap.h"

#include <errno.h>

#include "platform/platform.h"

#define HASHMAP_FILL 2
#define HASHMAP_EXTRA_SHIFT 2
#define HASHMAP_PAGES_SHIFT 1
#define LAST_KEY (2 * QUIESCE_MAP_PAIRS - 1)
#define ONE_KEY (QUIESCE_BUCKET_FLAGS + 1)

/* A word of a line, for the holder of the bucket's lock. */
static uint64_t word_at(const struct quiesce__bucket *line, unsigned int i)
{
	return quiesce_load_relaxed(&line->word[i]); /* Relaxed: it changes under the lock only. */
}

static struct quiesce__bucket *linked(const struct quiesce__bucket *line)
{
	return (struct quiesce__bucket *)(uintptr_t)word_at(line, QUIESCE_MAP_LINK);
}

/* ---- a bucket, under its lock ---- */

static void set_value(struct quiesce__bucket *line, unsigned int i, uint64_t value)
{
	/* HM2: release, pairs with HM2 in hashmap_lookup() and quiesce__hashmap_search() and read_pair() */
	quiesce_store_release(HM2, &line->word[i + 1], value);
}

/* Write a key at an index that has no value. */
static void write_key(struct quiesce__bucket *line, unsigned int i, uint64_t key)
{
	/* HM1: release, pairs with HM1 in hashmap_lookup() and read_pair() */
	quiesce_store_release(HM1, &line->word[i], key);
	/* HM1: release, pairs with HM1 in hashmap_lookup() and read_pair() */
	quiesce_store_release(HM1, &line->word[0], word_at(line, 0) + ONE_KEY);
}

/* The index of @key in @line; 0 if the line does not have that key.  Here and below without branches, because none could be
 * predicted. */
QUIESCE_LOCAL unsigned int index_of(const struct quiesce__bucket *line, uint64_t key)
{
	unsigned int equal = (word_at(line, 1) == key) + 2 * (word_at(line, 3) == key) + 4 * (word_at(line, 5) == key);

	return 0x55553310u >> 4 * equal & 7; /* a digit for each set of equal words: the index of the last */
}

/* The value at an index; 0 if that is 0. */
QUIESCE_LOCAL uint64_t value_at(const struct quiesce__bucket *line, unsigned int i)
{
	return word_at(line, i + 1) & -(uint64_t)(i != 0);
}

/* The index of the first pair without a value; 0 if there is none. */
QUIESCE_LOCAL unsigned int empty_index(const struct quiesce__bucket *line)
{
	unsigned int empty = !word_at(line, 2) + 2 * !word_at(line, 4) + 4 * !word_at(line, 6);

	return 0x13151310u >> 4 * empty & 7; /* a digit for each set of empty pairs: the index of the first */
}

/* Put a pair at @i, the index_of() its key, which has no value; or at an empty index, if @i is 0: false if there is none.  A key that
 * is there is written again, as that takes less time than a branch. */
QUIESCE_LOCAL bool put_at(struct quiesce__bucket *line, unsigned int i, uint64_t key, uint64_t value)
{
	i |= empty_index(line) & -(unsigned int)(i == 0);
	if (quiesce_unlikely(!i))
		return false;
	write_key(line, i, key);
	set_value(line, i, value);
	return true;
}

static bool put_in_hole(struct quiesce__bucket *line, uint64_t key, uint64_t value)
{
	return put_at(line, index_of(line, key), key, value);
}

/* Put the pair at an empty index of the lines behind @second, if the bucket keeps empty lines; false if there is none. */
static bool put_in_kept(const struct quiesce__buckets *array, const struct quiesce__bucket *first, struct quiesce__bucket *second,
			uint64_t key, uint64_t value)
{
	if (!second || !quiesce__bucket_keeps_lines(array, first))
		return false;
	for (unsigned int i = 1; i < KEPT_LINES && (second = linked(second)); i++)
		if (put_in_hole(second, key, value))
			return true;
	return false;
}

/* Insert a key that has no value, and for which the first line has no room; false if an overflow line is needed.  Usually only the
 * first two lines are searched for an empty index, and a new line becomes the second: so an insertion into a long bucket takes no
 * longer. */
static __attribute__((noinline)) bool put_behind(struct quiesce__buckets *array, struct quiesce__bucket *line, uint64_t key, uint64_t value,
						 struct quiesce__update *u)
{
	struct quiesce__bucket *second = linked(line), *more;

	if ((second && put_in_hole(second, key, value)) || put_in_kept(array, line, second, key, value))
		return true;
	more = quiesce__bucket_extra(array, line, u);
	if (!more)
		return false;
	/* The key goes to the last index, because it may be 0 (I2). */
	write_key(more, QUIESCE_MUTANT(map_zero_first) ? 1 : LAST_KEY, key);
	set_value(more, QUIESCE_MUTANT(map_zero_first) ? 1 : LAST_KEY, value);
	quiesce_store_relaxed(&more->word[QUIESCE_MAP_LINK], (uintptr_t)second); /* Relaxed: HM2 */
	/* HM2: release, pairs with HM2 in hashmap_lookup() and quiesce__hashmap_search() and follow() */
	quiesce_store_release(HM2, &line->word[QUIESCE_MAP_LINK], (uintptr_t)more);
	return true;
}

/* Insert a key that has no value; false if an overflow line is needed. */
static bool put_pair(struct quiesce__buckets *array, struct quiesce__bucket *line, uint64_t key, uint64_t value,
		     struct quiesce__update *u)
{
	return put_in_hole(line, key, value) || put_behind(array, line, key, value, u);
}

static void link_line(struct quiesce__bucket *line, struct quiesce__bucket *next)
{
	quiesce_store_relaxed(&line->word[QUIESCE_MAP_LINK], (uintptr_t)next); /* Relaxed: HM2 */
}

static void unlink_line(struct quiesce__bucket *before, const struct quiesce__bucket *line)
{
	/* HM2: release, pairs with HM2 in hashmap_lookup() and quiesce__hashmap_search() and follow() */
	quiesce_store_release(HM2, &before->word[QUIESCE_MAP_LINK], (uintptr_t)linked(line));
}

static void rebuild(struct quiesce__bucket *first, struct quiesce__bucket *fresh)
{
	struct quiesce__bucket *to = first;

	for (const struct quiesce__bucket *old = linked(first); old; old = linked(old))
		for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2)
			while (word_at(old, i + 1) && !put_in_hole(to, word_at(old, i), word_at(old, i + 1)))
				to = to == first ? fresh : linked(to);
	/* HM2: release, pairs with HM2 in hashmap_lookup() and quiesce__hashmap_search() and enter() */
	quiesce_store_release(HM2, &first->word[QUIESCE_MAP_LINK], (uintptr_t)fresh);
}

static __attribute__((noinline)) struct quiesce__bucket *find_behind(struct quiesce__bucket *line, uint64_t key, unsigned int *ret_index)
{
	unsigned int i;

	while ((line = linked(line))) {
		i = index_of(line, key);
		if (value_at(line, i)) {
			*ret_index = i;
			return line;
		}
	}
	return NULL;
}

/* The line in which @key has a value, and the index there; NULL if there is none, and then the index is that of @key in the first
 * line, or 0. */
QUIESCE_LOCAL struct quiesce__bucket *find(struct quiesce__bucket *line, uint64_t key, unsigned int *ret_index)
{
	unsigned int i = *ret_index = index_of(line, key);

	if (value_at(line, i))
		return line;
	return quiesce_likely(!linked(line)) ? NULL : find_behind(line, key, ret_index);
}

/* Remove the value at an index of a line of the locked bucket. */
QUIESCE_LOCAL void take_out(const struct quiesce__table *table, struct quiesce__update *u, struct quiesce__bucket *line, unsigned int i)
{
	set_value(line, i, 0);
	if (quiesce_unlikely(linked(u->line)))
		quiesce__bucket_shorten(table, u, line);
}

/* ---- moving ---- */

/* Undo a move that has failed: remove the pairs that were copied, which are all before word @end. */
static void undo_move(const struct quiesce__table *table, const struct quiesce__bucket *from, struct quiesce__buckets *to,
		   const uint64_t *end)
{
	for (; from && !QUIESCE_MUTANT(table_move_kept); from = follow(from))
		for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2) {
			struct quiesce__bucket *first = quiesce__bucket_in(to, hash_of(table, word_at(from, i))), *line;
			unsigned int there;

			if (&from->word[i] == end)
				return;
			if (!word_at(from, i + 1))
				continue;
			line = find(first, word_at(from, i), &there);
			quiesce_store_relaxed(&line->word[there + 1], 0); /* Relaxed: no lookup searches this bucket yet. */
		}
}

static bool move_line(const struct quiesce__table *table, const struct quiesce__bucket *first, const struct quiesce__bucket *from,
		      struct quiesce__buckets *to, struct quiesce__update *u)
{
	for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2) {
		uint64_t key = word_at(from, i), value = word_at(from, i + 1);
		struct quiesce__bucket *line = quiesce__bucket_in(to, hash_of(table, key));

		if (!value)
			continue;
		if (!put_pair(to, line, key, value, u)) {
			undo_move(table, first, to, &from->word[i]);
			return false;
		}
	}
	return true;
}

static uint64_t number_in(const struct quiesce__bucket *line)
{
	uint64_t nr = 0;

	for (unsigned int i = 1; i < QUIESCE_MAP_LINK; i += 2)
		nr += word_at(line, i + 1) != 0;
	return nr;
}

const struct quiesce__buckets_kind quiesce__hashmap_kind = {
	.slots = QUIESCE_MAP_PAIRS,
	.linked_slots = QUIESCE_MAP_PAIRS,
	.fill = HASHMAP_FILL,
	.extra_shift = HASHMAP_EXTRA_SHIFT,
	.pages_shift = HASHMAP_PAGES_SHIFT,
	.move_line = move_line,
	.number_in = number_in,
	.follow = follow,
	.link = link_line,
	.unlink = unlink_line,
	.rebuild = rebuild,
};

/* ---- the calls ---- */

int quiesce_hashmap_init_seeded(struct hashmap *map, uint64_t seed)
{
	quiesce__table_init(&map->table, &quiesce__hashmap_kind, seed);
	return 0;
}

int quiesce_hashmap_init(struct hashmap *map)
{
	return quiesce_hashmap_init_seeded(map, platform_random());
}

/* ---- updates ---- */

/* Under the lock: a key that has a value keeps it (@keep), or gets @value.  -EAGAIN: an overflow line is needed. */
static int insert_locked(struct quiesce__update *u, uint64_t key, uint64_t value, bool keep, uint64_t *ret_other)
{
	unsigned int i;
	struct quiesce__bucket *first = u->line, *line = find(first, key, &i);

	if (line) {
		*ret_other = word_at(line, i + 1);
		if (keep)
			return -EEXIST;
		set_value(line, i, value);
		return 0;
	}
	*ret_other = 0;
	return put_at(first, i, key, value) || put_behind(u->array, first, key, value, u) ? 0 : -EAGAIN;
}

static __attribute__((noinline)) int insert_any(struct hashmap *map, uint64_t key, uint64_t value, bool keep, uint64_t *ret_other,
						struct quiesce__bucket *at)
{
	struct quiesce__update u = { .nr_spare = 0 };
	uint64_t other = 0;
	int err = value && quiesce__table_usable(&map->table, keep ? "hashmap_insert()" : "hashmap_set()") ? -EAGAIN : -EINVAL;

	while (err == -EAGAIN) {
		err = quiesce__update_resume(&map->table, &u, quiesce_hash_u64(key, quiesce__seed_drawn(&map->table)), at);
		if (err)
			break;
		at = QUIESCE_AT_BEGIN;
		err = insert_locked(&u, key, value, keep, &other);
		quiesce__update_end(&map->table, &u, !err && !other);
		if (err == -EAGAIN && quiesce__update_spare(&u))
			err = -ENOMEM;
	}
	quiesce__update_done(&map->table, &u);
	if (ret_other)
		*ret_other = other;
	return err;
}

QUIESCE_LOCAL int insert(struct hashmap *map, uint64_t key, uint64_t value, bool keep, uint64_t *ret_other)
{
	uint64_t seed = quiesce__seed_of(&map->table), other;
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN;
	unsigned int i;

	if (quiesce_likely(value && seed))
		line = quiesce__update_try(&map->table, quiesce_hash_u64(key, seed));
	if (!quiesce__is_locked(line))
		return insert_any(map, key, value, keep, ret_other, line);
	i = index_of(line, key);
	other = value_at(line, i);
	if (other) {
		if (!keep)
			set_value(line, i, value);
	} else if (quiesce_unlikely(linked(line) || !put_at(line, i, key, value))) {
		return insert_any(map, key, value, keep, ret_other, line);
	}
	if (ret_other)
		*ret_other = other;
	if (other)
		return (int)quiesce__update_finish(&map->table, line, 0, (uint64_t)(keep ? -EEXIST : 0));
	return (int)quiesce__update_finish(&map->table, line, 1, 0);
}

int quiesce_hashmap_insert(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_existing)
{
	return insert(map, key, value, true, ret_existing);
}

int quiesce_hashmap_set(struct hashmap *map, uint64_t key, uint64_t value, uint64_t *ret_old)
{
	return insert(map, key, value, false, ret_old);
}

/* Set the value of @key to @value (0: remove it), if it is @old (0: any), for @call.  Returns the previous value; 0 if
 * nothing was changed. */
static __attribute__((noinline)) uint64_t change_any(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value, const char *call,
						     struct quiesce__bucket *at)
{
	struct quiesce__update u = { .nr_spare = 0 };
	struct quiesce__bucket *line;
	uint64_t found = 0;
	unsigned int i;

	if (at == QUIESCE_AT_BEGIN && (!quiesce__table_usable(&map->table, call) || quiesce__table_is_empty(&map->table)))
		return 0;
	if (quiesce__update_resume(&map->table, &u, hash_of(&map->table, key), at))
		return 0;
	line = find(u.line, key, &i);
	if (line && (!old || word_at(line, i + 1) == old)) {
		found = word_at(line, i + 1);
		if (value)
			set_value(line, i, value);
		else
			take_out(&map->table, &u, line, i);
	}
	quiesce__update_end(&map->table, &u, found && !value ? -1 : 0);
	quiesce__update_done(&map->table, &u);
	return found;
}

QUIESCE_LOCAL uint64_t change(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value, const char *call)
{
	uint64_t seed = quiesce__seed_of(&map->table), found;
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN;
	unsigned int i;

	if (quiesce_likely(seed && !quiesce__table_is_empty(&map->table)))
		line = quiesce__update_try(&map->table, quiesce_hash_u64(key, seed));
	if (!quiesce__is_locked(line) || quiesce_unlikely(linked(line)))
		return change_any(map, key, old, value, call, line);
	i = index_of(line, key);
	found = value_at(line, i);
	if (!found || (old && found != old))
		return quiesce__update_finish(&map->table, line, 0, 0);
	set_value(line, i, value);
	return value ? quiesce__update_finish(&map->table, line, 0, found) : quiesce__update_finish(&map->table, line, -1, found);
}

int quiesce_hashmap_replace(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value)
{
	if (!old || !value)
		return -EINVAL;
	return change(map, key, old, value, "hashmap_replace()") ? 0 : -ENOENT;
}

uint64_t quiesce_hashmap_remove(struct hashmap *map, uint64_t key)
{
	return change(map, key, 0, 0, "hashmap_remove()");
}

int quiesce_hashmap_remove_value(struct hashmap *map, uint64_t key, uint64_t value)
{
	return value && change(map, key, value, 0, "hashmap_remove_value()") ? 0 : -ENOENT;
}

int quiesce_hashmap_update(struct hashmap *map, uint64_t key, uint64_t (*fn)(uint64_t value, void *arg), void *arg, uint64_t *ret_old)
{
	struct quiesce__update u = { .nr_spare = 0 };
	uint64_t old = 0, fresh;
	struct quiesce__bucket *line;
	unsigned int i;
	int err;

	if (!quiesce__table_usable(&map->table, "hashmap_update()"))
		return -EINVAL;
	do {
		err = quiesce__update_begin(&map->table, &u, quiesce_hash_u64(key, quiesce__seed_drawn(&map->table)));
		if (err)
			break;
		line = QUIESCE_MUTANT(table_update_blind) && u.nr_spare ? NULL : find(u.line, key, &i);
		old = line ? word_at(line, i + 1) : 0;
		fresh = fn(old, arg);
		if (line && fresh)
			set_value(line, i, fresh);
		else if (line)
			take_out(&map->table, &u, line, i);
		else if (fresh && !put_pair(u.array, u.line, key, fresh, &u))
			err = -EAGAIN;
		quiesce__update_end(&map->table, &u, err ? 0 : !!fresh - !!old);
		if (err && quiesce__update_spare(&u))
			err = -ENOMEM;
	} while (err == -EAGAIN);
	quiesce__update_done(&map->table, &u);
	if (ret_old)
		*ret_old = old;
	return err;
}

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

void quiesce_hashmap_destroy(struct hashmap *map)
{
	rcu_read_lock();
	quiesce__table_release(quiesce__table_detach(&map->table));
	rcu_read_unlock();
}
