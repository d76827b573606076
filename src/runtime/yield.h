/* SPDX-License-Identifier: MIT */
/* yield.h - readers give up the CPU to those in the way of a wait. */
#ifndef QUIESCE_YIELD_H
#define QUIESCE_YIELD_H

#include "core.h"

#define QUIESCE_ALL_CPUS UINT64_MAX

/* Which readers of a primitive yield, and until when: the end of the request is a time, so that they stop also if
 * who asked does not run.  A word tells readers that there is a request; they look here then. */
struct quiesce__yield {
	uint64_t until;
	uint64_t cpus; /* bit n: readers on CPUs n, n + 64, ... */
};

/* In a reader that was asked and has left.  False: the time is over, and nobody needs to ask readers any more. */
bool quiesce__yield(const struct quiesce__yield *yield);
/* How often readers have yielded. */
uint64_t quiesce__yields(void);

#endif
