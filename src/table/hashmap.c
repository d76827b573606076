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
 * I4. The usual update searches the keys of a bucket of one line or two before it locks the bucket, so that less is done between the
 *     locked instruction and the end.  The exchange that takes the lock fails if the header has changed since the search began: so
 *     no key has been written into the first line (I1).  Under the lock the link, and the header of the second line, are
 *     compared with those of the search.  Values are loaded under the lock.
 *
 * Iteration: hashmap_walk.c.  Removal of several keys: hashmap_erase.c.
 *
 * HM1  value removed, then another key written                     | key read, then the value
 *      key written, then count raised                              | count read, then the keys; value read, then the count again
 * HM2  count raised, then the value; a line filled in, then linked | found, then used
 * BK1  see buckets.c
 */
#include "hashmap.h"

#include <errno.h>

#include "platform/platform.h"

#define HASHMAP_FILL 2
#define HASHMAP_EXTRA_SHIFT 2
#define HASHMAP_PAGES_SHIFT 1
#define LAST_KEY (2 * QUIESCE_MAP_PAIRS - 1)
#define ONE_KEY (QUIESCE_BUCKET_FLAGS + 1)

/* ---- a bucket, under its lock ---- */

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

/* The index where a pair can be put: @i, the index_of() its key, which has no value; or an empty index, if @i is 0; 0 if there is
 * none. */
QUIESCE_LOCAL unsigned int hole_at(const struct quiesce__bucket *line, unsigned int i)
{
	return i | (empty_index(line) & -(unsigned int)(i == 0));
}

/* Put a pair at hole_at() its key; false if that is 0.  A key that is there is written again, as that takes less time than a branch. */
QUIESCE_LOCAL bool put_at(struct quiesce__bucket *line, unsigned int i, uint64_t key, uint64_t value)
{
	if (quiesce_unlikely(!i))
		return false;
	write_key(line, i, key);
	set_value(line, i, value);
	return true;
}

static bool put_in_hole(struct quiesce__bucket *line, uint64_t key, uint64_t value)
{
	return put_at(line, hole_at(line, index_of(line, key)), key, value);
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

static unsigned int pairs_in(const struct quiesce__bucket *line)
{
	return (word_at(line, 2) != 0) + (word_at(line, 4) != 0) + (word_at(line, 6) != 0);
}

static uint64_t number_in(const struct quiesce__bucket *line)
{
	return pairs_in(line);
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

/* ---- the usual update: a bucket of one line or two, whose keys are searched before it is locked (I4) ---- */

struct two_lines {
	struct quiesce__bucket *first, *second;
	unsigned int in_first, in_second; /* index_of() the key */
};

/* Return @yes if @condition, else @no; without a branch, because it could not be predicted. */
QUIESCE_LOCAL uint64_t choose(bool condition, uint64_t yes, uint64_t no)
{
	return no ^ ((yes ^ no) & -(uint64_t)condition);
}

/* The header of the first line of a bucket that is not locked, before a search. */
QUIESCE_LOCAL uint64_t header_before(const struct quiesce__bucket *line)
{
	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	return quiesce_load_acquire(BK1, &line->word[0]);
}

/* Lock the bucket after a search, if that takes no wait, and no key has been written into its first line since @header was loaded. */
QUIESCE_LOCAL bool lock_searched(struct quiesce__bucket *line, uint64_t header)
{
	if (QUIESCE_MUTANT(map_found_early))
		return quiesce__bucket_trylock(line);
	return quiesce__bucket_trylock_from(line, header);
}

/* True if the locked bucket has the second line that it had before, or none: @second is NULL. */
QUIESCE_LOCAL bool has_same_link(const struct quiesce__bucket *line, const struct quiesce__bucket *second)
{
	return quiesce_likely(linked(line) == second) || QUIESCE_MUTANT(map_link_unchecked);
}

static struct quiesce__bucket *linked_before(const struct quiesce__bucket *line)
{
	/* HM2: acquire, pairs with HM2 in put_behind() and rebuild() */
	return (struct quiesce__bucket *)(uintptr_t)quiesce_load_consume(HM2, &line->word[QUIESCE_MAP_LINK]);
}

/* Search both lines of a bucket and then lock it, in a section.  Returns the state: QUIESCE_AT_SECTION, or the bucket is locked.
 * *@ret_good: it is locked, has not changed meanwhile, and has no more lines. */
QUIESCE_LOCAL struct quiesce__bucket *lock_two(struct two_lines *t, uint64_t header, uint64_t key, bool *ret_good)
{
	struct quiesce__bucket *line = t->first;
	/* HM1: acquire, pairs with HM1 in write_key() */
	uint64_t behind = quiesce_load_acquire(HM1, &t->second->word[0]);

	t->in_first = index_of(line, key);
	t->in_second = index_of(t->second, key);
	if (!lock_searched(line, header))
		return QUIESCE_AT_SECTION;
	*ret_good = has_same_link(line, t->second) && quiesce_likely(!linked(t->second)) &&
		    quiesce_likely(word_at(t->second, 0) == behind || QUIESCE_MUTANT(map_second_unchecked));
	return line;
}

/* The key's value; 0 if there is none.  Else *@ret_line has it at *@ret_index. */
QUIESCE_LOCAL uint64_t value_in_two(const struct two_lines *t, struct quiesce__bucket **ret_line, unsigned int *ret_index)
{
	uint64_t value = value_at(t->first, t->in_first), behind = value_at(t->second, t->in_second);

	*ret_line = (struct quiesce__bucket *)(uintptr_t)choose(value != 0, (uintptr_t)t->first, (uintptr_t)t->second);
	*ret_index = (unsigned int)choose(value != 0, t->in_first, t->in_second);
	return value | behind;
}

/* Put a pair into the first of the lines that has a hole; false if none has. */
QUIESCE_LOCAL bool put_in_two(const struct two_lines *t, uint64_t key, uint64_t value)
{
	unsigned int first = hole_at(t->first, t->in_first), second = hole_at(t->second, t->in_second);
	uintptr_t line = choose(first != 0, (uintptr_t)t->first, (uintptr_t)t->second);

	return put_at((struct quiesce__bucket *)line, (unsigned int)choose(first != 0, first, second), key, value);
}

/* True if quiesce__bucket_shorten() has nothing to do after the removal of a pair from @line. */
QUIESCE_LOCAL bool stays_as_long(const struct two_lines *t, const struct quiesce__bucket *line)
{
	unsigned int first = pairs_in(t->first), left = first + pairs_in(t->second) - 1;

	first -= line == t->first;
	return left >= QUIESCE_MAP_PAIRS + (first + 1u < QUIESCE_MAP_PAIRS);
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
	return put_at(first, hole_at(first, i), key, value) || put_behind(u->array, first, key, value, u) ? 0 : -EAGAIN;
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

/* End an insertion that was made in the locked bucket, or was not, because there is @other. */
QUIESCE_LOCAL int insert_end(struct hashmap *map, struct quiesce__bucket *line, uint64_t other, bool keep, uint64_t *ret_other)
{
	if (ret_other)
		*ret_other = other;
	if (other)
		return (int)quiesce__update_finish(&map->table, line, 0, (uint64_t)(keep ? -EEXIST : 0));
	return (int)quiesce__update_finish(&map->table, line, 1, 0);
}

static __attribute__((noinline)) int insert_in_two(struct hashmap *map, uint64_t key, uint64_t value, bool keep, uint64_t *ret_other,
						   struct quiesce__bucket *line, struct quiesce__bucket *second, uint64_t header)
{
	struct two_lines two = { line, second, 0, 0 };
	struct quiesce__bucket *at;
	uint64_t other;
	unsigned int i;
	bool good = false;

	line = lock_two(&two, header, key, &good);
	if (!good)
		return insert_any(map, key, value, keep, ret_other, line);
	other = value_in_two(&two, &at, &i);
	if (!other && quiesce_unlikely(!put_in_two(&two, key, value)))
		return insert_any(map, key, value, keep, ret_other, line);
	if (other && !keep)
		set_value(at, i, value);
	return insert_end(map, line, other, keep, ret_other);
}

QUIESCE_LOCAL int insert(struct hashmap *map, uint64_t key, uint64_t value, bool keep, uint64_t *ret_other)
{
	uint64_t seed = quiesce__seed_of(&map->table), other, header;
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN, *second;
	unsigned int i;

	if (quiesce_likely(value && seed))
		line = quiesce__update_enter(&map->table, quiesce_hash_u64(key, seed));
	if (!quiesce__is_locked(line))
		return insert_any(map, key, value, keep, ret_other, line);
	header = header_before(line);
	second = linked_before(line);
	if (second)
		return insert_in_two(map, key, value, keep, ret_other, line, second, header);
	i = index_of(line, key);
	if (!lock_searched(line, header))
		return insert_any(map, key, value, keep, ret_other, QUIESCE_AT_SECTION);
	other = value_at(line, i);
	if (!has_same_link(line, NULL) || (!other && quiesce_unlikely(!put_at(line, hole_at(line, i), key, value))))
		return insert_any(map, key, value, keep, ret_other, line);
	if (other && !keep)
		set_value(line, i, value);
	return insert_end(map, line, other, keep, ret_other);
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

/* End a change of @found to @value, 0: a removal. */
QUIESCE_LOCAL uint64_t change_end(struct hashmap *map, struct quiesce__bucket *line, uint64_t found, uint64_t value)
{
	return value ? quiesce__update_finish(&map->table, line, 0, found) : quiesce__update_finish(&map->table, line, -1, found);
}

static __attribute__((noinline)) uint64_t change_in_two(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value, const char *call,
							struct quiesce__bucket *line, struct quiesce__bucket *second, uint64_t header)
{
	struct two_lines two = { line, second, 0, 0 };
	struct quiesce__bucket *at;
	uint64_t found;
	unsigned int i;
	bool good = false;

	line = lock_two(&two, header, key, &good);
	if (!good)
		return change_any(map, key, old, value, call, line);
	found = value_in_two(&two, &at, &i);
	if (!found || (old && found != old))
		return quiesce__update_finish(&map->table, line, 0, 0);
	if (!value && quiesce_unlikely(!stays_as_long(&two, at)))
		return change_any(map, key, old, value, call, line);
	set_value(at, i, value);
	return change_end(map, line, found, value);
}

QUIESCE_LOCAL uint64_t change(struct hashmap *map, uint64_t key, uint64_t old, uint64_t value, const char *call)
{
	uint64_t seed = quiesce__seed_of(&map->table), found, header;
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN, *second;
	unsigned int i;

	if (quiesce_likely(seed && !quiesce__table_is_empty(&map->table)))
		line = quiesce__update_enter(&map->table, quiesce_hash_u64(key, seed));
	if (!quiesce__is_locked(line))
		return change_any(map, key, old, value, call, line);
	header = header_before(line);
	second = linked_before(line);
	if (second)
		return change_in_two(map, key, old, value, call, line, second, header);
	i = index_of(line, key);
	if (!lock_searched(line, header))
		return change_any(map, key, old, value, call, QUIESCE_AT_SECTION);
	if (!has_same_link(line, NULL))
		return change_any(map, key, old, value, call, line);
	found = value_at(line, i);
	if (!found || (old && found != old))
		return quiesce__update_finish(&map->table, line, 0, 0);
	set_value(line, i, value);
	return change_end(map, line, found, value);
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

void quiesce_hashmap_destroy(struct hashmap *map)
{
	rcu_read_lock();
	quiesce__table_release(quiesce__table_detach(&map->table));
	rcu_read_unlock();
}
