/* SPDX-License-Identifier: MIT */
/* yield.h - readers give up the CPU to preempted readers that a waiter waits for. */
#ifndef QUIESCE_YIELD_H
#define QUIESCE_YIELD_H

#include "core.h"

#define QUIESCE_ALL_CPUS UINT64_MAX

/* A request to the readers of a primitive to yield.  It ends at a time, so that readers stop yielding even if
 * the requester does not run.  Readers check another word first, and read this structure only if that has a
 * request. */
struct quiesce__yield {
	uint64_t until;
	uint64_t cpus; /* bit n: readers on CPUs n, n + 64, ... */
};

/* Called by a reader that has left a section and saw the request.  False: the request has expired, and can be
 * withdrawn. */
bool quiesce__yield(const struct quiesce__yield *yield);
/* Number of times that readers have yielded. */
uint64_t quiesce__yields(void);

#endif
