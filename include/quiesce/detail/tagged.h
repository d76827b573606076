/* SPDX-License-Identifier: MIT */
/* quiesce/detail/tagged.h - search for an object in lines of tags and objects; private, for hashtable.h.
 *
 *	a line:  | header: flags, tag 1 ... tag 7 | object 1 | ... | object 6 | object 7, or 1 + the next line | */
#ifndef QUIESCE_DETAIL_TAGGED_H
#define QUIESCE_DETAIL_TAGGED_H

#include <quiesce/arch/match.h>
#include <quiesce/detail/buckets.h>
#include <quiesce/hazptr.h>

QUIESCE_BEGIN_DECLS

/* The type of a table's objects.  Should be a static const, so that lookups inline its functions. */
struct hashtable_type {
	/* Bits from 6 on select the bucket, the upper 8 are a tag in it: each must depend on all of
	 * the key. */
	uint64_t (*hash)(const void *key, uint64_t seed);
	const void *(*key)(const void *object);
	bool (*equal)(const void *object, const void *key); /* true if @key is that of @object */
};

/* A table; the caller allocates its 64 bytes. */
struct hashtable {
	struct quiesce__table table;
};

/* The upper seven bytes of a header are tags: byte i is that of word i.  A tag is never 0, but the
 * byte of a word that was never used is: so a word with an equal tag is an object, or odd.  The
 * last word may link to another line. */
#define QUIESCE_TABLE_LAST 7
/* This bit marks a link in the last word; alone, in any word, it marks a removed object. */
#define QUIESCE_TABLE_LINK 1ull

#define QUIESCE_TABLE_TAG 0x80 /* set in every tag, in no flag */

QUIESCE_FAST uint64_t quiesce__table_tag(uint64_t hash)
{
	return hash >> 56 | QUIESCE_TABLE_TAG;
}

/* The words of a line that may have an object with the tag of @hash: a bit for each, at the
 * position for quiesce__table_word().  Other objects may have the same tag: the key decides. */
typedef quiesce__match_t quiesce__table_match_t;
#define quiesce__table_match(header, hash) quiesce__match_tag((header), (hash), QUIESCE_TABLE_TAG)
#define quiesce__table_word(match) quiesce__match_index(match)

/* Search the words whose tag matches for an object with the key.  The last word was loaded before
 * the tags, as @last, which may be 0.  It must not be loaded again: it may have become a link and
 * then the same object again in between. */
QUIESCE_FAST void *quiesce__table_find_in(const struct quiesce__bucket *line, quiesce__table_match_t match, uintptr_t last,
					  const struct hashtable_type *type, const void *key)
{
	for (; match; match &= match - 1) {
		size_t i = quiesce__table_word(match);
		/* HT1: acquire, pairs with HT1 in publish() */
		uintptr_t word = i == QUIESCE_TABLE_LAST ? last : quiesce_load_consume(HT1, &line->word[i]);

		if (quiesce_likely(word && !(word & QUIESCE_TABLE_LINK)) && quiesce_likely(type->equal((void *)word, key)))
			return (void *)word;
	}
	return NULL;
}

/* Load the last word of the bucket's first line, and then the header.  At the load of the last
 * word, an object that is in the table throughout is that word itself; or in another word of the
 * line, where it stays; or in a line to which the word links, where it stays, too.  Its tag is in
 * the header if it was in the line, even if it has moved from the last word to another line, and
 * back to a hole. */
QUIESCE_FAST const struct quiesce__bucket *quiesce__table_enter(const struct quiesce__buckets *array, uint64_t hash,
								uint64_t *ret_header, uintptr_t *ret_last)
{
	const struct quiesce__bucket *line;

	do {
		line = quiesce__bucket_find(array, hash, ret_header);
		if (!line)
			return NULL;
		/* HT1: acquire, pairs with HT1 in publish() */
		*ret_last = quiesce_load_acquire(HT1, &line->word[QUIESCE_TABLE_LAST]);
		/* BK1: acquire, pairs with BK1 in set_tag() and quiesce__bucket_unlock() */
		*ret_header = quiesce_load_acquire(BK1, &line->word[0]);
	} while (quiesce_unlikely(*ret_header & QUIESCE_BUCKET_MOVED));
	return line;
}

/* Continue a lookup whose object is not the first with its tag: check all others, the overflow
 * lines, and the next array. */
QUIESCE_SLOW void *quiesce__hashtable_search(const struct quiesce__buckets *array, uint64_t hash,
					     const struct hashtable_type *type, const void *key)
{
	const struct quiesce__bucket *line;
	uint64_t header;
	uintptr_t last;
	void *object;

	line = quiesce__table_enter(array, hash, &header, &last);
	if (!line)
		return NULL;
	object = quiesce__table_find_in(line, quiesce__table_match(header, hash), last, type, key);
	while (!object && last & QUIESCE_TABLE_LINK && last != QUIESCE_TABLE_LINK) {
		line = (const struct quiesce__bucket *)(last - QUIESCE_TABLE_LINK);
		/* HT1: acquire, pairs with HT1 in publish() */
		last = quiesce_load_acquire(HT1, &line->word[QUIESCE_TABLE_LAST]);
		/* BK1: acquire, pairs with BK1 in set_tag() */
		header = quiesce_load_acquire(BK1, &line->word[0]);
		object = quiesce__table_find_in(line, quiesce__table_match(header, hash), last, type, key);
	}
	return object;
}

/* State of a lookup.  The usual case is inline; rare cases continue in a function of their own, and
 * do not return: a call or a loop in the inline part makes all lookups slower by a third. */
struct quiesce__hashtable_lookup_state {
	const struct quiesce__buckets *array;
	uint64_t hash;
	void *object;
};

/* The usual case of a lookup; false if the first object with the tag has another key, an overflow
 * line has to be searched, or the bucket has moved. */
QUIESCE_FAST bool quiesce__hashtable_try(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
					 struct quiesce__hashtable_lookup_state *lookup)
{
	uint64_t hash = lookup->hash = type->hash(key, quiesce__seed_of(&ht->table)), header;
	const struct quiesce__bucket *line;
	quiesce__table_match_t match;
	uintptr_t word;

	lookup->array = quiesce__buckets_of(&ht->table);
	if (quiesce_unlikely(!lookup->array))
		return false;
	line = quiesce__bucket_read(lookup->array, hash, &header);
	if (quiesce_unlikely(header & QUIESCE_BUCKET_MOVED))
		return false;
	match = quiesce__table_match(header, hash);
	if (quiesce_likely(match)) {
		/* HT1: acquire, pairs with HT1 in publish() */
		word = quiesce_load_consume(HT1, &line->word[quiesce__table_word(match)]);
		if (!word)
			__builtin_unreachable(); /* a word with a tag is not 0 */
		lookup->object = (void *)word;
		return quiesce_likely(!(word & QUIESCE_TABLE_LINK)) && quiesce_likely(type->equal((void *)word, key));
	}
	lookup->object = NULL;
	/* HT1: acquire, pairs with HT1 in publish() */
	word = quiesce_load_acquire(HT1, &line->word[QUIESCE_TABLE_LAST]);
	/* If an object had moved from an overflow line to a hole of this line in between, the
	 * header would differ. */
	/* BK1: acquire, pairs with BK1 in set_tag() and quiesce__bucket_unlock() */
	return quiesce_likely(!(word & QUIESCE_TABLE_LINK)) &&
	       quiesce_likely((quiesce_load_acquire(BK1, &line->word[0]) ^ header) <= QUIESCE_BUCKET_LOCKED);
}

/* Protect the object in @place by @slot, if it is one; true if it was in the table when the
 * protection was visible.  @first and @last belong to its bucket; lines that the last word no
 * longer links to, and buckets that have moved, keep their words. */
QUIESCE_FAST bool quiesce__table_protect(const struct quiesce__bucket *first, uintptr_t last, const uint64_t *place, hazptr_t *slot,
					 size_t offset, uintptr_t *ret_word)
{
	/* HT1: acquire, pairs with HT1 in publish() */
	uintptr_t word = *ret_word = quiesce_load_consume(HT1, place);

	if (word & QUIESCE_TABLE_LINK) /* the object of the last word is in another line */
		return place != &first->word[QUIESCE_TABLE_LAST] || word == last;
	quiesce__hazptr_set(slot, word + offset);
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* HT1: acquire, pairs with HT1 in publish() */
	if (quiesce_load_acquire(HT1, place) != word)
		return false;
	/* HT1: acquire, pairs with HT1 in publish() */
	if (quiesce_load_acquire(HT1, &first->word[QUIESCE_TABLE_LAST]) != last)
		return false;
	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	return !(quiesce_load_acquire(BK1, &first->word[0]) & QUIESCE_BUCKET_MOVED);
}

/* Search the bucket that begins with @first for the key; false: the bucket has changed, begin
 * again. */
QUIESCE_PLAIN bool quiesce__table_search_hazptr(const struct quiesce__bucket *first, uint64_t header, uintptr_t last, uint64_t hash,
						const struct hashtable_type *type, const void *key, hazptr_t *slot, size_t offset,
						void **ret_object)
{
	const struct quiesce__bucket *line = first;
	uintptr_t next = last, word;

	*ret_object = NULL;
	for (;;) {
		for (quiesce__table_match_t match = quiesce__table_match(header, hash); match; match &= match - 1) {
			if (!quiesce__table_protect(first, last, &line->word[quiesce__table_word(match)], slot, offset, &word))
				return false;
			if (!(word & QUIESCE_TABLE_LINK) && type->equal((void *)word, key)) {
				*ret_object = (void *)word;
				return true;
			}
		}
		if (!(next & QUIESCE_TABLE_LINK) || next == QUIESCE_TABLE_LINK)
			return true;
		line = (const struct quiesce__bucket *)(next - QUIESCE_TABLE_LINK);
		/* BK1: acquire, pairs with BK1 in set_tag() */
		header = quiesce_load_acquire(BK1, &line->word[0]);
		/* HT1: acquire, pairs with HT1 in publish() */
		next = quiesce_load_consume(HT1, &line->word[QUIESCE_TABLE_LAST]);
	}
}

/* Search as quiesce__hashtable_search() does, and protect the object by @slot, which is cleared if
 * there is no object with the key. */
QUIESCE_SLOW void *quiesce__hashtable_search_hazptr(const struct hashtable *ht,
						    const struct hashtable_type *type,
						    const void *key, hazptr_t *slot, size_t offset)
{
	uint64_t hash = type->hash(key, quiesce__seed_of(&ht->table)), header;
	const struct quiesce__bucket *first;
	void *object = NULL;
	uintptr_t last;

	rcu_read_lock();
	do
		first = quiesce__table_enter(quiesce__buckets_of(&ht->table), hash, &header, &last);
	while (first && !quiesce__table_search_hazptr(first, header, last, hash, type, key, slot, offset, &object));
	if (!object)
		hazptr_clear(slot);
	rcu_read_unlock();
	return object;
}

/* The usual case of a lookup, as quiesce__hashtable_try(); true if @slot protects the object. */
QUIESCE_FAST bool quiesce__hashtable_try_hazptr(const struct hashtable *ht, const struct hashtable_type *type, const void *key,
						hazptr_t *slot, size_t offset, void **ret_object)
{
	uint64_t hash = type->hash(key, quiesce__seed_of(&ht->table)), header;
	const struct quiesce__buckets *array = quiesce__buckets_of(&ht->table);
	const struct quiesce__bucket *line;
	quiesce__table_match_t match;
	const uint64_t *place;
	uintptr_t word;

	if (quiesce_unlikely(!array))
		return false;
	line = quiesce__bucket_read(array, hash, &header);
	match = quiesce__table_match(header, hash);
	if (quiesce_unlikely(!match))
		return false;
	place = &line->word[quiesce__table_word(match)];
	/* HT1: acquire, pairs with HT1 in publish() */
	word = quiesce_load_consume(HT1, place);
	if (quiesce_unlikely(word & QUIESCE_TABLE_LINK))
		return false;
	quiesce__hazptr_set(slot, word + offset);
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* HT1: acquire, pairs with HT1 in publish() */
	if (quiesce_unlikely(quiesce_load_consume(HT1, place) != word))
		return false;
	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	if (quiesce_unlikely(quiesce_load_acquire(BK1, &line->word[0]) & QUIESCE_BUCKET_MOVED))
		return false;
	*ret_object = (void *)word;
	return quiesce_likely(type->equal((void *)word, key));
}

/* The functions that HASHTABLE_TYPE() and its variants define: those of the type, and its calls. */

/* Only a small key is passed in registers. */
#define QUIESCE__IS_SMALL(field) (sizeof(field) <= 16)
#define QUIESCE__COPY(field)                                                                                               \
	char copy[QUIESCE__IS_SMALL(field) ? sizeof(field) : 1] __attribute__((__aligned__(__alignof__(field))));          \
	memcpy(copy, key, sizeof(copy))

#define QUIESCE__HASHTABLE_TYPE(name, T, field, K, HASH, EQUAL, KEY, COPY, COPIED)                                                \
	QUIESCE_LOCAL uint64_t name##_hash(const void *key, uint64_t seed) { return HASH; }                                \
	QUIESCE_LOCAL bool name##_equal(const void *object, const void *key) { return EQUAL; }                             \
	static inline __attribute__((__unused__)) const void *name##_key(const void *object) { return KEY; }              \
	static const struct hashtable_type name##_type __attribute__((__unused__)) = { name##_hash, name##_key, name##_equal }; \
	QUIESCE_LOCAL T *name##_lookup(const struct hashtable *ht, K key)                                                  \
	{                                                                                                                  \
		struct quiesce__hashtable_lookup_state lookup;                                                                         \
		QUIESCE_IN_SECTION(#name "_lookup()");                                                                             \
		if (quiesce_likely(quiesce__hashtable_try(ht, &name##_type, key, &lookup)))                                   \
			return QUIESCE_CAST(T *, lookup.object); \
		COPY; /* lets the key itself stay in a register */                                                         \
		return QUIESCE_CAST(T *, quiesce__hashtable_search(lookup.array, lookup.hash, &name##_type, COPIED)); \
	}                                                                                                                  \
	static inline __attribute__((__unused__)) int name##_insert(struct hashtable *ht, T *object)                       \
	{                                                                                                                  \
		return QUIESCE__HASHTABLE_INSERT(ht, object);                                                               \
	}                                                                                                                  \
	static inline __attribute__((__unused__)) int name##_insert_unique(struct hashtable *ht, T *object, T **ret_existing)  \
	{                                                                                                                  \
		void *existing = NULL;                                                                                     \
		int err = quiesce_hashtable_insert_unique(ht, object, &existing);                                          \
		if (ret_existing)                                                                                          \
			*ret_existing = QUIESCE_CAST(T *, existing);                                                                     \
		return err;                                                                                                \
	}                                                                                                                  \
	static inline __attribute__((__unused__)) int name##_set(struct hashtable *ht, T *object, T **ret_old)             \
	{                                                                                                                  \
		void *old = NULL;                                                                                          \
		int err = quiesce_hashtable_set(ht, object, &old);                                                         \
		if (ret_old)                                                                                               \
			*ret_old = QUIESCE_CAST(T *, old);                                                                               \
		return err;                                                                                                \
	}                                                                                                                  \
	static inline __attribute__((__unused__)) int name##_remove(struct hashtable *ht, T *object)                       \
	{                                                                                                                  \
		return quiesce_hashtable_remove(ht, object);                                                               \
	}                                                                                                                  \
	static inline __attribute__((__unused__)) T *name##_remove_key(struct hashtable *ht, K key)                        \
	{                                                                                                                  \
		return QUIESCE_CAST(T *, quiesce_hashtable_remove_key(ht, key));                                                         \
	}                                                                                                                  \
	struct quiesce__swallow_semicolon

QUIESCE_END_DECLS

#endif
