/* SPDX-License-Identifier: MIT */
/* percpu.c - memory for counters per id, and sums.
 *
 *   a chunk:  | its description | the sets of id 0 | the sets of id 1 | ... , a page each
 *   a page:   | words of one object | words of another | ...
 *
 * An object has the same place in the page of every id, so an address is one shift and one addition, many
 * objects share a page of an id, and no two ids share a line.  A chunk that is empty goes back to the system.
 *
 * PC1  sets there, then the object says so | the object says so, then count there
 * PC2  the accesses of who leaves, then counted | sum of who left, then of who entered
 */
#include "percpu.h"

#include <errno.h>

#define SET_BYTES ((size_t)1 << QUIESCE_PERCPU_SHIFT)
#define WORD sizeof(uint64_t)
#define UNIT (2 * WORD) /* places are as many words */
#define UNITS (SET_BYTES / UNIT)
#define MAP_BITS 64u
#define PAGE 4096u

struct chunk {
	struct chunk *next;
	char *base;     /* the page of id 0 */
	uint32_t used;  /* units */
	uint64_t map[(UNITS + MAP_BITS - 1) / MAP_BITS]; /* a bit for each unit */
};
_Static_assert(sizeof(struct chunk) <= PAGE, "a description has a page");

static struct quiesce__lock lock; /* signals are blocked while it is held */
static struct chunk *chunks;
static size_t nr_ids; /* fixed at initialisation */

void quiesce__percpu_init(void)
{
	nr_ids = (size_t)platform_nr_possible_cpus();
}

/* Do threads count in sequences?  Then nobody counts in the sets by locked instructions.  Not where sequences
 * cannot be restarted: who leaves looks, in the sequence, whether somebody waits.  Fixed at first use. */
static int64_t sequences;
static bool sequences_known;

static void choose(void)
{
	if (sequences_known)
		return;
	if (!QUIESCE_TSAN && quiesce_shazptr_v1.rseq && platform_membarrier_restart() == 0)
		sequences = quiesce_shazptr_v1.rseq;
	sequences_known = true;
}

static size_t chunk_bytes(void)
{
	return PAGE + nr_ids * SET_BYTES;
}

bool quiesce__percpu_sequences(void)
{
	return quiesce_load_relaxed(&sequences) != 0; /* Relaxed: fixed before there are counters. */
}

/* ---- places in chunks; under the lock ---- */

static bool taken(const struct chunk *chunk, size_t unit)
{
	return chunk->map[unit / MAP_BITS] >> unit % MAP_BITS & 1;
}

static void mark(struct chunk *chunk, size_t unit, size_t nr)
{
	for (size_t i = unit; i < unit + nr; i++)
		chunk->map[i / MAP_BITS] ^= 1ull << i % MAP_BITS;
}

/* A place of @nr units, aligned to as many; UNITS: there is none. */
static size_t find_place(const struct chunk *chunk, size_t nr)
{
	for (size_t unit = 0; unit < UNITS; unit += nr) {
		bool free = true;

		for (size_t i = unit; i < unit + nr; i++)
			free = free && !taken(chunk, i);
		if (free)
			return unit;
	}
	return UNITS;
}

static struct chunk *new_chunk(void)
{
	struct chunk *chunk = platform_pages_get(chunk_bytes());

	if (!chunk)
		return NULL;
	chunk->base = (char *)chunk + PAGE;
	chunk->next = chunks;
	chunks = chunk;
	return chunk;
}

/* Relaxed throughout: nobody counts here now.  A page that is as it should be stays untouched. */
static void clean(char *base, uint32_t words)
{
	for (size_t id = 0; id < nr_ids; id++)
		for (uint32_t i = 0; i < words; i++) {
			uint64_t *word = (uint64_t *)(void *)(base + id * SET_BYTES) + i;

			if (quiesce_load_relaxed(word) != QUIESCE_PERCPU_START)
				quiesce_store_relaxed(word, QUIESCE_PERCPU_START);
		}
}

static char *take(uint32_t words)
{
	size_t nr = words * WORD / UNIT, unit = UNITS;
	struct chunk *chunk;

	for (chunk = chunks; chunk; chunk = chunk->next) {
		unit = find_place(chunk, nr);
		if (unit != UNITS)
			break;
	}
	if (!chunk) {
		chunk = new_chunk();
		unit = 0;
	}
	if (!chunk)
		return NULL;
	mark(chunk, unit, nr);
	chunk->used += (uint32_t)nr;
	clean(chunk->base + unit * UNIT, words);
	return chunk->base + unit * UNIT;
}

static void give_back(char *base, uint32_t words)
{
	size_t nr = words * WORD / UNIT;

	for (struct chunk **at = &chunks, *chunk; (chunk = *at); at = &chunk->next) {
		if (base < chunk->base || base >= chunk->base + SET_BYTES)
			continue;
		mark(chunk, (size_t)(base - chunk->base) / UNIT, nr);
		chunk->used -= (uint32_t)nr;
		if (!chunk->used) {
			*at = chunk->next;
			platform_pages_put(chunk, chunk_bytes());
		}
		return;
	}
}

/* ---- objects ---- */

int quiesce__percpu_open(struct quiesce_percpu *percpu, uint32_t words)
{
	struct platform_sigmask mask;
	char *base;

	quiesce__init();
	quiesce__fork_check();
	quiesce__used();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	choose();
	base = quiesce_load_relaxed(&percpu->base); /* Relaxed: written under the lock. */
	if (!base && (base = take(words))) {
		percpu->id = quiesce_shazptr_v1.id;
		percpu->limit = nr_ids << QUIESCE_PERCPU_SHIFT;
		/* PC1: release, pairs with PC1 in quiesce__percpu_add() and quiesce__percpu_inside() */
		quiesce_store_release(PC1, &percpu->base, base);
		/* PC1: release, pairs with PC1 in quiesce__percpu_add() */
		quiesce_store_release(PC1, &percpu->rseq, sequences);
	}
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	return base ? 0 : -ENOMEM;
}

void quiesce__percpu_close(struct quiesce_percpu *percpu, uint32_t words)
{
	struct platform_sigmask mask;

	quiesce__fork_check();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	if (percpu->base)
		give_back(percpu->base, words);
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	*percpu = (struct quiesce_percpu){ .base = NULL };
}

/* A thread without an id keeps to one set too. */
static size_t set_of_thread(void)
{
	int64_t id = quiesce__claim_id();

	return id >= 0 ? (size_t)id % nr_ids : ((uintptr_t)quiesce__self() >> 12) % nr_ids;
}

void quiesce__percpu_add(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t index)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	char *base = quiesce_load_acquire(PC1, &percpu->base);
	uint64_t *word = shared + index;

	if (base && !sequences)
		word = (uint64_t *)(void *)(base + (set_of_thread() << QUIESCE_PERCPU_SHIFT)) + index;
	/* PC2: full, pairs with PC2 in sum() */
	quiesce_fetch_add(PC2, word, (uint64_t)1);
}

static uint64_t sum_shared(const uint64_t *shared, uint32_t index)
{
	/* PC2: acquire, pairs with PC2 in quiesce__percpu_add() */
	return quiesce_load_acquire(PC2, shared + index);
}

static uint64_t sum(const char *base, uint32_t index)
{
	uint64_t total = 0;

	for (size_t id = 0; base && id < nr_ids; id++)
		/* PC2: acquire, pairs with PC2 in quiesce__percpu_add() */
		total += quiesce_load_acquire(PC2, (const uint64_t *)(const void *)(base + id * SET_BYTES) + index);
	return total;
}

uint64_t quiesce__percpu_inside(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t entered, uint32_t left)
{
	/* Before it is asked where the sets are: who has left by the shared set may have entered in another one. */
	uint64_t nr = sum_shared(shared, QUIESCE_MUTANT(percpu_entered_first) ? entered : left);
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);

	if (QUIESCE_MUTANT(percpu_one_pass)) {
		nr = shared[entered] - nr;
		for (size_t id = 0; base && id < nr_ids; id++) {
			const uint64_t *set = (const uint64_t *)(const void *)(base + id * SET_BYTES);

			/* PC2: acquire, pairs with PC2 in quiesce__percpu_add() */
			nr += quiesce_load_acquire(PC2, set + entered);
			/* PC2: acquire, pairs with PC2 in quiesce__percpu_add() */
			nr -= quiesce_load_acquire(PC2, set + left);
		}
		return nr;
	}
	if (QUIESCE_MUTANT(percpu_entered_first)) {
		nr += sum(base, entered);
		return nr - sum(base, left) - sum_shared(shared, left);
	}
	nr += sum(base, left);
	return sum(base, entered) + sum_shared(shared, entered) - nr;
}

void quiesce__percpu_all_left(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t entered, uint32_t left)
{
	if (QUIESCE_MUTANT(percpu_lost_stay))
		return;
	/* PC2: full, pairs with PC2 in sum() */
	quiesce_fetch_add(PC2, &shared[left], quiesce__percpu_inside(percpu, shared, entered, left));
}

uint64_t quiesce__percpu_total(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t index)
{
	uint64_t nr = sum_shared(shared, index);
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);

	return base ? nr + sum(base, index) - nr_ids * QUIESCE_PERCPU_START : nr;
}

/* ---- fork ---- */

void quiesce__percpu_fork_prepare(void)
{
	quiesce__lock(&lock);
}

void quiesce__percpu_fork_parent(void)
{
	quiesce__unlock(&lock);
}

void quiesce__percpu_fork_child(void)
{
	quiesce__lock_reset(&lock, false);
}
