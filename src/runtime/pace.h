/* SPDX-License-Identifier: MIT */
/* pace.h - what failed, or is another thread's to do, is tried now and then, by whichever caller comes first. */
#ifndef QUIESCE_PACE_H
#define QUIESCE_PACE_H

#include <quiesce/atomic.h>

#include "platform/platform.h"

/* Is the next attempt the caller's?  Then others leave it alone for @ns.  Relaxed throughout: an attempt too many does no harm. */
static inline bool quiesce__pace(uint64_t *next, uint64_t ns)
{
	uint64_t now = platform_now_ns(), left = quiesce_load_relaxed(next) - now;

	/* More than @ns: the clock was set back, as in a process that is restored. */
	if (left && left <= ns)
		return false;
	quiesce_store_relaxed(next, now + ns);
	return true;
}

/* The first attempt is made after @ns. */
static inline void quiesce__pace_begin(uint64_t *next, uint64_t ns)
{
	quiesce_store_relaxed(next, platform_now_ns() + ns); /* Relaxed: as above. */
}

#endif
