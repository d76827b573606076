/* SPDX-License-Identifier: MIT */
/* quiesce/detail/buckets.h - what lookups of the tables walk; private, for hashtable.h and hashmap.h.
 *
 * A bucket is a cache line: a header word and seven others, whose meaning is the table's.  When it is
 * full, its last word leads to another line.  A table is an array of buckets, a power of two of them.
 *
 * Resizing.  A second array is made, and the first one says so (next).  Buckets are copied one by one, each under its lock; then
 * the header of the old one gets MOVED, and nobody writes in it again.  Who finds MOVED goes on in the
 * next array.  So a key is in one bucket at a time, and a lookup never waits: what it reads in a bucket that moves
 * meanwhile is what was true when it moved.
 */
#ifndef QUIESCE_DETAIL_BUCKETS_H
#define QUIESCE_DETAIL_BUCKETS_H

#include <quiesce/rcu.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

#define QUIESCE_BUCKET_LOCKED 1ull /* of the first line of a bucket */
#define QUIESCE_BUCKET_MOVED 2ull
#define QUIESCE_BUCKET_FLAGS 0xffull /* the rest of a header is the table's */

struct quiesce__bucket {
	uint64_t word[8];
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* An array.  Lookups read the first two; the rest is private. */
struct quiesce__buckets {
	uint64_t mask;                 /* of a hash: the bits that are the offset of its line */
	struct quiesce__buckets *next; /* NULL until it is resized */
	struct quiesce__table *table;  /* NULL: destroyed */
	struct quiesce__bucket *extra; /* lines for buckets that are full */
	uint64_t nr_extra;
	struct quiesce__group *groups; /* lines to be used again */
	struct quiesce__bucket **links; /* of extra lines that are in no bucket; what ends the array's memory */
	uint32_t queued; /* odd: the callback is under way; the rest tells which process has asked for it, of those forked */
	uint32_t missed; /* lines before the cursor stayed, for want of memory */
	/* Written by updates, on a line of their own: most of it while the table is being resized. */
	int64_t until_sum; /* so many more updates that ask for a sum */
	uint64_t cursor; /* lines before it were given to who moves */
	uint64_t left;   /* lines that have not moved */
	uint64_t extra_used;
	struct quiesce__extra *more; /* lines from the heap */
	struct rcu_head rcu;
	struct quiesce__lock lock; /* the callback at work | the table destroyed */
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* The first line of the bucket of @hash in @array. */
QUIESCE_FAST struct quiesce__bucket *quiesce__bucket_in(const struct quiesce__buckets *array, uint64_t hash)
{
	return (struct quiesce__bucket *)((uintptr_t)(array + 1) + (hash & array->mask));
}

/* Of its memory. */
static inline size_t quiesce__buckets_bytes(const struct quiesce__buckets *array)
{
	return (size_t)((uintptr_t)(array->links + array->nr_extra) - (uintptr_t)array);
}

struct quiesce__buckets_kind;

/* What every table begins with; the first line is all that lookups read. */
struct quiesce__table {
	struct quiesce__buckets *array; /* NULL: there is nothing in it */
	uint64_t seed;                  /* 0: it is drawn by the first who puts something in */
	const struct quiesce__buckets_kind *kind;
	const void *type; /* of a hashtable, the caller's */
	uint64_t min_lines;
	uint64_t resizes;
	uint64_t failures; /* of the heap */
	struct quiesce__counts *counts; /* of elements; NULL: there was never one */
};

#define QUIESCE__TABLE_INIT(kind, type) { NULL, 0, &(kind), (type), 1, 0, 0, NULL }

struct quiesce_table_stats {
	uint64_t elements;
	uint64_t buckets;
	uint64_t full;    /* buckets with more than one line */
	uint64_t longest; /* lines of a bucket */
	uint64_t bytes;   /* of the heap and of pages, the objects not counted */
	uint64_t resizes; /* begun */
	uint64_t failures; /* allocations, beside those that a call has reported */
};
QUIESCE_API void quiesce__table_stats(const struct quiesce__table *table, struct quiesce_table_stats *ret);
QUIESCE_API size_t quiesce__table_count(const struct quiesce__table *table);
QUIESCE_API int quiesce__table_reserve(struct quiesce__table *table, size_t nr);

/* Where an iteration is: every element whose hash above bit 5, read backwards, is not below @position is still to come. */
struct quiesce__table_iter {
	const struct quiesce__bucket *line; /* NULL: look for the bucket of @position */
	uint64_t position;
	uint64_t mask;    /* of the largest array between the table's and that of @line */
	uint64_t seen[7]; /* the first line's words, when the bucket was entered */
	uint32_t index;   /* of the next word */
	bool first;       /* @line is the first of its bucket */
	bool partly;      /* the bucket has others beside those that are to be visited now */
	bool end;
};

/* An iteration that leaves its section now and then, between two buckets. */
struct quiesce__table_walk {
	const struct quiesce__table *table;
	struct quiesce__table_iter iter;
	uint32_t left; /* buckets, of this section */
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
	walk->iter.line = NULL; /* who has left a bucket in its middle begins it again */
	walk->left = QUIESCE_WALK_BUCKETS;
	rcu_read_lock();
	return true;
}

/* For a lookup.  One that sees 0 and then objects takes place before the seed was drawn, when the table was empty. */
QUIESCE_FAST uint64_t quiesce__seed_of(const struct quiesce__table *table)
{
	return quiesce_load_relaxed(&table->seed); /* Relaxed: as above; and whoever knows of an object sees its seed. */
}

/* The array that lookups begin with; NULL: there is nothing in the table. */
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

/* The same, wherever the bucket has moved to from @array; NULL if that is. */
QUIESCE_FAST const struct quiesce__bucket *quiesce__bucket_find(const struct quiesce__buckets *array, uint64_t hash,
								uint64_t *ret_header)
{
	const struct quiesce__bucket *line;

	*ret_header = 0;
	if (!array)
		return NULL;
	while ((line = quiesce__bucket_read(array, hash, ret_header)), *ret_header & QUIESCE_BUCKET_MOVED)
		array = quiesce_load_relaxed(&array->next); /* Relaxed: set before any bucket of it moved, which was acquired. */
	return line;
}

QUIESCE_END_DECLS

#endif
