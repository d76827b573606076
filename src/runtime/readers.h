/* SPDX-License-Identifier: MIT */
/* readers.h - the registry of threads with reader words that updaters scan. */
#ifndef QUIESCE_READERS_H
#define QUIESCE_READERS_H

#include "core.h"

/* One entry per registered thread; entries are reused, their memory never goes away. */
struct quiesce__reader {
	struct quiesce_tls_v1 *tls; /* the owner's block, which quiesce__readers_walk() follows; NULL: the entry is free */
	uint32_t tid;               /* owner, for reports and to detect dead ones; 0: not known; or QUIESCE_TID_INHERITED */
	uint32_t wake_requested;    /* 1: a waiter counts on a wake-up by this thread's next outermost unlock */
};

/* The owner's number in an entry of a thread of the parent, in a child whose survivor has not arrived yet: the owner is the survivor, or is
 * not in this process. */
#define QUIESCE_TID_INHERITED UINT32_MAX

struct quiesce__readers {
	struct quiesce__reader *entry; /* entries, whose addresses are reserved once */
	uint32_t capacity;
	uint32_t nr;      /* number of entries ever used; only grows */
	uint32_t nr_free; /* number of entries below nr that were given back; a hint */
	uint32_t last_freed; /* entry that was given back last; a hint */
	uint32_t hand;    /* clock hand: entry that the next claim tries after that */
	uint32_t reap_at; /* next entry to check for a dead owner, where entries are scarce */
	struct quiesce__lock lock; /* held to give back entries of dead owners; threads only try to take it */
	/* Sections of unregistered readers: shared counts, so they have a cache line of their own.  New
	 * sections use the count of index @idx, so that an updater can wait until the other is 0. */
	uint64_t unregistered[2] __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t idx; /* written by the updater */
	uint64_t inherited[2]; /* parts of these counts from the parent's threads, until the survivor has arrived */
};
extern struct quiesce__readers quiesce__readers;

/* Reserve the registry, at initialisation. */
void quiesce__readers_init(void);
/* Give the calling thread an entry; false if there is none.  Signals are blocked. */
bool quiesce__reader_register(struct quiesce_tls_v1 *self);
/* Interval between two checks whether the owner of a holdout's entry lives.  Dead owners are rare, the check is a system call,
 * and a sandbox may forbid it: so shorter waits make none. */
#if defined(QUIESCE_SIM)
#define QUIESCE_REAP_NS 50000000u
#else
#define QUIESCE_REAP_NS 1000000000u
#endif
/* If the owner of entry *@at, the first holdout of @wait, has died, give back its entry.  Then @over(@wait) advances *@at, and returns
 * true if there is no holdout; else the next one is checked, for a bounded number of entries.  Returns the time of the next call. */
uint64_t quiesce__readers_reap(uint64_t now, const uint32_t *at, bool (*over)(void *wait), void *wait);
/* Visit the entries with owners from @from up to, not including, @to, until @visit returns true; returns the number of that entry, else
 * @to.  An owner cannot end while its entry is visited; so @visit is short, does not wait, and takes no lock. */
typedef bool (*quiesce__visit_fn)(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg);
uint32_t quiesce__readers_walk(uint32_t from, uint32_t to, quiesce__visit_fn visit, void *arg);
void quiesce__readers_fork_child(void);
/* Give back the entries of the parent's threads, except that of the calling thread. */
void quiesce__readers_fork_survivor(struct quiesce_tls_v1 *self);
/* Return the number of registered threads. */
uint32_t quiesce__readers_live(void);

/* Return the number of entries that a scanner must visit. */
static inline uint32_t quiesce__readers_nr(void)
{
	/* RG2: acquire, pairs with RG2 in claim_new() */
	return quiesce_load_acquire(RG2, &quiesce__readers.nr);
}

/* Return the thread number by which @r's owner may be checked and reported; 0: none. */
static inline uint32_t quiesce__reader_tid(const struct quiesce__reader *r)
{
	uint32_t tid = quiesce_load_relaxed(&r->tid); /* Relaxed: for reports, and for checks that the entry's state decides. */

	return tid == QUIESCE_TID_INHERITED ? 0 : tid;
}

/* Return the block with the reader word of @r's owner; NULL: the entry is free. */
static inline struct quiesce_tls_v1 *quiesce__reader_tls(struct quiesce__reader *r)
{
	/* RG1: acquire, pairs with RG1 in claim() */
	return quiesce_load_acquire(RG1, &r->tls);
}

#endif
