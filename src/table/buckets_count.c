/* SPDX-License-Identifier: MIT */
/* buckets_count.c - the element count of a table, and when to check whether the table should be resized.
 *
 * A small table has two words, for elements inserted and removed, so each update knows the number.  A large table counts
 * per CPU: an update writes no line that other CPUs write, and the number is known only by a sum over all CPUs.  So the sum
 * is made after as many updates as could have brought the table to a limit since the last sum.  Of these, one in 8 or in
 * 64 is counted, by the counts of its CPU, so that neither the keys nor the order of the updates decide which.
 *
 * BK8  counts allocated | counts loaded, then the array that goes with them is the table's
 * BK3  see buckets.c
 * PC1  see percpu/percpu.c
 */
#include "buckets.h"

#include <errno.h>


enum { PUT_IN = QUIESCE_PUT_IN, TAKEN_OUT = QUIESCE_TAKEN_OUT, NR_WORDS };

#if defined(QUIESCE_SIM)
#define PERCPU_LINES 16u
#define IDS_FOR_ONE 1024u
#define LATE 1024u
#else
#define PERCPU_LINES 256u /* lines of an array from which on the counts of 256 CPUs take less memory than the array */
#define IDS_FOR_ONE 4u /* a sum reads a word of each CPU: this many words cost as much as an update */
#define LATE 4u /* a table that is nearly full is summed up so rarely that it may grow late by a 32nd of its capacity */
#endif

int quiesce__counts_begin(struct quiesce__table *table)
{
	struct quiesce__counts *none = NULL, *fresh;

	/* BK8: acquire, pairs with BK8 in quiesce__counts_begin() */
	if (quiesce_load_acquire(BK8, &table->counts))
		return 0;
	fresh = platform_lines_get(sizeof *fresh);
	if (!fresh)
		return -ENOMEM;
	if (QUIESCE_MUTANT(table_counts_twice))
		quiesce_store_relaxed(&table->counts, fresh); /* Relaxed: a planted bug. */
	/* BK8: full, pairs with BK8 in quiesce__counts_begin() */
	else if (!quiesce_cmpxchg(BK8, &table->counts, &none, fresh))
		platform_lines_put(fresh, sizeof *fresh);
	return 0;
}

static void counts_free(struct rcu_head *head)
{
	struct quiesce__counts *counts = (struct quiesce__counts *)(void *)((char *)head - offsetof(struct quiesce__counts, rcu));

	if (counts->percpu.base)
		quiesce__percpu_close(&counts->percpu);
	platform_lines_put(counts, sizeof *counts);
}

void quiesce__counts_end(struct quiesce__table *table)
{
	struct quiesce__counts *counts = table->counts;

	/* Relaxed: no thread updates the table, and table_count() is in a section. */
	quiesce_store_relaxed(&table->counts, NULL);
	if (counts)
		call_rcu(&counts->rcu, counts_free);
}

void quiesce__counts_choose_mode(struct quiesce__table *table, uint64_t lines)
{
	/* Of two threads that make the first array at one time, one finds the other's counts. */
	/* BK8: acquire, pairs with BK8 in quiesce__counts_begin() */
	struct quiesce__counts *counts = quiesce_load_acquire(BK8, &table->counts);
	uint32_t per_cpu = lines >= PERCPU_LINES;

	/* Without memory for sets all updates share the two words. */
	if (per_cpu && !quiesce_load_relaxed(&counts->per_cpu) && quiesce__percpu_open(&counts->percpu, NR_WORDS)) /* Relaxed: a policy. */
		per_cpu = 0;
	if (quiesce_load_relaxed(&counts->per_cpu) == per_cpu)      /* Relaxed: a policy; all sums read all words. */
		return;
	quiesce_store_relaxed(&counts->per_cpu, per_cpu); /* Relaxed: a policy. */
	/* PC1: release, pairs with PC1 in quiesce__count_fast() */
	quiesce_store_release(PC1, &counts->open, per_cpu ? quiesce__percpu_open_word(&counts->percpu) : 0);
}

uint64_t quiesce__table_sum(const struct quiesce__table *table)
{
	const struct quiesce__counts *counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */

	uint64_t sum = counts ? quiesce__percpu_inside(&counts->percpu, counts->shared, PUT_IN, TAKEN_OUT) : 0;

	return (int64_t)sum < 0 ? 0 : sum; /* counts order nothing: a removal may be visible before its insertion */
}

size_t quiesce__table_count(const struct quiesce__table *table)
{
	uint64_t sum = 0;

	rcu_read_lock();
	/* BK3: acquire, pairs with BK3 in table_switch() */
	if (quiesce_load_consume(BK3, &table->array))
		sum = quiesce__table_sum(table);
	rcu_read_unlock();
	return sum;
}

/* ---- when to check the sum ---- */

static uint64_t shared_by_all(const struct quiesce__counts *counts)
{
	/* Relaxed: other threads may count in between. */
	return quiesce_load_relaxed(&counts->shared[PUT_IN]) - quiesce_load_relaxed(&counts->shared[TAKEN_OUT]);
}

/* For a small table: true if it has too many elements, or too few. */
static bool is_beyond(const struct quiesce__table *table, uint64_t lines, int change, uint64_t nr)
{
	uint64_t capacity = quiesce__capacity_of(table, lines);

	/* Relaxed: a hint. */
	return change > 0 ? nr > capacity : nr <= capacity / QUIESCE_SHRINK && lines > quiesce_load_relaxed(&table->min_lines);
}

uint64_t quiesce__count_of_removals(const struct quiesce__table *table)
{
	const struct quiesce__counts *counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */

	/* Relaxed: a hint. */
	return quiesce__percpu_tick(&counts->percpu, counts->shared, TAKEN_OUT) + quiesce_load_relaxed(&counts->shared[TAKEN_OUT]);
}

static uint32_t sample_shift(uint64_t lines)
{
	return QUIESCE_SAMPLE_SHIFT((lines - 1) * sizeof(struct quiesce__bucket));
}

/* The number of sampled ones among the last @nr changes of word @word. */
static uint32_t sampled(const struct quiesce__counts *counts, uint32_t word, uint32_t nr, uint64_t lines)
{
	uint32_t shift = sample_shift(lines), rest = (uint32_t)(quiesce__percpu_tick(&counts->percpu, counts->shared, word) - nr);

	return (nr + (rest & ((1u << shift) - 1))) >> shift;
}

/* Account for @nr sampled changes.  True for one of the updates that reach the limit, so that not all at once make
 * sums, and arrays.  That one sets the next limit; if it is lost, another update is chosen after a while.  Each
 * array has its own limit: a late update does not set one that was computed for a larger array. */
static bool count_sampled(struct quiesce__buckets *array, uint32_t nr)
{
	int64_t before = quiesce_fetch_add_relaxed(&array->until_sum, -(int64_t)nr); /* Relaxed: an interval. */

	return before > 0 ? before <= nr : !(before & 1023);
}

bool quiesce__count_sampled(struct quiesce__buckets *array)
{
	return count_sampled(array, 1);
}

bool quiesce__count_change(struct quiesce__table *table, const struct quiesce__update *u, int change)
{
	struct quiesce__counts *counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */
	uint32_t word = change > 0 ? PUT_IN : TAKEN_OUT, nr = (uint32_t)(change > 0 ? change : -change);
	uint64_t lines = lines_of(u->array);

	if (!quiesce_load_relaxed(&counts->per_cpu)) { /* Relaxed: a policy. */
		quiesce_fetch_add_relaxed(&counts->shared[word], (uint64_t)nr); /* Relaxed: counts order nothing. */
		/* Relaxed: the value at the last sum. */
		return is_beyond(table, lines, change, quiesce_load_relaxed(&counts->others) + shared_by_all(counts));
	}
	for (uint32_t i = 0; i < nr; i++)
		quiesce__percpu_add(&counts->percpu, counts->shared, word);
	nr = sampled(counts, word, nr, lines);
	return nr && count_sampled(u->array, nr);
}

void quiesce__count_checked(struct quiesce__table *table, struct quiesce__buckets *array, uint64_t sum)
{
	static const uint64_t none[NR_WORDS];
	struct quiesce__counts *counts = quiesce_load_relaxed(&table->counts); /* Relaxed: with the array, which was acquired. */
	uint64_t lines = lines_of(array), capacity = quiesce__capacity_of(table, lines), low = capacity / QUIESCE_SHRINK;
	uint64_t min = 1 + quiesce__percpu_nr_sets(&counts->percpu) / IDS_FOR_ONE, max = capacity >> (sample_shift(lines) + 3);
	uint64_t up = capacity > sum ? capacity - sum : 0, down = sum > low ? sum - low : 0, few = up < down ? up : down;

	min = min > max / LATE ? min : max / LATE;
	min = min < max ? min : max + 1;
	few >>= sample_shift(lines) + 1;
	quiesce_store_relaxed(&array->until_sum, (int64_t)(few > min ? few : min)); /* Relaxed: an interval. */
	if (!quiesce_load_relaxed(&counts->per_cpu)) /* Relaxed: a policy. */
		/* Relaxed: a hint. */
		quiesce_store_relaxed(&counts->others, quiesce__percpu_inside(&counts->percpu, none, PUT_IN, TAKEN_OUT));
}
