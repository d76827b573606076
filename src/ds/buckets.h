/* SPDX-License-Identifier: MIT */
/* buckets.h - locks, arrays and resizing, for hashtable.c and hashmap.c; see quiesce/detail/buckets.h. */
#ifndef QUIESCE_DS_BUCKETS_PRIVATE_H
#define QUIESCE_DS_BUCKETS_PRIVATE_H

#include <quiesce/detail/buckets.h>
#include <quiesce/detail/percpu.h>

#include "runtime/core.h"

/* A line from the heap. */
struct quiesce__extra {
	struct quiesce__bucket line;
	struct quiesce__extra *next;  /* of the array's, or of those to spare */
	struct quiesce__bucket *free; /* in a list of a group */
};

/* Of some buckets that are neighbours. */
struct quiesce__group {
	/* Lines that were in these buckets; nobody waits for the lock. */
	struct quiesce__lock lock;
	uint32_t nr_left;                /* of the next two */
	uint32_t nr_waiting;             /* of the second */
	struct quiesce__bucket *left;    /* readers may be in them */
	struct quiesce__bucket *waiting; /* until they are not, */
	struct rcu_gp_seq seq;           /* which is then */
	struct quiesce__bucket *free;
} __attribute__((aligned(QUIESCE_CACHELINE)));

struct quiesce__update;

struct quiesce__buckets_kind {
	uint32_t slots;       /* of a line */
	uint32_t linked_slots; /* of one that leads to another */
	uint32_t fill;        /* elements for each line of an array: above it a table grows */
	uint32_t extra_shift; /* an array of n lines has n >> extra_shift for full buckets, */
	uint32_t pages_shift; /* or n >> pages_shift where they are pages, which cost nothing until they are used */
	/* Copy what is in @line, of the bucket that begins with @first and is locked, into @to, and count it there.  False: a line is
	 * wanted, there was none, and of the whole bucket nothing is there. */
	bool (*move_line)(const struct quiesce__table *table, const struct quiesce__bucket *first,
			  const struct quiesce__bucket *line, struct quiesce__buckets *to, struct quiesce__update *u);
	uint64_t (*number_in)(const struct quiesce__bucket *line); /* how many elements */
	/* The line that follows @line in its bucket; NULL: it is the last. */
	const struct quiesce__bucket *(*follow)(const struct quiesce__bucket *line);
	void (*link)(struct quiesce__bucket *line, struct quiesce__bucket *next); /* of a line that nobody sees yet */
	/* Copy what lives behind @first into its holes, and into @fresh: empty lines, as many as it takes; then lead there. */
	void (*rebuild)(struct quiesce__bucket *first, struct quiesce__bucket *fresh);
};

static inline uint64_t lines_of(const struct quiesce__buckets *array)
{
	return array->mask / sizeof(struct quiesce__bucket) + 1;
}

static inline struct quiesce__bucket *lines_from(const struct quiesce__buckets *array)
{
	return quiesce__bucket_in(array, 0);
}

/* How many elements there are: of a table's own, or per CPU; see buckets_count.c. */
struct quiesce__counts {
	/* Read by every update, and written by none where a table counts per CPU. */
	uint64_t shared[2];
	struct quiesce_percpu percpu;
	uint32_t wide;   /* updates count per CPU */
	uint64_t others; /* of a table that does not: elements not in @shared, at the last sum */
	/* Written by some. */
	uint64_t gp_ns __attribute__((aligned(QUIESCE_CACHELINE))); /* when a grace period was asked for, for lines */
	struct rcu_head rcu;
};

#define QUIESCE_SHRINK 8 /* a table shrinks when that part of what it may hold is left */

/* For who makes the first array: counts.  0 or -ENOMEM. */
int quiesce__counts_begin(struct quiesce__table *table);
/* At the end of a table, in a section. */
void quiesce__counts_end(struct quiesce__table *table);
/* It gets, or has now, an array of so many lines. */
void quiesce__counts_widen(struct quiesce__table *table, uint64_t lines);
uint64_t quiesce__table_sum(const struct quiesce__table *table);
/* Count @change elements more, of the bucket that @u has locked.  True: it is time to look at the sum. */
bool quiesce__count_change(struct quiesce__table *table, const struct quiesce__update *u, int change);
/* The sum was looked at, for @array. */
void quiesce__count_looked(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t sum);

/* An update: the bucket that it has locked, and lines that it may take. */
struct quiesce__update {
	uint64_t hash;
	struct quiesce__buckets *array;
	struct quiesce__bucket *line;
	struct quiesce__extra *spare;
	uint32_t nr_spare;
	uint64_t wanted; /* lines to spare, to make the bucket shorter */
	bool wants_gp;
};

void quiesce__table_init(struct quiesce__table *table, const struct quiesce__buckets_kind *kind, uint64_t seed);
/* The end of @table, in a section: take its array away, so that nobody moves anything in it; and give that back. */
struct quiesce__buckets *quiesce__table_detach(struct quiesce__table *table);
void quiesce__table_release(struct quiesce__buckets *array);
/* False: it was not initialised, which has been reported as misuse of @call. */
bool quiesce__table_usable(const struct quiesce__table *table, const char *call);
/* For who puts something in: the seed, which is drawn if it was not. */
uint64_t quiesce__seed_drawn(struct quiesce__table *table);
/* Nothing was ever put into it. */
bool quiesce__table_is_empty(const struct quiesce__table *table);

/* Enter a section and lock the bucket of @hash.  0, or -ENOMEM: there is no array, and no section. */
int quiesce__update_begin(struct quiesce__table *table, struct quiesce__update *u, uint64_t hash);
/* Unlock, after @change elements more, and leave.  The table may grow or shrink. */
void quiesce__update_end(struct quiesce__table *table, struct quiesce__update *u, int change);
/* Out of a section, after a line was wanted: get one.  0 or -ENOMEM. */
int quiesce__update_spare(struct quiesce__update *u);
/* Out of the section: make the bucket shorter, if lines were wanted for that; give back what is spare. */
void quiesce__update_done_slow(struct quiesce__table *table, struct quiesce__update *u);
static inline void quiesce__update_done(struct quiesce__table *table, struct quiesce__update *u)
{
	if (quiesce_unlikely(u->spare || u->wanted))
		quiesce__update_done_slow(table, u);
}
/* Lines wait for a grace period: ask for it.  Not under a bucket's lock, as it may wake the worker. */
void quiesce__update_request_gp(struct quiesce__table *table, struct quiesce__update *u);

/* An empty line for the bucket of @array that begins with @first; NULL: there is none, also not in @u. */
struct quiesce__bucket *quiesce__bucket_extra(struct quiesce__buckets *array, const struct quiesce__bucket *first,
					      struct quiesce__update *u);
/* Something was taken out of @u's bucket, which is locked, @behind the first line or in it: make the bucket shorter if it is too
 * long.  Where it wants lines that are not there quiesce__update_done() sees to it. */
void quiesce__bucket_tidy(const struct quiesce__table *table, struct quiesce__update *u, bool behind);
/* Lock a bucket, false: it has moved. */
bool quiesce__bucket_lock(struct quiesce__bucket *line);
void quiesce__bucket_unlock(struct quiesce__bucket *line, uint64_t flags);

/* ---- between buckets.c and buckets_resize.c ---- */

#define GROUP_SHIFT 10 /* lines that share those that they have left */
#define GROUP_LINES ((uint64_t)1 << GROUP_SHIFT)
#define MAX_LINES ((uint64_t)1 << 40)

struct quiesce__buckets *quiesce__array_new(struct quiesce__table *table, uint64_t lines); /* NULL: no memory */
void quiesce__array_free(struct quiesce__buckets *array);
void quiesce__array_free_rcu(struct rcu_head *head);
/* How many elements @lines lines should have at most. */
uint64_t quiesce__room_of(const struct quiesce__table *table, uint64_t lines);
/* Wait a little, the longer the greater @turn. */
void quiesce__wait_for_holder(uint32_t turn);
/* Make an array for a table that has none.  0 or -ENOMEM. */
int quiesce__first_array(struct quiesce__table *table);
/* What array->queued is in this process while the callback is parked; one more: under way. */
static inline uint32_t quiesce__resize_parked(void)
{
	return 2 * quiesce__generation();
}

/* May the caller, and nobody else, ask for the callback of @array? */
bool quiesce__resize_step(struct quiesce__buckets *array);
/* An update: move some buckets of @array, if it is being resized; else, unless @change is 0, see whether it should be larger; or, if
 * @change is negative, smaller. */
void quiesce__resize_maintain(struct quiesce__table *table, struct quiesce__buckets *array, int change);

/* ---- going over all buckets ---- */

/* Set @iter to the bucket of its position, index 0; false: there are no more.  In a section, until the bucket is done with. */
bool quiesce__iter_enter(const struct quiesce__table *table, struct quiesce__table_iter *iter);
/* The same with the bucket locked, for @u, and a section of the caller's.  Its elements are all that there are of the position,
 * and in no other bucket, but perhaps not of this position alone. */
bool quiesce__iter_lock(const struct quiesce__table *table, struct quiesce__table_iter *iter, struct quiesce__update *u);
/* The next bucket of a walk, which is over, or pauses, if that is false. */
static inline bool quiesce__walk_step(struct quiesce__table_walk *walk)
{
	if (!walk->left)
		return false;
	walk->left--;
	if (quiesce__iter_enter(walk->table, &walk->iter))
		return true;
	walk->iter.end = true;
	return false;
}
/* The bucket is done with. */
void quiesce__iter_leave(struct quiesce__table_iter *iter);
/* Is an element with @hash still to come?  To be asked when iter->partly. */
bool quiesce__iter_covers(const struct quiesce__table_iter *iter, uint64_t hash);

#endif
