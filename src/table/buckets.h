/* SPDX-License-Identifier: MIT */
/* buckets.h - bucket locks, arrays and resizing, shared by hashtable.c and hashmap.c; see quiesce/detail/buckets.h. */
#ifndef QUIESCE_DS_BUCKETS_PRIVATE_H
#define QUIESCE_DS_BUCKETS_PRIVATE_H

#include <quiesce/detail/buckets.h>
#include <quiesce/detail/percpu.h>

#include "percpu/percpu.h"
#include "platform/platform.h"
#include "runtime/core.h"

/* An overflow line that was allocated from the heap. */
struct quiesce__extra {
	struct quiesce__bucket line;
	struct quiesce__extra *next;  /* next heap line of the array, or next spare line of an update */
	struct quiesce__bucket *free; /* next line in a list of the pool */
};

/* Overflow lines that a run of neighbouring buckets has replaced, for reuse. */
struct quiesce__line_pool {
	/* Guards the lists; no thread waits for it. */
	struct quiesce__lock lock;
	uint32_t nr_replaced;             /* number of lines in @replaced and @waiting */
	uint32_t nr_waiting;              /* number of lines in @waiting */
	struct quiesce__bucket *replaced; /* replaced lines that readers may still access */
	struct quiesce__bucket *waiting;  /* lines that become free after the grace period of @seq */
	struct rcu_gp_seq seq;            /* cookie of that grace period */
	struct quiesce__bucket *free;
	struct quiesce__bucket *unlinked; /* replaced lines of updates that found the pool locked */
} __attribute__((aligned(QUIESCE_CACHELINE)));

struct quiesce__update;

struct quiesce__buckets_kind {
	uint32_t slots;       /* slots of the last line of a bucket */
	uint32_t linked_slots; /* slots of a line that links to another */
	uint32_t fill;        /* elements per line of an array; above that the table grows */
	uint32_t extra_shift; /* a small array of n lines has n >> extra_shift overflow lines */
	uint32_t pages_shift; /* a large one has n >> pages_shift, in pages that cost nothing until they are used */
	/* Copy the elements of @line into @to, and count them there.  @line is part of the locked bucket that
	 * begins with @first.  False: an overflow line was needed and not to be had, and no element of the whole
	 * bucket is left in @to. */
	bool (*move_line)(const struct quiesce__table *table, const struct quiesce__bucket *first,
			  const struct quiesce__bucket *line, struct quiesce__buckets *to, struct quiesce__update *u);
	uint64_t (*number_in)(const struct quiesce__bucket *line); /* number of elements in a line */
	/* The line that follows @line in its bucket; NULL if it is the last. */
	const struct quiesce__bucket *(*follow)(const struct quiesce__bucket *line);
	void (*link)(struct quiesce__bucket *line, struct quiesce__bucket *next); /* @line is not published yet */
	/* Link @before to the line to which @line links, instead of to @line, which has no element. */
	void (*unlink)(struct quiesce__bucket *before, const struct quiesce__bucket *line);
	/* Copy the elements of the overflow lines into holes of @first and into @fresh, a chain of exactly as many
	 * empty lines as it takes; then link @first to @fresh. */
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

/* Element counts of a table, in two shared words or per CPU; see buckets_count.c. */
struct quiesce__counts {
	/* Read by every update; not written while the table counts per CPU. */
	uint64_t shared[2];
	struct quiesce_percpu percpu;
	uint64_t open; /* see quiesce/detail/percpu.h; 0: updates call quiesce__count_change() */
	uint32_t per_cpu; /* true: updates count per CPU */
	uint64_t others; /* elements that the last sum found outside @shared; for a table that does not count per CPU */
	/* Only some updates write @gp_ns, the time of the last request of a grace period for replaced lines. */
	uint64_t gp_ns __attribute__((aligned(QUIESCE_CACHELINE)));
	struct rcu_head rcu;
};

#define QUIESCE_SHRINK 8 /* a table shrinks when at most this fraction of its capacity is in use */

/* Allocate the counts, for the update that makes the first array.  0 or -ENOMEM. */
int quiesce__counts_begin(struct quiesce__table *table);
/* Free the counts after a grace period, at the end of a table.  To be called in a section. */
void quiesce__counts_end(struct quiesce__table *table);
/* Choose how to count, for a table that gets or has an array of @lines lines. */
void quiesce__counts_choose_mode(struct quiesce__table *table, uint64_t lines);
uint64_t quiesce__table_sum(const struct quiesce__table *table);
/* A number that each removal raises by one, on the calling thread's CPU at least; a hint. */
uint64_t quiesce__count_of_removals(const struct quiesce__table *table);
/* Compute when the next sum of @array is due, after a check that found @sum. */
void quiesce__count_checked(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t sum);

/* An update: the bucket that it has locked, and spare lines for it. */
struct quiesce__update {
	uint64_t hash;
	struct quiesce__buckets *array;
	struct quiesce__bucket *line;
	struct quiesce__extra *spare;
	uint32_t nr_spare;
	uint64_t wanted; /* number of spare lines needed to shorten the bucket */
	bool wants_gp;
};

void quiesce__table_init(struct quiesce__table *table, const struct quiesce__buckets_kind *kind, uint64_t seed);
/* At the end of @table, in a section: detach its array, so that no thread moves buckets of it, and release that
 * array. */
struct quiesce__buckets *quiesce__table_detach(struct quiesce__table *table);
void quiesce__table_release(struct quiesce__buckets *array);
bool quiesce__table_unusable(const char *call);
/* False if the table was not initialised, which has been reported as misuse of @call, such as "hashmap_clear()". */
static inline bool quiesce__table_usable(const struct quiesce__table *table, const char *call)
{
	return quiesce_likely(table->kind != NULL) || quiesce__table_unusable(call);
}
/* Returns the seed, for an insertion; the first call draws it. */
uint64_t quiesce__seed_draw(struct quiesce__table *table);
static inline uint64_t quiesce__seed_drawn(struct quiesce__table *table)
{
	uint64_t seed = quiesce__seed_of(table);

	return quiesce_likely(seed) ? seed : quiesce__seed_draw(table);
}
/* True if no element was ever inserted. */
static inline bool quiesce__table_is_empty(const struct quiesce__table *table)
{
	return !quiesce_load_relaxed(&table->array); /* Relaxed: only compared. */
}

/* Allocate a spare line, outside of a section, after an overflow line was needed.  0 or -ENOMEM. */
int quiesce__update_spare(struct quiesce__update *u);
/* Outside of the section: shorten the bucket if lines were needed for that, and free spare lines. */
void quiesce__update_done_slow(struct quiesce__table *table, struct quiesce__update *u);
static inline void quiesce__update_done(struct quiesce__table *table, struct quiesce__update *u)
{
	if (quiesce_unlikely(u->spare || u->wanted))
		quiesce__update_done_slow(table, u);
}
/* Request a grace period for replaced lines that wait for one.  Not under a bucket's lock, as it may wake the
 * worker. */
void quiesce__update_request_gp(struct quiesce__table *table, struct quiesce__update *u);

/* An empty overflow line for the bucket of @array that begins with @first; NULL if there is none, not even a spare
 * one in @u. */
struct quiesce__bucket *quiesce__bucket_extra(struct quiesce__buckets *array, const struct quiesce__bucket *first,
					      struct quiesce__update *u);
/* True if so many lines wait for readers that the bucket of @array that begins with @first keeps empty ones: an insertion
 * searches the first KEPT_LINES overflow lines for a hole. */
bool quiesce__bucket_keeps_lines(const struct quiesce__buckets *array, const struct quiesce__bucket *first);
#if defined(QUIESCE_SIM)
#define KEPT_LINES 2u
#else
#define KEPT_LINES 16u
#endif
/* Shorten the locked bucket of @u after a removal from @line, or of all elements of some lines at its front: unlink lines
 * that have become empty, and rebuild a bucket that is too long.  If that needs lines that are not to be had,
 * quiesce__update_done() tries again. */
void quiesce__bucket_shorten(const struct quiesce__table *table, struct quiesce__update *u, const struct quiesce__bucket *line);
void quiesce__bucket_shorten_front(const struct quiesce__table *table, struct quiesce__update *u);
/* Shorten it after removals from any of its lines, which takes a walk over all. */
void quiesce__bucket_shorten_all(const struct quiesce__table *table, struct quiesce__update *u);
/* Lock a bucket; false if it has moved. */
bool quiesce__bucket_lock(struct quiesce__bucket *line);

/* Lock a bucket if that takes no wait, the bucket has not moved, and its header still is @header. */
QUIESCE_LOCAL bool quiesce__bucket_trylock_from(struct quiesce__bucket *line, uint64_t header)
{
	if (quiesce_unlikely(header & (QUIESCE_BUCKET_LOCKED | QUIESCE_BUCKET_MOVED)))
		if (header & QUIESCE_BUCKET_LOCKED || !QUIESCE_MUTANT(table_lock_moved))
			return false;
	/* BK1: full, pairs with BK1 in quiesce__bucket_unlock() */
	return quiesce_likely(quiesce_cmpxchg(BK1, &line->word[0], &header, header | QUIESCE_BUCKET_LOCKED));
}

QUIESCE_LOCAL bool quiesce__bucket_trylock(struct quiesce__bucket *line)
{
	return quiesce__bucket_trylock_from(line, quiesce_load_relaxed(&line->word[0])); /* Relaxed: the exchange decides. */
}

QUIESCE_LOCAL void quiesce__bucket_unlock(struct quiesce__bucket *line, uint64_t flags)
{
	uint64_t header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: only the holder of the lock writes it. */

	/* BK1: release, pairs with BK1 in quiesce__bucket_lock() and quiesce__bucket_read() */
	quiesce_store_release(BK1, &line->word[0], (header & ~QUIESCE_BUCKET_LOCKED) | flags);
}

/* ---- counts ---- */

enum { QUIESCE_PUT_IN, QUIESCE_TAKEN_OUT };

/* log2 of the number of changes of which one is sampled, in an array with @mask. */
#if defined(QUIESCE_SIM)
#define QUIESCE_SAMPLE_SHIFT(mask) ((void)(mask), 0u)
#else
#define QUIESCE_SAMPLE_SHIFT(mask) ((mask) < 16384 * sizeof(struct quiesce__bucket) ? 3u : 6u)
#endif

/* Add @change elements for the bucket that @u has locked.  True: the update should check the sum. */
bool quiesce__count_change(struct quiesce__table *table, const struct quiesce__update *u, int change);
/* True if one more sampled change of @array makes a check of the sum due. */
bool quiesce__count_sampled(struct quiesce__buckets *array);

/* Add 1 or -1 inline; false if that is not possible.  *@ret_sampled: quiesce__count_sampled() is to be called. */
QUIESCE_LOCAL bool quiesce__count_fast(const struct quiesce__table *table, const struct quiesce__buckets *array, int change,
				       bool *ret_sampled)
{
	struct quiesce__counts *counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */
	uint64_t tick;

	/* PC1: acquire, pairs with PC1 in quiesce__counts_choose_mode() */
	if (change > 0 ? !quiesce_count_acquire(PC1, &counts->open, 0)
		       /* PC1: acquire, pairs with PC1 in quiesce__counts_choose_mode() */
		       : !quiesce_count_acquire(PC1, &counts->open, 8))
		return false;
	tick = quiesce__percpu_tick_open(&counts->open, change > 0 ? QUIESCE_PUT_IN : QUIESCE_TAKEN_OUT);
	*ret_sampled = !(tick & ((1u << QUIESCE_SAMPLE_SHIFT(array->mask)) - 1));
	return true;
}

/* ---- the usual update, inline ----
 *
 * It enters a section, locks the bucket, finds all that it needs in the first line, and ends, without a call.  From any
 * place before its change it goes on in a function for all cases, which gets the state that was reached, @at. */

#define QUIESCE_AT_BEGIN ((struct quiesce__bucket *)0)   /* nothing has been done */
#define QUIESCE_AT_SECTION ((struct quiesce__bucket *)1) /* a section was entered; any other value: and the bucket was locked */

/* Enter a section.  Returns the first line of the bucket of @hash, which is not locked yet, or the state. */
QUIESCE_LOCAL struct quiesce__bucket *quiesce__update_enter(struct quiesce__table *table, uint64_t hash)
{
	const struct quiesce__buckets *array;

	if (quiesce_unlikely(!quiesce__rcu_read_trylock()))
		return QUIESCE_AT_BEGIN;
	array = quiesce__buckets_of(table);
	return quiesce_unlikely(!array) ? QUIESCE_AT_SECTION : quiesce__bucket_in(array, hash);
}

/* Enter a section, and lock the bucket of @hash if it has not moved and is not locked.  Returns the state. */
QUIESCE_LOCAL struct quiesce__bucket *quiesce__update_try(struct quiesce__table *table, uint64_t hash)
{
	const struct quiesce__buckets *array;
	struct quiesce__bucket *line;

	if (quiesce_unlikely(!quiesce__rcu_read_trylock()))
		return QUIESCE_AT_BEGIN;
	array = quiesce__buckets_of(table);
	if (quiesce_unlikely(!array))
		return QUIESCE_AT_SECTION;
	line = quiesce__bucket_in(array, hash);
	return quiesce_likely(quiesce__bucket_trylock(line)) ? line : QUIESCE_AT_SECTION;
}

/* True if a state is a line. */
QUIESCE_LOCAL bool quiesce__is_locked(const struct quiesce__bucket *at)
{
	return quiesce_likely((uintptr_t)at > (uintptr_t)QUIESCE_AT_SECTION);
}

/* The rare cases of quiesce__update_finish(), of which each also has the others' work done.  Returns @ret. */
uint64_t quiesce__update_finish_slow(struct quiesce__table *table, struct quiesce__bucket *line, int change, uint64_t ret);
uint64_t quiesce__section_end(uint64_t ret);

/* The end of an update that was made inline: quiesce__update_end().  Returns @ret. */
QUIESCE_LOCAL uint64_t quiesce__update_finish(struct quiesce__table *table, struct quiesce__bucket *line, int change, uint64_t ret)
{
	/* Relaxed: the table has this array while a bucket of it is locked that has not moved. */
	const struct quiesce__buckets *array = quiesce_load_relaxed(&table->array);
	bool sampled = false;

	if (change && quiesce_unlikely(!quiesce__count_fast(table, array, change, &sampled)))
		return quiesce__update_finish_slow(table, line, change, ret);
	/* Relaxed: only compared. */
	if (quiesce_unlikely(sampled || quiesce_load_relaxed(&array->next)))
		return quiesce__update_finish_slow(table, line, 0, ret);
	quiesce__bucket_unlock(line, 0);
	return quiesce_likely(quiesce__rcu_read_tryunlock()) ? ret : quiesce__section_end(ret);
}

/* ---- all updates ---- */

/* Go on from @at: enter a section and lock the bucket of @hash.  0, or -ENOMEM: there is no array, and the section has
 * ended. */
int quiesce__update_resume(struct quiesce__table *table, struct quiesce__update *u, uint64_t hash, struct quiesce__bucket *at);
static inline int quiesce__update_begin(struct quiesce__table *table, struct quiesce__update *u, uint64_t hash)
{
	return quiesce__update_resume(table, u, hash, QUIESCE_AT_BEGIN);
}
/* Add @change to the element count, unlock the bucket, and leave the section.  May begin to resize the table. */
void quiesce__update_end(struct quiesce__table *table, struct quiesce__update *u, int change);

/* ---- between buckets.c and buckets_resize.c ---- */

#define POOL_SHIFT 10 /* log2 of the buckets that share a pool of replaced lines */
#define POOL_LINES ((uint64_t)1 << POOL_SHIFT)
#define MAX_LINES ((uint64_t)1 << 40)

struct quiesce__buckets *quiesce__array_new(struct quiesce__table *table, uint64_t lines); /* returns NULL if memory is short */
void quiesce__array_free(struct quiesce__buckets *array);
void quiesce__array_free_rcu(struct rcu_head *head);
/* Number of elements above which an array of @lines lines is too small. */
uint64_t quiesce__capacity_of(const struct quiesce__table *table, uint64_t lines);
/* Wait for the holder of a bucket's lock to run, longer as @tries grows. */
void quiesce__wait_for_holder(uint32_t tries);
/* Make the first array of a table.  0 or -ENOMEM. */
int quiesce__first_array(struct quiesce__table *table);
/* Value of array->queued in this process while the callback is parked; plus one while it is pending. */
static inline uint32_t quiesce__resize_parked(void)
{
	return 2 * quiesce__generation();
}

/* Claim to queue the callback of @array; true for one caller. */
bool quiesce__resize_claim_callback(struct quiesce__buckets *array);
/* Part of each update: move some buckets of @array if it is being resized; else, if @check, check whether it should
 * be larger or smaller. */
void quiesce__resize_maintain(struct quiesce__table *table, struct quiesce__buckets *array, bool check);

/* ---- iteration over all buckets ---- */

/* Set @iter to the bucket of its position, index 0; false if there are no more.  The section of the caller lasts
 * until the bucket has been visited. */
bool quiesce__iter_enter(const struct quiesce__table *table, struct quiesce__table_iter *iter);
/* Pass over buckets in which no element ever was, in sections of its own, and write nothing to them. */
void quiesce__iter_skip_unused(const struct quiesce__table *table, struct quiesce__table_iter *iter);
/* Lock the bucket of the position of @iter for @u, in a section of the caller; false if there are no more.  All
 * elements of the position are in this bucket and in no other, but it may hold others as well. */
bool quiesce__iter_lock(const struct quiesce__table *table, struct quiesce__table_iter *iter, struct quiesce__update *u);
/* Enter the next bucket of a walk; false if the walk is over, or pauses. */
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
/* Leave the bucket, which has been visited. */
void quiesce__iter_leave(struct quiesce__table_iter *iter);
/* True if an element with @hash is still to be visited; needed if iter->partly. */
bool quiesce__iter_covers(const struct quiesce__table_iter *iter, uint64_t hash);

#endif
