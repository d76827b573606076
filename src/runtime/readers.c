/* SPDX-License-Identifier: MIT */
/* readers.c - the registry of threads that may be readers, with the addresses of their reader words.
 *
 * A thread's reader word is in its own TLS block, because a reader reaches that with
 * one instruction; the registry holds a pointer to the block.
 *
 *   entry[]:  | tls tid wake_requested | tls tid wake_requested | ... up to nr; address space for capacity entries
 *               |
 *               +--> quiesce_tls_v1 of that thread, valid while tls != NULL
 *
 * A walk visits entries in chunks of CHUNK.  A scanner entry is the record of one scanner: it holds the number of the chunk that the
 * scanner is in.
 *
 * I1. An entry's tls pointer may be followed only by a scanner that holds a scanner entry and has published there the chunk of the entry.
 *     A thread clears its entry, and then waits for scanners that are in that chunk; so its TLS block outlives every visit.
 * I2. A claim is a compare-and-exchange from NULL, with signals blocked.  It takes no lock, because a signal handler may be a
 *     thread's first reader; except that of the arena, where that grows.
 * I3. nr only grows; a scanner that loaded nr after its heavy fence may ignore
 *     entries beyond, because their sections began after that fence.
 * I4. The pool grows in increments (arena.h), never moves, and is never returned.
 * I5. @nr_free is the number of entries given back less that of claims below nr: such a claim subtracts one.  It may find an
 *     entry that another thread has just added and not claimed yet; that thread then adds one, and takes another entry.  So once all
 *     claims are complete it is the number of free entries.  Meanwhile it may be negative; callers test for 0 only.
 *     A claim tries the entry that was given back last, then MAX_TRIED entries from the clock hand on (@hand), and takes a new one if
 *     all of them have owners.  So a registration reads a few cache lines, however many threads there are.  Only claims move the hand.
 *     Where they do not overlap it moves forward: a round of N entries adds about N / MAX_TRIED at most, and finds every free one.  A
 *     claim that is preempted between its load and its store of the hand moves it back, so then a round may take longer, and add more.
 * I6. Scanners wait for each other only where there are more of them than scanner entries, and no walk holds up more than the exits of
 *     one chunk's threads at a time.  A scanner holds the lock of its scanner entry during a chunk, so that a thread that exits lends it
 *     its priority.  Such an exit lasts until each scanner in that chunk has run for the rest of it, a microsecond each, and two context
 *     switches if the scanner does not run.  That cannot be avoided: only the scanner knows whether it is about to read the block.
 * I7. An entry is given back by its owner, or, if the owner has died, by a scanner that visits it, under readers.lock.  An owner
 *     that leaves waits for that scanner, and is alive; so an owner that is found dead has not left, and no other thread has the entry.
 *     Threads only try to take that lock.  In a child only the survivor gives back the entries of threads that the child does not have.
 *
 * RG1  entry.tls set, then the first section       | fence, entry.tls loaded
 * RG2  nr raised, then entry.tls set               | fence, nr loaded
 * RG3  chunk set, then entry.tls loaded; word read, then chunk cleared | entry.tls cleared, then chunk loaded; then the block goes away
 */
#include "readers.h"

#include "held.h"
#include "arena.h"
#include "subsystem.h"

struct quiesce__readers quiesce__readers;

#if defined(QUIESCE_SIM)
#define MAX_READERS 4u /* small, so that the simulator exhausts the entries, too */
#define SURE_READERS MAX_READERS
#define CHUNK 2u
#define NR_SCANNER_ENTRIES 2u   /* small, so that the simulator exhausts these entries, too */
#define SPINS 2u
#else
#define MAX_READERS (4u << 20) /* more threads than a kernel can have */
#define SURE_READERS (16u << 10)
#define CHUNK 32u      /* entries in a chunk; a scanner reads their words within a microsecond */
#define NR_SCANNER_ENTRIES 256u /* most scanners at a time */
#define SPINS 200u    /* a chunk takes no longer, unless the scanner is preempted */
#endif
#define FULL_NS 20000u /* interval between two attempts to find a free scanner entry */
#define REAPS 64u     /* most entries of dead owners that one wait gives back in a row */
#define PROBES 64u    /* most entries whose owners one registration checks */
#define MAX_TRIED 16u /* entries that a registration tries before it takes a new one */

/* Each entry publishes the chunk of the scanner that holds it. */
static struct scanner_entry {
	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE))); /* the scanner holds it, for a chunk */
	uint32_t chunk; /* number of the chunk, from 1; 0: none */
} scanner_entries[NR_SCANNER_ENTRIES];
static uint32_t nr_scanner_entries; /* entries before it were taken at some time; a thread that exits reads these */

static struct quiesce__arena arena;
/* Used when not even address space can be reserved. */
static struct quiesce__reader static_pool[MAX_READERS < 256 ? MAX_READERS : 256];

void quiesce__readers_init(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	bool any = quiesce__arena_init(&arena, SURE_READERS * sizeof(*rs->entry), MAX_READERS * sizeof(*rs->entry));

	rs->entry = any ? (struct quiesce__reader *)(void *)arena.start : static_pool;
	rs->capacity = any ? MAX_READERS : sizeof static_pool / sizeof static_pool[0];
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
	quiesce_store_relaxed(&r->tid, quiesce__recorded_tid());
	self->reader = r;
	return true;
}

/* Relaxed throughout: claim() decides. */
static bool claim_if_free(uint32_t i, struct quiesce_tls_v1 *self)
{
	return !quiesce_load_relaxed(&quiesce__readers.entry[i].tls) && claim(i, self);
}

/* Relaxed throughout: hints. */
static bool claim_free(struct quiesce_tls_v1 *self, uint32_t max_tries)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t n = quiesce_load_relaxed(&rs->nr), at = quiesce_load_relaxed(&rs->last_freed);
	bool claimed = at < n && claim_if_free(at, self);

	if (!claimed) {
		at = quiesce_load_relaxed(&rs->hand);
		for (uint32_t i = 0; i < n && i < max_tries && !claimed; i++, at++) {
			at = at < n ? at : 0;
			claimed = claim_if_free(at, self);
		}
		quiesce_store_relaxed(&rs->hand, at);
	}
	if (claimed)
		quiesce_fetch_add_relaxed(&rs->nr_free, (uint32_t)-1); /* I5 */
	return claimed;
}

static bool add_entry(uint32_t i)
{
	struct quiesce__readers *rs = &quiesce__readers;
	size_t offset = (size_t)i * sizeof(*rs->entry);

	return rs->entry == static_pool || offset % QUIESCE_ARENA_INCREMENT || quiesce__arena_extend(&arena, offset);
}

static bool claim_new(struct quiesce_tls_v1 *self)
{
	struct quiesce__readers *rs = &quiesce__readers;
	/* Relaxed: the exchange below decides. */
	uint32_t i = quiesce_load_relaxed(&rs->nr);

	while (i < rs->capacity) {
		if (!add_entry(i))
			return false;
		/* RG2: pairs with RG2 in quiesce__readers_nr() */
		if (!quiesce_cmpxchg(RG2, &rs->nr, &i, i + 1))
			continue;
		if (claim(i, self))
			return true;
		if (!QUIESCE_MUTANT(readers_free_taken_twice))
			quiesce_fetch_add_relaxed(&rs->nr_free, 1u); /* Relaxed: I5. */
		i = quiesce_load_relaxed(&rs->nr); /* Relaxed: the exchange decides. */
	}
	return false;
}

static bool claim_any(struct quiesce_tls_v1 *self)
{
	/* Relaxed: a hint that saves the search. */
	bool any = quiesce_load_relaxed(&quiesce__readers.nr_free) != 0;

	return (any && claim_free(self, MAX_TRIED)) || claim_new(self) || (any && claim_free(self, UINT32_MAX));
}

/* ---- scanners ---- */

static void count_scanner_entry(uint32_t i)
{
	uint32_t nr = quiesce_load_relaxed(&nr_scanner_entries); /* Relaxed: the exchange decides. */

	while (nr <= i)
		/* RG3: full, pairs with RG3 in give_back() */
		if (quiesce_cmpxchg(RG3, &nr_scanner_entries, &nr, i + 1))
			break;
}

/* Take the first free scanner entry from *@at on, and store its number in *@at.  Where all are taken, wait until any is free instead of
 * for a particular one, whose scanner may not run. */
static struct scanner_entry *take_scanner_entry(uint32_t *at)
{
	uint32_t never = 0;

	for (uint32_t n = 1;; n++) {
		struct scanner_entry *p = &scanner_entries[*at];

		if (!quiesce__lock_holder(&p->lock) && quiesce__trylock(&p->lock)) {
			count_scanner_entry(*at);
			return p;
		}
		*at = (*at + 1) % NR_SCANNER_ENTRIES;
		if (n % NR_SCANNER_ENTRIES == 0)
			platform_futex_wait(&never, 0, FULL_NS);
	}
}

static uint32_t visit_chunk(uint32_t from, uint32_t end, quiesce__visit_fn visit, void *arg)
{
	struct quiesce__reader *entry = quiesce__readers.entry;

	for (; from < end; from++) {
		struct quiesce_tls_v1 *tls = quiesce__reader_tls(&entry[from]);

		if (tls && visit(&entry[from], tls, arg))
			break;
	}
	return from;
}

/* Return the first entry from @from on that has an owner, or @to.  Nothing is followed here, so that entries which ended threads have
 * left cost a load each (I1). */
static uint32_t skip_free(uint32_t from, uint32_t to)
{
	struct quiesce__reader *entry = quiesce__readers.entry;

	while (from < to && !quiesce__reader_tls(&entry[from]))
		from++;
	return from;
}

uint32_t quiesce__readers_walk(uint32_t from, uint32_t to, quiesce__visit_fn visit, void *arg)
{
	uint32_t at = 0, end = from;

	while (from == end && (from = skip_free(from, to)) < to) {
		uint32_t chunk = from / CHUNK + 1;
		struct scanner_entry *p = take_scanner_entry(&at);

		end = chunk * CHUNK < to ? chunk * CHUNK : to;
		/* RG3: full, pairs with RG3 in give_back() */
		(void)quiesce_xchg(RG3, &p->chunk, chunk);
		from = visit_chunk(from, end, visit, arg);
		/* RG3: release, pairs with RG3 in wait_for_scanner() */
		quiesce_store_release(RG3, &p->chunk, 0u);
		quiesce__unlock(&p->lock);
	}
	return from;
}

/* ---- threads that end ---- */

/* Wait until the scanner of @p has left @chunk.  It may have reached the chunk again; it finds the entry cleared then. */
static void wait_for_scanner(struct scanner_entry *p, uint32_t chunk)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		/* RG3: acquire, pairs with RG3 in quiesce__readers_walk() */
		if (quiesce_load_acquire(RG3, &p->chunk) != chunk)
			return;
		quiesce_cpu_relax();
	}
	quiesce__lock_pi(&p->lock);
	quiesce__unlock(&p->lock);
}

static void wait_for_scanners(const struct quiesce__reader *r)
{
	uint32_t chunk = (uint32_t)(r - quiesce__readers.entry) / CHUNK + 1;

	/* Relaxed: give_back() has a fence, and a scanner counts its scanner entry before it reads the entry. */
	uint32_t nr = QUIESCE_MUTANT(exit_unwaited) ? 0 : quiesce_load_relaxed(&nr_scanner_entries);

	for (uint32_t i = 0; i < nr; i++)
		wait_for_scanner(&scanner_entries[i], chunk);
}

/* Make the entry free for the next claim. */
static void give_back(struct quiesce__reader *r)
{
	/* Relaxed: the exchange follows.  The tid is cleared, so that reap_if_dead() does not check the next owner by it. */
	quiesce_store_relaxed(&r->tid, 0);
	/* RG3: full, pairs with RG3 in quiesce__readers_walk() */
	(void)quiesce_xchg(RG3, &r->tls, NULL);
	quiesce_store_relaxed(&quiesce__readers.last_freed, (uint32_t)(r - quiesce__readers.entry)); /* Relaxed: a hint. */
	quiesce_fetch_add_relaxed(&quiesce__readers.nr_free, 1u); /* Relaxed: as above. */
}

/* Wake the waiters for the owner of @r. */
static void notify_of(struct quiesce__reader *r)
{
	if (!QUIESCE_MUTANT(exit_no_notify))
		quiesce__each_subsystem(reader_gone, r);
}

/* The calling thread, which has ended its section, gives back its entry. */
static void leave(struct quiesce__reader *r)
{
	notify_of(r); /* while no other thread's requests can be there */
	give_back(r);
	wait_for_scanners(r);
}

void quiesce__thread_exit(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct platform_sigmask mask;
	struct quiesce__reader *r = self->reader;

	quiesce__init();
	quiesce__each_subsystem(thread_report, self);
	platform_signals_block(&mask);
	quiesce__init(); /* a hook of the program may have forked */
	quiesce__each_subsystem(thread_exit, self);
	self->state |= QUIESCE_TLS_EXITING;
	self->reader = NULL;
	quiesce__each_subsystem(thread_end, self);
	if (r && !QUIESCE_MUTANT(exit_keeps_entry))
		leave(r);
	platform_signals_restore(&mask);
}

static bool reap_if_dead(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *unused)
{
	uint32_t tid = quiesce__reader_tid(r);

	(void)tls;
	(void)unused;
	if (!tid || platform_thread_alive(tid))
		return false;
	give_back(r);
	return true;
}

/* Give back entry @i if its owner has died without giving it back. */
static bool reap(uint32_t i)
{
	struct quiesce__readers *rs = &quiesce__readers;
	bool dead;

	/* A handler may register on a thread that holds the lock, so this must not wait. */
	if (!quiesce__trylock(&rs->lock))
		return false;
	dead = (QUIESCE_MUTANT(reap_unpublished) ? visit_chunk : quiesce__readers_walk)(i, i + 1, reap_if_dead, NULL) == i;
	quiesce__unlock(&rs->lock);
	if (dead)
		notify_of(&rs->entry[i]);
	return dead;
}

uint64_t quiesce__readers_reap(uint64_t now, const uint32_t *at, bool (*over)(void *wait), void *wait)
{
	for (uint32_t n = 0; n < REAPS && !QUIESCE_MUTANT(readers_dead_kept) && reap(*at) && !over(wait); n++)
		;
	return now + QUIESCE_REAP_NS;
}

/* Check the next entries, in turn; true if an owner was dead.  Relaxed throughout: it matters little which thread checks which entry. */
static bool reap_some(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t nr = quiesce__readers_nr(), probes = nr < PROBES ? nr : PROBES, reaped = 0;
	uint32_t at = quiesce_fetch_add_relaxed(&rs->reap_at, probes);

	for (uint32_t n = 0; n < probes; n++)
		reaped += reap((at + n) % nr);
	return reaped != 0;
}

bool quiesce__reader_register(struct quiesce_tls_v1 *self)
{
	return claim_any(self) || (reap_some() && claim_any(self));
}

/* ---- in a child ---- */

/* True if the thread may be the survivor of a fork.  A thread that was in a callback is not, or the child ends; so it need not be waited
 * for. */
static bool may_survive(const struct quiesce_tls_v1 *tls)
{
	return tls == quiesce__fork_survivor ||
	       (!quiesce__fork_survivor && !(tls->state & (QUIESCE_TLS_WORKER | QUIESCE_TLS_CALLBACKS)) &&
		!QUIESCE_MUTANT(fork_entries_dropped));
}

/* Release the scanner entry, whose scanner is not in the child; unless it is the survivor, whose signal handler forked during a chunk that
 * continues when the handler returns. */
static void inherit_scanner_entry(struct scanner_entry *p)
{
	uint32_t holder = quiesce__lock_holder(&p->lock);
	bool mine = quiesce__fork_survivor && holder && holder == quiesce__fork_survivor_tid && !QUIESCE_MUTANT(fork_scanner_lost);

	quiesce__lock_reset(&p->lock, mine);
	if (!mine)
		p->chunk = 0;
}

/* Relaxed throughout: no other thread is inside the library. */
void quiesce__readers_fork_child(void)
{
	struct quiesce__readers *rs = &quiesce__readers;

	quiesce__lock_reset(&rs->lock, false);
	quiesce__arena_fork_child(&arena);
	for (uint32_t i = 0; i < NR_SCANNER_ENTRIES; i++)
		inherit_scanner_entry(&scanner_entries[i]);
	rs->nr_free = 0; /* counted anew (I5), with entries that a thread had added and not claimed */
	for (uint32_t i = 0; i < rs->nr; i++) {
		struct quiesce__reader *r = &rs->entry[i];

		quiesce_store_relaxed(&r->wake_requested, 0);
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

	for (uint32_t i = 0; i < nr; i++) {
		struct quiesce__reader *r = &rs->entry[i];

		/* Relaxed: the claimer of an entry has another number. */
		if (quiesce_load_relaxed(&r->tid) != QUIESCE_TID_INHERITED)
			continue;
		if (r == self->reader)
			quiesce_store_relaxed(&r->tid, quiesce__recorded_tid()); /* Relaxed: for reports only. */
		else if (r->tls)
			give_back(r);
	}
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t mine = self->unregistered && (self->unregistered & 1) == i &&
				!(QUIESCE_MUTANT(fork_nested_lost) && self->unregistered > 3);

		quiesce_fetch_add_relaxed(&rs->unregistered[i], mine - rs->inherited[i]); /* Relaxed: those threads are gone. */
	}
}

uint32_t quiesce__readers_live(void)
{
	struct quiesce__readers *rs = &quiesce__readers;
	uint32_t n = quiesce__readers_nr(), live = 0;

	for (uint32_t i = 0; i < n; i++)
		live += quiesce_load_relaxed(&rs->entry[i].tls) != NULL; /* Relaxed: a statistic. */
	return live;
}
