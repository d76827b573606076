/* SPDX-License-Identifier: MIT */
/* shazptr.h - simple hazard pointers, for the files of src/shazptr and src/hazptr. */
#ifndef QUIESCE_SRC_SHAZPTR_H
#define QUIESCE_SRC_SHAZPTR_H

#include "runtime/report.h"
#include "runtime/wait_policy.h"
#include "slots/slots.h"

#define QUIESCE_SHAZPTR_BUCKETS 64u

enum quiesce__waiter_state { QUIESCE_WAITS, QUIESCE_WAITS_ASLEEP, QUIESCE_LEADS, QUIESCE_COMPLETED };

struct quiesce__waiter {
	struct quiesce__waiter *next, *bucket_next; /* next in @queue or @scanned_for; next in the bucket */
	uintptr_t address;
	const char *call;     /* name of the program's call, for reports */
	uint32_t tid;
	uint64_t first_scan;  /* number of the first scan for this waiter */
	uint64_t start;
	uint64_t fallback_until;  /* value of @fallback_flips from which fallback guards do not block it */
	uint32_t state;
	uint64_t fences;      /* value of the scan's @fences when the waiter joined the queue */
	bool fenced;          /* the heavy fence for this waiter has been executed */
	bool blocked;         /* a guard blocks it, in this scan */
	const uintptr_t *by;  /* the last slot that blocked it; NULL: fallback guards */
};

#define QUIESCE_SHAZPTR_WAKE_MAX 32u /* most waiters that are completed in one hold of the lock */

/* This holds the words of completed waiters that sleep, and are to be woken. */
struct quiesce__shazptr_completed {
	uint32_t *asleep[QUIESCE_SHAZPTR_WAKE_MAX];
	uint32_t nr;
};

struct quiesce__shazptr_scan {
	struct quiesce__lock lock;
	/* The following fields are written under the lock. */
	struct quiesce__waiter *queue; /* waiters that no scan has served yet */
	bool leading;
	bool requested;   /* holders of tagged slots are requested to wake the scanner */
	uint32_t idle;    /* futex: the scan thread has nothing to do */
	struct quiesce__waiter *scanned_for; /* waiters that scans serve */
	struct quiesce__waiter *bucket[QUIESCE_SHAZPTR_BUCKETS]; /* waiters of @scanned_for, by address */
	struct quiesce__waiter *wildcards; /* waiters of @scanned_for that wait for every guard */
	uint64_t scan_nr;     /* number of the current scan */
	uint64_t fences;      /* number of fences that leaders have begun for waiters without one */
	uint64_t fallback_flips;
	uint32_t nr_blocking; /* number of slots that blocked a waiter in this scan */
	uint32_t nr_done;     /* number of waiters ever completed */
	uint64_t nr_finished; /* number of scans that were finished */
	uint64_t oldest;      /* time at which the oldest wait began */

	uint32_t asleep;  /* futex: the leader sleeps until a clear wakes it */
	uint32_t running; /* futex: the scan thread runs */
	uint32_t stop;
	uint64_t due;     /* estimated time of the next scan */

	/* The leader owns the following fields. */
	uint32_t nr_blocking_before, nr_done_before;
	struct quiesce__wait_policy policy;
	uint64_t force_not_before;
};
extern struct quiesce__shazptr_scan quiesce__shazptr_scan;

/* True if two words hold the same address, tags aside. */
static inline bool quiesce__same_address(uintptr_t a, uintptr_t b)
{
	return (a ^ b) << 1 == 0;
}

/* shazptr_scan.c: as the leader, scan once for all waiters; true if none is left. */
bool quiesce__shazptr_scan_once(void);
/* Scan and sleep until no waiter is left, or @me is completed. */
void quiesce__shazptr_lead(const struct quiesce__waiter *me);
/* Scan a few times without sleeping. */
void quiesce__shazptr_lead_briefly(void);
/* No waiter is left: end the wait policy. */
void quiesce__shazptr_scan_idle(void);
/* For a follower: scan once, unless a scan was finished since @scans was read; the next scan is due at @due. */
void quiesce__shazptr_scan_if_late(uint64_t scans, uint64_t due);
/* Wait, on behalf of the program's @call, until no guard protects @address, which was found protected. */
void quiesce__shazptr_wait_for(uintptr_t address, const char *call);
/* shazptr_report.c: report the oldest wait. */
void quiesce__shazptr_report_stall(uint64_t now);
/* Add to @r which slot protects @address, and the slot's owner, as far as it is known.  False: no slot does. */
bool quiesce__shazptr_report_guard(struct quiesce__report *r, uintptr_t address);

/* Give @w its new state, QUIESCE_COMPLETED or QUIESCE_LEADS, under the lock; @w may be gone right after. */
void quiesce__shazptr_complete(struct quiesce__waiter *w, uint32_t state, struct quiesce__shazptr_completed *completed);
/* Wake the waiters in @completed, without the lock. */
void quiesce__shazptr_wake(const struct quiesce__shazptr_completed *completed);

/* shazptr.c: the calling thread exits, and claims no more slots in a line of its own. */
void quiesce__shazptr_thread_end(struct quiesce_tls_v1 *self);
/* In the child, which has new slots: forget where its thread claimed slots of the parent. */
void quiesce__shazptr_claims_fork_survivor(struct quiesce_tls_v1 *self);

/* A slot with a tag, or a fallback guard, has been cleared. */
void quiesce__shazptr_notify(void);
bool quiesce__shazptr_thread_running(void);
/* Let the scan thread end once no waiter is left; return then, or at @deadline.  False: another caller has started the thread again. */
bool quiesce__shazptr_stop_thread(uint64_t deadline);
void quiesce__shazptr_fork_prepare(void);
void quiesce__shazptr_fork_parent(void);
void quiesce__shazptr_fork_child(void);

/* shazptr_debug.c: true if the calling thread holds a guard of @address, as far as the debug build knows. */
bool quiesce__shazptr_held_by_me(uintptr_t address);
/* Returns the holder of @slot, with the time and the code of its claim, as far as the debug build knows; its nr is 0 if none is known. */
struct quiesce__holder quiesce__shazptr_holder(const uintptr_t *slot);
/* hazptr_debug.c: returns a slot in which the calling thread protects @address, as far as the debug build knows; NULL: there is none. */
const void *quiesce__hazptr_held_by_me(uintptr_t address);
void quiesce__shazptr_debug_fork_child(void);

#endif
