/* SPDX-License-Identifier: MIT */
/* percpu.c - memory for per-CPU counters, and their sums.
 *
 *   a chunk:         | descriptor | page of id 0 | page of id 1 | ...
 *   a page of an id: | set of one object | set of another object | ...
 *
 * An id is what rseq reports for a running thread: a concurrency id or a CPU number.  A set is the counters (words) of
 * one object for one id.  The sets of an object are at the same offset in the page of each id, so that the address of a
 * set costs one shift and one addition, many objects share the pages, and no two ids share a cache line.
 *
 * I1. Addresses are reserved for every id that the kernel can give, and memory is committed for every id that the kernel
 *     reports as possible.  So a count either goes to a set that the sums read, or the thread faults (SIGSEGV).
 *     The page of an id that no thread has used is read by the sums, and never written.
 * I2. Whether threads count in restartable sequences, and by which kind of id, is chosen before the first counter is
 *     allocated, once for the process: locked instructions and sequences on one word would lose counts.
 * I3. All cells of a chunk have one size.  Chunks with a free cell are in the list of their size, and one empty chunk
 *     of each size is kept for reuse.
 *
 * PC1  sets allocated, then base published         | base loaded, then counted in the sets
 * PC2  the reader's accesses, then counted as left | sum of left, then sum of entered
 * PC3  accesses, then added to a word that is open | the word closed, then accesses
 *      accesses, then a word opened                | added to the word, then accesses
 */
#include "percpu.h"

#include "slots/slots.h"

#include <errno.h>
#include <string.h>

#define SET_BYTES ((size_t)1 << QUIESCE_PERCPU_SHIFT)
#define WORD sizeof(uint64_t)
#define MAX_CELLS (SET_BYTES / (2 * WORD))
#define MAP_BITS 64u
#define MAP_WORDS ((MAX_CELLS + MAP_BITS - 1) / MAP_BITS)
#define PAGE 4096u
#define NR_SIZES 2u /* cells of two words, or of four */

struct chunk {
	struct chunk *next, **at; /* list of chunks of this size that have a free cell */
	size_t bytes;             /* size of the reserved address range */
	uint32_t words;           /* words in a cell */
	uint32_t used;            /* number of cells in use */
	uint64_t taken[MAP_WORDS]; /* bitmap: cells in use */
	uint64_t clean[MAP_WORDS]; /* bitmap: cells whose words still have the start value */
};
_Static_assert(sizeof(struct chunk) <= PAGE, "a description has a page");

static struct quiesce__lock lock; /* signals are blocked while it is held */
static struct chunk *partial[NR_SIZES], *spare[NR_SIZES];
static struct {
	void *start;
	size_t bytes;
} reserved; /* address range reserved for the next chunk */
static size_t nr_ids;   /* ids that the sums read */
static size_t max_ids;  /* ids for which addresses are reserved */
static bool chosen;

/* Restartable sequences are chosen only where a membarrier can restart them: a reader that leaves checks
 * inside its sequence whether a waiter has to be woken. */
static void choose_sequences(void)
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

/* Inline code reads the concurrency id only, so with ids of another kind programs must call the library. */
uint64_t quiesce__percpu_open_word_of(const char *base)
{
	if (!quiesce__percpu_uses_sequences() || quiesce__slots.kind != QUIESCE_SLOTS_MM_CID)
		return 0;
	return 0 - (uint64_t)(uintptr_t)base;
}

uint64_t quiesce__percpu_open_word(const struct quiesce_percpu *percpu)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	return quiesce__percpu_open_word_of(quiesce_load_acquire(PC1, &percpu->base));
}

/* ---- cells in chunks; under the lock ---- */

static uint32_t size_index(uint32_t words)
{
	return words == 4;
}

static uint32_t nr_cells(const struct chunk *chunk)
{
	return (uint32_t)(SET_BYTES / WORD) / chunk->words;
}

static void link_chunk(struct chunk *chunk)
{
	struct chunk **list = &partial[size_index(chunk->words)];

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

/* If memory cannot be committed, the reserved addresses are kept for the next attempt. */
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

/* Prefer an empty chunk of the same size, because its clean cells need not be cleared. */
static struct chunk *take_empty_chunk(uint32_t size)
{
	uint32_t from = spare[size] ? size : !size;
	struct chunk *chunk = spare[from];

	spare[from] = NULL;
	return chunk ? chunk : new_chunk();
}

static struct chunk *find_partial_chunk(uint32_t words)
{
	struct chunk *chunk = partial[size_index(words)];

	if (chunk)
		return chunk;
	chunk = take_empty_chunk(size_index(words));
	if (!chunk)
		return NULL;
	if (chunk->words && chunk->words != words)
		memset(chunk->clean, 0, sizeof chunk->clean);
	chunk->words = words;
	link_chunk(chunk);
	return chunk;
}

/* The caller has checked that the chunk has a free cell. */
static uint32_t free_cell(const struct chunk *chunk)
{
	uint32_t i = 0;

	while (!~chunk->taken[i])
		i++;
	return i * MAP_BITS + (uint32_t)__builtin_ctzll(~chunk->taken[i]);
}

/* Relaxed throughout: no thread counts in a free cell.  A word that already has its start value is not
 * written, so that untouched pages stay untouched. */
static void clear_words(char *base, uint32_t words)
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
	struct chunk *chunk = find_partial_chunk(words);
	uint64_t bit;
	uint32_t cell;
	char *base;

	if (!chunk)
		return NULL;
	cell = free_cell(chunk);
	bit = 1ull << cell % MAP_BITS;
	chunk->taken[cell / MAP_BITS] |= bit;
	if (++chunk->used == nr_cells(chunk))
		unlink_chunk(chunk);
	base = (char *)chunk + PAGE + cell * words * WORD;
	if (!(chunk->clean[cell / MAP_BITS] & bit))
		clear_words(base, words);
	chunk->clean[cell / MAP_BITS] &= ~bit;
	return base;
}

static void give_back(const char *base)
{
	size_t at = (uintptr_t)base % SET_BYTES;
	struct chunk *chunk = (struct chunk *)(void *)(uintptr_t)((uintptr_t)base - at - PAGE);
	uint32_t cell = (uint32_t)(at / (chunk->words * WORD));

	chunk->taken[cell / MAP_BITS] &= ~(1ull << cell % MAP_BITS);
	if (chunk->used-- == nr_cells(chunk))
		link_chunk(chunk);
	if (chunk->used)
		return;
	unlink_chunk(chunk);
	if (spare[size_index(chunk->words)])
		platform_release(chunk, chunk->bytes);
	else
		spare[size_index(chunk->words)] = chunk;
}

/* ---- objects ---- */

int quiesce__percpu_open(struct quiesce_percpu *percpu, uint32_t words)
{
	struct platform_sigmask mask;
	char *base;

	quiesce__init();
	quiesce__fix_mode();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	choose_sequences();
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

	quiesce__init();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	if (percpu->base)
		give_back(percpu->base);
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	*percpu = (struct quiesce_percpu){ .base = NULL };
}

/* ---- a page for each id ---- */

bool quiesce__percpu_pages_get(struct quiesce__percpu_pages *ret, size_t offset)
{
	struct platform_sigmask mask;

	quiesce__init();
	quiesce__fix_mode();
	platform_signals_block(&mask);
	quiesce__lock(&lock);
	choose_sequences();
	quiesce__unlock(&lock);
	platform_signals_restore(&mask);
	ret->nr = nr_ids;
	ret->bytes = (max_ids + 1) * SET_BYTES;
	ret->start = platform_reserve(ret->bytes);
	if (!ret->start) {
		ret->bytes = (nr_ids + 1) * SET_BYTES;
		ret->start = platform_reserve(ret->bytes);
	}
	if (!ret->start)
		return false;
	ret->base = ret->start + offset;
	if (platform_commit(ret->start, (nr_ids + 1) * SET_BYTES) == 0)
		return true;
	quiesce__percpu_pages_put(ret);
	return false;
}

void quiesce__percpu_pages_put(struct quiesce__percpu_pages *pages)
{
	platform_release(pages->start, pages->bytes);
	pages->start = pages->base = NULL;
}

/* An id that has no set, or the address of a thread without an id, is mapped to one of the sets. */
size_t quiesce__percpu_set_of_thread(void)
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
	} else if (!quiesce__percpu_uses_sequences()) {
		add_locked((uint64_t *)(void *)(base + (quiesce__percpu_set_of_thread() << QUIESCE_PERCPU_SHIFT)) + index);
	/* PC2: release, pairs with PC2 in sum() */
	} else if (quiesce_count_release_always(PC2, percpu, index * WORD)) {
		return false;
	} else {
		add_locked(shared + index);
	}
	return true;
}

uint64_t quiesce__percpu_tick(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t index)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);
	size_t set = base ? quiesce__percpu_set_of_thread() : 0; /* there are no ids before the first counter */
	const uint64_t *words = base ? (const uint64_t *)(const void *)(base + (set << QUIESCE_PERCPU_SHIFT)) : shared;

	return set + quiesce_load_relaxed(words + index); /* Relaxed: a hint. */
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

uint64_t quiesce__percpu_nr_sets(const struct quiesce_percpu *percpu)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	return quiesce_load_acquire(PC1, &percpu->base) ? nr_ids : 0;
}

uint64_t quiesce__percpu_inside(const struct quiesce_percpu *percpu, const uint64_t *shared, uint32_t entered, uint32_t left)
{
	/* The shared set is summed before the base is loaded: a reader that leaves in the shared set may have
	 * entered in a set that was allocated since. */
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

static uint64_t load(const uint64_t *word)
{
	/* PC2: acquire, pairs with PC2 in quiesce__percpu_add() */
	return quiesce_load_acquire(PC2, word);
}

void quiesce__percpu_sums(const struct quiesce_percpu *percpu, const uint64_t *shared, uint64_t ret[4])
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);
	uint64_t start = base ? nr_ids * QUIESCE_PERCPU_START : 0;
	uint64_t a = sum_shared(shared, 0) - start, b = sum_shared(shared, 1) - start;
	uint64_t c = sum_shared(shared, 2) - start, d = sum_shared(shared, 3) - start;

	for (size_t id = 0; base && id < nr_ids; id++) {
		const uint64_t *words = (const uint64_t *)(const void *)(base + id * SET_BYTES);

		a += load(&words[0]);
		b += load(&words[1]);
		c += load(&words[2]);
		d += load(&words[3]);
	}
	ret[0] = a;
	ret[1] = b;
	ret[2] = c;
	ret[3] = d;
}

void quiesce__percpu_count_all_left(struct quiesce_percpu *percpu, uint64_t *shared, uint32_t entered, uint32_t left)
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

/* ---- words that close ---- */

#define CLOSED 1ull

static uint64_t *word_of(const char *base, size_t id)
{
	return (uint64_t *)(void *)((uintptr_t)base + (id << QUIESCE_PERCPU_SHIFT));
}

bool quiesce__percpu_word_add(const struct quiesce_percpu *percpu, uint64_t delta)
{
	/* PC1: acquire, pairs with PC1 in quiesce__percpu_open() */
	const char *base = quiesce_load_acquire(PC1, &percpu->base);
	uint64_t *word, now;

	if (!base)
		return false;
	word = word_of(base, quiesce__percpu_set_of_thread());
	now = quiesce_load_relaxed(word); /* Relaxed: the exchange decides. */
	do {
		if ((now & CLOSED) && !QUIESCE_MUTANT(percpu_closed_changes))
			return false;
		/* PC3: full, pairs with PC3 in quiesce__percpu_words_close() and quiesce__percpu_words_open() */
	} while (!quiesce_cmpxchg(PC3, word, &now, now + delta));
	return true;
}

/* A word that an earlier caller has closed, in the parent of a fork, stays as it is. */
uint64_t quiesce__percpu_words_close(const struct quiesce_percpu *percpu)
{
	uint64_t total = 0;

	for (size_t id = 0; id < nr_ids; id++) {
		uint64_t *word = word_of(percpu->base, id), now;

		now = quiesce_load_relaxed(word); /* Relaxed: only the caller changes the bit. */
		if (!(now & CLOSED))
			/* PC3: full, pairs with PC3 in quiesce__percpu_word_add() */
			now = quiesce_fetch_add(PC3, word, CLOSED);
		total += now & ~CLOSED;
	}
	return total;
}

/* A word that is open is not written: so no page is touched for the ids that no thread has used before the first close. */
void quiesce__percpu_words_open(const struct quiesce_percpu *percpu)
{
	for (size_t id = 0; id < nr_ids; id++) {
		uint64_t *word = word_of(percpu->base, id);

		if (quiesce_load_relaxed(word) & CLOSED) /* Relaxed: only the caller changes the bit. */
			/* PC3: full, pairs with PC3 in quiesce__percpu_word_add() */
			quiesce_fetch_add(PC3, word, 0 - CLOSED);
	}
}

uint64_t quiesce__percpu_words_sum(const struct quiesce_percpu *percpu)
{
	uint64_t total = 0;

	/* Relaxed: exact if the words are closed, or no thread uses them. */
	for (size_t id = 0; percpu->base && id < nr_ids; id++)
		total += quiesce_load_relaxed(word_of(percpu->base, id)) & ~CLOSED;
	return total;
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
	/* A fork without handlers may have copied a list in the middle of a change, so the back pointers are
	 * restored. */
	for (uint32_t size = 0; size < NR_SIZES; size++)
		for (struct chunk **at = &partial[size]; *at; at = &(*at)->next)
			(*at)->at = at;
}
