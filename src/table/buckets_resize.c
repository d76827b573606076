/* SPDX-License-Identifier: MIT */
/* buckets_resize.c - replacement of a table's array; idea, invariants and ledger are in buckets.c.
 *
 * BK2, BK3, BK4, BK6  see buckets.c
 */
#include "buckets.h"

#include <errno.h>

#include "platform/probe.h"
#include "runtime/core.h"
#include "rcu/reclaim.h"

#define HELP_BUCKETS 4   /* buckets that an update moves */
#define CHUNK_BUCKETS 64 /* buckets that the callback moves in one critical section */
#define MIN_CHUNKS 16   /* chunks that the callback moves in one call at least; more until MOVE_NS has passed */
#define MOVE_NS 1000000u
#define TOUCH_GROWTH 8
#define PAGE_LINES 64    /* lines in the smallest page; in an array's first page two of them are its header */

static struct quiesce__buckets *array_of(struct rcu_head *head)
{
	return (struct quiesce__buckets *)((char *)head - offsetof(struct quiesce__buckets, rcu));
}

static void count_failure(struct quiesce__table *table)
{
	(void)quiesce_fetch_add_relaxed(&table->failures, (uint64_t)1); /* Relaxed: a statistic. */
}

/* ---- moving ---- */

static void resize_rest(struct rcu_head *head);
static void maintain_size(struct quiesce__table *table, struct quiesce__buckets *array);

/* All buckets of the old array have moved: its successor becomes the table's array. */
static void table_switch(struct quiesce__table *table, struct quiesce__buckets *next)
{
	/* BK3: release, pairs with BK3 in quiesce__buckets_of() and quiesce__update_resume() and quiesce__table_count() */
	quiesce_store_release(BK3, &table->array, next);
	quiesce__counts_choose_mode(table, lines_of(next));
}

/* The last bucket of @array has moved.  The table exists while the lock of its array is held: the table advances
 * from an array only under that array's lock, and its destruction waits for the lock of the last one.  Locks are
 * taken from older arrays to newer ones; the callback (@locked) holds the first already. */
static void finish_resize(struct quiesce__table *table, struct quiesce__buckets *array, bool locked)
{
	struct quiesce__buckets *next = quiesce_load_relaxed(&array->next); /* Relaxed: set before any bucket moved. */

	if (!locked)
		quiesce__lock(&array->lock);
	quiesce__lock(&next->lock);
	table_switch(table, next);
	quiesce_probe(resize_end, table, lines_of(next));
	maintain_size(table, next);
	quiesce__unlock(&next->lock);
	if (!locked)
		quiesce__unlock(&array->lock);
}

/* Number of heap lines that a copy of the bucket of @line needs at most; usually it has one line, and needs none. */
static uint32_t lines_for(const struct quiesce__table *table, const struct quiesce__bucket *line)
{
	uint32_t length = 0;

	while ((line = table->kind->follow(line)))
		length++;
	return length ? 2 * (length + 1) : 0;
}

/* Copy the locked bucket of @array that begins with @from into @to.  False: an overflow line was needed.
 * *@ret_shared: if not NULL, a locked bucket of @to, to be unlocked once @from is marked as moved, and not before:
 * an element of an unlocked bucket is in one bucket only. */
static bool copy_lines(struct quiesce__table *table, struct quiesce__buckets *array, const struct quiesce__bucket *from,
		       struct quiesce__buckets *to, struct quiesce__update *u, struct quiesce__bucket **ret_shared)
{
	/* In a table that shrinks several buckets become one.  In a table that grows no other thread accesses the
	 * new buckets yet. */
	struct quiesce__bucket *shared =
		to->mask < array->mask ? lines_from(to) + ((uint64_t)(from - lines_from(array)) & (lines_of(to) - 1)) : NULL;
	const struct quiesce__buckets_kind *kind = table->kind;
	bool moved = true;

	if (shared && !QUIESCE_MUTANT(table_merge_unlocked))
		quiesce__bucket_lock(shared);
	for (const struct quiesce__bucket *line = from; moved && line; line = kind->follow(line))
		moved = kind->move_line(table, from, line, to, u);
	*ret_shared = QUIESCE_MUTANT(table_merge_unlocked) ? NULL : shared;
	if (*ret_shared && (!moved || QUIESCE_MUTANT(table_merge_early))) {
		quiesce__bucket_unlock(shared, 0);
		*ret_shared = NULL;
	}
	return moved;
}

/* Copy the locked bucket that begins with @line.  Returns 0, or the number of spare lines that it needs. */
static uint32_t copy_bucket(struct quiesce__table *table, struct quiesce__buckets *array, const struct quiesce__bucket *line,
			    struct quiesce__update *u, struct quiesce__bucket **ret_shared)
{
	struct quiesce__buckets *next = quiesce_load_relaxed(&array->next); /* Relaxed: the caller has loaded it with acquire. */
	uint32_t wanted = lines_for(table, line);

	/* The number of free lines of the array is a hint, as other threads take some. */
	if (wanted > u->nr_spare && quiesce_load_relaxed(&next->extra_used) + wanted > next->nr_extra) /* Relaxed: a hint. */
		return wanted;
	return copy_lines(table, array, line, next, u, ret_shared) ? 0 : u->nr_spare + 1;
}

/* Move the bucket that begins with line @i; false if memory is short. */
static bool move_bucket(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t i, struct quiesce__update *u,
			bool locked)
{
	struct quiesce__bucket *line = lines_from(array) + i, *shared = NULL;
	uint32_t wanted;

	for (;;) {
		if (!quiesce__bucket_lock(line))
			return true;
		wanted = copy_bucket(table, array, line, u, &shared);
		if (!wanted)
			break;
		quiesce__bucket_unlock(line, 0);
		while (u->nr_spare < wanted)
			if (quiesce__update_spare(u))
				return false;
	}
	quiesce__bucket_unlock(line, QUIESCE_BUCKET_MOVED);
	if (shared)
		quiesce__bucket_unlock(shared, 0);
	/* BK4: full, pairs with BK4 in move_bucket() and move_chunk() */
	if (quiesce_fetch_add(BK4, &array->unmoved, (uint64_t)-1) == (QUIESCE_MUTANT(table_switch_early) ? 2 : 1))
		finish_resize(table, array, locked);
	return true;
}

static void touch_line(struct quiesce__buckets *array, uint64_t i)
{
	/* Relaxed: adding 0 changes nothing, also beside other writers. */
	(void)quiesce_fetch_add_relaxed(&lines_from(array)[i & (lines_of(array) - 1)].word[0], (uint64_t)0);
}

/* Write to the pages of @next to which lines @first to @last move, before any thread reads them.  A page that is
 * first read is mapped twice, and for the second mapping the kernel interrupts every CPU that runs the process,
 * readers of other tables included.  If @next is very much larger, most of its pages would not be used at all, so
 * none is touched. */
static void touch(struct quiesce__buckets *array, struct quiesce__buckets *next, uint64_t first, uint64_t last)
{
	uint64_t lines = lines_of(next);

	if (lines > TOUCH_GROWTH * lines_of(array))
		return;
	for (uint64_t at = 0; at < lines; at += lines_of(array)) {
		touch_line(next, at + first);
		if ((first + 2) / PAGE_LINES != (last + 2) / PAGE_LINES)
			touch_line(next, at + last);
	}
}

/* @missed and a restart of the cursor change under the array's lock, which the callback (@locked) holds already:
 * otherwise a bucket missed after a restart might be forgotten. */
static void lock_missed(struct quiesce__buckets *array, bool locked)
{
	if (!locked && !QUIESCE_MUTANT(table_missed_unlocked))
		quiesce__lock(&array->lock);
}

static void unlock_missed(struct quiesce__buckets *array, bool locked)
{
	if (!locked && !QUIESCE_MUTANT(table_missed_unlocked))
		quiesce__unlock(&array->lock);
}

/* A bucket before the cursor could not be moved, because memory was short: the cursor will restart when it reaches
 * the end. */
static void record_miss(struct quiesce__buckets *array, bool locked)
{
	lock_missed(array, locked);
	quiesce_store_relaxed(&array->missed, !QUIESCE_MUTANT(table_missed_lost)); /* Relaxed: under the lock. */
	unlock_missed(array, locked);
}

/* Restart the cursor; false if there is no reason to.  Buckets that have moved are skipped. */
static bool restart_cursor(struct quiesce__buckets *array, bool locked)
{
	if (!quiesce_load_relaxed(&array->missed)) /* Relaxed: a hint. */
		return false;
	lock_missed(array, locked);
	if (quiesce_load_relaxed(&array->missed)) { /* Relaxed: under the lock. */
		quiesce_store_relaxed(&array->missed, 0); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&array->cursor, 0); /* Relaxed: under the lock; a counter. */
	}
	unlock_missed(array, locked);
	return true;
}

/* Move @nr buckets, at most as many as a page has lines; @locked: the caller holds the array's lock.  Returns the
 * number of buckets that it took from the cursor, or -ENOMEM. */
static int move_some(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr, bool locked)
{
	struct quiesce__update u = { .nr_spare = 0 };
	uint64_t lines = lines_of(array), i, end;
	int result = 0;

	if (quiesce_load_relaxed(&array->cursor) >= lines && !restart_cursor(array, locked)) /* Relaxed: a hint. */
		return 0;
	/* Relaxed: each number is given once; a bucket moves under its lock. */
	i = quiesce_fetch_add_relaxed(&array->cursor, nr);
	end = i + nr < lines ? i + nr : lines;
	if (i < end)
		touch(array, quiesce_load_relaxed(&array->next), i, end - 1); /* Relaxed: the caller has loaded it with acquire. */
	for (; i < end; i++, result++) {
		if (move_bucket(table, array, i, &u, locked))
			continue;
		record_miss(array, locked);
		count_failure(table);
		result = -ENOMEM;
		break;
	}
	quiesce__update_done(table, &u);
	return result;
}

/* ---- the callback of an old array ---- */

/* Claim to queue the callback; true for one caller.  A callback that was pending in the parent is pending in a
 * child, too. */
bool quiesce__resize_claim_callback(struct quiesce__buckets *array)
{
	uint32_t found = quiesce_load_relaxed(&array->queued), mine = quiesce__resize_parked() + 1; /* Relaxed: a hint. */

	while (found != mine)
		/* BK6: full, pairs with BK6 in move_chunk() and park_inherited() */
		if (quiesce_cmpxchg(BK6, &array->queued, &found, mine))
			return !(found & 1);
	return false;
}

/* I7: true, and parked, if no thread updates the table in this process: threads of the parent may have left locks
 * locked. */
static bool park_inherited(struct quiesce__buckets *array)
{
	uint32_t found = quiesce_load_relaxed(&array->queued); /* Relaxed: the exchange decides. */

	return found != quiesce__resize_parked() + 1 && !QUIESCE_MUTANT(table_locks_inherited) &&
	       /* BK6: full, pairs with BK6 in quiesce__resize_claim_callback() */
	       quiesce_cmpxchg(BK6, &array->queued, &found, found & ~1u);
}

enum chunk_result {
	CHUNK_MORE,
	CHUNK_PARKED, /* parked until an update queues it: memory is short, or other threads move the last buckets */
	CHUNK_OVER,
};

/* Under the lock.  The table exists while there are buckets left, because its destruction waits for the lock then. */
static enum chunk_result move_chunk(struct quiesce__buckets *array)
{
	/* BK4: acquire, pairs with BK4 in move_bucket() */
	if (!array->table || quiesce_load_acquire(BK4, &array->unmoved) == 0)
		return CHUNK_OVER;
	if (move_some(array->table, array, CHUNK_BUCKETS, true) > 0)
		return CHUNK_MORE;
	/* The thread that moves the last bucket takes the lock afterwards, and queues the callback then: so either
	 * it finds the callback parked here, or the next chunk finds no bucket left. */
	/* BK6: release, pairs with BK6 in quiesce__resize_claim_callback() */
	quiesce_store_release(BK6, &array->queued, quiesce__resize_parked());
	return CHUNK_PARKED;
}

/* A grace period after the last move, the thread that made it has left its section, and so has switched the array. */
static void array_left_rcu(struct rcu_head *head)
{
	call_rcu_sized(head, quiesce__array_free_rcu, quiesce__buckets_bytes(array_of(head)));
}

static void resize_rest(struct rcu_head *head)
{
	struct quiesce__buckets *array = array_of(head);
	uint64_t end = platform_now_ns() + MOVE_NS;
	size_t bytes = quiesce__buckets_bytes(array);
	uint32_t chunks = 0;
	enum chunk_result result;

	if (park_inherited(array))
		return;
	do {
		/* Without a worker, a poll outside of a section may wait for readers, and locks are held here. */
		rcu_read_lock();
		quiesce__lock(&array->lock);
		result = move_chunk(array);
		quiesce__unlock(&array->lock);
		rcu_read_unlock();
	} while (result == CHUNK_MORE && (++chunks < MIN_CHUNKS || platform_now_ns() < end));
	/* The size is reported only once the array is garbage: no updater has to wait because a table is being
	 * resized. */
	if (result == CHUNK_OVER)
		call_rcu_sized(head, array_left_rcu, bytes);
	else if (result == CHUNK_MORE)
		call_rcu(head, resize_rest);
}

/* Part of an update: move @nr buckets, and make sure that the callback moves the rest and frees the array. */
static int help(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr)
{
	int result = move_some(table, array, nr, false);

	if (!QUIESCE_MUTANT(table_callback_lost) && quiesce__resize_claim_callback(array))
		call_rcu(&array->rcu, resize_rest);
	return result;
}

/* ---- resizing ---- */

/* Begin to move to an array of @lines lines, unless the table is being resized.  Returns 0 or -ENOMEM. */
static int resize(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t lines)
{
	struct quiesce__buckets *none = NULL, *fresh = quiesce__array_new(table, lines);

	if (!fresh)
		return -ENOMEM;
	if (lines > lines_of(array))
		quiesce__counts_choose_mode(table, lines);
	/* BK2: full, pairs with BK2 in quiesce__resize_maintain() and quiesce__table_stats() and reserve_step() */
	if (!quiesce_cmpxchg(BK2, &array->next, &none, fresh)) {
		quiesce__array_free(fresh);
		return 0;
	}
	(void)quiesce_fetch_add_relaxed(&table->resizes, (uint64_t)1); /* Relaxed: a statistic. */
	quiesce_probe(resize_begin, table, lines_of(array), lines);
	if (!QUIESCE_MUTANT(table_resize_inherited))
		quiesce_store_relaxed(&array->queued, quiesce__resize_parked() + 1); /* Relaxed: no thread finds it parked. */
	call_rcu(&array->rcu, resize_rest);
	return 0;
}

int quiesce__first_array(struct quiesce__table *table)
{
	struct quiesce__buckets *none = NULL;
	uint64_t lines = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a hint. */
	struct quiesce__buckets *fresh;

	if (quiesce__counts_begin(table))
		return -ENOMEM;
	fresh = quiesce__array_new(table, lines);
	if (!fresh && lines > 1)
		fresh = quiesce__array_new(table, 1);
	if (!fresh)
		return -ENOMEM;
	quiesce__counts_choose_mode(table, lines_of(fresh));
	/* BK3: full, pairs with BK3 in quiesce__buckets_of() and quiesce__update_resume() */
	if (!quiesce_cmpxchg(BK3, &table->array, &none, fresh))
		quiesce__array_free(fresh);
	return 0;
}

/* The number of elements, never too low.  A sum includes elements that are inserted and removed again while it is
 * made, so two sums must agree before the table grows. */
static uint64_t sum_of(const struct quiesce__table *table, uint64_t capacity)
{
	uint64_t sum = quiesce__table_sum(table), again;

	if (sum <= capacity || QUIESCE_MUTANT(table_sum_once))
		return sum;
	again = quiesce__table_sum(table);
	return again < sum ? again : sum;
}

/* Check whether the table should grow or shrink.  It grows by one step; the end of that resize checks again. */
static void maintain_size(struct quiesce__table *table, struct quiesce__buckets *array)
{
	uint64_t lines = lines_of(array), min_lines = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a hint. */
	uint64_t sum = sum_of(table, quiesce__capacity_of(table, lines)), wanted = lines;

	quiesce__count_checked(table, array, sum);
	if (quiesce__capacity_of(table, wanted) < sum)
		wanted *= 2;
	if (wanted < min_lines)
		wanted = min_lines;
	while (wanted > min_lines && sum <= quiesce__capacity_of(table, wanted) / QUIESCE_SHRINK)
		wanted = wanted / 4 > min_lines ? wanted / 4 : min_lines;
	if (wanted != lines && resize(table, array, wanted))
		count_failure(table);
}

void quiesce__resize_maintain(struct quiesce__table *table, struct quiesce__buckets *array, bool check)
{
	/* BK2: acquire, pairs with BK2 in resize() */
	if (quiesce_load_consume(BK2, &array->next))
		help(table, array, HELP_BUCKETS);
	else if (check)
		maintain_size(table, array);
}

enum reserve_result {
	RESERVE_OVER,
	RESERVE_MORE,
	RESERVE_FAILED, /* no memory */
};

/* One step towards @lines lines.  @tries: the number of steps, up to this one, that found no bucket left to move, while other threads
 * moved the last ones. */
static enum reserve_result reserve_step(struct quiesce__table *table, uint64_t lines, uint32_t *tries)
{
	enum reserve_result result = RESERVE_MORE;
	struct quiesce__buckets *array;
	uint32_t before = *tries;
	int moved;

	*tries = 0;
	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	array = quiesce_load_consume(BK3, &table->array);
	if (!array) {
		if (quiesce__first_array(table))
			result = RESERVE_FAILED;
	/* BK2: acquire, pairs with BK2 in resize() */
	} else if (quiesce_load_consume(BK2, &array->next)) {
		moved = help(table, array, CHUNK_BUCKETS);
		*tries = moved ? 0 : before + 1;
		if (moved < 0)
			result = RESERVE_FAILED;
	} else if (lines_of(array) < lines) {
		if (resize(table, array, lines))
			result = RESERVE_FAILED;
	} else {
		maintain_size(table, array); /* an earlier request may have kept the table larger */
		result = RESERVE_OVER;
	}
	rcu_read_unlock();
	if (*tries) /* other threads move the last buckets */
		quiesce__wait_for_holder(*tries);
	return result;
}

int quiesce__table_reserve(struct quiesce__table *table, size_t nr)
{
	uint64_t lines = 1, before = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a hint. */
	enum reserve_result result;
	uint32_t tries = 0;

	if (!quiesce__table_usable(table, "hashtable_reserve() or hashmap_reserve()"))
		return -EINVAL;
	while (lines <= MAX_LINES && quiesce__capacity_of(table, lines) < nr)
		lines *= 2;
	if (lines > MAX_LINES)
		return -ENOMEM;
	quiesce_store_relaxed(&table->min_lines, lines); /* Relaxed: a hint. */
	/* Relaxed: a hint.  The last request counts, or one could shrink the table and another enlarge it without end. */
	do
		result = reserve_step(table, lines, &tries);
	while (result == RESERVE_MORE && quiesce_load_relaxed(&table->min_lines) == lines);
	quiesce__free_without_worker();
	/* Relaxed: a size that could not be allocated is not wanted any more. */
	if (result == RESERVE_FAILED && quiesce_load_relaxed(&table->min_lines) == lines)
		quiesce_store_relaxed(&table->min_lines, before); /* Relaxed: a hint. */
	return result == RESERVE_FAILED ? -ENOMEM : 0;
}
