/* SPDX-License-Identifier: MIT */
/* buckets.c - arrays of buckets, their locks, and how a table gets another array.
 *
 *	table->array  ->  old: | moved | moved | not yet | ...     next  ->  new: | . | . | ...
 *
 * Whoever updates a table that is being resized moves a few buckets first; a callback of call_rcu() moves the
 * rest, and gives the old array back a grace period after nobody can come to it any more.
 *
 * I1. A bucket is written by who holds its lock, and never again after MOVED.  A key is in the bucket that is found by
 *     going from table->array along next while there is MOVED.
 * I2. table->array moves on when all buckets of the old array have moved, not before: the arrays that an update may write are
 *     table->array and the next one.
 * I3. Updates are sections: an array outlives who uses it by a grace period.  So does the table's own place: who
 *     saw the last bucket move is still in its section when the callback wants to know.
 * I4. An old array has one callback under way from the moment when it gets a successor, except while memory is too short to go on: then
 *     the next update asks for one.  The callback works under the array's lock and only while the table is there.
 * I5. A line that continues a full bucket stays with it until the bucket moves: lookups never see a chain become shorter.
 *
 * BK1  bucket written, then unlocked or moved | looked at, or locked
 * BK2  array filled in, then made the next | the next one used
 * BK3  all buckets moved, then the next array is the table's | fetch it, then use it
 * BK5  a line from the heap zeroed, then on the array's list | freed
 * BK4  a bucket moved, then counted as moved | all counted, then the next array is the table's
 * BK6  the last bucket moved, then is the callback parked | parked, then is there a bucket left
 */
#include "buckets.h"

#include <errno.h>
#include <string.h>

#include "../core.h"
#include "../reclaim.h"

#define GROUP_SHIFT 10 /* lines that share a count of elements */
#define GROUP_LINES ((uint64_t)1 << GROUP_SHIFT)
#define MAX_LINES ((uint64_t)1 << 40)
#define MIN_EXTRA_LINES 64 /* an array with less has none for full buckets; */
#define PAGES_LINES 2048   /* one with more gets pages, which cost nothing until they are used */
#define MIN_EXTRA_USED 8   /* so many do no harm */
#define HELP_LINES 4       /* moved by an update */
#define BATCH_LINES 64     /* moved by the callback without giving its lock away; */
#define BATCHES 16         /* and without giving its thread to others */
#define CHECK_EVERY 32     /* elements too many in a group until the whole is looked at */
#define SHRINK 8           /* a table shrinks when that part of what it may hold is left */
#define SPINS 64
#define YIELDS 64
#define PAUSE_NS 50000

_Static_assert(sizeof(struct quiesce__buckets) == 2 * sizeof(struct quiesce__bucket), "two lines in front of the buckets");

const struct quiesce__no_array quiesce__no_array = { .array.count = (uint64_t *)&quiesce__no_array.count };

/* ---- locks of buckets ---- */

/* A lock is held for some tens of nanoseconds, unless its holder lost the CPU. */
static QUIESCE_COLD void wait_for_holder(uint32_t turn)
{
	static uint32_t nobody_wakes;

	if (turn < SPINS)
		quiesce_cpu_relax();
	else if (turn < SPINS + YIELDS)
		platform_yield();
	else
		platform_futex_wait(&nobody_wakes, 0, PAUSE_NS);
}

bool quiesce__bucket_lock(struct quiesce__bucket *line)
{
	uint64_t header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: a guess, decided by the exchange. */

	for (uint32_t turn = 0; !(header & QUIESCE_BUCKET_MOVED); turn++) {
		if (header & QUIESCE_BUCKET_LOCKED) {
			wait_for_holder(turn);
			header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: as above. */
		/* BK1: full, pairs with BK1 in quiesce__bucket_unlock() */
		} else if (quiesce_cmpxchg(BK1, &line->word[0], &header, header | QUIESCE_BUCKET_LOCKED)) {
			return true;
		}
	}
	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	(void)quiesce_load_acquire(BK1, &line->word[0]);
	return false;
}

void quiesce__bucket_unlock(struct quiesce__bucket *line, uint64_t flags)
{
	uint64_t header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: it is the holder's. */

	/* BK1: release, pairs with BK1 in quiesce__bucket_lock() and quiesce__bucket_find() and quiesce__bucket_follow() */
	quiesce_store_release(BK1, &line->word[0], (header & ~QUIESCE_BUCKET_LOCKED) | flags);
}

const struct quiesce__bucket *quiesce__bucket_follow(const struct quiesce__buckets *array, uint64_t hash)
{
	const struct quiesce__bucket *line;

	do {
		array = quiesce_load_relaxed(&array->next); /* Relaxed: set before any bucket of it moved, which was acquired. */
		line = quiesce__bucket_in(array, hash);
		/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	} while (quiesce_load_acquire(BK1, &line->word[0]) & QUIESCE_BUCKET_MOVED);
	return line;
}

/* ---- arrays ---- */

static uint64_t counts_of(uint64_t lines)
{
	return (lines + GROUP_LINES - 1) >> GROUP_SHIFT;
}

/* How many elements @lines lines should have at most. */
static uint64_t room_of(const struct quiesce__table *table, uint64_t lines)
{
	return lines == 1 ? table->kind->slots : lines * table->kind->fill;
}

static void failed(struct quiesce__table *table)
{
	(void)quiesce_fetch_add_relaxed(&table->failures, (uint64_t)1); /* Relaxed: a statistic. */
}

static struct quiesce__buckets *array_new(struct quiesce__table *table, uint64_t lines)
{
	uint64_t extra = lines < MIN_EXTRA_LINES ? 0 : lines >> (lines < PAGES_LINES ? table->kind->extra_shift : table->kind->tidy_shift);
	uint64_t counts = counts_of(lines);
	size_t bytes = sizeof(struct quiesce__buckets) + (lines + extra) * sizeof(struct quiesce__bucket) + counts * sizeof(uint64_t);
	struct quiesce__buckets *array = lines > MAX_LINES ? NULL : platform_lines_get(bytes);

	if (!array)
		return NULL;
	array->mask = lines - 1;
	array->table = table;
	array->extra = lines_from(array) + lines;
	array->nr_extra = extra;
	array->count = (uint64_t *)(lines_from(array) + lines + extra);
	array->bytes = bytes;
	array->left = lines;
	array->queued = 1; /* looked at only when there is a successor, which comes with a callback */
	return array;
}

static void array_free(struct quiesce__buckets *array)
{
	struct quiesce__extra *more, *next;

	/* BK5: acquire, pairs with BK5 in quiesce__bucket_extra() */
	for (more = quiesce_load_acquire(BK5, &array->more); more; more = next) {
		next = more->next;
		platform_lines_put(more, sizeof(*more));
	}
	platform_lines_put(array, array->bytes);
}

static struct quiesce__buckets *array_of(struct rcu_head *head)
{
	return (struct quiesce__buckets *)((char *)head - offsetof(struct quiesce__buckets, rcu));
}

static void array_free_rcu(struct rcu_head *head)
{
	array_free(array_of(head));
}

/* ---- lines for full buckets ---- */

struct quiesce__bucket *quiesce__bucket_extra(struct quiesce__buckets *array, struct quiesce__extra **spare)
{
	struct quiesce__extra *more = *spare;
	/* Relaxed: how many there are is a hint, and the addition gives each number once. */
	uint64_t used = quiesce_load_relaxed(&array->extra_used);

	if (used >= array->nr_extra && !more)
		return NULL;
	used = quiesce_fetch_add_relaxed(&array->extra_used, (uint64_t)1); /* Relaxed: as above. */
	if (used < array->nr_extra)
		return &array->extra[used];
	if (!more)
		return NULL;
	*spare = more->next;
	more->next = quiesce_load_relaxed(&array->more); /* Relaxed: only compared; followed when the array is freed. */
	/* BK5: full, pairs with BK5 in array_free() */
	while (!quiesce_cmpxchg(BK5, &array->more, &more->next, more))
		;
	return &more->line;
}

int quiesce__update_spare(struct quiesce__table *table, struct quiesce__update *u)
{
	struct quiesce__extra *more = platform_lines_get(sizeof(*more));

	(void)table;
	if (!more)
		return -ENOMEM;
	more->next = u->spare;
	u->spare = more;
	return 0;
}

void quiesce__update_done(struct quiesce__update *u)
{
	struct quiesce__extra *more;

	while ((more = u->spare)) {
		u->spare = more->next;
		platform_lines_put(more, sizeof(*more));
	}
}

/* ---- counts ---- */

uint64_t quiesce__bucket_count(struct quiesce__buckets *array, const struct quiesce__bucket *line, int64_t change)
{
	uint64_t *count = &array->count[(uint64_t)(line - lines_from(array)) >> GROUP_SHIFT];

	return quiesce_fetch_add_relaxed(count, (uint64_t)change) + (uint64_t)change; /* Relaxed: counts order nothing. */
}

uint64_t quiesce__buckets_sum(const struct quiesce__buckets *array)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < counts_of(lines_of(array)); i++)
		sum += quiesce_load_relaxed(&array->count[i]); /* Relaxed: as they are. */
	return sum;
}

/* An element that moves from one array to the other may be missed or counted twice. */
size_t quiesce__table_count(const struct quiesce__table *table)
{
	const struct quiesce__buckets *array, *next;
	uint64_t sum = 0;

	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	for (array = quiesce_load_consume(BK3, &table->array); array; array = next) {
		sum += quiesce__buckets_sum(array);
		/* BK2: acquire, pairs with BK2 in resize() */
		next = quiesce_load_consume(BK2, &array->next);
	}
	rcu_read_unlock();
	return sum;
}

/* ---- moving ---- */

static void resize_rest(struct rcu_head *head);
static void settle(struct quiesce__table *table, struct quiesce__buckets *array);


/* All buckets of @array have moved: its successor takes its place. */
static void table_switch(struct quiesce__table *table, struct quiesce__buckets *next)
{
	/* Relaxed: when to begin anew; see wants_tidying(). */
	quiesce_store_relaxed(&next->extra_base, quiesce_load_relaxed(&next->extra_used));
	/* BK3: release, pairs with BK3 in quiesce__bucket_find() and quiesce__update_begin() and quiesce__table_count() */
	quiesce_store_release(BK3, &table->array, next);
}

/* The last bucket has moved.  The table is there: an update of it is who moved, or the callback, for which its end waits, here
 * at the next array's lock.  (Locks are taken from older arrays to newer ones.) */
static void resized(struct quiesce__table *table, struct quiesce__buckets *next)
{
	quiesce__lock(&next->lock);
	table_switch(table, next);
	settle(table, next);
	quiesce__unlock(&next->lock);
}

/* Move the bucket that begins with line @i, false: a line was wanted and there was none. */
static bool move_bucket(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t i, struct quiesce__update *u)
{
	struct quiesce__bucket *line = quiesce__bucket_in(array, i);
	struct quiesce__buckets *next = quiesce_load_relaxed(&array->next); /* Relaxed: who calls has seen it. */

	for (;;) {
		if (!quiesce__bucket_lock(line))
			return true;
		if (table->kind->move(table, array, line, next, &u->spare))
			break;
		quiesce__bucket_unlock(line, 0);
		if (quiesce__update_spare(table, u)) {
			failed(table);
			return false;
		}
	}
	quiesce__bucket_unlock(line, QUIESCE_BUCKET_MOVED);
	/* BK4: full, pairs with BK4 in move_bucket() and park() */
	if (quiesce_fetch_add(BK4, &array->left, (uint64_t)-1) == 1) /* BK6: the same, pairs with BK6 in park() */
		resized(table, next);
	return true;
}

/* Move @nr buckets.  How many there were to begin with, or -ENOMEM. */
static int move_some(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr)
{
	struct quiesce__update u = { .spare = NULL };
	uint64_t lines = lines_of(array), i, end;
	int result = 0;

	if (quiesce_load_relaxed(&array->cursor) >= lines) { /* Relaxed: a hint. */
		/* Relaxed: only whether to go over them once more; each bucket knows whether it has moved. */
		if (!quiesce_load_relaxed(&array->missed))
			return 0;
		quiesce_store_relaxed(&array->missed, 0); /* Relaxed: as above. */
		quiesce_store_relaxed(&array->cursor, 0); /* Relaxed: as above. */
	}
	i = quiesce_fetch_add_relaxed(&array->cursor, nr); /* Relaxed: numbers; a bucket moves under its lock. */
	for (end = i + nr < lines ? i + nr : lines; i < end; i++, result++) {
		if (move_bucket(table, array, i, &u))
			continue;
		quiesce_store_relaxed(&array->missed, 1); /* Relaxed: as above. */
		result = -ENOMEM;
		break;
	}
	quiesce__update_done(&u);
	return result;
}

/* ---- the callback of an old array ---- */

/* May the caller, and nobody else, ask for the callback? */
static bool take_turn(struct quiesce__buckets *array)
{
	uint32_t parked = 0;

	/* BK6: full, pairs with BK6 in park() */
	return quiesce_load_relaxed(&array->queued) == 0 && quiesce_cmpxchg(BK6, &array->queued, &parked, 1); /* Relaxed: a hint. */
}

enum rest {
	REST_MORE,
	REST_PARKED, /* until an update asks: memory is short, or others are at the last buckets */
	REST_OVER,
};

static enum rest park(struct quiesce__buckets *array)
{
	/* BK6: full, pairs with BK6 in take_turn() */
	quiesce_xchg(BK6, &array->queued, 0);
	/* Whoever moves the last bucket sees that nobody is asked, or is seen here. */
	/* BK4: acquire, pairs with BK4 in move_bucket() */
	return quiesce_load_acquire(BK4, &array->left) == 0 && take_turn(array) ? REST_OVER : REST_PARKED;
}

/* Under the lock.  The table is there while there are buckets left, because its end waits for the lock then. */
static enum rest move_batch(struct quiesce__buckets *array)
{
	if (!array->table || quiesce_load_relaxed(&array->left) == 0) /* Relaxed: the array is only given back. */
		return REST_OVER;
	return move_some(array->table, array, BATCH_LINES) > 0 ? REST_MORE : park(array);
}

/* A grace period after the last bucket moved, whoever moved it has left its section, and so has switched. */
static void array_left_rcu(struct rcu_head *head)
{
	call_rcu_sized(head, array_free_rcu, array_of(head)->bytes);
}

static void resize_rest(struct rcu_head *head)
{
	struct quiesce__buckets *array = array_of(head);
	enum rest rest = REST_MORE;
	size_t bytes = array->bytes;

	for (int i = 0; i < BATCHES && rest == REST_MORE; i++) {
		quiesce__lock(&array->lock);
		rest = move_batch(array);
		quiesce__unlock(&array->lock);
	}
	/* Not told how large it is before it is garbage: nobody has to wait because a table is resized. */
	if (rest == REST_OVER)
		call_rcu_sized(head, array_left_rcu, bytes);
	else if (rest == REST_MORE)
		call_rcu(head, resize_rest);
}

/* An update moves @nr buckets, and sees to it that the rest is moved and the array given back. */
static int help(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t nr)
{
	int result = move_some(table, array, nr);

	if (take_turn(array))
		call_rcu(&array->rcu, resize_rest);
	return result;
}

/* ---- resizing ---- */

/* Begin to move to an array of @lines lines, unless the table is being resized.  0 or -ENOMEM. */
static int resize(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t lines)
{
	struct quiesce__buckets *none = NULL, *fresh = array_new(table, lines);

	if (!fresh)
		return -ENOMEM;
	/* BK2: full, pairs with BK2 in tend() and quiesce__table_count() */
	if (!quiesce_cmpxchg(BK2, &array->next, &none, fresh)) {
		array_free(fresh);
		return 0;
	}
	(void)quiesce_fetch_add_relaxed(&table->resizes, (uint64_t)1); /* Relaxed: a statistic. */
	call_rcu(&array->rcu, resize_rest);
	return 0;
}

static int first_array(struct quiesce__table *table)
{
	struct quiesce__buckets *none = no_array();
	uint64_t lines = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a wish. */
	struct quiesce__buckets *fresh = array_new(table, lines);

	if (!fresh && lines > 1)
		fresh = array_new(table, 1);
	if (!fresh)
		return -ENOMEM;
	/* BK3: full, pairs with BK3 in quiesce__bucket_find() and quiesce__update_begin() */
	if (!quiesce_cmpxchg(BK3, &table->array, &none, fresh))
		array_free(fresh);
	return 0;
}

/* Lines that continue a bucket stay with it (I5), so after many changes they are more than its elements need.  But
 * where equal hashes are the reason, another array would have as many. */
static bool wants_tidying(const struct quiesce__table *table, const struct quiesce__buckets *array)
{
	uint64_t usual = lines_of(array) >> table->kind->tidy_shift;
	uint64_t base = 2 * quiesce_load_relaxed(&array->extra_base); /* Relaxed: a statistic. */

	if (usual < MIN_EXTRA_USED)
		usual = MIN_EXTRA_USED;
	return quiesce_load_relaxed(&array->extra_used) > (usual > base ? usual : base); /* Relaxed: a statistic. */
}

/* Look at the whole: is it time for more lines or less? */
static void settle(struct quiesce__table *table, struct quiesce__buckets *array)
{
	uint64_t lines = lines_of(array), least = quiesce_load_relaxed(&table->min_lines); /* Relaxed: a wish. */
	uint64_t sum = quiesce__buckets_sum(array), wanted = lines;

	while (room_of(table, wanted) < sum)
		wanted *= 2;
	while (wanted > least && sum <= room_of(table, wanted) / SHRINK)
		wanted = wanted / 4 > least ? wanted / 4 : least;
	if ((wanted != lines || wants_tidying(table, array)) && resize(table, array, wanted))
		failed(table);
}

/* After @change elements more, of which there are @count in their group now.  Where all the keys meet in one bucket the table
 * would not get better: so the whole decides, but not often. */
static void maybe_resize(struct quiesce__table *table, struct quiesce__buckets *array, int change, uint64_t count)
{
	uint64_t lines = lines_of(array), limit = room_of(table, lines < GROUP_LINES ? lines : GROUP_LINES);
	bool large = lines > GROUP_LINES;

	if (change > 0 ? (count > limit && (!large || (count - limit) % CHECK_EVERY == 1)) || wants_tidying(table, array)
		       : lines > quiesce_load_relaxed(&table->min_lines) && /* Relaxed: a wish. */
				 count <= limit / SHRINK && (!large || count % CHECK_EVERY == 0))
		settle(table, array);
}

/* ---- updates ---- */

int quiesce__update_begin(struct quiesce__table *table, struct quiesce__update *u, uint64_t hash)
{
	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	while ((u->array = quiesce_load_consume(BK3, &table->array)) == no_array()) {
		int err;

		rcu_read_unlock();
		err = first_array(table);
		if (err)
			return err;
		rcu_read_lock();
	}
	u->hash = hash;
	while (!quiesce__bucket_lock(u->line = quiesce__bucket_in(u->array, hash)))
		u->array = quiesce_load_relaxed(&u->array->next); /* Relaxed: set before any bucket moved, which was acquired. */
	return 0;
}

/* Do what is to be done about the array before leaving the section. */
static void tend(struct quiesce__table *table, const struct quiesce__update *u, int change, uint64_t count)
{
	/* BK3: acquire, pairs with BK3 in table_switch() */
	struct quiesce__buckets *array = quiesce_load_consume(BK3, &table->array);

	/* BK2: acquire, pairs with BK2 in resize() */
	if (quiesce_load_consume(BK2, &array->next))
		help(table, array, HELP_LINES);
	else if (array == u->array && change)
		maybe_resize(table, array, change, count);
}

void quiesce__update_end(struct quiesce__table *table, struct quiesce__update *u, int change)
{
	uint64_t count = change ? quiesce__bucket_count(u->array, u->line, change) : 0, resizes;

	quiesce__bucket_unlock(u->line, 0);
	resizes = quiesce_load_relaxed(&table->resizes); /* Relaxed: a statistic. */
	tend(table, u, change, count);
	rcu_read_unlock();
	/* Where there is no worker, callbacks are run by who queues them outside sections.  Relaxed: as above. */
	if (quiesce_unlikely(quiesce_load_relaxed(&table->resizes) != resizes))
		quiesce__reclaim_rouse();
}

int quiesce__table_reserve(struct quiesce__table *table, size_t nr)
{
	uint64_t lines = 1;
	int err = 0;

	while (lines <= MAX_LINES && room_of(table, lines) < nr)
		lines *= 2;
	if (lines > MAX_LINES)
		return -ENOMEM;
	quiesce_store_relaxed(&table->min_lines, lines); /* Relaxed: a wish. */
	for (bool again = true, waits = false; again && !err; waits ? platform_yield() : (void)0) {
		struct quiesce__buckets *array;

		rcu_read_lock();
		/* BK3: acquire, pairs with BK3 in table_switch() */
		array = quiesce_load_consume(BK3, &table->array);
		/* BK2: acquire, pairs with BK2 in resize() */
		if (array == no_array()) {
			err = first_array(table);
		} else if (quiesce_load_consume(BK2, &array->next)) {
			err = help(table, array, BATCH_LINES);
			waits = err == 0; /* for others, at the last buckets */
			err = err < 0 ? err : 0;
		} else if (lines_of(array) < lines) {
			err = resize(table, array, lines);
		} else {
			again = false;
		}
		rcu_read_unlock();
	}
	quiesce__reclaim_rouse();
	/* What could not be had is no wish any more. */
	if (err)
		quiesce_store_relaxed(&table->min_lines, 1); /* Relaxed: a wish. */
	return err;
}

/* ---- beginning and end ---- */

void quiesce__table_init(struct quiesce__table *table, const struct quiesce__buckets_kind *kind, uint64_t seed)
{
	*table = (struct quiesce__table){ .array = no_array(), .seed = seed, .kind = kind, .min_lines = 1 };
}

bool quiesce__table_is_empty(const struct quiesce__table *table)
{
	return quiesce_load_relaxed(&table->array) == no_array(); /* Relaxed: only compared. */
}

/* True: @array was the table's, and is no more. */
static bool take_away(struct quiesce__table *table, struct quiesce__buckets *array)
{
	bool is_last;

	quiesce__lock(&array->lock);
	is_last = quiesce_load_relaxed(&table->array) == array; /* Relaxed: only the callback may change it now, under the lock. */
	if (is_last) {
		array->table = NULL;
		/* BK3: release, pairs with BK3 in quiesce__bucket_find() */
		quiesce_store_release(BK3, &table->array, no_array());
	}
	quiesce__unlock(&array->lock);
	return is_last;
}

struct quiesce__buckets *quiesce__table_detach(struct quiesce__table *table)
{
	struct quiesce__buckets *array;

	do /* BK3: acquire, pairs with BK3 in table_switch() */
		array = quiesce_load_consume(BK3, &table->array);
	while (array != no_array() && !take_away(table, array));
	return array;
}

void quiesce__table_release(struct quiesce__buckets *array)
{
	struct quiesce__buckets *next;

	if (array == no_array())
		return;
	/* BK2: acquire, pairs with BK2 in resize() */
	next = quiesce_load_consume(BK2, &array->next);
	if (next)
		call_rcu_sized(&next->rcu, array_free_rcu, next->bytes);
	/* Else the callback that is under way gives it back; it does not go on. */
	if (!next || take_turn(array))
		call_rcu_sized(&array->rcu, array_free_rcu, array->bytes);
}
