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
 * An overflow line whose last element is removed is unlinked, and keeps its words and its link: a reader in it goes on to
 * the lines that followed.
 *
 * I1. No overflow line of an unlocked bucket is empty, but for the only one of a bucket whose first line is full; and for the
 *     first KEPT_LINES while the pool has REPLACED_MAX lines that wait for readers.  Insertions search these for holes then, before
 *     they take another line.  So behind a reader that stays, elements that are replaced by others take no memory, unless a bucket
 *     has hundreds of them.
 * I2. After a removal that has counted its bucket, the bucket has at most 1.5 n + 0.5 overflow lines, where n is the number
 *     that its elements need; if n is 0 it has none, provided that the first line has two holes.  Exceptions: another thread
 *     holds the pool's lock, the pool has REPLACED_MAX lines that wait for readers, or memory is short.
 * I3. A removal counts a bucket of m overflow lines with a probability of at least COUNT_LINES / (2 m), whatever the keys
 *     are.  So a count costs a removal a few lines on average, and a long bucket is counted while it loses a part of its
 *     elements.
 * I4. No thread waits for a pool's lock: an update that finds it locked takes a line from elsewhere, gives up a line by
 *     BK9, and replaces none.  (So it may stay locked in a child of fork().)
 *
 * BK5  a line from the heap zeroed, then on the array's list | freed
 * BK9  a line unlinked beside the holder of the lock, then pushed | taken over by the next holder
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
#define REPLACED_MAX 1024u /* replaced lines of a pool at which buckets keep the lines that they have; readers may stay for long */
#endif
#define COUNT_LINES 16u /* overflow lines that every removal may count */
#define SCATTER 0x9e3779b97f4a7c15ull

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

static void add_replaced(struct quiesce__buckets *array, struct quiesce__line_pool *pool, struct quiesce__bucket *line)
{
	push(array, &pool->replaced, line);
	quiesce_store_relaxed(&pool->nr_replaced, pool->nr_replaced + 1); /* Relaxed: under the lock. */
}

static void begin_to_wait_if_many(struct quiesce__line_pool *pool, struct quiesce__update *u)
{
	if (!pool->waiting && pool->nr_replaced >= REPLACED_MIN)
		begin_to_wait(pool, u);
}

/* Lock the pool, and take over the lines that were given up meanwhile; false if it is locked. */
static bool try_lock(struct quiesce__buckets *array, struct quiesce__line_pool *pool)
{
	struct quiesce__bucket *line, *next;

	if (!quiesce__trylock(&pool->lock))
		return false;
	if (quiesce_likely(!quiesce_load_relaxed(&pool->unlinked))) /* Relaxed: a hint. */
		return true;
	/* BK9: full, pairs with BK9 in give_up() */
	for (line = quiesce_xchg(BK9, &pool->unlinked, NULL); line; line = next) {
		next = *next_of(array, line);
		add_replaced(array, pool, line);
	}
	return true;
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
	quiesce_store_relaxed(&pool->nr_replaced, pool->nr_replaced - pool->nr_waiting); /* Relaxed: under the lock. */
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

	if (try_lock(array, pool)) {
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
		add_replaced(u->array, pool, (struct quiesce__bucket *)line);
	}
	begin_to_wait_if_many(pool, u);
}

/* Give up @line, which no bucket links to any more. */
static void give_up(struct quiesce__line_pool *pool, struct quiesce__update *u, struct quiesce__bucket *line)
{
	struct quiesce__bucket **next = next_of(u->array, line);

	if (try_lock(u->array, pool)) {
		add_replaced(u->array, pool, line);
		begin_to_wait_if_many(pool, u);
		quiesce__unlock(&pool->lock);
		return;
	}
	*next = quiesce_load_relaxed(&pool->unlinked); /* Relaxed: only compared. */
	/* BK9: full, pairs with BK9 in try_lock() */
	while (!quiesce_cmpxchg(BK9, &pool->unlinked, next, line))
		;
}

/* Unlink the line behind @before. */
static void unlink_behind(const struct quiesce__table *table, struct quiesce__update *u, struct quiesce__bucket *before)
{
	struct quiesce__bucket *line = (struct quiesce__bucket *)table->kind->follow(before);

	table->kind->unlink(before, line);
	give_up(pool_of(u->array, u->line), u, line);
}

bool quiesce__bucket_keeps_lines(const struct quiesce__buckets *array, const struct quiesce__bucket *first)
{
	return quiesce_load_relaxed(&pool_of(array, first)->nr_replaced) >= REPLACED_MAX; /* Relaxed: a policy. */
}

/* Unlink @line of the locked bucket of @u if it is an overflow line that has become empty. */
static void unlink_if_empty(const struct quiesce__table *table, struct quiesce__update *u, const struct quiesce__bucket *line)
{
	struct quiesce__bucket *before = u->line;
	uint32_t index = 0;

	if (line == u->line || (table->kind->number_in(line) && !QUIESCE_MUTANT(table_unlink_full)))
		return;
	for (; table->kind->follow(before) != line; index++)
		before = (struct quiesce__bucket *)table->kind->follow(before);
	if (index >= KEPT_LINES || !quiesce__bucket_keeps_lines(u->array, u->line))
		unlink_behind(table, u, before);
}

/* Unlink the lines that have become empty at the front. */
static void unlink_front(const struct quiesce__table *table, struct quiesce__update *u)
{
	const struct quiesce__bucket *line = table->kind->follow(u->line);
	uint32_t nr = 0, keep = quiesce__bucket_keeps_lines(u->array, u->line) ? KEPT_LINES : 0;

	for (; line && !table->kind->number_in(line); line = table->kind->follow(line))
		nr++;
	for (; nr > keep; nr--)
		unlink_behind(table, u, u->line);
}

/* The number of overflow lines that a removal counts: at least COUNT_LINES << k with a probability of 1 >> k. */
static uint64_t lines_to_count(const struct quiesce__table *table)
{
	/* An odd number of low bits in the count of removals would repeat with the program's own pattern; its product is
	 * spread evenly over every pattern. */
	uint64_t spread = quiesce__count_of_removals(table) * SCATTER;

	return (uint64_t)COUNT_LINES << (spread >> 32 ? __builtin_clz((uint32_t)(spread >> 32)) : 32);
}

/* Rebuild the bucket if it has too many lines after a removal from an overflow line (@behind) or from the first line. */
static void compact(const struct quiesce__table *table, struct quiesce__update *u, bool behind)
{
	const struct quiesce__bucket *old = table->kind->follow(u->line), *line;
	uint64_t nr, lines = 0, wanted, most;
	struct quiesce__bucket *fresh;
	struct quiesce__line_pool *pool;
	bool had = true, all = u->wanted;

	u->wanted = 0;
	if (quiesce_likely(!old))
		return;
	nr = table->kind->number_in(u->line);
	/* One hole in the first line may be filled soon, and a check of the overflow lines costs a cache miss. */
	if (!behind && nr + 1 == table->kind->linked_slots)
		return;
	most = all ? UINT64_MAX : lines_to_count(table); /* shorten() has the lines for a bucket that was counted */
	for (line = old; line && lines < most; line = table->kind->follow(line), lines++)
		nr += table->kind->number_in(line);
	wanted = lines_wanted(table->kind, nr);
	if (line || (wanted && 2 * lines <= 3 * wanted + 1))
		return;
	pool = pool_of(u->array, u->line);
	if (!try_lock(u->array, pool))
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

/* True if the bucket keeps @only, its only overflow line, after a removal: its elements would fill the first line, which has one hole at
 * most, so the next insertion may need the line. */
static bool is_kept(const struct quiesce__table *table, const struct quiesce__bucket *first, const struct quiesce__bucket *only)
{
	uint64_t nr = table->kind->number_in(first);

	if (QUIESCE_MUTANT(table_kept_never))
		return false;
	return (nr + 1 >= table->kind->linked_slots && nr + table->kind->number_in(only) >= table->kind->linked_slots) ||
	       QUIESCE_MUTANT(table_kept_open);
}

void quiesce__bucket_shorten(const struct quiesce__table *table, struct quiesce__update *u, const struct quiesce__bucket *line)
{
	const struct quiesce__bucket *second = table->kind->follow(u->line);
	bool alone = second && !table->kind->follow(second);

	if (!second || (alone && is_kept(table, u->line, second)))
		return;
	unlink_if_empty(table, u, alone ? second : line);
	compact(table, u, line != u->line);
}

void quiesce__bucket_shorten_front(const struct quiesce__table *table, struct quiesce__update *u)
{
	unlink_front(table, u);
	compact(table, u, true);
}

/* Unlink all lines that have become empty. */
static void unlink_empty(const struct quiesce__table *table, struct quiesce__update *u)
{
	struct quiesce__bucket *before = u->line, *line;
	uint32_t keep = quiesce__bucket_keeps_lines(u->array, u->line) ? KEPT_LINES : 0;

	while ((line = (struct quiesce__bucket *)table->kind->follow(before))) {
		if (!keep && !table->kind->number_in(line)) {
			unlink_behind(table, u, before);
		} else {
			before = line;
			keep -= keep > 0;
		}
	}
}

void quiesce__bucket_shorten_all(const struct quiesce__table *table, struct quiesce__update *u)
{
	unlink_empty(table, u);
	u->wanted = 1; /* all lines are counted, as the removal has visited all */
	compact(table, u, true);
}

/* Try once more to shorten the bucket, with lines from the heap, unless memory is short. */
static void shorten(struct quiesce__table *table, struct quiesce__update *u)
{
	while (u->nr_spare < u->wanted)
		if (quiesce__update_spare(u))
			return;
	if (quiesce__update_begin(table, u, u->hash))
		return;
	compact(table, u, true); /* another update may have shortened the bucket meanwhile */
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
