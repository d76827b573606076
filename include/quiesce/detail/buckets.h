/* SPDX-License-Identifier: MIT */
/* quiesce/detail/buckets.h - the arrays of buckets that lookups search; private, for hashtable.h
 * and hashmap.h.
 *
 * A bucket is a cache line: a header word and seven others, whose meaning depends on the kind of
 * table.  The last word of a full bucket links to another line: an overflow line.  A table is an
 * array of buckets, a power of two of them.
 *
 * Resizing.  A second array is made, and the first one links to it (next).  Buckets are copied one
 * by one, each under its lock; then the header of the old bucket gets MOVED, and no thread writes
 * to that bucket again.  A thread that finds MOVED continues in the next array.  So a key is in
 * one bucket at a time, and a lookup never waits: what it reads in a bucket that moves meanwhile
 * was true when the bucket moved. */
#ifndef QUIESCE_DETAIL_BUCKETS_H
#define QUIESCE_DETAIL_BUCKETS_H

#include <quiesce/rcu.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

#define QUIESCE_BUCKET_LOCKED 1ull /* in the first line of a bucket */
#define QUIESCE_BUCKET_MOVED 2ull
#define QUIESCE_BUCKET_FLAGS 0xffull /* the rest of a header depends on the table */

struct quiesce__bucket {
	uint64_t word[8];
} __attribute__((__aligned__(QUIESCE_CACHELINE)));

/* An array.  Lookups read the first two members; the rest is private. */
struct quiesce__buckets {
	uint64_t mask;                 /* bits of a hash that are the offset of its line */
	struct quiesce__buckets *next; /* successor; NULL until it is resized */
	struct quiesce__table *table;  /* NULL: the table has been destroyed */
	struct quiesce__bucket *extra; /* overflow lines */
	uint64_t nr_extra;
	struct quiesce__line_pool *pools; /* replaced lines, for reuse */
	struct quiesce__bucket **links; /* list links of extra lines; ends the array's memory */
	uint32_t queued; /* odd: callback pending; the rest: generation of forks that queued it */
	uint32_t missed; /* buckets before the cursor did not move: memory was short */
	/* Updates write these, on another cache line, most of them only during a resize. */
	int64_t until_sum; /* number of sampled updates until the next sum */
	uint64_t cursor; /* buckets before it have been claimed for moving */
	uint64_t unmoved; /* buckets that have not moved */
	uint64_t extra_used;
	struct quiesce__extra *more; /* overflow lines from the heap */
	struct rcu_head rcu;
	struct quiesce__lock lock; /* excludes the callback and the destruction of the table */
} __attribute__((__aligned__(QUIESCE_CACHELINE)));

/* Return the first line of the bucket of @hash in @array. */
QUIESCE_FAST struct quiesce__bucket *quiesce__bucket_in(const struct quiesce__buckets *array, uint64_t hash)
{
	return (struct quiesce__bucket *)((uintptr_t)(array + 1) + (hash & array->mask));
}

/* Return the size of the array's memory in bytes. */
QUIESCE_PLAIN size_t quiesce__buckets_bytes(const struct quiesce__buckets *array)
{
	return (uintptr_t)(array->links + array->nr_extra) - (uintptr_t)array;
}

struct quiesce__buckets_kind;

/* First member of every table; lookups read its first cache line only. */
struct quiesce__table {
	struct quiesce__buckets *array; /* NULL: no element was ever inserted */
	uint64_t seed;                  /* 0: the first insertion draws it */
	const struct quiesce__buckets_kind *kind;
	const void *type; /* the caller's type of a hashtable */
	uint64_t min_lines;
	uint64_t resizes;
	uint64_t failures; /* number of failed allocations */
	struct quiesce__counts *counts; /* element counts; NULL: no element was ever inserted */
};

#define QUIESCE__TABLE_INIT(kind, type) { NULL, 0, &(kind), (type), 1, 0, 0, NULL }

struct quiesce_table_stats {
	uint64_t elements;
	uint64_t buckets;
	uint64_t full;    /* number of buckets with more than one line */
	uint64_t longest; /* largest number of lines in a bucket */
	uint64_t bytes;   /* memory from the heap and of pages, without the objects */
	uint64_t resizes; /* resizes begun */
	uint64_t failures; /* failed allocations that no call has reported */
};
QUIESCE_API void quiesce__table_stats(const struct quiesce__table *table, struct quiesce_table_stats *ret);
QUIESCE_API size_t quiesce__table_count(const struct quiesce__table *table);
QUIESCE_API int quiesce__table_reserve(struct quiesce__table *table, size_t nr);

/* State of an iteration: every element whose hash above bit 5, bit-reversed, is not below @position
 * is still to be visited. */
struct quiesce__table_iter {
	const struct quiesce__bucket *line; /* NULL: find the bucket of @position first */
	uint64_t position;
	uint64_t mask;    /* union of the masks of the arrays from the table's to that of @line */
	uint64_t seen[7]; /* words of the first line when the bucket was entered */
	uint32_t index;   /* index of the next word */
	bool first;       /* @line is the first of its bucket */
	bool partly;      /* only part of the bucket's elements are to be visited now */
	bool end;
};

/* An iteration in several sections, each of which ends between two buckets. */
struct quiesce__table_walk {
	const struct quiesce__table *table;
	struct quiesce__table_iter iter;
	uint32_t left; /* buckets left in this section */
};
#if defined(QUIESCE_SIM)
#define QUIESCE_WALK_BUCKETS 2u
#else
#define QUIESCE_WALK_BUCKETS 64u
#endif

QUIESCE_FAST void quiesce__iter_begin(struct quiesce__table_iter *iter)
{
	iter->line = NULL;
	iter->position = iter->mask = 0;
	iter->index = 0;
	iter->partly = iter->end = iter->first = false;
}

QUIESCE_FAST void quiesce__walk_enter(struct quiesce__table_walk *walk, const struct quiesce__table *table)
{
	walk->table = table;
	quiesce__iter_begin(&walk->iter);
	walk->left = 0;
}

QUIESCE_FAST bool quiesce__walk_start(struct quiesce__table_walk *walk)
{
	if (walk->iter.end)
		return false;
	walk->iter.line = NULL; /* a bucket that was not finished is visited again */
	walk->left = QUIESCE_WALK_BUCKETS;
	rcu_read_lock();
	return true;
}

/* The seed, for a lookup.  A lookup that sees 0 and then objects takes effect before the seed was
 * drawn, when the table was empty. */
QUIESCE_FAST uint64_t quiesce__seed_of(const struct quiesce__table *table)
{
	/* Relaxed: a thread that knows of an object sees its seed. */
	return quiesce_load_relaxed(&table->seed);
}

/* The array in which lookups begin; NULL if the table is empty. */
QUIESCE_FAST const struct quiesce__buckets *quiesce__buckets_of(const struct quiesce__table *table)
{
	/* BK3: acquire, pairs with BK3 in table_switch() */
	return quiesce_load_consume(BK3, &table->array);
}

/* The first line of the bucket of @hash in @array, and its header, which may be MOVED. */
QUIESCE_FAST const struct quiesce__bucket *quiesce__bucket_read(const struct quiesce__buckets *array, uint64_t hash,
								uint64_t *ret_header)
{
	const struct quiesce__bucket *line = quiesce__bucket_in(array, hash);

	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	*ret_header = quiesce_load_acquire(BK1, &line->word[0]);
	return line;
}

/* The first line of the bucket of @hash, and its header, wherever the bucket has moved from @array;
 * NULL if @array is. */
QUIESCE_FAST const struct quiesce__bucket *quiesce__bucket_find(const struct quiesce__buckets *array, uint64_t hash,
								uint64_t *ret_header)
{
	const struct quiesce__bucket *line;

	*ret_header = 0;
	if (!array)
		return NULL;
	while ((void)(line = quiesce__bucket_read(array, hash, ret_header)), *ret_header & QUIESCE_BUCKET_MOVED)
		/* Relaxed: stored before any bucket moved, which was acquired. */
		array = quiesce_load_relaxed(&array->next);
	return line;
}

QUIESCE_END_DECLS

#endif
