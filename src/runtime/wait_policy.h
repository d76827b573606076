/* SPDX-License-Identifier: MIT */
/* wait_policy.h - how long a wait sleeps, when it makes readers yield, and when it complains. */
#ifndef QUIESCE_WAIT_POLICY_H
#define QUIESCE_WAIT_POLICY_H

#include "yield.h"

/* Where a look is a sum over CPUs: looks before the first sleep take so long, whatever the number of CPUs. */
#if defined(QUIESCE_SIM)
#define QUIESCE_SPIN_NS 0u
#else
#define QUIESCE_SPIN_NS 4000u
#endif

#define QUIESCE_STALL_CHECKS 4u /* of a wait, at least, before a report */

/* Until @over, but not for long: most sections are short. */
bool quiesce__wait_spin(bool (*over)(void *wait), void *wait);

struct quiesce__wait_policy {
	struct quiesce__yield *yield; /* of the primitive: which readers, until when */
	/* Let readers look at @yield when they leave, or stop that. */
	void (*force_yield)(bool on);
	/* Have any readers left since the last time?  Asked after each stretch. */
	bool (*helped)(void *arg);
	void *arg;
	uint64_t *not_before; /* of the primitive: when the next stretch may begin */
	uint64_t force_after_ns; /* readers are forced to yield after so long */
	bool expedited;       /* no time at all */
	uint32_t pause;       /* after a stretch of a wait that is not expedited; times its length */
	uint64_t start;       /* of the wait */
	uint64_t forced_at;  /* 0: not now */
	uint64_t backoff_until;
	uint64_t backoff_ns;     /* where it did not help, they are not forced for so long, doubled each time */
	uint64_t sleep_ns;
	uint64_t stall_at;    /* of the next report */
	uint64_t checked_at;  /* whether it is time for that */
};

/* To be called before each sleep: begin to force readers to yield, or stop that. */
void quiesce__wait_policy_step(struct quiesce__wait_policy *p, uint64_t now);
/* How long to sleep: until there is something to do, else longer each time, at most 8 ms. */
uint64_t quiesce__wait_policy_sleep(struct quiesce__wait_policy *p, uint64_t now);
/* Is it time for a stall report?  To be asked often: where nobody asks for long the waiter did not run,
 * and that time does not count. */
bool quiesce__wait_policy_stalled(struct quiesce__wait_policy *p, uint64_t now);
/* The wait is over. */
void quiesce__wait_policy_end(struct quiesce__wait_policy *p);

#endif
