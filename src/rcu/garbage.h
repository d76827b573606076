/* SPDX-License-Identifier: MIT */
/* garbage.h - bytes that wait for a grace period, of RCU and of all SRCU domains: two sums, one ceiling. */
#ifndef QUIESCE_GARBAGE_H
#define QUIESCE_GARBAGE_H

#include "runtime/report.h"

/* Bytes reported by who queued less bytes reported by who reclaimed: both report in steps, so the sum lags a little, and may
 * dip below zero. */
extern int64_t quiesce__garbage;
/* The same of SRCU; apart because a forked child counts it anew. */
extern int64_t quiesce__garbage_srcu;

/* Bytes of RCU. */
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

/* @call of the program may sleep: until there is less than the ceiling, at most @max_ns.  At a @safe_point the caller runs
 * callbacks if no thread can be had that would; elsewhere it does not wait for them then. */
void quiesce__throttle(const char *call, uint64_t max_ns, bool safe_point);
/* Garbage has got less: wake who waits for that, if it is below the ceiling now. */
void quiesce__throttle_wake(void);
/* Tell of it, if it is time to. */
void quiesce__rcu_check_garbage(void);
/* Begin a report of how much waits for grace periods of RCU. */
void quiesce__rcu_report_garbage(struct quiesce__report *r);

#endif
