/* SPDX-License-Identifier: MIT */
/* pace.h - limit how often callers repeat an attempt that failed, or that is another thread's task. */
#ifndef QUIESCE_PACE_H
#define QUIESCE_PACE_H

#include <quiesce/atomic.h>

#include "platform/platform.h"

/* Claim the next attempt; if true, no other caller gets one for @ns.  Relaxed throughout: the claim orders nothing.
 * @next is loaded before the time is read: else the claim of another caller meanwhile would lie more than @ns ahead. */
static inline bool quiesce__pace_claim(uint64_t *next, uint64_t ns)
{
	uint64_t at = quiesce_load_relaxed(next), now = platform_now_ns(), left = at - now;

	/* More than @ns left: the clock was set back, as in a restored process. */
	if (left && left <= ns)
		return false;
	if (QUIESCE_MUTANT(pace_stored)) {
		quiesce_store_relaxed(next, now + ns);
		return true;
	}
	return quiesce_cmpxchg_relaxed(next, &at, now + ns); /* Relaxed: only one of the callers that loaded @at succeeds. */
}

/* Let the first attempt be made after @ns. */
static inline void quiesce__pace_begin(uint64_t *next, uint64_t ns)
{
	quiesce_store_relaxed(next, platform_now_ns() + ns); /* Relaxed: an attempt too many does no harm. */
}

#endif
