/* SPDX-License-Identifier: MIT */
/* quiesce/detail/tagged.h - how an object is found in lines of tags and objects; private, for hashtable.h.
 *
 *	a line:  | header: flags, tag 1 ... tag 7 | object 1 | ... | object 6 | object 7, or 1 + the next line |
 */
#ifndef QUIESCE_DETAIL_TAGGED_H
#define QUIESCE_DETAIL_TAGGED_H

#include <quiesce/arch/match.h>
#include <quiesce/detail/buckets.h>
#include <quiesce/hazptr.h>

QUIESCE_BEGIN_DECLS

/* What a table's objects are.  Best a static const: then lookups have the functions inlined. */
struct hashtable_type {
	/* The bits from 6 on choose the bucket, the upper 8 are a tag in it: each is to depend on all of the key. */
	uint64_t (*hash)(const void *key, uint64_t seed);
	const void *(*key)(const void *object);
	bool (*equal)(const void *object, const void *key); /* is @key that of @object? */
};

/* The caller's; 64 bytes. */
struct hashtable {
	struct quiesce__table table;
};

/* The header's upper seven bytes are tags: that of word i is byte i.  A tag is never 0, which a word has that was never
 * used: so what has an equal tag is an object or odd.  The last word may lead to another line. */
#define QUIESCE_TABLE_LAST 7
#define QUIESCE_TABLE_LINK 1ull /* in the last word, instead of an object; alone, in any: the object was taken out */

QUIESCE_FAST uint64_t quiesce__table_tag(uint64_t hash)
{
	return hash >> 56 | 0x80;
}

/* Which words of a line may have an object with the tag of @hash: a bit for each, at the place where quiesce__table_word()
 * looks; a line may have others in, of which it is known by the key. */
typedef quiesce__match_t quiesce__table_match_t;
#define quiesce__table_match(header, hash) quiesce__match_bytes((header), quiesce__table_tag(hash))
#define quiesce__table_word(match) quiesce__match_index(match)

/* Where the object is not the first with its tag: all the others, the lines that continue a bucket, the next array. */
static __attribute__((noinline, unused)) void *quiesce__hashtable_search(const struct quiesce__buckets *array, uint64_t hash,
									 const struct hashtable_type *type, const void *key)
{
	uint64_t header;
	const struct quiesce__bucket *line = quiesce__bucket_find(array, hash, &header);

	while (line) {
		uintptr_t word;

		for (quiesce__table_match_t match = quiesce__table_match(header, hash); match; match &= match - 1) {
			/* HT1: acquire, pairs with HT1 in publish() */
			word = quiesce_load_consume(HT1, &line->word[quiesce__table_word(match)]);
			if (quiesce_likely(!(word & QUIESCE_TABLE_LINK)) && quiesce_likely(type->equal((void *)word, key)))
				return (void *)word;
		}
		/* HT1: acquire, pairs with HT1 in publish() */
		word = quiesce_load_consume(HT1, &line->word[QUIESCE_TABLE_LAST]);
		if (quiesce_likely(!(word & QUIESCE_TABLE_LINK)))
			return NULL;
		line = (const struct quiesce__bucket *)(word - QUIESCE_TABLE_LINK);
		if (line)
			/* BK1: acquire, pairs with BK1 in put() */
			header = quiesce_load_acquire(BK1, &line->word[0]);
	}
	return NULL;
}

/* A lookup as it goes as a rule.  The others go on in a function of their own, and do not come back: a call or a loop in the midst of
 * this makes all lookups slower by a third. */
struct quiesce__hashtable_lookup_state {
	const struct quiesce__buckets *array;
	uint64_t hash;
	void *object;
};

/* False: the first object with the tag is not the one, a line continues the bucket, or the bucket has moved. */
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
			__builtin_unreachable(); /* it has a tag */
		lookup->object = (void *)word;
		return quiesce_likely(!(word & QUIESCE_TABLE_LINK)) && quiesce_likely(type->equal((void *)word, key));
	}
	/* HT1: acquire, pairs with HT1 in publish() */
	word = quiesce_load_consume(HT1, &line->word[QUIESCE_TABLE_LAST]);
	lookup->object = NULL;
	return quiesce_likely(!(word & QUIESCE_TABLE_LINK));
}

static __attribute__((noinline, unused)) void *quiesce__hashtable_search_hazptr(const struct hashtable *ht,
										const struct hashtable_type *type,
										const void *key, hazptr_t *slot, size_t offset)
{
	uint64_t hash = type->hash(key, quiesce__seed_of(&ht->table)), header;
	const struct quiesce__bucket *first, *line;
	void *object = NULL;
	uintptr_t word;

	rcu_read_lock();
	line = first = quiesce__bucket_find(quiesce__buckets_of(&ht->table), hash, &header);
	for (quiesce__table_match_t match = quiesce__table_match(header, hash); line;) {
		if (!match) {
			/* HT1: acquire, pairs with HT1 in publish() */
			word = quiesce_load_consume(HT1, &line->word[QUIESCE_TABLE_LAST]);
			if (!(word & QUIESCE_TABLE_LINK) || word == QUIESCE_TABLE_LINK)
				break;
			line = (const struct quiesce__bucket *)(word - QUIESCE_TABLE_LINK);
			/* BK1: acquire, pairs with BK1 in put() */
			match = quiesce__table_match(quiesce_load_acquire(BK1, &line->word[0]), hash);
			continue;
		}
		/* HT1: acquire, pairs with HT1 in publish() */
		word = quiesce_load_consume(HT1, &line->word[quiesce__table_word(match)]);
		if (word & QUIESCE_TABLE_LINK) {
			match &= match - 1;
			continue;
		}
		quiesce__hazptr_set(slot, word + offset);
		/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
		/* HT1: acquire, pairs with HT1 in publish() */
		if (quiesce_load_consume(HT1, &line->word[quiesce__table_word(match)]) != word)
			continue; /* another one is there, or none */
		/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
		if (quiesce_load_acquire(BK1, &first->word[0]) & QUIESCE_BUCKET_MOVED) {
			/* A bucket that has moved does not tell whether the object is still in the table. */
			line = first = quiesce__bucket_find(quiesce__buckets_of(&ht->table), hash, &header);
			match = quiesce__table_match(header, hash);
			continue;
		}
		if (type->equal((void *)word, key)) {
			object = (void *)word;
			break;
		}
		match &= match - 1;
	}
	if (!object)
		hazptr_clear(slot);
	rcu_read_unlock();
	return object;
}

/* As quiesce__hashtable_try(): true where @slot protects the object. */
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

QUIESCE_END_DECLS

#endif
