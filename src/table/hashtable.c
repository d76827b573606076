/* SPDX-License-Identifier: MIT */
/* hashtable.c - updates of a table of objects.
 *
 *	a line:  | header: flags, tag 1 ... tag 7 | object 1 | ... | object 6 | object 7, or 1 + the next line |
 *
 * A word is 0 where there never was an object, and 1 where one was removed; its tag means nothing then.  A lookup reads
 * the header once and trusts it: an object that is inserted later, or replaces another one, belongs to a concurrent update,
 * and the lookup may take effect before that.
 *
 * I1. An object keeps its word as long as it is in the first line, except in the last word: from there it is copied to the
 *     line that the word will link to.  An object in an overflow line keeps its word until all overflow lines are replaced:
 *     their objects are copied to holes of the first line and to new lines, and the old lines stay unchanged.
 * I2. So a reader that loads the last word, and then the header, finds the tag of each object that is in the first line, or
 *     was in the last word; and it finds the other objects in the lines to which the word links.  In the other order it
 *     would miss an object that comes to the first line in between.
 *
 * Iteration over all objects: hashtable_walk.c.  Removal of several objects: hashtable_erase.c.
 *
 * HT1  object filled in, then inserted | found, then used
 *      a line filled in, then linked   | the last word read, then the line behind it
 *      objects copied to the first line, then the last word changed | the last word read, then the header and the other words
 * BK1  see buckets.c
 */
#include "hashtable.h"

#include <errno.h>

#include "platform/platform.h"
#include "runtime/run.h"

#define HASHTABLE_FILL 4
#define HASHTABLE_EXTRA_SHIFT 4
#define HASHTABLE_PAGES_SHIFT 2

/* ---- a bucket, under its lock ---- */

static void publish(uint64_t *word, uint64_t value)
{
	/* HT1: release, pairs with HT1 in quiesce__hashtable_try() and quiesce__table_enter() and line_behind() and next_in_bucket() */
	quiesce_store_release(HT1, word, value);
}

static void set_tag(struct quiesce__bucket *line, unsigned int i, uint64_t tag)
{
	uint64_t header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: it changes under the lock only. */
	unsigned int shift = 8 * i;

	header = (header & ~(0xffull << shift)) | tag << shift;
	/* BK1: release, pairs with BK1 in quiesce__bucket_read() and quiesce__hashtable_search() */
	quiesce_store_release(BK1, &line->word[0], header);
}

static void put(struct quiesce__bucket *line, unsigned int i, uint64_t object, uint64_t tag)
{
	publish(&line->word[i], object);
	set_tag(line, i, tag);
}

/* The index of the first free word, which is 0 or QUIESCE_TABLE_LINK; 0 if there is none.  Without a branch for each word, because none
 * could be predicted. */
QUIESCE_LOCAL unsigned int hole_in(const struct quiesce__bucket *line)
{
	unsigned int holes = 0;

	_Static_assert(HASHTABLE_SLOTS == 7, "a bit for each word");
	for (unsigned int i = 7; i; i--)
		holes = 2 * holes + (word_at(line, i) <= QUIESCE_TABLE_LINK);
	return holes ? 1 + (unsigned int)__builtin_ctz(holes) : 0;
}

static bool put_in_hole(struct quiesce__bucket *line, uint64_t object, uint64_t tag)
{
	unsigned int i = hole_in(line);

	if (i)
		put(line, i, object, tag);
	return i != 0;
}

/* Put @object in a hole of the lines behind the second, if the bucket keeps empty lines; false if there is none. */
static bool put_in_kept(const struct quiesce__buckets *array, const struct quiesce__bucket *first, uint64_t object, uint64_t tag)
{
	struct quiesce__bucket *line = (struct quiesce__bucket *)line_behind(first);

	if (!line || !quiesce__bucket_keeps_lines(array, first))
		return false;
	for (unsigned int i = 1; i < KEPT_LINES && (line = (struct quiesce__bucket *)line_behind(line)); i++)
		if (put_in_hole(line, object, tag))
			return true;
	return false;
}

/* Insert @object; false if an overflow line is needed.  Usually only the first two lines are searched for a hole, and a new
 * line becomes the second: so an insertion into a long bucket takes no longer.  If the last word is an object, that
 * object moves to the new line first. */
static bool place(struct quiesce__buckets *array, struct quiesce__bucket *line, const void *object, uint64_t hash,
		  struct quiesce__update *u)
{
	uint64_t last = word_at(line, QUIESCE_TABLE_LAST), mine = (uintptr_t)object, tag = quiesce__table_tag(hash);
	struct quiesce__bucket *more;

	if (put_in_hole(line, mine, tag) || (is_link(last) && put_in_hole(linked(last), mine, tag)) ||
	    put_in_kept(array, line, mine, tag))
		return true;
	more = quiesce__bucket_extra(array, line, u);
	if (!more)
		return false;
	if (is_link(last))
		publish(&more->word[QUIESCE_TABLE_LAST], last);
	else
		put(more, 1, last, tag_at(line, QUIESCE_TABLE_LAST));
	put(more, 2, mine, tag);
	publish(&line->word[QUIESCE_TABLE_LAST], (uintptr_t)more + QUIESCE_TABLE_LINK);
	return true;
}

static void link_line(struct quiesce__bucket *line, struct quiesce__bucket *next)
{
	publish(&line->word[QUIESCE_TABLE_LAST], next ? (uintptr_t)next + QUIESCE_TABLE_LINK : 0);
}

static void unlink_line(struct quiesce__bucket *before, const struct quiesce__bucket *line)
{
	uint64_t last = word_at(line, QUIESCE_TABLE_LAST);

	publish(&before->word[QUIESCE_TABLE_LAST], is_link(last) ? last : QUIESCE_TABLE_LINK);
}

/* The last word of @first links to the old lines until it links to @fresh, or holds the seventh object.  The tag of
 * that object is written first, because a reader that has loaded the word must find the tag in the header. */
static void rebuild(struct quiesce__bucket *first, struct quiesce__bucket *fresh)
{
	uint64_t seventh = QUIESCE_TABLE_LINK;
	struct quiesce__bucket *to = first;

	for (const struct quiesce__bucket *old = line_behind(first); old; old = line_behind(old))
		for (unsigned int i = 1; i <= HASHTABLE_SLOTS; i++) {
			uint64_t word = word_at(old, i), tag = tag_at(old, i);

			if (!is_object(word))
				continue;
			if (put_in_hole(to, word, tag))
				continue;
			to = to == first ? fresh : linked(word_at(to, QUIESCE_TABLE_LAST));
			if (to) {
				put(to, hole_in(to), word, tag);
			} else {
				if (QUIESCE_MUTANT(table_seventh_early))
					publish(&first->word[QUIESCE_TABLE_LAST], word);
				set_tag(first, QUIESCE_TABLE_LAST, tag);
				seventh = word;
			}
		}
	publish(&first->word[QUIESCE_TABLE_LAST], fresh ? (uintptr_t)fresh + QUIESCE_TABLE_LINK : seventh);
}

/* The word of @object, or of an object with @key if that is not NULL; NULL if there is none. */
static uint64_t *find(const struct quiesce__table *table, struct quiesce__bucket *line, uint64_t hash, const void *object,
		      const void *key)
{
	for (;;) {
		/* Relaxed: it changes under the lock only. */
		quiesce__table_match_t match = quiesce__table_match(quiesce_load_relaxed(&line->word[0]), hash);

		for (; match; match &= match - 1) {
			size_t i = quiesce__table_word(match);
			uint64_t word = word_at(line, i);

			if (!is_object(word))
				continue;
			if (key ? type_of(table)->equal((void *)(uintptr_t)word, key) : word == (uintptr_t)object)
				return &line->word[i];
		}
		if (!is_link(word_at(line, QUIESCE_TABLE_LAST)))
			return NULL;
		line = linked(word_at(line, QUIESCE_TABLE_LAST));
	}
}

static const struct quiesce__bucket *line_of(const uint64_t *word)
{
	return (const struct quiesce__bucket *)((uintptr_t)word & ~(sizeof(struct quiesce__bucket) - 1));
}

static void *object_at(const uint64_t *word)
{
	return (void *)(uintptr_t)quiesce_load_relaxed(word); /* Relaxed: under the lock. */
}

/* ---- moving ---- */

/* Undo a move that has failed: remove the objects that were copied, which are all before @end. */
static void undo_move(const struct quiesce__table *table, const struct quiesce__bucket *from, struct quiesce__buckets *to,
		   const void *end)
{
	for (; from && !QUIESCE_MUTANT(table_move_kept); from = line_behind(from))
		for (unsigned int i = 1; i <= HASHTABLE_SLOTS; i++) {
			uint64_t word = word_at(from, i), hash;

			if ((uintptr_t)end == word)
				return;
			if (!is_object(word))
				continue;
			hash = hash_of(table, (void *)(uintptr_t)word);
			take_out(find(table, quiesce__bucket_in(to, hash), hash, (void *)(uintptr_t)word, NULL));
		}
}

static void prefetch(const struct quiesce__bucket *line)
{
	for (unsigned int i = 1; i < HASHTABLE_SLOTS; i++)
		__builtin_prefetch((void *)(uintptr_t)word_at(line, i));
}

static bool move_line(const struct quiesce__table *table, const struct quiesce__bucket *first, const struct quiesce__bucket *from,
		      struct quiesce__buckets *to, struct quiesce__update *u)
{
	prefetch(from);
	for (unsigned int i = 1; i <= HASHTABLE_SLOTS; i++) {
		uint64_t word = word_at(from, i), hash;

		if (!is_object(word))
			continue;
		hash = hash_of(table, (void *)(uintptr_t)word);
		if (!place(to, quiesce__bucket_in(to, hash), (void *)(uintptr_t)word, hash, u)) {
			undo_move(table, first, to, (void *)(uintptr_t)word);
			return false;
		}
	}
	return true;
}

static uint64_t number_in(const struct quiesce__bucket *line)
{
	uint64_t nr = 0;

	for (unsigned int i = 1; i <= HASHTABLE_SLOTS; i++)
		nr += is_object(word_at(line, i));
	return nr;
}

const struct quiesce__buckets_kind quiesce__hashtable_kind = {
	.slots = HASHTABLE_SLOTS,
	.linked_slots = HASHTABLE_SLOTS - 1,
	.fill = HASHTABLE_FILL,
	.extra_shift = HASHTABLE_EXTRA_SHIFT,
	.pages_shift = HASHTABLE_PAGES_SHIFT,
	.move_line = move_line,
	.number_in = number_in,
	.follow = line_behind,
	.link = link_line,
	.unlink = unlink_line,
	.rebuild = rebuild,
};

/* ---- the calls ---- */

int quiesce_hashtable_init_seeded(struct hashtable *ht, const struct hashtable_type *type, uint64_t seed)
{
	quiesce__table_init(&ht->table, &quiesce__hashtable_kind, seed);
	ht->table.type = type;
	return 0;
}

int quiesce_hashtable_init(struct hashtable *ht, const struct hashtable_type *type)
{
	return quiesce_hashtable_init_seeded(ht, type, platform_random());
}

enum mode { ALWAYS, UNIQUE, SET };

/* Under the lock: an object with the key of @object stays (UNIQUE) or is replaced (SET).  -EAGAIN: an overflow line
 * is needed. */
static int insert_locked(struct hashtable *ht, struct quiesce__update *u, void *object, enum mode mode, void **ret_other)
{
	const struct quiesce__table *table = &ht->table;
	uint64_t *word = mode == ALWAYS ? NULL : find(table, u->line, u->hash, NULL, type_of(table)->key(object));

	*ret_other = word ? object_at(word) : NULL;
	if (word && mode == UNIQUE)
		return -EEXIST;
	if (word)
		publish(word, (uintptr_t)object);
	else if (!place(u->array, u->line, object, u->hash, u))
		return -EAGAIN;
	return 0;
}

/* All cases, from the state @at on. */
static __attribute__((noinline)) int insert_any(struct hashtable *ht, void *object, enum mode mode, void **ret_other,
						struct quiesce__bucket *at)
{
	struct quiesce__update u = { .nr_spare = 0 };
	void *other = NULL;
	uint64_t hash;
	int err;

	if (quiesce_unlikely(!is_object((uintptr_t)object)) ||
	    !quiesce__table_usable(&ht->table, mode == SET ? "hashtable_set()" : "hashtable_insert()"))
		return -EINVAL;
	hash = type_of(&ht->table)->hash(type_of(&ht->table)->key(object), quiesce__seed_drawn(&ht->table));
	do {
		err = quiesce__update_resume(&ht->table, &u, hash, at);
		if (err)
			break;
		at = QUIESCE_AT_BEGIN;
		err = insert_locked(ht, &u, object, mode, &other);
		quiesce__update_end(&ht->table, &u, !err && !other);
		if (err == -EAGAIN && quiesce__update_spare(&u))
			err = -ENOMEM;
	} while (err == -EAGAIN);
	quiesce__update_done(&ht->table, &u);
	if (ret_other)
		*ret_other = other;
	return err;
}

QUIESCE_LOCAL int insert(struct hashtable *ht, void *object, enum mode mode, void **ret_other)
{
	uint64_t seed = quiesce__seed_of(&ht->table), *word = NULL, hash = 0;
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN;
	const void *key = NULL;
	unsigned int i = 0;

	if (quiesce_likely(seed && is_object((uintptr_t)object) && ht->table.kind)) {
		key = type_of(&ht->table)->key(object);
		hash = type_of(&ht->table)->hash(key, seed);
		line = quiesce__update_try(&ht->table, hash);
	}
	if (!quiesce__is_locked(line))
		return insert_any(ht, object, mode, ret_other, line);
	if (mode != ALWAYS)
		word = find(&ht->table, line, hash, NULL, key);
	if (!word && quiesce_unlikely(is_link(word_at(line, QUIESCE_TABLE_LAST)) || !(i = hole_in(line))))
		return insert_any(ht, object, mode, ret_other, line);
	if (ret_other)
		*ret_other = word ? object_at(word) : NULL;
	if (!word)
		put(line, i, (uintptr_t)object, quiesce__table_tag(hash));
	else if (mode == SET)
		publish(word, (uintptr_t)object);
	if (word)
		return (int)quiesce__update_finish(&ht->table, line, 0, mode == SET ? 0 : (uint64_t)-EEXIST);
	return (int)quiesce__update_finish(&ht->table, line, 1, 0);
}

int quiesce_hashtable_insert(struct hashtable *ht, void *object)
{
	return insert(ht, object, ALWAYS, NULL);
}

int quiesce_hashtable_insert_unique(struct hashtable *ht, void *object, void **ret_existing)
{
	return insert(ht, object, UNIQUE, ret_existing);
}

int quiesce_hashtable_set(struct hashtable *ht, void *object, void **ret_old)
{
	return insert(ht, object, SET, ret_old);
}

static void remove_word(const struct quiesce__table *table, struct quiesce__update *u, uint64_t *word)
{
	const struct quiesce__bucket *line = line_of(word);

	take_out(word);
	quiesce__bucket_shorten(table, u, line);
}

/* All cases of change(), from the state @at on. */
static __attribute__((noinline)) void *change_any(struct hashtable *ht, uint64_t hash, void *object, const void *key, void *fresh,
						  struct quiesce__bucket *at)
{
	struct quiesce__update u = { .nr_spare = 0 };
	uint64_t *word;
	void *found = NULL;

	if ((at == QUIESCE_AT_BEGIN && quiesce__table_is_empty(&ht->table)) || quiesce__update_resume(&ht->table, &u, hash, at))
		return NULL;
	word = find(&ht->table, u.line, hash, object, key);
	if (word) {
		found = object_at(word);
		if (fresh)
			publish(word, (uintptr_t)fresh);
		else
			remove_word(&ht->table, &u, word);
	}
	quiesce__update_end(&ht->table, &u, found && !fresh ? -1 : 0);
	quiesce__update_done(&ht->table, &u);
	return found;
}

/* Remove @object, or an object with @key if that is not NULL; or replace it by @fresh. */
QUIESCE_LOCAL void *change(struct hashtable *ht, uint64_t hash, void *object, const void *key, void *fresh)
{
	struct quiesce__bucket *line = QUIESCE_AT_BEGIN;
	uint64_t *word;
	void *found;

	if (quiesce_likely(!quiesce__table_is_empty(&ht->table)))
		line = quiesce__update_try(&ht->table, hash);
	if (!quiesce__is_locked(line) || quiesce_unlikely(is_link(word_at(line, QUIESCE_TABLE_LAST))))
		return change_any(ht, hash, object, key, fresh, line);
	word = find(&ht->table, line, hash, object, key);
	if (!word)
		return (void *)(uintptr_t)quiesce__update_finish(&ht->table, line, 0, 0);
	found = object_at(word);
	if (fresh) {
		publish(word, (uintptr_t)fresh);
		return (void *)(uintptr_t)quiesce__update_finish(&ht->table, line, 0, (uintptr_t)found);
	}
	take_out(word);
	return (void *)(uintptr_t)quiesce__update_finish(&ht->table, line, -1, (uintptr_t)found);
}

int quiesce_hashtable_replace(struct hashtable *ht, void *old, void *fresh)
{
	uint64_t hash;

	if (!is_object((uintptr_t)fresh) || !is_object((uintptr_t)old) || !quiesce__table_usable(&ht->table, "hashtable_replace()"))
		return -EINVAL;
	hash = hash_of(&ht->table, fresh);
	if (!type_of(&ht->table)->equal(old, type_of(&ht->table)->key(fresh)))
		return -EINVAL;
	if (!change(ht, hash, old, NULL, fresh))
		return -ENOENT;
	return fresh == old ? -EINVAL : 0; /* the object is still in the table, and must not be retired */
}

int quiesce_hashtable_remove(struct hashtable *ht, void *object)
{
	if (!is_object((uintptr_t)object) || !quiesce__table_usable(&ht->table, "hashtable_remove()"))
		return -EINVAL;
	return change(ht, hash_of(&ht->table, object), object, NULL, NULL) ? 0 : -ENOENT;
}

void *quiesce_hashtable_remove_key(struct hashtable *ht, const void *key)
{
	if (!quiesce__table_usable(&ht->table, "hashtable_remove_key()"))
		return NULL;
	return change(ht, type_of(&ht->table)->hash(key, quiesce__seed_of(&ht->table)), NULL, key, NULL);
}

/* Under the lock: @fn returns the object that the table is to have with @key.  -EAGAIN: an overflow line is needed;
 * then @fn is called again. */
static int update_locked(struct hashtable *ht, struct quiesce__update *u, const void *key, void *(*fn)(void *object, void *arg), void *arg,
			 void **ret_old, int *ret_change)
{
	uint64_t *word = QUIESCE_MUTANT(table_update_blind) && u->nr_spare ? NULL : find(&ht->table, u->line, u->hash, NULL, key);
	void *old = word ? object_at(word) : NULL, *fresh = fn(old, arg);

	*ret_old = NULL;
	*ret_change = 0;
	if (fresh == old)
		return 0;
	if (fresh && (!is_object((uintptr_t)fresh) || !type_of(&ht->table)->equal(fresh, key)))
		return -EINVAL;
	if (!word && !place(u->array, u->line, fresh, u->hash, u))
		return -EAGAIN;
	if (word && fresh)
		publish(word, (uintptr_t)fresh);
	else if (word)
		remove_word(&ht->table, u, word);
	*ret_old = old;
	*ret_change = !fresh ? -1 : !old;
	return 0;
}

int quiesce_hashtable_update(struct hashtable *ht, const void *key, void *(*fn)(void *object, void *arg), void *arg, void **ret_old)
{
	struct quiesce__update u = { .nr_spare = 0 };
	void *old = NULL;
	int err, change;

	if (!quiesce__table_usable(&ht->table, "hashtable_update()"))
		return -EINVAL;
	do {
		err = quiesce__update_begin(&ht->table, &u, type_of(&ht->table)->hash(key, quiesce__seed_drawn(&ht->table)));
		if (err)
			break;
		err = update_locked(ht, &u, key, fn, arg, &old, &change);
		quiesce__update_end(&ht->table, &u, change);
		if (err == -EAGAIN && quiesce__update_spare(&u))
			err = -ENOMEM;
	} while (err == -EAGAIN);
	quiesce__update_done(&ht->table, &u);
	if (ret_old)
		*ret_old = old;
	return err;
}

#define CLEAR_AT_ONCE 64

/* Remove objects from the bucket of @u, at most CLEAR_AT_ONCE, to @ret_objects. */
static unsigned int take_some(const struct quiesce__update *u, void **ret_objects)
{
	unsigned int nr = 0;

	for (struct quiesce__bucket *line = u->line; line && nr < CLEAR_AT_ONCE; line = (struct quiesce__bucket *)line_behind(line))
		for (unsigned int i = 1; i <= HASHTABLE_SLOTS && nr < CLEAR_AT_ONCE; i++)
			if (is_object(word_at(line, i))) {
				ret_objects[nr++] = object_at(&line->word[i]);
				take_out(&line->word[i]);
			}
	return nr;
}

/* hashtable_clear() in progress; the program's function is called in a section. */
struct clear_run {
	struct quiesce__run run;
	struct hashtable *ht;
	struct quiesce__table_iter iter;
	void (*drop)(void *object, void *arg);
	void *arg;
};

/* Remove objects from the bucket of the position, and drop them; false if there are no more buckets. */
static bool clear_some(const struct clear_run *c, struct quiesce__table_iter *iter)
{
	struct hashtable *ht = c->ht;
	struct quiesce__update u = { .nr_spare = 0 };
	void *object[CLEAR_AT_ONCE];
	unsigned int nr;

	quiesce__iter_skip_unused(&ht->table, iter);
	rcu_read_lock();
	rcu_read_lock(); /* the inner section is the update's; objects are dropped after it */
	if (!quiesce__iter_lock(&ht->table, iter, &u)) {
		rcu_read_unlock();
		rcu_read_unlock();
		return false;
	}
	nr = take_some(&u, object);
	if (nr)
		quiesce__bucket_shorten_front(&ht->table, &u);
	if (nr < CLEAR_AT_ONCE)
		quiesce__iter_leave(iter);
	quiesce__update_end(&ht->table, &u, -(int)nr);
	for (unsigned int i = 0; c->drop && i < nr; i++)
		c->drop(object[i], c->arg);
	rcu_read_unlock();
	return true;
}

static void clear_all(struct quiesce__run *run)
{
	struct clear_run *c = (struct clear_run *)run;

	while (clear_some(c, &c->iter))
		;
}

/* @drop has ended its thread: end the section.  Objects that were removed and not yet dropped are leaked. */
static void clear_ended(struct quiesce__run *run)
{
	(void)run;
	rcu_read_unlock();
}

void quiesce_hashtable_clear(struct hashtable *ht, void (*drop)(void *object, void *arg), void *arg)
{
	struct clear_run c = {
		.run = { .call = "hashtable_clear()", .func = (uintptr_t)drop }, .ht = ht, .drop = drop, .arg = arg,
	};

	if (!quiesce__table_usable(&ht->table, "hashtable_clear()"))
		return;
	quiesce__iter_begin(&c.iter);
	quiesce__run(&c.run, clear_all, clear_ended);
}
