/* SPDX-License-Identifier: MIT */
/* overdue.h - when a leader, a thread that serves several waiters, counts as overdue.  Its followers then assume
 * that it does not run. */
#ifndef QUIESCE_OVERDUE_H
#define QUIESCE_OVERDUE_H

#include "platform/platform.h"

#define QUIESCE_OVERDUE_NS 1000000u /* a leader is overdue this long after the time that it announced */
#define QUIESCE_OVERDUE_DELAY_MAX_NS 64000000u /* longest delay of a follower's check */

/* Progress that a follower has observed of its leader, and since when it is unchanged. */
struct quiesce__overdue {
	uint64_t progress, since;
};

/* The time since which there has been no progress.  @progress: any number that changes with each step of
 * progress. */
static inline uint64_t quiesce__unchanged_since(struct quiesce__overdue *late, uint64_t now, uint64_t progress)
{
	if (progress != late->progress || !late->since) {
		late->progress = progress;
		late->since = now;
	}
	return late->since;
}

/* The time from which the leader is overdue.  @due: the time that the leader announced for its next scan. */
static inline uint64_t quiesce__overdue_at(struct quiesce__overdue *late, uint64_t now, uint64_t progress, uint64_t due)
{
	uint64_t since = quiesce__unchanged_since(late, now, progress);

	return (due > since ? due : since) + QUIESCE_OVERDUE_NS;
}

/* Followers check one after the other: those of rank 0 at the time when the leader would be overdue, each further rank
 * 1 ms later, at most 64 ms.  So a leader that stops is found by the first follower that runs, without a
 * thousand followers waking each time.
 */
static inline uint64_t quiesce__overdue_delay(uint32_t rank)
{
	if (QUIESCE_MUTANT(watched_rarely))
		rank = UINT32_MAX;
	return rank < QUIESCE_OVERDUE_DELAY_MAX_NS / QUIESCE_OVERDUE_NS ? (uint64_t)rank * QUIESCE_OVERDUE_NS
									: QUIESCE_OVERDUE_DELAY_MAX_NS;
}

#endif
