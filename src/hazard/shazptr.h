/* SPDX-License-Identifier: MIT */
/* shazptr.h - simple hazard pointers, for the files of this room. */
#ifndef QUIESCE_SRC_SHAZPTR_H
#define QUIESCE_SRC_SHAZPTR_H

#include "runtime/report.h"
#include "runtime/wait_policy.h"
#include "slots.h"

#define QUIESCE_SHAZPTR_BUCKETS 64u

enum quiesce__waiter_state { QUIESCE_WAITS, QUIESCE_WAITS_ASLEEP, QUIESCE_LEADS, QUIESCE_COMPLETED };

struct quiesce__waiter {
	struct quiesce__waiter *next, *same; /* in the queue or the list; in the bucket */
	uintptr_t address;
	const char *call;     /* of the program */
	uint32_t tid;
	uint64_t epoch;       /* number of the first scan for it */
	uint64_t start;
	uint64_t fallback_until;  /* blocked by fallback guards before that many turns */
	uint32_t state;
	uint64_t fences;      /* those that began before it came */
	bool fenced;          /* its heavy fence has been executed */
	bool blocked;         /* in this scan */
	const uintptr_t *by;  /* the last slot that blocked; NULL: fallback guards */
};

#define QUIESCE_SHAZPTR_WAKE_MOST 32u /* with one hold of the lock */

/* Waiters that have been completed, and sleep. */
struct quiesce__shazptr_completed {
	uint32_t *asleep[QUIESCE_SHAZPTR_WAKE_MOST];
	uint32_t nr;
};

struct quiesce__shazptr_scan {
	struct quiesce__lock lock;
	/* under the lock, written at least */
	struct quiesce__waiter *queue;
	bool leading;
	bool asked;       /* holders of tags wake */
	uint32_t idle;    /* futex: the thread has nothing to do */
	struct quiesce__waiter *list;
	struct quiesce__waiter *bucket[QUIESCE_SHAZPTR_BUCKETS], *everybody; /* by address; those that wait for every guard */
	uint64_t epoch;
	uint64_t fences;      /* so many have begun, for waiters that have executed none */
	uint64_t fallback_turns;
	uint64_t *tagged_in;  /* of the slot that is read: the scan that put the tag there */
	uint32_t nr_blocking; /* slots that blocked in this scan */
	uint32_t nr_done;
	uint64_t scans;       /* so many were finished */
	uint64_t oldest;      /* when the oldest wait began */

	uint32_t asleep;  /* futex: the leader waits for a clear */
	uint32_t running; /* futex: there is a thread */
	uint32_t stop;
	uint64_t due;     /* when the next scan will be, as far as is known */

	/* the leader's */
	uint32_t nr_blocking_before, nr_done_before;
	struct quiesce__wait_policy policy;
	uint64_t force_not_before;
};
extern struct quiesce__shazptr_scan quiesce__shazptr_scan;

/* Are two words the same address, whatever their tags? */
static inline bool quiesce__same_address(uintptr_t a, uintptr_t b)
{
	return (a ^ b) << 1 == 0;
}

/* shazptr_scan.c, for the leader: one scan for all waiters; true if none is left. */
bool quiesce__shazptr_scan_once(void);
/* Scan and sleep until no waiter is left, or @me is completed; or only scan a few times. */
void quiesce__shazptr_lead(const struct quiesce__waiter *me);
void quiesce__shazptr_lead_for_a_while(void);
/* Nobody waits any more. */
void quiesce__shazptr_scan_idle(void);
/* For others: one scan, unless there was one since @scans; the next one is at @due. */
void quiesce__shazptr_scan_if_late(uint64_t scans, uint64_t due);
/* Wait for an address that was found protected, in @call of the program. */
void quiesce__shazptr_wait_for(uintptr_t address, const char *call);
/* shazptr_report.c: report the oldest wait. */
void quiesce__shazptr_report_stall(uint64_t now);
/* Add which slot protects @address, and whose it is, as far as that is known.  False: none does. */
bool quiesce__shazptr_report_guard(struct quiesce__report *r, uintptr_t address);

/* Tell @w, under the lock; it may be gone right after.  Then wake, without the lock. */
void quiesce__shazptr_complete(struct quiesce__waiter *w, uint32_t state, struct quiesce__shazptr_completed *completed);
void quiesce__shazptr_wake(const struct quiesce__shazptr_completed *completed);

/* shazptr.c: the calling thread exits: it claims in no line of its own any more. */
void quiesce__shazptr_thread_end(struct quiesce_tls_v1 *self);
/* In the child, which has new slots: its thread claims anew. */
void quiesce__shazptr_claims_fork_survivor(struct quiesce_tls_v1 *self);

/* A slot with a tag, or a fallback guard, has been cleared. */
void quiesce__shazptr_notify(void);
bool quiesce__shazptr_thread_running(void);
/* Let the scan thread end once nobody waits; return then, or at @deadline.  False: somebody has started another. */
bool quiesce__shazptr_stop_thread(uint64_t deadline);
void quiesce__shazptr_fork_prepare(void);
void quiesce__shazptr_fork_parent(void);
void quiesce__shazptr_fork_child(void);

/* shazptr_debug.c: does the calling thread hold @address, as far as the debug build knows? */
bool quiesce__shazptr_held_by_me(uintptr_t address);
/* The holder of @slot, since when and where acquired, as far as the debug build knows; nr 0: it does not. */
struct quiesce__holder quiesce__shazptr_holder(const uintptr_t *slot);
/* hazptr_debug.c: a slot in which the calling thread protects @address, as far as the debug build knows; NULL: there is none. */
const void *quiesce__hazptr_held_by_me(uintptr_t address);
void quiesce__shazptr_debug_fork_child(void);

#endif
