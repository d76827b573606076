/* SPDX-License-Identifier: MIT */
/* buckets_lines.c - overflow lines of full buckets: allocation, replacement, and reuse after a grace period.
 *
 *	an array's own, never used -> in a bucket -> replaced: in a pool -> waiting for a grace period -> free, in the pool
 *	the heap ---------------------^                                                                        |
 *	                              ^------------------------------------------------------------------------+
 *
 * A bucket with more lines than its elements need gets other lines: the elements of the old overflow lines are copied, to
 * holes of the first line and to new lines; then one store links the first line to these instead.  Readers that came to the
 * old lines earlier still find their elements there, because a line is not written before those readers are gone.
 *
 * I1. After a removal a bucket has at most 1.5 n + 0.5 overflow lines, where n is the number that its elements need; if
 *     n is 0 it has none, provided that the overflow lines are empty, or the first line has two holes.  Exceptions:
 *     another thread holds the pool's lock, the pool has REPLACED_MAX lines that wait for readers, or memory is short.
 * I2. No thread waits for a pool's lock: an update that finds it locked takes a line from elsewhere, or leaves the bucket
 *     as long as it is.  (So it may stay locked in a child of fork().)
 *
 * BK5  a line from the heap zeroed, then on the array's list | freed
 */
#include "buckets.h"

#include <errno.h>

#include "runtime/core.h"

#if defined(QUIESCE_SIM)
#define REPLACED_MIN 1u
#define REPLACED_MAX 8u
#define GP_NS 0u
#else
#define REPLACED_MIN 32u /* replaced lines of a pool that justify a grace period */
#define GP_NS 2000000u /* least time between two grace periods that a table requests */
#define REPLACED_MAX 1024u /* most replaced lines of a pool; readers may stay for long */
#endif

static struct quiesce__line_pool *pool_of(const struct quiesce__buckets *array, const struct quiesce__bucket *first)
{
	return &array->pools[(uint64_t)(first - quiesce__bucket_in(array, 0)) >> POOL_SHIFT];
}

/* The list pointer of a line that is in no bucket; it is not in the line itself, whose words readers may still
 * load. */
static struct quiesce__bucket **next_of(struct quiesce__buckets *array, struct quiesce__bucket *line)
{
	uint64_t i = (uint64_t)((uintptr_t)line - (uintptr_t)array->extra) / sizeof(*line);

	return i < array->nr_extra ? &array->links[i] : &((struct quiesce__extra *)line)->free;
}

static void push(struct quiesce__buckets *array, struct quiesce__bucket **list, struct quiesce__bucket *line)
{
	*next_of(array, line) = *list;
	*list = line;
}

/* ---- a pool's lines, under its lock ---- */

/* Replaced lines begin to wait for a grace period, if no others do. */
static void begin_to_wait(struct quiesce__line_pool *pool, struct quiesce__update *u)
{
	if (pool->waiting || !pool->replaced)
		return;
	pool->waiting = pool->replaced;
	pool->nr_waiting = pool->nr_replaced;
	pool->replaced = NULL;
	pool->seq = quiesce_get_state_synchronize_rcu();
	u->wants_gp = true;
}

/* Lines that have waited for their grace period become free. */
static void collect(struct quiesce__buckets *array, struct quiesce__line_pool *pool, struct quiesce__update *u)
{
	struct quiesce__bucket *rest = pool->free, *line;

	if (!pool->waiting)
		return;
	if (!QUIESCE_MUTANT(table_line_early) && !quiesce_poll_state_synchronize_rcu(pool->seq)) {
		u->wants_gp = true; /* no update may have requested it yet */
		return;
	}
	pool->free = pool->waiting;
	pool->nr_replaced -= pool->nr_waiting;
	pool->waiting = NULL;
	while ((line = rest)) { /* usually a few lines, or none */
		rest = *next_of(array, line);
		push(array, &pool->free, line);
	}
	begin_to_wait(pool, u);
}

static struct quiesce__bucket *take_free(struct quiesce__buckets *array, struct quiesce__line_pool *pool, struct quiesce__update *u)
{
	struct quiesce__bucket *line;

	if (!pool->free)
		collect(array, pool, u);
	line = pool->free;
	if (line)
		pool->free = *next_of(array, line);
	return line;
}

/* ---- an empty line ---- */

static struct quiesce__bucket *clear_line(struct quiesce__bucket *line)
{
	/* Relaxed: readers that found the line in its old bucket are gone, and a release store will link it. */
	for (unsigned int i = 0; line && i < 8; i++)
		quiesce_store_relaxed(&line->word[i], (uint64_t)0);
	return line;
}

static struct quiesce__bucket *take_new(struct quiesce__buckets *array, struct quiesce__update *u)
{
	struct quiesce__extra *more = u->spare;
	/* Relaxed: the load is a hint, and the addition gives each number once. */
	uint64_t used = quiesce_load_relaxed(&array->extra_used);

	if (used >= array->nr_extra && !more)
		return NULL;
	used = quiesce_fetch_add_relaxed(&array->extra_used, (uint64_t)1); /* Relaxed: each number is given once. */
	if (used < array->nr_extra) {
		/* The first access is a write, as in touch() of buckets_resize.c.  Relaxed: it is 0. */
		quiesce_store_relaxed(&array->extra[used].word[0], (uint64_t)0);
		return &array->extra[used];
	}
	if (!more)
		return NULL;
	u->spare = more->next;
	u->nr_spare--;
	more->next = quiesce_load_relaxed(&array->more); /* Relaxed: only compared; dereferenced when the array is freed. */
	/* BK5: full, pairs with BK5 in quiesce__array_free() */
	while (!quiesce_cmpxchg(BK5, &array->more, &more->next, more))
		;
	return &more->line;
}

struct quiesce__bucket *quiesce__bucket_extra(struct quiesce__buckets *array, const struct quiesce__bucket *first,
					      struct quiesce__update *u)
{
	struct quiesce__line_pool *pool = pool_of(array, first);
	struct quiesce__bucket *line = NULL;

	if (quiesce__trylock(&pool->lock)) {
		line = clear_line(take_free(array, pool, u));
		quiesce__unlock(&pool->lock);
	}
	return line ? line : take_new(array, u);
}

int quiesce__update_spare(struct quiesce__update *u)
{
	struct quiesce__extra *more = platform_lines_get(sizeof(*more));

	if (!more)
		return -ENOMEM;
	more->next = u->spare;
	u->spare = more;
	u->nr_spare++;
	return 0;
}

/* An update that comes too early need not request a grace period: the next update does, after lines of other
 * buckets have begun to wait, or for these. */
void quiesce__update_request_gp(struct quiesce__table *table, struct quiesce__update *u)
{
	struct quiesce__counts *counts;
	uint64_t now;

	if (quiesce_likely(!u->wants_gp))
		return;
	u->wants_gp = false;
	counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */
	now = platform_now_ns();
	if (now < quiesce_load_relaxed(&counts->gp_ns) + GP_NS) /* Relaxed: an interval. */
		return;
	quiesce_store_relaxed(&counts->gp_ns, now); /* Relaxed: an interval. */
	(void)quiesce_start_poll_synchronize_rcu();
}

/* ---- a bucket that is too long ---- */

/* Number of overflow lines that a bucket of @nr elements needs. */
static uint64_t lines_wanted(const struct quiesce__buckets_kind *kind, uint64_t nr)
{
	return nr <= kind->slots ? 0 : (nr - kind->slots + kind->linked_slots - 1) / kind->linked_slots;
}

/* Collect @nr empty lines, each linked to the next, in *@ret; false if there are not as many. */
static bool gather(const struct quiesce__table *table, struct quiesce__line_pool *pool, struct quiesce__update *u, uint64_t nr,
		   struct quiesce__bucket **ret)
{
	struct quiesce__bucket *line, *all = NULL, *next;

	while (nr && ((line = clear_line(take_free(u->array, pool, u))) || (line = take_new(u->array, u)))) {
		table->kind->link(line, all);
		all = line;
		nr--;
	}
	*ret = nr ? NULL : all;
	for (; nr && all; all = next) {
		next = (struct quiesce__bucket *)table->kind->follow(all);
		push(u->array, &pool->free, all);
	}
	return !nr;
}

static void replace_lines(const struct quiesce__table *table, struct quiesce__line_pool *pool, struct quiesce__update *u,
			  const struct quiesce__bucket *line)
{
	const struct quiesce__bucket *next;

	for (; line; line = next) {
		next = table->kind->follow(line);
		push(u->array, &pool->replaced, (struct quiesce__bucket *)line);
		pool->nr_replaced++;
	}
	if (!pool->waiting && pool->nr_replaced >= REPLACED_MIN)
		begin_to_wait(pool, u);
}

void quiesce__bucket_compact(const struct quiesce__table *table, struct quiesce__update *u, bool behind)
{
	const struct quiesce__bucket *old = table->kind->follow(u->line), *line;
	uint64_t nr, lines = 0, wanted;
	struct quiesce__bucket *fresh;
	struct quiesce__line_pool *pool;
	bool had = true;

	if (quiesce_likely(!old))
		return;
	nr = table->kind->number_in(u->line);
	/* One hole in the first line may be filled soon, and a check of the overflow lines costs a cache miss. */
	if (!behind && nr + 1 == table->kind->linked_slots)
		return;
	pool = pool_of(u->array, u->line);
	for (line = old; line; line = table->kind->follow(line), lines++)
		nr += table->kind->number_in(line);
	wanted = lines_wanted(table->kind, nr);
	if (wanted && 2 * lines <= 3 * wanted + 1)
		return;
	if (!quiesce__trylock(&pool->lock))
		return;
	if (pool->nr_replaced >= REPLACED_MAX) /* lines are otherwise collected only when an update takes one */
		collect(u->array, pool, u);
	if (pool->nr_replaced < REPLACED_MAX && (had = gather(table, pool, u, wanted, &fresh))) {
		table->kind->rebuild(u->line, fresh);
		replace_lines(table, pool, u, old);
	}
	quiesce__unlock(&pool->lock);
	u->wanted = had ? 0 : wanted;
}

/* Try once more to shorten the bucket, with lines from the heap, unless memory is short. */
static void shorten(struct quiesce__table *table, struct quiesce__update *u)
{
	while (u->nr_spare < u->wanted)
		if (quiesce__update_spare(u))
			return;
	if (quiesce__update_begin(table, u, u->hash))
		return;
	quiesce__bucket_compact(table, u, true); /* another update may have shortened the bucket meanwhile */
	quiesce__update_end(table, u, 0);
}

void quiesce__update_done_slow(struct quiesce__table *table, struct quiesce__update *u)
{
	struct quiesce__extra *more;

	if (u->wanted)
		shorten(table, u);
	while ((more = u->spare)) {
		u->spare = more->next;
		platform_lines_put(more, sizeof(*more));
	}
}
