/* SPDX-License-Identifier: MIT */
/* readers.h - the registry of threads that have a mark, which updaters read. */
#ifndef QUIESCE_READERS_H
#define QUIESCE_READERS_H

#include "core.h"

/* One entry per registered thread; entries are reused, their memory never goes away. */
struct quiesce__reader {
	struct quiesce_tls_v1 *tls; /* NULL: free.  Followed by quiesce__readers_walk() */
	uint32_t tid;               /* owner, for reports and for finding the dead; 0: not known; or QUIESCE_TID_INHERITED */
	uint32_t notify;            /* 1: a waiter counts on this thread's next outermost unlock */
};

/* Of a thread of the parent's, in a child whose survivor has not come yet: it is the survivor, or not in this process. */
#define QUIESCE_TID_INHERITED UINT32_MAX

struct quiesce__readers {
	struct quiesce__reader *entry; /* reserved once */
	uint32_t capacity;
	uint32_t nr;      /* entries ever used; grows only */
	uint32_t nr_free; /* entries below nr given back; a hint */
	uint32_t hint;    /* which of them is tried next */
	uint32_t reap_at; /* whose owner is asked next whether it lives, where entries are scarce */
	struct quiesce__lock lock; /* held while an entry of a dead thread is given back; no thread waits for it */
	/* Sections without an entry: shared counts, so on a line of their own.  Two, of which
	 * new sections take the one that @phase names, so that an updater can empty the other. */
	uint64_t unregistered[2] __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t phase; /* written by the updater */
	uint64_t inherited[2]; /* of these, those of the parent's threads; until the survivor has come */
};
extern struct quiesce__readers quiesce__readers;

/* Reserve the registry; at initialisation. */
void quiesce__readers_init(void);
/* Give the calling thread an entry; false if none can be had.  Signals are blocked. */
bool quiesce__reader_register(struct quiesce_tls_v1 *self);
/* Between two checks whether the owner of an entry in the way of a wait lives.  It is rare that one does not, the check is a system call,
 * and a sandbox may forbid that: so shorter waits make none. */
#if defined(QUIESCE_SIM)
#define QUIESCE_REAP_NS 50000000u
#else
#define QUIESCE_REAP_NS 1000000000u
#endif
/* The owner of entry *@at, the first in the way of @wait, may have died; then its entry is given back, and @over, which moves *@at on,
 * is asked whether nobody is in the way any more; if not, the next one is judged, of a bounded number.  Returns when to do so again. */
uint64_t quiesce__readers_reap(uint64_t now, const uint32_t *at, bool (*over)(void *wait), void *wait);
/* Visit the entries from @from up to, not including, @to that have owners, until @visit returns true: the number of that entry, else @to.
 * An owner does not end while it is visited; so @visit is short, waits for nobody, and takes no lock. */
typedef bool (*quiesce__visit_fn)(struct quiesce__reader *r, struct quiesce_tls_v1 *tls, void *arg);
uint32_t quiesce__readers_walk(uint32_t from, uint32_t to, quiesce__visit_fn visit, void *arg);
void quiesce__readers_fork_child(void);
/* Keep of the parent's threads only the calling one. */
void quiesce__readers_fork_survivor(struct quiesce_tls_v1 *self);
/* Number of registered threads. */
uint32_t quiesce__readers_live(void);

/* How many entries a scanner must read. */
static inline uint32_t quiesce__readers_nr(void)
{
	/* RG2: acquire, pairs with RG2 in claim_fresh() */
	return quiesce_load_acquire(RG2, &quiesce__readers.nr);
}

/* By which number @r's owner may be judged and reported; 0: by none. */
static inline uint32_t quiesce__reader_tid(const struct quiesce__reader *r)
{
	uint32_t tid = quiesce_load_relaxed(&r->tid); /* Relaxed: for reports, and for guesses. */

	return tid == QUIESCE_TID_INHERITED ? 0 : tid;
}

/* Whose mark entry @r leads to. */
static inline struct quiesce_tls_v1 *quiesce__reader_tls(struct quiesce__reader *r)
{
	/* RG1: acquire, pairs with RG1 in claim() */
	return quiesce_load_acquire(RG1, &r->tls);
}

#endif
