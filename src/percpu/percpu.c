/* SPDX-License-Identifier: MIT */
/* percpu.c - memory for counters per id, and sums.
 *
 *   a chunk:  | its description | the sets of id 0 | the sets of id 1 | ... , a page each
 *   a page:   | words of one object | words of another | ... , as many of each
 *
 * An object has the same place in the page of every id, so an address is one shift and one addition, many
 * objects share a page of an id, and no two ids share a line.
 *
 * I1. There are addresses for every id that the kernel can give, and memory for every id that it says it can: a count is
 *     in a set that sums see, or the thread is told by SIGSEGV.  The page of an id that nobody has is read, and not written.
 * I2. Whether threads count in sequences, and by which id, does not change once there are counters: all do the same.
 * I3. A chunk has places of one size.  In a list are those that have room.  Of each size one that is empty is kept.
 *
 * PC1  sets there, then the object says so | the object says so, then count there
 * PC2  the accesses of who leaves, then counted | sum of who left, then of who entered
 */
#include "percpu.h"

#include "hazard/slots.h"

#include <errno.h>
#include <string.h>

#define SET_BYTES ((size_t)1 << QUIESCE_PERCPU_SHIFT)
#define WORD sizeof(uint64_t)
#define MAX_PLACES (SET_BYTES / (2 * WORD))
#define MAP_BITS 64u
#define MAP_WORDS ((MAX_PLACES + MAP_BITS - 1) / MAP_BITS)
#define PAGE 4096u
#define NR_SIZES 2u /* two words, or four */

struct chunk {
	struct chunk *next, **at; /* of those with room */
	size_t bytes;             /* of addresses */
	uint32_t words;           /* of a place */
	uint32_t used;            /* places */
	uint64_t taken[MAP_WORDS]; /* a bit for each place */
	uint64_t clean[MAP_WORDS]; /* never counted in */
};
_Static_assert(sizeof(struct chunk) <= PAGE, "a description has a page");

static struct quiesce__lock lock; /* signals are blocked while it is held */
static struct chunk *with_room[NR_SIZES], *spare[NR_SIZES];
static struct {
	void *start;
	size_t bytes;
} reserved; /* addresses for the next chunk */
static size_t nr_ids;   /* in sums */
static size_t max_ids;  /* that have addresses */
static bool chosen;

/* Nobody counts in the sets by locked instructions if any thread counts in sequences.  Not where these
 * cannot be restarted: who leaves looks, in the sequence, whether somebody waits. */
static void choose(void)
{
	if (chosen)
		return;
	nr_ids = platform_nr_ids(&max_ids);
	if (!QUIESCE_TSAN && quiesce_shazptr_v1.rseq && platform_membarrier_restart() == 0) {
		quiesce__sequences.id = quiesce_shazptr_v1.id;
		quiesce__sequences.limit = nr_ids << QUIESCE_PERCPU_SHIFT;
		quiesce__sequences.area = quiesce_shazptr_v1.rseq;
	}
	chosen = true;
}

/* Programs know one kind of id. */
uint64_t quiesce__percpu_open_word(const struct quiesce_percpu *percpu)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);

	if (!quiesce__percpu_sequences() || quiesce__slots.kind != QUIESCE_SLOTS_MM_CID)
		return 0;
	return 0 - (uint64_t)(uintptr_t)base;
}

/* ---- places in chunks; under the lock ---- */

static uint32_t size_of(uint32_t words)
{
	return words == 4;
}

static uint32_t places(const struct chunk *chunk)
{
	return (uint32_t)(SET_BYTES / WORD) / chunk->words;
}

static void link_chunk(struct chunk *chunk)
{
	struct chunk **list = &with_room[size_of(chunk->words)];

	chunk->next = *list;
	chunk->at = list;
	if (*list)
		(*list)->at = &chunk->next;
	*list = chunk;
}

static void unlink_chunk(struct chunk *chunk)
{
	*chunk->at = chunk->next;
	if (chunk->next)
		chunk->next->at = chunk->at;
}

static bool reserve(size_t nr)
{
	reserved.bytes = PAGE + nr * SET_BYTES;
	reserved.start = platform_reserve(reserved.bytes);
	return reserved.start != NULL;
}

/* Addresses without memory are kept for the next time. */
static struct chunk *new_chunk(void)
{
	struct chunk *chunk;

	if (!reserved.start && !reserve(max_ids) && !reserve(nr_ids))
		return NULL;
	if (platform_commit(reserved.start, PAGE + nr_ids * SET_BYTES))
		return NULL;
	chunk = reserved.start;
	chunk->bytes = reserved.bytes;
	reserved.start = NULL;
	memset(chunk->clean, QUIESCE_PERCPU_START ? 0 : 0xff, sizeof chunk->clean);
	return chunk;
}

/* An empty chunk, of the same size if there is one. */
static struct chunk *empty_chunk(uint32_t size)
{
	uint32_t from = spare[size] ? size : !size;
	struct chunk *chunk = spare[from];

	spare[from] = NULL;
	return chunk ? chunk : new_chunk();
}

static struct chunk *chunk_with_room(uint32_t words)
{
	struct chunk *chunk = with_room[size_of(words)];

	if (chunk)
		return chunk;
	chunk = empty_chunk(size_of(words));
	if (!chunk)
		return NULL;
	if (chunk->words && chunk->words != words)
		memset(chunk->clean, 0, sizeof chunk->clean);
	chunk->words = words;
	link_chunk(chunk);
	return chunk;
}

/* In a chunk that has one. */
static uint32_t free_place(const struct chunk *chunk)
{
	uint32_t i = 0;

	while (!~chunk->taken[i])
		i++;
	return i * MAP_BITS + (uint32_t)__builtin_ctzll(~chunk->taken[i]);
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
	struct chunk *chunk = chunk_with_room(words);
	uint64_t bit;
	uint32_t place;
	char *base;

	if (!chunk)
		return NULL;
	place = free_place(chunk);
	bit = 1ull << place % MAP_BITS;
	chunk->taken[place / MAP_BITS] |= bit;
	if (++chunk->used == places(chunk))
		unlink_chunk(chunk);
	base = (char *)chunk + PAGE + place * words * WORD;
	if (!(chunk->clean[place / MAP_BITS] & bit))
		clean(base, words);
	chunk->clean[place / MAP_BITS] &= ~bit;
	return base;
}

static void give_back(const char *base)
{
	size_t at = (uintptr_t)base % SET_BYTES;
	struct chunk *chunk = (struct chunk *)(void *)(uintptr_t)((uintptr_t)base - at - PAGE);
	uint32_t place = (uint32_t)(at / (chunk->words * WORD));

	chunk->taken[place / MAP_BITS] &= ~(1ull << place % MAP_BITS);
	if (chunk->used-- == places(chunk))
		link_chunk(chunk);
	if (chunk->used)
		return;
	unlink_chunk(chunk);
	if (spare[size_of(chunk->words)])
		platform_release(chunk, chunk->bytes);
	else
		spare[size_of(chunk->words)] = chunk;
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
	if (!base && (base = take(words)))
		/* PC1: release, pairs with PC1 in quiesce__percpu_add(), quiesce__percpu_inside() and quiesce__percpu_open_word() */
		quiesce_store_release(PC1, &percpu->base, base);
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	return base ? 0 : -ENOMEM;
}

void quiesce__percpu_close(struct quiesce_percpu *percpu)
{
	struct platform_sigmask mask;

	quiesce__fork_check();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	if (percpu->base)
		give_back(percpu->base);
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	*percpu = (struct quiesce_percpu){ .base = NULL };
}

/* A thread without an id keeps to one set too. */
static size_t set_of_thread(void)
{
	int64_t id = quiesce__claim_id();

	if (quiesce_likely((uint64_t)id < nr_ids))
		return (size_t)id;
	return (id >= 0 ? (size_t)id : (uintptr_t)quiesce__self() >> 12) % nr_ids;
}

static void add_locked(uint64_t *word)
{
	/* PC2: full, pairs with PC2 in sum() */
	quiesce_fetch_add(PC2, word, (uint64_t)1);
}

bool quiesce__percpu_add(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t index)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	char *base = quiesce_load_acquire(PC1, &percpu->base);

	if (!base) {
		add_locked(shared + index);
	} else if (!quiesce__percpu_sequences()) {
		add_locked((uint64_t *)(void *)(base + (set_of_thread() << QUIESCE_PERCPU_SHIFT)) + index);
	/* PC2: release, pairs with PC2 in sum() */
	} else if (quiesce_count_release_always(PC2, percpu, index * WORD)) {
		return false;
	} else {
		add_locked(shared + index);
	}
	return true;
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

uint64_t quiesce__percpu_nr(const struct quiesce_percpu *percpu)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	return quiesce_load_acquire(PC1, &percpu->base) ? nr_ids : 0;
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
	/* Without handlers: a thread may have been about to change the lists. */
	for (uint32_t size = 0; size < NR_SIZES; size++)
		for (struct chunk **at = &with_room[size]; *at; at = &(*at)->next)
			(*at)->at = at;
}
