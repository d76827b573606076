/* SPDX-License-Identifier: MIT */
/* wait_policy.h - how long a waiter sleeps, when it forces readers to yield, and when it reports a stall. */
#ifndef QUIESCE_WAIT_POLICY_H
#define QUIESCE_WAIT_POLICY_H

#include "yield.h"

/* Where a check is a sum over CPUs: the checks before the first sleep take about this long, whatever the
 * number of CPUs. */
#if defined(QUIESCE_SIM)
#define QUIESCE_SPIN_NS 0u
#else
#define QUIESCE_SPIN_NS 4000u
#endif

#define QUIESCE_STALL_CHECKS 4u /* least number of checks of a wait before a stall report */

/* Spin until @over returns true, but not for long: most sections are short. */
bool quiesce__wait_spin(bool (*over)(void *wait), void *wait);
/* Spin until @over returns true, for @ns at most, or until @deadline if that comes first. */
bool quiesce__wait_spin_for(bool (*over)(void *wait), void *wait, uint64_t ns, uint64_t deadline);

struct quiesce__wait_policy {
	struct quiesce__yield *yield; /* the primitive's request: which readers yield, and until when */
	/* Let readers check @yield when they leave, or stop that. */
	void (*force_yield)(bool on);
	/* True if readers have left since the last call; called after each window. */
	bool (*helped)(void *arg);
	void *arg;
	uint64_t *not_before; /* the primitive's time at which the next window may begin */
	uint64_t force_after_ns; /* readers are forced to yield after this time */
	bool expedited;       /* readers are forced to yield at once */
	uint32_t pause;       /* pause after a window of a wait that is not expedited, in multiples of the window */
	uint64_t start;       /* time at which the wait began */
	uint64_t forced_at;   /* start of the current window; 0: none */
	uint64_t backoff_until;
	uint64_t backoff_ns;     /* pause after a window without effect, doubled each time */
	uint64_t sleep_ns;
	uint64_t stall_at;    /* time of the next stall report */
	uint64_t checked_at;  /* time of the last check for a stall */
};

/* To be called before each sleep: begin or end a window if it is time. */
void quiesce__wait_policy_step(struct quiesce__wait_policy *p, uint64_t now);
/* How long to sleep: until the next step, else longer each time, at most 8 ms. */
uint64_t quiesce__wait_policy_sleep(struct quiesce__wait_policy *p, uint64_t now);
/* Take a stall report, if one is due; the next one is due later.  To be called often: a long time between two calls means that the
 * waiter did not run, and does not count. */
bool quiesce__wait_policy_take_report(struct quiesce__wait_policy *p, uint64_t now);
/* The wait is over: end the current window. */
void quiesce__wait_policy_end(struct quiesce__wait_policy *p);

#endif
