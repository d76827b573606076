/* SPDX-License-Identifier: MIT */
/* shazptr.c - guards: where a thread claims slots, claims where the first choice is taken, and clears while a caller waits.
 *
 *   fences  kind      first choice                                        by
 *   light   any       the line of one of the first threads                load and store
 *           mm_cid    a slot in the block of the concurrency id           restartable sequence
 *           cpu_id    a slot in the block of the CPU                      restartable sequence
 *           thread    an own line                                         load and store
 *   full    the ids   a slot in the block of the id                       compare-and-exchange
 *           thread    an own line                                         compare-and-exchange
 *   If the first choice is taken, the next ones are: another slot of the block; the thread's own line; a shared
 *   slot, by compare-and-exchange; a fallback guard.
 *
 * A holder that is preempted keeps its slot, and the next thread with its id finds the slot taken.  So each
 * thread remembers its index in the blocks, that of its cached slot, and changes to another index when it finds
 * that one taken: soon threads that share a CPU have different indexes.  A scan reads as many slots as guards
 * were ever held at one time, not one for each thread.
 *
 * S2. In the block of an id, a slot is claimed by the thread that runs with this id, in one restartable
 *     sequence with reading the id; or by any thread, by compare-and-exchange.  In a thread's line, a slot is
 *     claimed by that thread only, and by its signal handlers, which clear before they return.
 * Of the numbers S1 to S9, slots.c has S1 and S3 to S6, about the slots, slot_groups.c has S7 to S9, about the owners of lines, and this
 * file has S2.  The waits are in shazptr_wait.c.
 *
 * SH2  a guard's accesses, then cleared, then the slot claimed again | slot read
 * SH3  object initialised, then published (the caller) | pointer loaded again, then the object used
 * SH6  group and slot counted, then claimed            | fence, counts read
 * SH8  fallback guard counted, then its reads         | fence, count read
 *      its reads, then count lowered                  | count read, then free
 *      @requests is the child's, then the counts are  | counts found, then @requests set
 * SH4  the line as its owner leaves it, then let go    | taken, then claimed in
 * SH1  see shazptr_wait.c
 */
#include "rcu/rcu.h"
#include "shazptr.h"

#if defined(QUIESCE_SIM)
#define ID_SLOTS 2u
#else
#define ID_SLOTS (QUIESCE_ID_WORDS - 1)
#endif
#define NO_ID UINT64_MAX
#define CHANGING (UINT64_MAX - 1) /* no id: cache_slot() is changing the cached slot */
#define INDEX_TRIES 4u /* attempts to find an index; more than one because the thread may be moved in between */

/* ---- where a thread claims ---- */

static uintptr_t *own_line(const struct quiesce_tls_v1 *self)
{
	if (self->shazptr_own)
		return self->shazptr_own;
	/* With full fences and without ids, the cached slot is the first one of the own line. */
	if (!quiesce_shazptr_v1.nr_ids && self->shazptr_cached.slot != &quiesce__no_slot)
		return self->shazptr_cached.slot;
	return NULL;
}

/* Let @self claim in @slot, while it runs with @id, from now on.  A signal handler may interrupt at any time: it must
 * not find a slot beside the id of another one, and its own change must not be mixed with this one. */
static void cache_slot(struct quiesce_tls_v1 *self, uintptr_t *slot, uint64_t id)
{
	/* Relaxed: the thread's own. */
	if (!QUIESCE_MUTANT(cached_slot_torn))
		quiesce_store_relaxed(&self->shazptr_cached.id, CHANGING);
	/* SH1: pairs with SH1 in cache_slot() */
	quiesce_fence_light(SH1);
	quiesce_store_relaxed(&self->shazptr_cached.slot, slot); /* Relaxed: as above. */
	/* SH1: pairs with SH1 in cache_slot() */
	quiesce_fence_light(SH1);
	quiesce_store_relaxed(&self->shazptr_cached.id, id); /* Relaxed: as above. */
}

/* Give the calling thread a line of its own; not if it is unregistered, because its exit would not leave the line. */
static void assign_group(struct quiesce_tls_v1 *self, uint32_t limit)
{
	struct platform_sigmask mask;
	uintptr_t *line = NULL;

	if (!self->reader)
		return;
	platform_signals_block(&mask);
	/* A signal handler may have assigned the line just before the signals were blocked. */
	if (!own_line(self))
		line = quiesce__take_line(&quiesce__slots.lines, quiesce__new_owner(), 0, limit);
	if (line)
		quiesce__raise_used(line, QUIESCE_LINE_WORDS, 0); /* before inline claims use the slot */
	/* Relaxed: the thread's own.  With light fences no other thread claims there. */
	if (line && quiesce_load_relaxed(&quiesce__fixed.light))
		quiesce_store_relaxed(&self->shazptr_own, line);
	else if (line)
		cache_slot(self, line, NO_ID);
	platform_signals_restore(&mask);
}

void quiesce__shazptr_thread_end(struct quiesce_tls_v1 *self)
{
	uintptr_t *line = own_line(self);

	/* Relaxed: the thread's own. */
	quiesce_store_relaxed(&self->shazptr_own, NULL);
	cache_slot(self, &quiesce__no_slot, NO_ID);
	self->shazptr_hint = NULL;
	if (line)
		quiesce__leave_line(&quiesce__slots.lines, line);
}

/* Choose where @self claims from now on; for its first claim. */
static QUIESCE_COLD void assign_first(struct quiesce_tls_v1 *self, uint32_t layout)
{
	bool ids;

	quiesce__reader_ensure(self, layout);
	ids = quiesce_shazptr_v1.nr_ids != 0;
	/* A claim by compare-and-exchange costs the same in a block, and each line makes all scans longer.  Relaxed: fixed. */
	if (!ids || quiesce_load_relaxed(&quiesce__fixed.light))
		assign_group(self, ids ? QUIESCE_FIRST_THREADS : UINT32_MAX);
}

/* ---- claims, the slow path ---- */

/* Make sure that slot @k in the block of @id is counted; true if it seems to be free. */
static bool open_slot(uint64_t id, uint32_t k)
{
	uintptr_t *block = quiesce__block_of_id(id);

	/* If the slot is counted, so is its block. */
	if (k < quiesce__slots_used(block, QUIESCE_ID_WORDS))
		return !quiesce_load_relaxed(block + k); /* Relaxed: the claim decides. */
	if (!QUIESCE_MUTANT(slots_line_uncounted))
		quiesce__raise_to(&quiesce__slots.ids_used, (uint32_t)id + 1);
	quiesce__raise_used(block, QUIESCE_ID_WORDS, k);
	return true;
}

static uintptr_t *claim_in_own(uintptr_t *own, uintptr_t value)
{
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++) {
		quiesce__raise_used(own, QUIESCE_LINE_WORDS, k);
		if (quiesce_load_relaxed(&quiesce__fixed.light) ? quiesce__claim_own(own + k, value) /* Relaxed: fixed. */
							  : quiesce__claim_cas(own + k, value) != NULL)
			return own + k;
	}
	return NULL;
}

/* Returns the index to claim at in the block of @id: that of the cached slot if it seems free in this block too, else the first one
 * that does; ID_SLOTS: none does. */
static uint32_t find_index(const struct quiesce_tls_v1 *self, uint64_t id)
{
	const uintptr_t *block = quiesce__block_of_id(id);
	uint32_t k = 0, used;

	if (self->shazptr_cached.slot != &quiesce__no_slot)
		k = (uint32_t)((size_t)(self->shazptr_cached.slot - quiesce__block_of_id(0)) % QUIESCE_BLOCK_WORDS);
	if (open_slot(id, k))
		return k;
	used = quiesce__slots_used(block, QUIESCE_ID_WORDS);
	for (k = 0; k < ID_SLOTS; k++)
		/* Relaxed: the claim decides. */
		if ((k >= used || !quiesce_load_relaxed(block + k)) && open_slot(id, k))
			break;
	return k;
}

static bool claim_cached(const struct quiesce__cached_slot *cached, uintptr_t value)
{
	/* The thread has claimed before, so the way to claim is fixed.  A compare-and-exchange is valid in any block: the id is a hint. */
	if (!quiesce_shazptr_v1.rseq)
		return quiesce__claim_cas(cached->slot, value);
	/* SH2: pairs with SH2 in quiesce__slot_read() and quiesce__shazptr_release() */
	return quiesce_claim(SH2, cached, value);
}

/* Claim a slot in the block of this thread's id, and cache it for the next claims.  NULL: no slot was free there. */
static uintptr_t *claim_in_id(struct quiesce_tls_v1 *self, uintptr_t value)
{
	for (uint32_t i = 0; i < INDEX_TRIES; i++) {
		uint64_t id = (uint64_t)quiesce__claim_id();
		struct quiesce__cached_slot cached;
		uint32_t k;

		if (id >= quiesce_shazptr_v1.nr_ids)
			return NULL;
		k = find_index(self, id);
		if (k == ID_SLOTS)
			return NULL;
		cached = (struct quiesce__cached_slot){ quiesce__block_of_id(id) + k, id };
		if (!claim_cached(&cached, value))
			continue; /* the thread was moved, or a handler has claimed the slot */
		/* Relaxed: the thread's own.  A handler that interrupted cache_slot() must not change the cached slot. */
		if (quiesce_load_relaxed(&self->shazptr_cached.id) != CHANGING)
			cache_slot(self, cached.slot, id);
		return cached.slot;
	}
	return NULL;
}

/* Take a line for the pool, where it stays.  The first lines are for threads, whose claims there are the shortest; they become shared
 * only when no other line is left. */
static uintptr_t *take_shared_line(uint64_t owner)
{
	uint32_t from = quiesce_shazptr_v1.nr_ids && !QUIESCE_MUTANT(slots_first_shared) ? QUIESCE_FIRST_THREADS : 0;
	uintptr_t *line = quiesce__take_line(&quiesce__slots.lines, owner, from, UINT32_MAX);

	if (!line && from)
		line = quiesce__take_line(&quiesce__slots.lines, owner, 0, from);
	if (line)
		quiesce__raise_used(line, QUIESCE_LINE_WORDS, QUIESCE_LINE_SLOTS - 1);
	return line;
}

static uintptr_t *claim_in_shared_line(uintptr_t *line, uintptr_t value)
{
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++)
		if (quiesce__claim_cas(line + k, value))
			return line + k;
	return NULL;
}

static const struct quiesce__pool_type pool = { &quiesce__slots.lines, take_shared_line, claim_in_shared_line };

/* Claim a shared slot: the one that this thread had last, if it is free, else any. */
static uintptr_t *claim_shared(struct quiesce_tls_v1 *self, uintptr_t value)
{
	uintptr_t *slot = self->shazptr_hint ? quiesce__claim_cas(self->shazptr_hint, value) : NULL;

	if (!slot)
		slot = quiesce__pool_claim(&pool, value);
	if (slot)
		self->shazptr_hint = slot;
	return slot;
}

/* Make every clear take the slow path from now on if its guard may be a fallback guard. */
static void expect_fallback(void)
{
	uint64_t requests = quiesce_load_relaxed(&quiesce_shazptr_v1.requests); /* Relaxed: after the exchange that has counted. */

	while (!(requests & QUIESCE_SLOTS_FALLBACK) && !QUIESCE_MUTANT(fallback_unexpected))
		/* SH8: full, pairs with SH8 in make_array() */
		if (quiesce_cmpxchg(SH8, &quiesce_shazptr_v1.requests, &requests, requests | QUIESCE_SLOTS_FALLBACK))
			break;
}

/* No slot can be had: take a fallback guard, which blocks every updater.  A signal handler may fork between any two of these steps: so
 * the address of the counts is loaded once, and all steps use it, whether the counts are the parent's or the child's (S5 of slots.c). */
static QUIESCE_COLD uintptr_t *claim_fallback(void)
{
	/* Relaxed: the other one of the two counts only delays an updater. */
	uint32_t idx = quiesce_load_relaxed(&quiesce__slots.fallback_idx) & 1;
	/* SH8: pairs with SH8 in make_array() */
	uintptr_t *count = quiesce_load_consume(SH8, &quiesce__slots.fallback) + idx;

	/* SH8: full, pairs with SH8 in quiesce__slots_fallback() */
	quiesce_fetch_add(SH8, count, (uintptr_t)1);
	expect_fallback();
	quiesce__count(fallback_guards);
	/* Relaxed: a planted bug. */
	return QUIESCE_MUTANT(fallback_found_twice) ? quiesce_load_relaxed(&quiesce__slots.fallback) + idx : count;
}

static void assign_if_new(struct quiesce_tls_v1 *self, uint32_t layout)
{
	if (quiesce_unlikely(self->shazptr_cached.slot == &quiesce__no_slot) && !own_line(self))
		assign_first(self, layout);
}

static uintptr_t *claim_anywhere(struct quiesce_tls_v1 *self, uintptr_t value)
{
	uintptr_t *slot = claim_shared(self, value);

	return slot ? slot : claim_fallback();
}

static uintptr_t *claim_slow(struct quiesce_tls_v1 *self, uint32_t layout, uintptr_t value)
{
	uintptr_t *own, *slot = NULL;

	assign_if_new(self, layout);
	if (!own_line(self)) {
		slot = claim_in_id(self, value);
		if (slot)
			return slot;
		quiesce__count(overflows);
		if (quiesce_load_relaxed(&quiesce__fixed.light)) /* Relaxed: fixed. */
			assign_group(self, UINT32_MAX);
	}
	own = own_line(self); /* loaded once, because a handler may fork, and the child has none */
	if (own)
		slot = claim_in_own(own, value);
	return slot ? slot : claim_anywhere(self, value);
}

/* If a handler has forked in the midst of a claim that began in @generation, the claim was made in the parent's slots, where this thread
 * of the child must not claim again. */
static void forget_if_forked(struct quiesce_tls_v1 *self, uint32_t generation)
{
	if (quiesce_unlikely(quiesce__generation() != generation) && !QUIESCE_MUTANT(cached_slot_forked_kept))
		quiesce__shazptr_claims_fork_survivor(self);
}

uintptr_t *quiesce__shazptr_claim_slow(uint32_t layout, uintptr_t value)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uint32_t generation;
	uintptr_t *slot;

	if (quiesce_unlikely(!value))
		return &quiesce__no_slot; /* nothing is claimed and nothing will be cleared */
	generation = quiesce__generation();
	slot = claim_slow(self, layout, value);
	forget_if_forked(self, generation);
	return slot;
}

struct shazptr_guard quiesce_shazptr_acquire_detached(const void *ptr)
{
	struct shazptr_guard guard = { &quiesce__no_slot, (void *)(uintptr_t)ptr };
	struct quiesce_tls_v1 *self = quiesce__self();
	uint32_t generation;

	if (!ptr)
		return guard;
	generation = quiesce__generation();
	assign_if_new(self, QUIESCE_LAYOUT);
	guard.slot = claim_in_id(self, (uintptr_t)ptr);
	if (!guard.slot)
		guard.slot = claim_anywhere(self, (uintptr_t)ptr);
	forget_if_forked(self, generation);
	/* Either the scan sees the slot, or the caller's next load sees that the object was unlinked. */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_mode(SH1);
	return guard;
}

/* ---- clears while a caller waits ---- */

static QUIESCE_COLD void clear_fallback(uintptr_t *count)
{
	/* SH8: full, pairs with SH8 in quiesce__slots_fallback() */
	quiesce_fetch_add(SH8, count, (uintptr_t)-1);
	quiesce__shazptr_notify();
}

void quiesce__shazptr_clear_slow(uintptr_t *slot)
{
	uintptr_t value;

	quiesce__init();
	if (quiesce_unlikely(quiesce__slot_is_count(slot))) {
		clear_fallback(slot);
		return;
	}
	/* Relaxed: a tag that is set between this load and the store is lost, which delays the waiter until the next scan. */
	value = quiesce_load_relaxed(slot);
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, slot, (uintptr_t)0);
	if (value & QUIESCE_SLOT_TAG)
		quiesce__shazptr_notify();
	/* Relaxed: a request may be seen, or end, a little late. */
	if (quiesce_load_relaxed(&quiesce_shazptr_v1.requests) & QUIESCE_SLOTS_YIELD)
		quiesce__yield(&quiesce__slots_yield);
}

/* ---- fork ---- */

void quiesce__shazptr_claims_fork_survivor(struct quiesce_tls_v1 *self)
{
	self->shazptr_hint = NULL;
	quiesce_store_relaxed(&self->shazptr_own, NULL); /* Relaxed: the thread's own. */
	cache_slot(self, &quiesce__no_slot, NO_ID);
}
