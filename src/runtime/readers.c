/* SPDX-License-Identifier: MIT */
/* readers.c - the registry: who may hold a mark, and where it is.
 *
 * A thread's mark lies in its own TLS block, because a reader reaches that with
 * one instruction; the registry holds a pointer to it.
 *
 *   entry[]:  | tls tid notify | tls tid notify | ... up to nr, reserved up to capacity
 *               |
 *               +--> quiesce_tls_v1 of that thread, alive while tls != NULL
 *
 * I1. An entry's tls pointer may be followed only under readers.lock; a thread
 *     clears its entry under that lock before its TLS block goes away.
 * I2. Claiming takes no lock (a signal handler may be a thread's first reader):
 *     compare-and-exchange from NULL, with signals blocked.
 * I3. nr only grows; a scanner that loaded nr after its heavy fence may ignore
 *     entries beyond, because their sections began after that fence.
 * I4. The pool is reserved once, committed in steps, never returned.
 * I5. @nr_free is what was given back less what was claimed as that: a claim of an entry below nr subtracts one.  It may find
 *     one that another thread has just added and not claimed yet; that thread then adds one, and takes another.  So once all
 *     are through it is the number of free entries; meanwhile it may be less than nothing, which is not 0.
 *
 * RG1  entry.tls set, then the first section       | fence, entry.tls loaded
 * RG2  nr raised, then entry.tls set               | fence, nr loaded
 */
#include "readers.h"

#include "held.h"
#include "subsystem.h"

struct quiesce__readers quiesce__readers;

#define COMMIT_BYTES 65536u
#if defined(QUIESCE_SIM)
#define MAX_READERS 4u /* small, so that the simulator runs out of entries too */
#else
#define MAX_READERS (4u << 20) /* more threads than a kernel can have */
#endif

/* Used when not even address space can be reserved. */
static struct quiesce__reader fallback_pool[MAX_READERS < 256 ? MAX_READERS : 256];

void quiesce__readers_init(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t n = MAX_READERS;

	for (; n >= COMMIT_BYTES / sizeof(*rs->entry); n /= 2) {
		rs->entry = platform_reserve((size_t)n * sizeof(*rs->entry));
		if (rs->entry) {
			rs->capacity = n;
			return;
		}
	}
	rs->entry = fallback_pool;
	rs->capacity = sizeof fallback_pool / sizeof fallback_pool[0];
}

/* Take entry @i if it is free. */
static bool claim(uint32_t i, struct quiesce_tls_v1 *self)
{
	struct quiesce__reader *r = &quiesce__readers.entry[i];
	struct quiesce_tls_v1 *none = NULL;

	/* RG1: pairs with RG1 in quiesce__reader_tls() */
	if (!quiesce_cmpxchg(RG1, &r->tls, &none, self))
		return false;
	/* Relaxed: for reports only. */
	quiesce_store_relaxed(&r->tid, quiesce__noted_tid());
	self->reader = r;
	return true;
}

static bool claim_given_back(struct quiesce_tls_v1 *self)
{
	struct quiesce__readers *rs = &quiesce__readers;
	/* Relaxed: claim() decides. */
	uint32_t n = quiesce_load_relaxed(&rs->nr);

	for (uint32_t i = 0; i < n; i++) {
		/* Relaxed: claim() decides. */
		if (!quiesce_load_relaxed(&rs->entry[i].tls) && claim(i, self)) {
			quiesce_fetch_add_relaxed(&rs->nr_free, (uint32_t)-1); /* Relaxed: I5. */
			return true;
		}
	}
	return false;
}

static bool commit_entry(uint32_t i)
{
	struct quiesce__readers *rs = &quiesce__readers;
	size_t offset = (size_t)i * sizeof(*rs->entry);

	if (rs->entry == fallback_pool || offset % COMMIT_BYTES)
		return true;
	return platform_commit((char *)rs->entry + offset, COMMIT_BYTES) == 0;
}

static bool claim_fresh(struct quiesce_tls_v1 *self)
{
	struct quiesce__readers *rs = &quiesce__readers;
	/* Relaxed: the exchange below decides. */
	uint32_t i = quiesce_load_relaxed(&rs->nr);

	while (i < rs->capacity) {
		if (!commit_entry(i))
			return false;
		/* RG2: pairs with RG2 in quiesce__readers_nr() */
		if (!quiesce_cmpxchg(RG2, &rs->nr, &i, i + 1))
			continue;
		if (claim(i, self))
			return true;
		if (!QUIESCE_MUTANT(readers_free_taken_twice))
			quiesce_fetch_add_relaxed(&rs->nr_free, 1u); /* Relaxed: I5. */
		i = quiesce_load_relaxed(&rs->nr); /* Relaxed: as above. */
	}
	return false;
}

static bool claim_any(struct quiesce_tls_v1 *self)
{
	/* Relaxed: a hint that saves the walk. */
	if (quiesce_load_relaxed(&quiesce__readers.nr_free) && claim_given_back(self))
		return true;
	return claim_fresh(self);
}

bool quiesce__reader_register(struct quiesce_tls_v1 *self)
{
	return claim_any(self) || (quiesce__readers_reap() && claim_any(self));
}

/* Under readers.lock: take @r out, and wake who waits for it. */
static void give_back(struct quiesce__reader *r)
{
	/* Relaxed: I1, the lock orders both.  No tid is left behind: quiesce__readers_reap()
	 * must not judge the next owner by it. */
	quiesce_store_relaxed(&r->tid, 0);
	quiesce_store_relaxed(&r->tls, NULL);
	quiesce_fetch_add_relaxed(&quiesce__readers.nr_free, 1u); /* Relaxed: a hint. */
	if (!QUIESCE_MUTANT(exit_no_notify))
		quiesce__each_subsystem(reader_gone, r);
}

void quiesce__thread_exit(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct platform_sigmask mask;
	struct quiesce__reader *r = self->reader;

	quiesce__init();
	quiesce__each_subsystem(thread_report, self);
	platform_signals_block(&mask);
	quiesce__each_subsystem(thread_exit, self);
	self->state |= QUIESCE_TLS_EXITING;
	self->reader = NULL;
	quiesce__each_subsystem(thread_end, self);
	if (r && !QUIESCE_MUTANT(exit_keeps_entry)) {
		quiesce__lock(&quiesce__readers.lock);
		give_back(r);
		quiesce__unlock(&quiesce__readers.lock);
	}
	platform_signals_restore(&mask);
}

uint32_t quiesce__readers_reap(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t n = quiesce__readers_nr(), reaped = 0;

	/* A handler may register on a thread that holds the lock: then do without. */
	if (!quiesce__trylock(&rs->lock))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		struct quiesce__reader *r = &rs->entry[i];

		uint32_t tid = quiesce__reader_tid(r);

		/* Relaxed: the entry of a dead thread does not change. */
		if (!quiesce_load_relaxed(&r->tls) || !tid || platform_thread_alive(tid))
			continue;
		give_back(r);
		reaped++;
	}
	quiesce__unlock(&rs->lock);
	return reaped;
}

/* ---- in a child ---- */

/* One that was in a callback is not the survivor, or the child ends; so it need not be waited for. */
static bool may_survive(const struct quiesce_tls_v1 *tls)
{
	return tls == quiesce__fork_survivor ||
	       (!quiesce__fork_survivor && !(tls->state & (QUIESCE_TLS_WORKER | QUIESCE_TLS_CALLBACKS)) &&
		!QUIESCE_MUTANT(fork_entries_dropped));
}

/* Relaxed throughout: nobody else is inside the library. */
void quiesce__readers_fork_child(void)
{
	struct quiesce__readers *rs = &quiesce__readers;

	quiesce__lock_reset(&rs->lock, false);
	rs->nr_free = 0; /* I5, and what a thread had added and not claimed */
	for (uint32_t i = 0; i < rs->nr; i++) {
		struct quiesce__reader *r = &rs->entry[i];

		quiesce_store_relaxed(&r->notify, 0);
		quiesce_store_relaxed(&r->tid, r->tls ? QUIESCE_TID_INHERITED : 0);
		if (!r->tls)
			rs->nr_free++;
		else if (!may_survive(r->tls))
			give_back(r);
	}
	for (uint32_t i = 0; i < 2; i++)
		rs->inherited[i] = quiesce_load_relaxed(&rs->unregistered[i]);
}

void quiesce__readers_fork_survivor(struct quiesce_tls_v1 *self)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t nr = quiesce__readers_nr();

	quiesce__lock(&rs->lock);
	for (uint32_t i = 0; i < nr; i++) {
		struct quiesce__reader *r = &rs->entry[i];

		/* Relaxed: the claimer of an entry has another number. */
		if (quiesce_load_relaxed(&r->tid) != QUIESCE_TID_INHERITED)
			continue;
		if (r == self->reader)
			quiesce_store_relaxed(&r->tid, quiesce__noted_tid()); /* Relaxed: for reports only. */
		else if (r->tls)
			give_back(r);
	}
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t mine = self->unregistered && (self->unregistered & 1) == i &&
				!(QUIESCE_MUTANT(fork_nested_lost) && self->unregistered > 3);

		quiesce_fetch_add_relaxed(&rs->unregistered[i], mine - rs->inherited[i]); /* Relaxed: nothing was read under these. */
	}
	quiesce__unlock(&rs->lock);
}

uint32_t quiesce__readers_live(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t n = quiesce__readers_nr(), live = 0;

	for (uint32_t i = 0; i < n; i++)
		live += quiesce_load_relaxed(&rs->entry[i].tls) != NULL; /* Relaxed: a statistic. */
	return live;
}
