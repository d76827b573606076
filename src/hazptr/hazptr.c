/* SPDX-License-Identifier: MIT */
/* hazptr.c - hazard pointers: the slots that readers own.
 *
 *   NULL context: a slot of the thread's own line, by load and store; else one of the pool (slot_pool.c), by compare-and-exchange
 *   a context:    a slot of the context's own line
 *   slot values:  the tag alone: free | 0: taken, protects nothing | an address, with or without the scan's tag
 *
 * I1. A free slot in a line is taken by the line's owner only (its signal handlers free what they take), and
 *     in the pool by compare-and-exchange.  A taken slot is written by its owner, and the scan may add a tag
 *     to an address.
 * I2. Lines are never freed, and a slot that is taken stays taken when its line gets another owner: so any
 *     thread may free a slot at any time.
 * I3. A forked child has the same lines, because slots are in use there: protections made before the fork
 *     continue.  Lines of threads that the child does not have, and of contexts that those threads made,
 *     protect nothing once the survivor is known, and get no new owner while a slot in them is taken.
 *
 * SH2  a slot's accesses, then cleared, then the slot taken again | slot read
 * HP1  slot set, then the pointer loaded again                    | unlinked, then slots read
 * SH1  see shazptr_wait.c
 * SH3  see shazptr.c
 */
#include "hazptr.h"

#include "platform/saving.h"
#include "rcu/rcu.h"
#include "shazptr/shazptr.h"

#include <errno.h>
#include <string.h>

#if defined(QUIESCE_SIM)
#define MAX_LINES 4u
#else
#define MAX_LINES (1u << 17)
#endif
/* Used where address space cannot be reserved. */
#define STATIC_LINES 16u
static char static_lines[QUIESCE_LINE_BITS(STATIC_LINES) + STATIC_LINES * QUIESCE_LINE_BYTES] __attribute__((aligned(128)));

void quiesce__hazptr_init(void)
{
	if (!quiesce__reserve_lines(&quiesce__hazptr_lines, 0, MAX_LINES))
		quiesce__set_fixed_lines(&quiesce__hazptr_lines, static_lines, STATIC_LINES);
	quiesce__hazptr_lines.empty = QUIESCE_HAZPTR_FREE;
	quiesce__hazptr_fence_chosen();
}

void quiesce__hazptr_fence_chosen(void)
{
	quiesce_shazptr_v1.hazptr_slow = quiesce__fixed.light ? 0 : QUIESCE_HAZPTR_FULL;
}

/* ---- lines ---- */

static hazptr_t *slot_at(uintptr_t *line, uint32_t k)
{
	return (hazptr_t *)(line + k);
}

/* Take a line for @owner, with all of its slots counted as in use; NULL: no memory. */
static uintptr_t *take_line(uint64_t owner)
{
	uintptr_t *line = quiesce__take_line(&quiesce__hazptr_lines, owner, 0, UINT32_MAX);

	/* Relaxed: the previous owner wrote it before it left the line. */
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

/* Take @nr adjacent slots of a pool line; returns the first of them. */
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

/* The calling thread's own line; NULL if it has none and gets none, because it exits or memory is exhausted. */
static QUIESCE_COLD uintptr_t *assign_line(struct quiesce_tls_v1 *self, uint32_t layout)
{
	struct platform_sigmask mask;
	uintptr_t *line;

	quiesce__reader_ensure(self, layout);
	if (!self->reader)
		return NULL;
	platform_signals_block(&mask);
	/* A signal handler may have assigned the line just before the signals were blocked. */
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

/* Take @slot if it is free; its line has no other owner. */
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
	quiesce__fix_mode();
	return (hazptr_t *)quiesce__pool_claim_any(&pool, 1);
}

hazptr_t *quiesce__hazptr_alloc_slow(uint32_t layout, struct hazptr_context *ctx)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	uintptr_t *line;
	hazptr_t *slot;

	quiesce__init();
	if (ctx)
		return ctx->first ? alloc_in_line(&ctx->first->value) : NULL;
	line = self->hazptr ? self->hazptr : assign_line(self, layout);
	slot = line ? alloc_in_line(line) : NULL;
	return slot ? slot : (hazptr_t *)quiesce__pool_claim_any(&pool, 1);
}

/* Take @nr adjacent slots of a line that has no other owner. */
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
		return ctx->first ? alloc_row(&ctx->first->value, nr) : NULL;
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

/* A line with all of its slots free.  A line with a slot that an earlier owner handed over goes to the pool. */
static uintptr_t *take_empty_line(void)
{
	uintptr_t *line;

	while ((line = take_line(QUIESCE_OWNER_CONTEXT | quiesce__recorded_tid())) && held_in(line))
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
		quiesce__fix_mode();
		quiesce__reader_ensure(self, QUIESCE_LAYOUT);
		line = take_empty_line();
	}
	ctx->first = line ? slot_at(line, 0) : NULL;
	return line ? 0 : -ENOMEM;
}

void quiesce_cleanup_hazptr_context(struct hazptr_context *ctx)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct platform_location here;
	const hazptr_t *held;
	uintptr_t *line;

	if (!ctx->first)
		return;
	quiesce__init();
	line = &ctx->first->value;
	ctx->first = NULL;
	held = held_in(line);
	if (quiesce_unlikely(held != NULL)) {
		/* The line keeps the ended context as its owner: no new owner takes slots in it, and the held
		 * slots keep protecting. */
		quiesce__misuse(QUIESCE_MISUSE_CONTEXT_HELD,
				"cleanup_hazptr_context() at %s of a context with slot %p not freed (it protects %p)",
				platform_location(quiesce__caller(), &here), (const void *)held, (void *)held->value);
		return;
	}
	if (!self->hazptr_spare && self->reader) {
		self->hazptr_spare = line;
		/* Relaxed: the thread keeps the line. */
		quiesce_store_relaxed(quiesce__line_owner(line), QUIESCE_OWNER_CONTEXT | quiesce__recorded_tid());
		return;
	}
	quiesce__leave_line(&quiesce__hazptr_lines, line);
}

/* ---- while a waiter waits, or with full fences ---- */

/* Notify the scanner if it waits for @old, the former value of @slot; once for each tag.  The slot may have lost
 * the tag already, so the word beside it is checked, too: it has the number of the scan that set the tag, and
 * may be written a little later than the tag. */
static void notify_scanner(hazptr_t *slot, uintptr_t old)
{
	uint64_t *tagged = (uint64_t *)&slot->value + QUIESCE_LINE_WORDS;

	/* Relaxed: a late tag is served by the next call.  Where the store overwrites a new number, the scan
	 * takes the tag for one of an earlier scan, which blocks no fewer waiters. */
	if (old > QUIESCE_SLOT_TAG || quiesce_load_relaxed(tagged)) {
		quiesce_store_relaxed(tagged, 0); /* Relaxed: see the check above. */
		quiesce__shazptr_notify();
	}
}

static void serve_requests(hazptr_t *slot, uintptr_t old)
{
	/* Relaxed: a request may be seen, or end, a little late. */
	uint64_t requests = quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr_slow);

	if (requests & QUIESCE_SLOTS_WAIT)
		notify_scanner(slot, old);
	if (requests & QUIESCE_SLOTS_YIELD)
		quiesce__yield(&quiesce__slots_yield);
}

void quiesce__hazptr_set_slow(hazptr_t *slot, uintptr_t value)
{
	/* Relaxed: the caller's own slot.  While the old protection is still there its waiter is not
	 * completed. */
	uintptr_t old = quiesce_load_relaxed(&slot->value);

	if (!old)
		serve_requests(slot, 0);
	/* SH2: release, pairs with SH2 in quiesce__slot_read() */
	quiesce_store_release(SH2, &slot->value, value);
	/* Either the scan sees the slot, or the caller's next load sees what was unlinked. */
	/* HP1: pairs with HP1 in quiesce__hazptr_scan_begin() */
	/* SH1: pairs with SH1 in quiesce_synchronize_shazptr() and fence_for_queue() */
	quiesce_fence_mode(HP1);
	if (old && (quiesce_load_relaxed(&quiesce_shazptr_v1.hazptr_slow) & QUIESCE_SLOTS_WAIT)) /* Relaxed: as in serve_requests(). */
		notify_scanner(slot, old);
}

PLATFORM_SAVING_CALL(quiesce__hazptr_set_saving, quiesce__hazptr_set_slow)

void *quiesce__hazptr_protect_slow(hazptr_t *slot, void **where, size_t offset, uintptr_t marks)
{
	void *ptr;

	while (quiesce_unlikely(!quiesce__hazptr_attempt(slot, where, offset, marks, false, &ptr)))
		;
	return ptr;
}

void quiesce__hazptr_free_slow(hazptr_t *slot)
{
	uintptr_t old = quiesce_load_relaxed(&slot->value); /* Relaxed: the caller's own slot, and its tag. */

	/* SH2: release, pairs with SH2 in quiesce__slot_read() and take_free() */
	quiesce_store_release(SH2, &slot->value, QUIESCE_HAZPTR_FREE);
	serve_requests(slot, old);
}

void quiesce_hazptr_protect_batch(hazptr_t *const *slots, void **const *where, void **ret_ptrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		ret_ptrs[i] = quiesce_load_relaxed(where[i]); /* Relaxed: only the second load is used. */
		/* SH2: release, pairs with SH2 in quiesce__slot_read() */
		quiesce_store_release(SH2, &slots[i]->value, (uintptr_t)ret_ptrs[i]);
	}
	/* One fence for all slots: either the scan sees all of them, or the loads below see what was
	 * unlinked. */
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

/* I3: taken slots in the line protect nothing any more, but may still be freed.  Relaxed throughout: no
 * thread takes slots from it. */
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

/* I3: mark the lines that the parent's threads owned, also a line without an owner if a slot in it was handed
 * over.  Pool lines stay.  Relaxed throughout: no other thread is inside the library. */
void quiesce__hazptr_fork_child(void)
{
	struct quiesce__lines *lines = &quiesce__hazptr_lines;

	quiesce__hazptr_fence_chosen(); /* requests of the parent's waiters end */
	quiesce__arena_fork_child(&lines->arena);
	for (uint32_t i = 0; i < lines->nr; i++) {
		uintptr_t *line = quiesce__line(lines, i);
		uint64_t *owner = quiesce__line_owner(line);

		if (!*owner && any_taken(line))
			quiesce_store_relaxed(owner, QUIESCE_OWNER_CONTEXT | QUIESCE_OWNER_INHERITED);
		else if (!*owner) /* the fork may have interrupted the owner before it set the bit, or a taker after it cleared the bit */
			quiesce__mark_vacant(lines, i);
		else if (!quiesce__owner_is_all(*owner))
			quiesce_store_relaxed(owner, *owner | QUIESCE_OWNER_INHERITED);
		if (QUIESCE_MUTANT(fork_lines_dropped) && !quiesce__fork_survivor && (*owner & QUIESCE_OWNER_INHERITED))
			end_protections(line, *owner);
	}
}

/* Returns the owner in the child of @line, which a thread of the parent owned; 0: none. */
static uint64_t owner_now(const struct quiesce_tls_v1 *self, const uintptr_t *line, uint64_t owner)
{
	if (line == self->hazptr)
		return quiesce__new_owner();
	if ((owner & QUIESCE_OWNER_CONTEXT) && quiesce__fork_survivor_tid && (uint32_t)owner == quiesce__fork_survivor_tid)
		return QUIESCE_OWNER_CONTEXT | quiesce__recorded_tid();
	return 0;
}

void quiesce__hazptr_fork_survivor(const struct quiesce_tls_v1 *self)
{
	struct quiesce__lines *lines = &quiesce__hazptr_lines;
	uint32_t nr = quiesce_load_relaxed(&lines->nr); /* Relaxed: later lines are not the parent's. */

	for (uint32_t i = 0; i < nr; i++) {
		uintptr_t *line = quiesce__line(lines, i);
		uint64_t *owner = quiesce__line_owner(line), found = quiesce_load_relaxed(owner), now; /* Relaxed: no thread changes it. */

		if (quiesce__owner_is_all(found) || !(found & QUIESCE_OWNER_INHERITED))
			continue;
		now = owner_now(self, line, found);
		if (now)
			quiesce_store_relaxed(owner, now); /* Relaxed: the survivor owns the line already. */
		else
			end_protections(line, found);
	}
}
