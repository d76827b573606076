/* SPDX-License-Identifier: MIT */
/* late.h - is a leader, who runs something for several threads, overdue?  Then it is taken not to run. */
#ifndef QUIESCE_LATE_H
#define QUIESCE_LATE_H

#include "platform/platform.h"

#define QUIESCE_LATE_NS 1000000u /* so much later than it said */
#define QUIESCE_TURN_MAX_NS 64000000u

/* What a follower has seen. */
struct quiesce__late {
	uint64_t progress, since;
};

/* Since when nothing has happened.  @progress: changes whenever anything happens. */
static inline uint64_t quiesce__late_since(struct quiesce__late *late, uint64_t now, uint64_t progress)
{
	if (progress != late->progress || !late->since) {
		late->progress = progress;
		late->since = now;
	}
	return late->since;
}

/* When it is late.  @due: when it looks next, as it said. */
static inline uint64_t quiesce__late_at(struct quiesce__late *late, uint64_t now, uint64_t progress, uint64_t due)
{
	uint64_t since = quiesce__late_since(late, now, progress);

	return (due > since ? due : since) + QUIESCE_LATE_NS;
}

/* Followers check one after the other whether it is late: those of rank 0 as soon as it would be, the next ones so much later.  So a leader
 * that stops is found in time by the first follower that runs, and a thousand of them do not all wake each time.
 */
static inline uint64_t quiesce__late_turn(uint32_t rank)
{
	if (QUIESCE_MUTANT(watched_rarely))
		rank = UINT32_MAX;
	return rank < QUIESCE_TURN_MAX_NS / QUIESCE_LATE_NS ? (uint64_t)rank * QUIESCE_LATE_NS : QUIESCE_TURN_MAX_NS;
}

#endif
