/* SPDX-License-Identifier: MIT */
/* buckets_resize.c - how a table gets another array; idea, invariants and ledger are in buckets.c. */
#include "buckets.h"

#include <errno.h>

#include "runtime/core.h"
#include "rcu/reclaim.h"

#define HELP_LINES 4     /* moved by an update */
#define BATCH_LINES 64   /* moved by the callback without giving its lock away; */
#define MIN_BATCHES 16   /* and without giving its thread to others, or as many as take so long: */
#define STEP_NS 1000000u
#define TOUCH_GROWTH 8
#define PAGE_LINES 64    /* of the smallest pages; in the first, two are in front of the buckets */

static struct quiesce__buckets *array_of(struct rcu_head *head)
{
	return (struct quiesce__buckets *)((char *)head - offsetof(struct quiesce__buckets, rcu));
}

static void failed(struct quiesce__table *table)
{
	(void)quiesce_fetch_add_relaxed(&table->failures, (uint64_t)1); /* Relaxed: a statistic. */
}

/* ---- moving ---- */

static void resize_rest(struct rcu_head *head);
static void maintain_size(struct quiesce__table *table, struct quiesce__buckets *array, bool may_shrink);

/* All buckets of @array have moved: its successor takes its place. */
static void table_switch(struct quiesce__table *table, struct quiesce__buckets *next)
{
	/* BK3: release, pairs with BK3 in quiesce__buckets_of() and quiesce__update_begin() and quiesce__table_count() */
	quiesce_store_release(BK3, &table->array, next);
	quiesce__counts_widen(table, lines_of(next));
}

/* The last bucket of @array has moved.  Whoever is at work under the lock of an array of a table finds the table there: it moves
 * on from that array under the lock only, and its end waits for the lock of its last one.  Locks are taken from older
 * arrays to newer ones; the callback (@locked) has the first already. */
static void resized(struct quiesce__table *table, struct quiesce__buckets *array, bool locked)
{
	struct quiesce__buckets *next = quiesce_load_relaxed(&array->next); /* Relaxed: set long ago. */

	if (!locked)
		quiesce__lock(&array->lock);
	quiesce__lock(&next->lock);
	table_switch(table, next);
	maintain_size(table, next, true);
	quiesce__unlock(&next->lock);
	if (!locked)
		quiesce__unlock(&array->lock);
}

/* How many lines from the heap it takes at most to copy the bucket of @line: none if it has one line, as a rule. */
static uint32_t lines_for(const struct quiesce__table *table, const struct quiesce__bucket *line)
{
	uint32_t length = 0;

	while ((line = table->kind->follow(line)))
		length++;
	return length ? 2 * (length + 1) : 0;
}

/* Copy the bucket of @array that begins with @from, which is locked, into @to.  False: a line is wanted.
 * *@ret_shared: if not NULL, to be unlocked when @from says that it has moved, and not before: what is in an unlocked bucket is found
 * in one bucket only. */
static bool copy_lines(struct quiesce__table *table, struct quiesce__buckets *array, const struct quiesce__bucket *from,
		       struct quiesce__buckets *to, struct quiesce__update *u, struct quiesce__bucket **ret_shared)
{
	/* Several buckets of a table that shrinks become one; the others of a table that grows are nobody else's yet. */
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

/* Copy the bucket that @line, which is locked, begins.  0, or how many lines must be to spare. */
static uint32_t copy_bucket(struct quiesce__table *table, struct quiesce__buckets *array, const struct quiesce__bucket *line,
			    struct quiesce__update *u, struct quiesce__bucket **ret_shared)
{
	struct quiesce__buckets *next = quiesce_load_relaxed(&array->next); /* Relaxed: who calls has seen it. */
	uint32_t wanted = lines_for(table, line);

	/* Those that the array has are a hint: others take of them. */
	if (wanted > u->nr_spare && quiesce_load_relaxed(&next->extra_used) + wanted > next->nr_extra) /* Relaxed: as said. */
		return wanted;
	return copy_lines(table, array, line, next, u, ret_shared) ? 0 : u->nr_spare + 1;
}

/* Move the bucket that begins with line @i, false: there is no memory for it. */
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
	/* BK4: full, pairs with BK4 in move_bucket() and move_batch() */
	if (quiesce_fetch_add(BK4, &array->left, (uint64_t)-1) == (QUIESCE_MUTANT(table_switch_early) ? 2 : 1))
		resized(table, array, locked);
	return true;
}

static void touch_line(struct quiesce__buckets *array, uint64_t i)
{
	/* Relaxed: nothing is changed, whoever else is there. */
	(void)quiesce_fetch_add_relaxed(&lines_from(array)[i & (lines_of(array) - 1)].word[0], (uint64_t)0);
}

/* Write, before anything reads, to the pages of @next that lines @first to @last move to: a page that is read first is mapped twice, and
 * for the second time the kernel interrupts every CPU that runs the process, readers of other tables too.  Of an array that is very
 * much larger most pages would not be used at all. */
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

/* What is noted of buckets that stay is noted under the array's lock, which the callback (@locked) has: otherwise a miss might be
 * forgotten that came after a new beginning. */
static void note_begin(struct quiesce__buckets *array, bool locked)
{
	if (!locked && !QUIESCE_MUTANT(table_missed_unlocked))
		quiesce__lock(&array->lock);
}

static void note_end(struct quiesce__buckets *array, bool locked)
{
	if (!locked && !QUIESCE_MUTANT(table_missed_unlocked))
		quiesce__unlock(&array->lock);
}

/* A bucket before the cursor stays, for want of memory: when the cursor is at the end it begins anew. */
static void miss(struct quiesce__buckets *array, bool locked)
{
	note_begin(array, locked);
	quiesce_store_relaxed(&array->missed, !QUIESCE_MUTANT(table_missed_lost)); /* Relaxed: under the lock. */
	note_end(array, locked);
}

/* False: there is no reason to go over the buckets once more.  Each knows whether it has moved. */
static bool begin_anew(struct quiesce__buckets *array, bool locked)
{
	if (!quiesce_load_relaxed(&array->missed)) /* Relaxed: a hint. */
		return false;
	note_begin(array, locked);
	if (quiesce_load_relaxed(&array->missed)) { /* Relaxed: under the lock. */
		quiesce_store_relaxed(&array->missed, 0); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&array->cursor, 0); /* Relaxed: under the lock; numbers. */
	}
	note_end(array, locked);
	return true;
}

/* Move @nr buckets, at most as many as a page has lines; @locked: the array is.  How many there were to begin with, or -ENOMEM. */
static int move_some(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr, bool locked)
{
	struct quiesce__update u = { .nr_spare = 0 };
	uint64_t lines = lines_of(array), i, end;
	int result = 0;

	if (quiesce_load_relaxed(&array->cursor) >= lines && !begin_anew(array, locked)) /* Relaxed: a hint. */
		return 0;
	i = quiesce_fetch_add_relaxed(&array->cursor, nr); /* Relaxed: numbers; a bucket moves under its lock. */
	end = i + nr < lines ? i + nr : lines;
	if (i < end)
		touch(array, quiesce_load_relaxed(&array->next), i, end - 1); /* Relaxed: who calls has seen it. */
	for (; i < end; i++, result++) {
		if (move_bucket(table, array, i, &u, locked))
			continue;
		miss(array, locked);
		failed(table);
		result = -ENOMEM;
		break;
	}
	quiesce__update_done(table, &u);
	return result;
}

/* ---- the callback of an old array ---- */

/* May the caller, and nobody else, ask for the callback?  One that was under way in the parent is so in a child, too. */
bool quiesce__resize_step(struct quiesce__buckets *array)
{
	uint32_t found = quiesce_load_relaxed(&array->queued), mine = quiesce__resize_parked() + 1; /* Relaxed: a hint. */

	while (found != mine)
		/* BK6: full, pairs with BK6 in move_batch() and park_inherited() */
		if (quiesce_cmpxchg(BK6, &array->queued, &found, mine))
			return !(found & 1);
	return false;
}

/* I7: true if nobody updates the table in this process, but threads of the parent did, which may have left locks locked. */
static bool park_inherited(struct quiesce__buckets *array)
{
	uint32_t found = quiesce_load_relaxed(&array->queued); /* Relaxed: the exchange decides. */

	return found != quiesce__resize_parked() + 1 && !QUIESCE_MUTANT(table_locks_inherited) &&
	       /* BK6: full, pairs with BK6 in quiesce__resize_step() */
	       quiesce_cmpxchg(BK6, &array->queued, &found, found & ~1u);
}

enum rest {
	REST_MORE,
	REST_PARKED, /* until an update asks: memory is short, or others are at the last buckets */
	REST_OVER,
};

/* Under the lock.  The table is there while there are buckets left, because its end waits for the lock then. */
static enum rest move_batch(struct quiesce__buckets *array)
{
	/* BK4: acquire, pairs with BK4 in move_bucket() */
	if (!array->table || quiesce_load_acquire(BK4, &array->left) == 0)
		return REST_OVER;
	if (move_some(array->table, array, BATCH_LINES, true) > 0)
		return REST_MORE;
	/* Whoever moves the last bucket takes the lock after that, and then asks: after this, or the next batch sees that none is left. */
	/* BK6: release, pairs with BK6 in quiesce__resize_step() */
	quiesce_store_release(BK6, &array->queued, quiesce__resize_parked());
	return REST_PARKED;
}

/* A grace period after the last bucket moved, whoever moved it has left its section, and so has switched. */
static void array_left_rcu(struct rcu_head *head)
{
	call_rcu_sized(head, quiesce__array_free_rcu, quiesce__buckets_bytes(array_of(head)));
}

static void resize_rest(struct rcu_head *head)
{
	struct quiesce__buckets *array = array_of(head);
	uint64_t end = platform_now_ns() + STEP_NS;
	size_t bytes = quiesce__buckets_bytes(array);
	uint32_t batches = 0;
	enum rest rest;

	if (park_inherited(array))
		return;
	do {
		rcu_read_lock(); /* where there is no worker, who polls out of a section may wait for readers, under locks */
		quiesce__lock(&array->lock);
		rest = move_batch(array);
		quiesce__unlock(&array->lock);
		rcu_read_unlock();
	} while (rest == REST_MORE && (++batches < MIN_BATCHES || platform_now_ns() < end));
	/* Not told how large it is before it is garbage: nobody has to wait because a table is resized. */
	if (rest == REST_OVER)
		call_rcu_sized(head, array_left_rcu, bytes);
	else if (rest == REST_MORE)
		call_rcu(head, resize_rest);
}

/* An update moves @nr buckets, and sees to it that the rest is moved and the array given back. */
static int help(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr)
{
	int result = move_some(table, array, nr, false);

	if (!QUIESCE_MUTANT(table_turn_lost) && quiesce__resize_step(array))
		call_rcu(&array->rcu, resize_rest);
	return result;
}

/* ---- resizing ---- */

/* Begin to move to an array of @lines lines, unless the table is being resized.  0 or -ENOMEM. */
static int resize(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t lines)
{
	struct quiesce__buckets *none = NULL, *fresh = quiesce__array_new(table, lines);

	if (!fresh)
		return -ENOMEM;
	if (lines > lines_of(array))
		quiesce__counts_widen(table, lines);
	/* BK2: full, pairs with BK2 in quiesce__resize_maintain() and quiesce__table_stats() and reserve_step() */
	if (!quiesce_cmpxchg(BK2, &array->next, &none, fresh)) {
		quiesce__array_free(fresh);
		return 0;
	}
	(void)quiesce_fetch_add_relaxed(&table->resizes, (uint64_t)1); /* Relaxed: a statistic. */
	if (!QUIESCE_MUTANT(table_resize_inherited))
		quiesce_store_relaxed(&array->queued, quiesce__resize_parked() + 1); /* Relaxed: nobody finds it parked. */
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
	quiesce__counts_widen(table, lines_of(fresh));
	/* BK3: full, pairs with BK3 in quiesce__buckets_of() and quiesce__update_begin() */
	if (!quiesce_cmpxchg(BK3, &table->array, &none, fresh))
		quiesce__array_free(fresh);
	return 0;
}

/* The elements; not too few.  A sum has what was put in while it was made, and taken out again, so to grow for two must agree. */
static uint64_t sum_of(const struct quiesce__table *table, uint64_t room)
{
	uint64_t sum = quiesce__table_sum(table), again;

	if (sum <= room || QUIESCE_MUTANT(table_sum_once))
		return sum;
	again = quiesce__table_sum(table);
	return again < sum ? again : sum;
}

/* Look at the whole: is it time for more lines or less?  By one step up; the end of that resize looks again. */
static void maintain_size(struct quiesce__table *table, struct quiesce__buckets *array, bool may_shrink)
{
	uint64_t lines = lines_of(array), least = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a hint. */
	uint64_t sum = sum_of(table, quiesce__room_of(table, lines)), wanted = lines;

	quiesce__count_looked(table, array, sum);
	if (quiesce__room_of(table, wanted) < sum)
		wanted *= 2;
	if (wanted < least)
		wanted = least;
	while (may_shrink && wanted > least && sum <= quiesce__room_of(table, wanted) / QUIESCE_SHRINK)
		wanted = wanted / 4 > least ? wanted / 4 : least;
	if (wanted != lines && resize(table, array, wanted))
		failed(table);
}

void quiesce__resize_maintain(struct quiesce__table *table, struct quiesce__buckets *array, int change)
{
	/* BK2: acquire, pairs with BK2 in resize() */
	if (quiesce_load_consume(BK2, &array->next))
		help(table, array, HELP_LINES);
	else if (change)
		maintain_size(table, array, change < 0);
}

/* A step towards @lines lines.  1: there is more to do; 0; -ENOMEM. */
static int reserve_step(struct quiesce__table *table, uint64_t lines, uint32_t *turn)
{
	struct quiesce__buckets *array;
	int result;

	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	array = quiesce_load_consume(BK3, &table->array);
	if (!array) {
		result = quiesce__first_array(table);
		result = result ? result : 1;
	/* BK2: acquire, pairs with BK2 in resize() */
	} else if (quiesce_load_consume(BK2, &array->next)) {
		result = help(table, array, BATCH_LINES);
		*turn = result ? 0 : *turn + 1;
		result = result < 0 ? result : 1;
	} else if (lines_of(array) < lines) {
		result = resize(table, array, lines);
		result = result ? result : 1;
	} else {
		maintain_size(table, array, true); /* it may have been kept larger */
		result = 0;
	}
	rcu_read_unlock();
	if (*turn) /* others are at the last buckets */
		quiesce__wait_for_holder(*turn);
	return result;
}

int quiesce__table_reserve(struct quiesce__table *table, size_t nr)
{
	uint64_t lines = 1, before = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a hint. */
	uint32_t turn = 0;
	int result;

	if (!quiesce__table_usable(table, "hashtable_reserve() or hashmap_reserve"))
		return -EINVAL;
	while (lines <= MAX_LINES && quiesce__room_of(table, lines) < nr)
		lines *= 2;
	if (lines > MAX_LINES)
		return -ENOMEM;
	quiesce_store_relaxed(&table->min_lines, lines); /* Relaxed: a hint. */
	do /* Relaxed: as above.  The last request counts: otherwise one would make it smaller and the other larger, for ever. */
		result = reserve_step(table, lines, &turn);
	while (result > 0 && quiesce_load_relaxed(&table->min_lines) == lines);
	quiesce__free_here();
	if (result < 0 && quiesce_load_relaxed(&table->min_lines) == lines) /* Relaxed: what could not be had is not wanted any more. */
		quiesce_store_relaxed(&table->min_lines, before);           /* Relaxed: as above. */
	return result < 0 ? result : 0;
}
