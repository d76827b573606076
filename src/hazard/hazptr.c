/* SPDX-License-Identifier: MIT */
/* hazptr.c - hazard pointers: the slots that readers own.
 *
 *   first choice: the thread's own line, by load and store; then the pool (slot_pool.c), by compare-and-exchange
 *   a context:    a line of its own
 *   a slot:       the tag alone: free | 0 taken, protects nothing | an address, and the scan's tag
 *
 * I1. A free slot is taken by whose line it is in only (its signal handlers give back what they take), or
 *     in the pool by compare-and-exchange.  A taken slot is written by whoever owns it, and the scan may
 *     add a tag to an address.
 * I2. Lines are never freed, and what is taken in a line stays taken when the line goes to somebody
 *     else: so a slot may be freed by any thread at any time.
 * I3. In a forked child the lines are the same, because slots are in use there: the child may
 *     protect, and go on protecting.  Lines of threads that are gone, and contexts that they
 *     made, protect nothing there once the survivor is known, and are not given out again while a slot in them is taken.
 *
 * SH2  a slot's accesses, then cleared, then the slot taken again | slot read
 * HP1  slot set, then the pointer loaded again                    | unlinked, then slots read
 */
#include "hazptr.h"

#include "rcu/rcu.h"
#include "shazptr.h"

#include <errno.h>
#include <string.h>

#if defined(QUIESCE_SIM)
#define MAX_LINES 4u
#else
#define MAX_LINES (1u << 17)
#endif
/* Used when not even address space can be reserved. */
#define FALLBACK_LINES 16u
static char fallback[QUIESCE_LINE_BITS(FALLBACK_LINES) + FALLBACK_LINES * QUIESCE_LINE_BYTES] __attribute__((aligned(128)));

struct quiesce__lines quiesce__hazptr_lines;

void quiesce__hazptr_init(void)
{
	if (!quiesce__reserve_lines(&quiesce__hazptr_lines, 0, MAX_LINES))
		quiesce__few_lines(&quiesce__hazptr_lines, fallback, FALLBACK_LINES);
	quiesce__hazptr_lines.empty = QUIESCE_HAZPTR_FREE;
	quiesce__hazptr_choose();
}

void quiesce__hazptr_choose(void)
{
	quiesce_shazptr_v1.hazptr = quiesce__fixed.light ? 0 : QUIESCE_HAZPTR_FULL;
}

/* ---- lines ---- */

static hazptr_t *slot_at(uintptr_t *line, uint32_t k)
{
	return (hazptr_t *)(line + k);
}

/* A line for @owner, all of its slots counted; NULL: there is no memory. */
static uintptr_t *take_line(uint64_t owner)
{
	uintptr_t *line = quiesce__take_line(&quiesce__hazptr_lines, owner, 0, UINT32_MAX);

	/* Relaxed: as the last owner left it. */
	if (!line || quiesce_load_relaxed(&line[QUIESCE_LINE_SLOTS]))
		return line;
	quiesce__raise_used(line, QUIESCE_LINE_WORDS, QUIESCE_LINE_SLOTS - 1);
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++)
		/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_free() */
		quiesce_store_release(SH2, line + k, QUIESCE_HAZPTR_FREE);
	return line;
}

/* ---- the pool ---- */

static bool take_shared(uintptr_t *slot)
{
	uintptr_t value = quiesce_load_relaxed(slot); /* Relaxed: the exchange decides. */

	/* SH2: full, pairs with SH2 in quiesce__hazptr_free_slow() and hazptr_free() */
	return value == QUIESCE_HAZPTR_FREE && quiesce_cmpxchg(SH2, slot, &value, (uintptr_t)0);
}

/* The first of @nr in a row. */
static uintptr_t *take_shared_row(uintptr_t *line, uintptr_t nr)
{
	uintptr_t row = 0;

	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++) {
		if (take_shared(line + k)) {
			if (++row == nr)
				return line + k + 1 - nr;
			continue;
		}
		for (; row; row--)
			/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_shared() */
			quiesce_store_release(SH2, line + k - row, QUIESCE_HAZPTR_FREE);
	}
	for (; row; row--)
		/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_shared() */
		quiesce_store_release(SH2, line + QUIESCE_LINE_SLOTS - row, QUIESCE_HAZPTR_FREE);
	return NULL;
}

static const struct quiesce__pool_type pool = { &quiesce__hazptr_lines, take_line, take_shared_row };

/* ---- lines of threads ---- */

/* The calling thread's own line; NULL: it has none and gets none, because it exits or there is no memory. */
static QUIESCE_COLD uintptr_t *assign_line(struct quiesce_tls_v1 *self, uint32_t layout)
{
	struct platform_sigmask mask;
	uintptr_t *line;

	quiesce__reader_ensure(self, layout);
	if (!self->reader)
		return NULL;
	platform_signals_block(&mask);
	/* A handler may have settled, just before the signals were blocked. */
	line = self->hazptr ? self->hazptr : take_line(quiesce__new_owner());
	self->hazptr = line;
	platform_signals_restore(&mask);
	return line;
}

void quiesce__hazptr_thread_end(struct quiesce_tls_v1 *self)
{
	uintptr_t *line = self->hazptr, *spare = self->hazptr_spare;

	self->hazptr = self->hazptr_spare = NULL;
	if (line)
		quiesce__leave_line(&quiesce__hazptr_lines, line);
	if (spare)
		quiesce__leave_line(&quiesce__hazptr_lines, spare);
}

/* ---- slots ---- */

/* In a line that nobody else takes from. */
static bool take_free(hazptr_t *slot)
{
	/* SH2: acquire, pairs with SH2 in hazptr_free() and quiesce__hazptr_free_slow() */
	if (quiesce_load_acquire(SH2, &slot->value) != QUIESCE_HAZPTR_FREE)
		return false;
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, (uintptr_t)0);
	return true;
}

static hazptr_t *alloc_in_line(uintptr_t *line)
{
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++)
		if (take_free(slot_at(line, k)))
			return slot_at(line, k);
	return NULL;
}

hazptr_t *quiesce_hazptr_alloc_detached(void)
{
	quiesce__init();
	quiesce__used();
	return (hazptr_t *)quiesce__pool_claim_any(&pool, 1);
}

hazptr_t *quiesce__hazptr_alloc_slow(uint32_t layout, struct hazptr_context *ctx)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uintptr_t *line;
	hazptr_t *slot;

	quiesce__init();
	if (ctx)
		return ctx->slots ? alloc_in_line(&ctx->slots->value) : NULL;
	line = self->hazptr ? self->hazptr : assign_line(self, layout);
	slot = line ? alloc_in_line(line) : NULL;
	return slot ? slot : (hazptr_t *)quiesce__pool_claim_any(&pool, 1);
}

/* @nr in a row, in a line that nobody else takes from. */
static hazptr_t *alloc_row(uintptr_t *line, size_t nr)
{
	for (uint32_t k = 0; k + nr <= QUIESCE_LINE_SLOTS; k++)
		if (quiesce__hazptr_take_row(slot_at(line, k), nr))
			return slot_at(line, k);
	return NULL;
}

hazptr_t *quiesce__hazptr_alloc_array_slow(uint32_t layout, struct hazptr_context *ctx, size_t nr)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uintptr_t *line;
	hazptr_t *slots;

	if (!nr || nr > QUIESCE_LINE_SLOTS)
		return NULL;
	quiesce__init();
	if (ctx)
		return ctx->slots ? alloc_row(&ctx->slots->value, nr) : NULL;
	line = self->hazptr ? self->hazptr : assign_line(self, layout);
	slots = line ? alloc_row(line, nr) : NULL;
	return slots ? slots : (hazptr_t *)quiesce__pool_claim_any(&pool, nr);
}

static void free_slot(hazptr_t *slot)
{
	/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_free() */
	quiesce_store_release(SH2, &slot->value, QUIESCE_HAZPTR_FREE);
}

bool quiesce_hazptr_alloc_batch(struct hazptr_context *ctx, hazptr_t **ret_slots, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		ret_slots[i] = hazptr_alloc(ctx);
		if (quiesce_likely(ret_slots[i] != NULL))
			continue;
		for (size_t k = 0; k < i; k++)
			free_slot(ret_slots[k]);
		for (size_t k = 0; k < nr; k++)
			ret_slots[k] = NULL;
		return false;
	}
	return true;
}

/* ---- contexts ---- */

static const hazptr_t *held_in(uintptr_t *line)
{
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++)
		/* SH2: acquire, pairs with SH2 in hazptr_free() and quiesce__hazptr_free_slow() */
		if (quiesce_load_acquire(SH2, line + k) != QUIESCE_HAZPTR_FREE)
			return slot_at(line, k);
	return NULL;
}

/* A line with all of its slots free.  One where something is held that an earlier owner handed over
 * goes to the pool. */
static uintptr_t *take_empty_line(void)
{
	uintptr_t *line;

	while ((line = take_line(QUIESCE_OWNER_CONTEXT | quiesce__noted_tid())) && held_in(line))
		quiesce__pool_add(&pool, line);
	return line;
}

int quiesce_init_hazptr_context(struct hazptr_context *ctx)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uintptr_t *line = self->hazptr_spare;

	quiesce__init();
	if (line) {
		self->hazptr_spare = NULL;
	} else {
		quiesce__used();
		quiesce__reader_ensure(self, QUIESCE_LAYOUT);
		line = take_empty_line();
	}
	ctx->slots = line ? slot_at(line, 0) : NULL;
	return line ? 0 : -ENOMEM;
}

void quiesce_cleanup_hazptr_context(struct hazptr_context *ctx)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct platform_place here;
	const hazptr_t *held;
	uintptr_t *line;

	if (!ctx->slots)
		return;
	quiesce__init();
	line = &ctx->slots->value;
	ctx->slots = NULL;
	held = held_in(line);
	if (quiesce_unlikely(held != NULL)) {
		/* The line stays the context's that is no more: nobody is let in, and the slots go on protecting. */
		quiesce__misuse(QUIESCE_MISUSE_CONTEXT_HELD,
				"cleanup_hazptr_context() at %s of a context with slot %p not freed (it protects %p)",
				platform_place(__builtin_return_address(0), &here), (const void *)held, (void *)held->value);
		return;
	}
	if (!self->hazptr_spare && self->reader) {
		self->hazptr_spare = line;
		/* Relaxed: the line is the thread's, and stays so. */
		quiesce_store_relaxed(quiesce__line_owner(line), QUIESCE_OWNER_CONTEXT | quiesce__noted_tid());
		return;
	}
	quiesce__leave_line(&quiesce__hazptr_lines, line);
}

/* ---- while somebody waits, or with full fences ---- */

/* Wake the scan if it waits for @old, which @slot held; once for each tag.  (The tag may be gone, and the
 * word beside the slot may come after it.) */
static void answer(hazptr_t *slot, uintptr_t old)
{
	uint64_t *tagged = (uint64_t *)&slot->value + QUIESCE_LINE_WORDS;

	/* Relaxed: a tag that comes late is answered at the next call; and what the scan makes of
	 * a word that is lost is a tag of old, which waits for no less. */
	if (old > QUIESCE_SLOT_TAG || quiesce_load_relaxed(tagged)) {
		quiesce_store_relaxed(tagged, 0); /* Relaxed: as above. */
		quiesce__shazptr_notify();
	}
}

static void answer_requests(hazptr_t *slot, uintptr_t old)
{
	/* Relaxed: a request that comes a little late or goes a little late. */
	uint64_t asked = quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr);

	if (asked & QUIESCE_SLOTS_WAIT)
		answer(slot, old);
	if (asked & QUIESCE_SLOTS_YIELD)
		quiesce__yield(&quiesce__slots_yield);
}

void quiesce__hazptr_set_slow(hazptr_t *slot, uintptr_t value)
{
	uintptr_t old;

	/* Full fences, and nobody waits.  Relaxed: as in answer_requests(). */
	if (quiesce_likely(quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr) == QUIESCE_HAZPTR_FULL)) {
		/* HP1: full, pairs with HP1 in quiesce__hazptr_scan_begin() */
		(void)quiesce_xchg(HP1, &slot->value, value);
		return;
	}
	/* Relaxed: the caller's own.  If the old protection is still there its waiter is completed after it has gone. */
	old = quiesce_load_relaxed(&slot->value);
	if (!old)
		answer_requests(slot, 0);
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, value);
	/* As in quiesce__hazptr_set_quietly(): the scan sees the slot, or the caller's next load sees what was unlinked. */
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_mode(HP1);
	if (old && (quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr) & QUIESCE_SLOTS_WAIT)) /* Relaxed: as in answer_requests(). */
		answer(slot, old);
}

void *quiesce__hazptr_protect_slow(hazptr_t *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	while (quiesce_unlikely(!quiesce__hazptr_attempt(slot, where, offset, marks, false, &ptr)))
		;
	return ptr;
}

void quiesce__hazptr_free_slow(hazptr_t *slot)
{
	uintptr_t old = quiesce_load_relaxed(&slot->value); /* Relaxed: the caller's own, and its tag. */

	/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_free() */
	quiesce_store_release(SH2, &slot->value, QUIESCE_HAZPTR_FREE);
	answer_requests(slot, old);
}

void quiesce_hazptr_protect_batch(hazptr_t *const *slots, void **const *where, void **ret_ptrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		ret_ptrs[i] = quiesce_load_relaxed(where[i]); /* Relaxed: only the second load is used. */
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &slots[i]->value, (uintptr_t)ret_ptrs[i]);
	}
	/* One for all: the scan sees all of the slots, or the loads below see what was unlinked. */
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_mode(HP1);
	for (size_t i = 0; i < nr; i++) {
		/* SH3: acquire, pairs with the caller */
		void *again = quiesce_load_acquire(SH3, where[i]);

		if ((uintptr_t)again != (uintptr_t)ret_ptrs[i])
			again = quiesce__hazptr_protect(slots[i], where[i], 0, 0);
		ret_ptrs[i] = again;
	}
}

/* ---- fork ---- */

static bool any_taken(const uintptr_t *line)
{
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS && line[QUIESCE_LINE_SLOTS]; k++)
		if (quiesce_load_relaxed(line + k) != QUIESCE_HAZPTR_FREE) /* Relaxed: the caller says why. */
			return true;
	return false;
}

/* I3.  What is taken in it protects nothing any more, but may still be freed.  Relaxed throughout: nobody takes from it. */
static void end_protections(uintptr_t *line, uint64_t owner)
{
	if (!any_taken(line) && !(owner & QUIESCE_OWNER_CONTEXT)) {
		quiesce__leave_line(&quiesce__hazptr_lines, line);
		return;
	}
	for (uint32_t k = 0; k < QUIESCE_LINE_SLOTS; k++)
		if (quiesce_load_relaxed(line + k) != QUIESCE_HAZPTR_FREE)
			quiesce_store_relaxed(line + k, (uintptr_t)0);
	quiesce_store_relaxed(quiesce__line_owner(line), QUIESCE_OWNER_CONTEXT);
}

/* I3.  All lines but those of the pool were the parent's, also one that nobody owned, if a slot in it was handed over.
 * Relaxed throughout: nobody else is inside the library. */
void quiesce__hazptr_fork_child(void)
{
	struct quiesce__lines *lines = &quiesce__hazptr_lines;

	quiesce__hazptr_choose(); /* the parent's requests are not ours */
	quiesce__room_fork_child(&lines->room);
	for (uint32_t i = 0; i < lines->nr; i++) {
		uintptr_t *line = quiesce__line(lines, i);
		uint64_t *owner = quiesce__line_owner(line);

		if (!*owner && any_taken(line))
			quiesce_store_relaxed(owner, QUIESCE_OWNER_CONTEXT | QUIESCE_OWNER_INHERITED);
		else if (!*owner)
			quiesce__note_left(lines, i); /* its owner may have been about to say so, and a taker about to take it */
		else if (!quiesce__owner_is_all(*owner))
			quiesce_store_relaxed(owner, *owner | QUIESCE_OWNER_INHERITED);
		if (QUIESCE_MUTANT(fork_lines_dropped) && !quiesce__fork_survivor && (*owner & QUIESCE_OWNER_INHERITED))
			end_protections(line, *owner);
	}
}

/* Whose @line, of the parent's, is now that only @self is left; 0: nobody's. */
static uint64_t owner_now(const struct quiesce_tls_v1 *self, const uintptr_t *line, uint64_t owner)
{
	if (line == self->hazptr)
		return quiesce__new_owner();
	if ((owner & QUIESCE_OWNER_CONTEXT) && quiesce__fork_survivor_tid && (uint32_t)owner == quiesce__fork_survivor_tid)
		return QUIESCE_OWNER_CONTEXT | quiesce__noted_tid();
	return 0;
}

void quiesce__hazptr_fork_survivor(const struct quiesce_tls_v1 *self)
{
	struct quiesce__lines *lines = &quiesce__hazptr_lines;
	uint32_t nr = quiesce_load_relaxed(&lines->nr); /* Relaxed: none of the parent's is beyond. */

	for (uint32_t i = 0; i < nr; i++) {
		uintptr_t *line = quiesce__line(lines, i);
		uint64_t *owner = quiesce__line_owner(line), found = quiesce_load_relaxed(owner), now; /* Relaxed: the parent's stay. */

		if (quiesce__owner_is_all(found) || !(found & QUIESCE_OWNER_INHERITED))
			continue;
		now = owner_now(self, line, found);
		if (now)
			quiesce_store_relaxed(owner, now); /* Relaxed: the line is the survivor's already. */
		else
			end_protections(line, found);
	}
}
