/* SPDX-License-Identifier: MIT */
/* buckets.c - arrays of buckets and their locks; buckets_resize.c replaces the array of a table; buckets_lines.c manages
 * the overflow lines of full buckets.
 *
 *	table->array  ->  old: | moved | moved | not yet | ...     next  ->  new: | . | . | ...
 *
 * Each update of a table that is being resized moves a few buckets; a callback of call_rcu() moves the rest, and frees
 * the old array a grace period after it has become unreachable.
 *
 * I1. A bucket is written by the holder of its lock, and never again after MOVED.  A key is in the bucket that is found by
 *     following next from table->array while there is MOVED.
 * I2. table->array advances when all buckets of the old array have moved, not before: an update may write only to
 *     table->array and to the array after it.
 * I3. Updates are sections: an array outlives its users by a grace period.
 * I4. From the time that an old array gets a successor, one callback of it is pending, except while memory is too short
 *     to go on: then the next update queues it.  The callback works under the array's lock, and only while the table exists.
 * I5. The overflow lines of a bucket are replaced as a whole (buckets_lines.c), or a new line is linked before them.
 * I6. table->array advances from an array under that array's lock (buckets_resize.c, finish_resize()): if an array is the
 *     table's, and its lock is held, the table exists.
 * I7. In a child of fork() a callback that was pending in the parent takes no lock, and is parked, unless a thread of the
 *     child has updated the table: it may do so only if no other thread was updating the table at the fork.
 *
 * BK1  bucket written, then unlocked or moved                | header read, or bucket locked
 * BK2  array filled in, then made the next                   | the next one used
 * BK3  all buckets moved, then the next array is the table's | loaded, then used
 * BK4  a bucket moved, then counted as moved                 | all counted, then the next array is the table's
 * BK6  the callback's accesses, then parked                  | found parked, then queued, by one of the updates that find it so
 * BK7  an insertion that finds no seed draws one             | another insertion that found none takes this one
 * BK5  see buckets_lines.c
 */
#include "buckets.h"

#include <errno.h>
#include <string.h>

#include "runtime/core.h"
#include "rcu/reclaim.h"

#define MIN_EXTRA_LINES 64 /* smaller arrays have no overflow lines of their own */
#define PAGES_LINES 2048   /* larger arrays get pages for them, which cost nothing until they are used */
#define SPINS 64
#define YIELDS 64
#define PAUSE_NS 50000
#define SEED_OF_0 0x9e3779b97f4a7c15ull /* replaces a seed of 0, which means that none has been drawn */

_Static_assert(sizeof(struct quiesce__buckets) == 2 * sizeof(struct quiesce__bucket), "two lines in front of the buckets");

/* ---- locks of buckets ---- */

/* A bucket's lock is held for some tens of nanoseconds, unless its holder was preempted. */
QUIESCE_COLD void quiesce__wait_for_holder(uint32_t tries)
{
	static uint32_t never_woken;

	if (tries < SPINS)
		quiesce_cpu_relax();
	else if (tries < SPINS + YIELDS)
		platform_yield();
	else
		platform_futex_wait(&never_woken, 0, PAUSE_NS);
}

bool quiesce__bucket_lock(struct quiesce__bucket *line)
{
	uint64_t header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: the exchange decides. */

	for (uint32_t tries = 0; !(header & QUIESCE_BUCKET_MOVED); tries++) {
		if (header & QUIESCE_BUCKET_LOCKED) {
			quiesce__wait_for_holder(tries);
			header = quiesce_load_relaxed(&line->word[0]); /* Relaxed: the exchange decides. */
		/* BK1: full, pairs with BK1 in quiesce__bucket_unlock() */
		} else if (quiesce_cmpxchg(BK1, &line->word[0], &header, header | QUIESCE_BUCKET_LOCKED)) {
			return true;
		}
	}
	/* BK1: acquire, pairs with BK1 in quiesce__bucket_unlock() */
	(void)quiesce_load_acquire(BK1, &line->word[0]);
	return false;
}

/* ---- arrays ---- */

static uint64_t pools_of(uint64_t lines)
{
	return (lines + POOL_LINES - 1) >> POOL_SHIFT;
}

uint64_t quiesce__capacity_of(const struct quiesce__table *table, uint64_t lines)
{
	return lines == 1 ? table->kind->slots : lines * table->kind->fill;
}

struct quiesce__buckets *quiesce__array_new(struct quiesce__table *table, uint64_t lines)
{
	uint64_t extra = lines < MIN_EXTRA_LINES ? 0 : lines >> (lines < PAGES_LINES ? table->kind->extra_shift : table->kind->pages_shift);
	uint64_t pools = pools_of(lines);
	size_t bytes = sizeof(struct quiesce__buckets) + (lines + extra) * sizeof(struct quiesce__bucket) +
		       pools * sizeof(struct quiesce__line_pool) + extra * sizeof(struct quiesce__bucket *);
	struct quiesce__buckets *array = lines > MAX_LINES ? NULL : platform_lines_get(bytes);

	if (!array)
		return NULL;
	array->mask = (lines - 1) * sizeof(struct quiesce__bucket);
	array->table = table;
	array->extra = lines_from(array) + lines;
	array->nr_extra = extra;
	array->pools = (struct quiesce__line_pool *)(array->extra + extra);
	array->links = (struct quiesce__bucket **)(array->pools + pools);
	array->until_sum = 1;
	array->unmoved = lines;
	array->queued = quiesce__resize_parked() + 1; /* read only once there is a successor, which comes with a callback */
	return array;
}

void quiesce__array_free(struct quiesce__buckets *array)
{
	struct quiesce__extra *more, *next;

	/* BK5: acquire, pairs with BK5 in take_new() */
	for (more = quiesce_load_acquire(BK5, &array->more); more; more = next) {
		next = more->next;
		platform_lines_put(more, sizeof(*more));
	}
	platform_lines_put(array, quiesce__buckets_bytes(array));
}

void quiesce__array_free_rcu(struct rcu_head *head)
{
	quiesce__array_free((struct quiesce__buckets *)((char *)head - offsetof(struct quiesce__buckets, rcu)));
}

/* ---- updates ---- */

int quiesce__update_resume(struct quiesce__table *table, struct quiesce__update *u, uint64_t hash, struct quiesce__bucket *at)
{
	u->hash = hash;
	if (at == QUIESCE_AT_BEGIN)
		rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	while (!(u->array = quiesce_load_consume(BK3, &table->array))) {
		int err;

		rcu_read_unlock();
		err = quiesce__first_array(table);
		if (err)
			return err;
		rcu_read_lock();
	}
	if (quiesce__is_locked(at)) { /* the table still has the array */
		u->line = at;
		return 0;
	}
	while (!quiesce__bucket_lock(u->line = quiesce__bucket_in(u->array, hash)))
		u->array = quiesce_load_relaxed(&u->array->next); /* Relaxed: set before any bucket moved, which was acquired. */
	return 0;
}

/* Unlock the bucket, take part in a resize, or begin one, and leave the section. */
static void leave(struct quiesce__table *table, struct quiesce__update *u, bool check)
{
	quiesce__bucket_unlock(u->line, 0);
	quiesce__update_request_gp(table, u);
	/* BK3: acquire, pairs with BK3 in table_switch() */
	quiesce__resize_maintain(table, quiesce_load_consume(BK3, &table->array), check);
	rcu_read_unlock();
}

void quiesce__update_end(struct quiesce__table *table, struct quiesce__update *u, int change)
{
	/* Relaxed: only compared. */
	if (quiesce_likely(!u->wants_gp && change >= -1 && change <= 1 && quiesce_load_relaxed(&table->array) == u->array))
		(void)quiesce__update_finish(table, u->line, change, 0);
	else
		leave(table, u, change && quiesce__count_change(table, u, change));
}

uint64_t quiesce__update_finish_slow(struct quiesce__table *table, struct quiesce__bucket *line, int change, uint64_t ret)
{
	/* Relaxed: as in quiesce__update_finish(). */
	struct quiesce__update u = { .array = quiesce_load_relaxed(&table->array), .line = line };

	leave(table, &u, change ? quiesce__count_change(table, &u, change) : quiesce__count_sampled(u.array));
	return ret;
}

uint64_t quiesce__section_end(uint64_t ret)
{
	rcu_read_unlock();
	return ret;
}

/* ---- init and destruction ---- */

void quiesce__table_init(struct quiesce__table *table, const struct quiesce__buckets_kind *kind, uint64_t seed)
{
	*table = (struct quiesce__table){ .seed = seed ? seed : SEED_OF_0, .kind = kind, .min_lines = 1 };
}

bool quiesce__table_unusable(const char *call)
{
	quiesce__misuse(QUIESCE_MISUSE_NULL, "%s on a table that was not initialised: HASHTABLE_INIT(), HASHMAP_INIT or init comes first",
			call);
	return false;
}

uint64_t quiesce__seed_draw(struct quiesce__table *table)
{
	uint64_t seed = 0, drawn = platform_random() | 1;

	if (QUIESCE_MUTANT(table_seed_twice))
		quiesce_store_relaxed(&table->seed, drawn); /* Relaxed: a planted bug. */
	/* BK7: full, pairs with the caller, which uses it */
	else if (!quiesce_cmpxchg(BK7, &table->seed, &seed, drawn))
		return seed;
	return drawn;
}

/* Detach @array; false if it is not the table's any more. */
static bool detach_array(struct quiesce__table *table, struct quiesce__buckets *array)
{
	bool is_last;

	if (!QUIESCE_MUTANT(table_end_unlocked))
		quiesce__lock(&array->lock);
	/* Relaxed: only the callback may change it now, and needs the lock. */
	is_last = quiesce_load_relaxed(&table->array) == array;
	if (is_last) {
		array->table = NULL;
		/* BK3: release, pairs with BK3 in quiesce__buckets_of() */
		quiesce_store_release(BK3, &table->array, NULL);
	}
	if (!QUIESCE_MUTANT(table_end_unlocked))
		quiesce__unlock(&array->lock);
	return is_last;
}

struct quiesce__buckets *quiesce__table_detach(struct quiesce__table *table)
{
	struct quiesce__buckets *array;

	do /* BK3: acquire, pairs with BK3 in table_switch() */
		array = quiesce_load_consume(BK3, &table->array);
	while (array && !detach_array(table, array));
	quiesce__counts_end(table);
	return array;
}

void quiesce__table_release(struct quiesce__buckets *array)
{
	struct quiesce__buckets *next;

	if (!array)
		return;
	/* BK2: acquire, pairs with BK2 in resize() */
	next = quiesce_load_consume(BK2, &array->next);
	if (next)
		call_rcu_sized(&next->rcu, quiesce__array_free_rcu, quiesce__buckets_bytes(next));
	/* If there is a successor, a pending callback frees the array, and moves no more buckets. */
	if (!next || quiesce__resize_claim_callback(array))
		call_rcu_sized(&array->rcu, quiesce__array_free_rcu, quiesce__buckets_bytes(array));
}
