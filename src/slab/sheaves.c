/* SPDX-License-Identifier: MIT */
/* sheaves.c - the free objects of a cache that each CPU has at hand, used by a call.
 *
 * I1. With restartable sequences a sheaf is changed by a thread that runs with its id, in one sequence; by no other thread,
 *     except while the sheaves are closed.  Closing writes the words that the sequences check, and then restarts them all: each
 *     sequence has finished before, or finds the sheaves closed.
 * I2. Without sequences, and only then, a sheaf has a lock, and threads use that of the CPU on which they run, or one by their
 *     address.  It costs two locked operations, and threads of one CPU may wait for one that was preempted.
 * I3. Either way the store of the number is the last one of a change: a copy of the memory at any moment, as fork() makes it,
 *     has whole sheaves.
 *
 * A sheaf has 4096 bytes, which begin at another line of a page in each cache: CPUs share no line, and the sheaves of caches
 * that are used in turn are not all in one set of the first-level cache.
 *
 * SB1  sheaves closed, then all sequences restarted, then emptied | open or closed read, then pushed or popped
 *      sheaves emptied, then open                                 | open or closed read, then pushed or popped
 *      object used, then pushed                                   | popped, then object used
 */
#include "slab.h"

#include "platform/sheaf.h"

#include <string.h>

static struct quiesce__sheaf *sheaf_at(const struct quiesce__cache *cache, size_t i)
{
	return (struct quiesce__sheaf *)(void *)(cache->sheaves.base + (i << QUIESCE_PERCPU_SHIFT));
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void set_nr(struct quiesce__sheaf *sheaf, uint64_t nr)
{
	/* SB1: release, pairs with SB1 in kmem_cache_alloc() and take() and nr_of() */
	quiesce_store_release(SB1, &sheaf->nr, nr);
}

static uint64_t nr_of(const struct quiesce__sheaf *sheaf)
{
	/* SB1: acquire, pairs with SB1 in kmem_cache_free() and add() and set_nr() */
	return quiesce_load_acquire(SB1, &sheaf->nr);
}

/* Move the last objects of a sheaf that no other thread changes to the row. */
static uint64_t take_plainly(struct quiesce__sheaf *sheaf, void **ret_row, uint64_t nr)
{
	uint64_t there = nr_of(sheaf), taken = lesser(there, nr);

	for (uint64_t i = 0; i < taken; i++)
		ret_row[i] = sheaf->object[there - 1 - i];
	if (taken)
		set_nr(sheaf, there - taken);
	return taken;
}

static uint64_t add_plainly(struct quiesce__sheaf *sheaf, uint64_t limit, void *const *row, uint64_t nr)
{
	uint64_t there = nr_of(sheaf), added = there < limit ? lesser(limit - there, nr) : 0;

	if (!added)
		return 0;
	memcpy(&sheaf->object[there], row, added * sizeof *row);
	set_nr(sheaf, there + added);
	return added;
}

/* ---- without sequences ---- */

static struct quiesce__sheaf *lock_sheaf(const struct quiesce__cache *cache)
{
	struct quiesce__sheaf *sheaf = sheaf_at(cache, quiesce__percpu_set_of_thread());

	quiesce__lock(&sheaf->lock);
	return sheaf;
}

static uint64_t take_locked(struct quiesce__cache *cache, void **ret_row, uint64_t nr)
{
	struct quiesce__sheaf *sheaf = lock_sheaf(cache);
	uint64_t taken = take_plainly(sheaf, ret_row, nr);

	quiesce__unlock(&sheaf->lock);
	return taken;
}

static uint64_t add_locked(struct quiesce__cache *cache, void *const *row, uint64_t nr)
{
	struct quiesce__sheaf *sheaf = lock_sheaf(cache);
	uint64_t added = add_plainly(sheaf, cache->fast.limit, row, nr);

	quiesce__unlock(&sheaf->lock);
	return added;
}

/* ---- with either ---- */

static uint64_t take(const struct quiesce__sheaf_row *r)
{
	/* SB1: acquire, pairs with SB1 in kmem_cache_free() and add() and fence_closed() */
	return quiesce_sheaf_take(SB1, r);
}

static uint64_t add(const struct quiesce__sheaf_row *r)
{
	/* SB1: release, pairs with SB1 in kmem_cache_alloc() and take() and fence_closed() */
	return quiesce_sheaf_add(SB1, r);
}

static struct quiesce__sheaf_row row_of(struct quiesce__cache *cache, void **row, uint64_t nr)
{
	return (struct quiesce__sheaf_row){
		.closed = &cache->closed, .base = cache->sheaves.base, .limit = cache->fast.limit, .object = row, .nr = nr,
	};
}

uint64_t quiesce__sheaf_take_row(struct quiesce__cache *cache, void **ret_row, uint64_t nr)
{
	struct quiesce__sheaf_row r = row_of(cache, ret_row, nr);

	return quiesce__percpu_uses_sequences() ? take(&r) : take_locked(cache, ret_row, nr);
}

uint64_t quiesce__sheaf_add_row(struct quiesce__cache *cache, void *const *row, uint64_t nr)
{
	struct quiesce__sheaf_row r = row_of(cache, (void **)(uintptr_t)row, nr);

	return quiesce__percpu_uses_sequences() ? add(&r) : add_locked(cache, row, nr);
}

/* ---- closing and opening ---- */

static void fence_closed(void)
{
	if (!quiesce__percpu_uses_sequences())
		return;
	if (QUIESCE_MUTANT(slab_no_restart))
		quiesce__membarrier();
	else
		/* SB1: full, pairs with SB1 in kmem_cache_alloc(), kmem_cache_free(), take() and add() */
		quiesce_fence_restart(SB1);
}

void quiesce__sheaves_close(struct quiesce__cache *cache)
{
	quiesce_store_relaxed(&cache->closed, 1);    /* Relaxed: SB1's fence follows. */
	quiesce_store_relaxed(&cache->fast.open, 0); /* Relaxed: SB1's fence follows. */
	fence_closed();
}

void quiesce__sheaves_open(struct quiesce__cache *cache)
{
	uint64_t word = cache->poisons ? 0 : quiesce__percpu_open_word_of(cache->sheaves.base);

	/* SB1: release, pairs with SB1 in take() and add() */
	quiesce_store_release(SB1, &cache->closed, 0);
	/* SB1: release, pairs with SB1 in kmem_cache_alloc() and kmem_cache_free() */
	quiesce_store_release(SB1, &cache->fast.open, word);
}

/* With sequences no other thread changes the sheaf (I1). */
static uint32_t drain(struct quiesce__sheaf *sheaf, void **ret_row, uint32_t nr)
{
	bool locks = !quiesce__percpu_uses_sequences();
	uint32_t taken;

	if (!nr_of(sheaf))
		return 0;
	if (locks)
		quiesce__lock(&sheaf->lock);
	taken = (uint32_t)take_plainly(sheaf, ret_row, nr);
	if (locks)
		quiesce__unlock(&sheaf->lock);
	return taken;
}

uint32_t quiesce__sheaves_drain(struct quiesce__cache *cache, size_t *id, void **ret_row, uint32_t nr)
{
	uint32_t taken = 0;

	for (; *id < cache->sheaves.nr; ++*id) {
		taken += drain(sheaf_at(cache, *id), ret_row + taken, nr - taken);
		if (taken == nr)
			break;
	}
	return taken;
}

/* ---- questions, and forks ---- */

uint64_t quiesce__sheaves_count(const struct quiesce__cache *cache)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < cache->sheaves.nr; i++)
		nr += nr_of(sheaf_at(cache, i));
	return nr;
}

static bool has(const struct quiesce__sheaf *sheaf, const void *object)
{
	uint64_t nr = nr_of(sheaf);

	while (nr--)
		if (quiesce_load_relaxed(&sheaf->object[nr]) == object) /* Relaxed: a check for reports. */
			return true;
	return false;
}

bool quiesce__sheaf_has(const struct quiesce__cache *cache, const void *object)
{
	struct quiesce__sheaf *sheaf;
	bool found;

	if (quiesce__percpu_uses_sequences())
		return has(sheaf_at(cache, quiesce__percpu_set_of_thread()), object);
	sheaf = lock_sheaf(cache);
	found = has(sheaf, object);
	quiesce__unlock(&sheaf->lock);
	return found;
}

/* A thread of the parent may have held locks of sheaves, or have closed them: I3. */
void quiesce__sheaves_fork_child(struct quiesce__cache *cache)
{
	for (size_t i = 0; i < cache->sheaves.nr && !quiesce__percpu_uses_sequences(); i++)
		if (quiesce_load_relaxed(&sheaf_at(cache, i)->lock.word)) /* Relaxed: the child has one thread. */
			quiesce__lock_reset(&sheaf_at(cache, i)->lock, false);
	quiesce__sheaves_open(cache);
}
