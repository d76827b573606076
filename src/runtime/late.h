/* SPDX-License-Identifier: MIT */
/* late.h - when a leader, a thread that serves several waiters, counts as overdue.  Its followers then assume
 * that it does not run. */
#ifndef QUIESCE_LATE_H
#define QUIESCE_LATE_H

#include "platform/platform.h"

#define QUIESCE_LATE_NS 1000000u /* a leader is overdue this long after the time that it announced */
#define QUIESCE_TURN_MAX_NS 64000000u

/* Progress that a follower has observed of its leader, and since when it is unchanged. */
struct quiesce__late {
	uint64_t progress, since;
};

/* The time since which there has been no progress.  @progress: any number that changes with each step of
 * progress. */
static inline uint64_t quiesce__late_since(struct quiesce__late *late, uint64_t now, uint64_t progress)
{
	if (progress != late->progress || !late->since) {
		late->progress = progress;
		late->since = now;
	}
	return late->since;
}

/* The time from which the leader is overdue.  @due: the time that the leader announced for its next scan. */
static inline uint64_t quiesce__late_at(struct quiesce__late *late, uint64_t now, uint64_t progress, uint64_t due)
{
	uint64_t since = quiesce__late_since(late, now, progress);

	return (due > since ? due : since) + QUIESCE_LATE_NS;
}

/* Followers check in turn: those of rank 0 at the time when the leader would be overdue, each further rank 1
 * ms later, at most 64 ms.  So a leader that stops is found by the first follower that runs, without a
 * thousand followers waking each time.
 */
static inline uint64_t quiesce__late_turn(uint32_t rank)
{
	if (QUIESCE_MUTANT(watched_rarely))
		rank = UINT32_MAX;
	return rank < QUIESCE_TURN_MAX_NS / QUIESCE_LATE_NS ? (uint64_t)rank * QUIESCE_LATE_NS : QUIESCE_TURN_MAX_NS;
}

#endif
