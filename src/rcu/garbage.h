/* SPDX-License-Identifier: MIT */
/* garbage.h - bytes that wait for a grace period, of RCU and of all SRCU domains: two sums, one ceiling. */
#ifndef QUIESCE_GARBAGE_H
#define QUIESCE_GARBAGE_H

#include "runtime/report.h"

/* Garbage of RCU: bytes that retirers reported less bytes that reclaimers reported.  Both report in quanta, so the sum lags a little, and
 * may fall below zero. */
extern int64_t quiesce__garbage;
/* Garbage of all SRCU domains, a separate sum because a forked child counts it anew. */
extern int64_t quiesce__garbage_srcu;

/* Return the garbage of RCU in bytes; a sum below zero counts as none. */
static inline uint64_t quiesce__garbage_rcu(void)
{
	int64_t bytes = quiesce_load_relaxed(&quiesce__garbage); /* Relaxed: a sum. */

	return bytes > 0 ? (uint64_t)bytes : 0;
}

static inline void quiesce__garbage_add(int64_t bytes)
{
	quiesce_fetch_add_relaxed(&quiesce__garbage, bytes); /* Relaxed: a sum. */
}

static inline void quiesce__garbage_add_srcu(int64_t bytes)
{
	quiesce_fetch_add_relaxed(&quiesce__garbage_srcu, bytes); /* Relaxed: a sum. */
}

static inline bool quiesce__garbage_above(uint64_t limit)
{
	/* Relaxed: sums. */
	int64_t garbage = quiesce_load_relaxed(&quiesce__garbage) + quiesce_load_relaxed(&quiesce__garbage_srcu);

	return limit && garbage > 0 && (uint64_t)garbage > limit;
}

static inline bool quiesce__garbage_above_ceiling(void)
{
	return quiesce__garbage_above(quiesce_load_relaxed(&quiesce__settings.ceiling)); /* Relaxed: a setting. */
}

/* Sleep in the program's @call until the garbage is below the ceiling, at most @max_ns.  At a @safe_point the caller runs callbacks if no
 * thread can be started that would; elsewhere it does not wait in that case. */
void quiesce__throttle(const char *call, uint64_t max_ns, bool safe_point);
/* True if a caller waits for less garbage. */
bool quiesce__throttled(void);
/* Wake the callers that wait for less garbage, if it is below the ceiling now. */
void quiesce__throttle_wake(void);
/* Report the garbage of RCU, if a report is due. */
void quiesce__rcu_check_garbage(void);
/* Begin a report of the garbage that waits for grace periods of RCU. */
void quiesce__rcu_report_garbage(struct quiesce__report *r);

#endif
