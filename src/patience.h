/* SPDX-License-Identifier: MIT */
/* patience.h - how long a wait sleeps, when it makes readers hurry, and when it complains. */
#ifndef QUIESCE_PATIENCE_H
#define QUIESCE_PATIENCE_H

#include "core.h"

struct quiesce__patience {
	/* Make all readers give up the CPU where they leave, or stop that. */
	void (*hurry)(bool on);
	/* Asked now and then while readers hurry: is there a point in it? */
	bool (*helps)(const void *arg);
	const void *arg;
	uint64_t *not_before; /* of the primitive: its rate limit for hurries */
	uint64_t check_ns;   /* how often @helps is asked */
	uint64_t patience_ns; /* how long readers are left alone */
	uint32_t share;      /* plain waits hurry readers at most 1/(1+@share) of the time */
	uint64_t pause_max_ns;
	bool expedited;      /* hurry at once */
	uint64_t start;      /* of the wait */
	uint64_t hurried_at; /* 0: not now */
	uint64_t check_at, rest_until;
	uint64_t rest_ns;    /* where hurrying did not help, readers are left alone for so long, doubled each time */
	uint64_t sleep_ns;
	uint64_t stall_at;
};

/* To be called before each sleep: begin or end the hurry. */
void quiesce__patience_step(struct quiesce__patience *p, uint64_t now);
/* How long to sleep: until readers may be hurried, else longer each time, at most 8 ms. */
uint64_t quiesce__patience_sleep(struct quiesce__patience *p, uint64_t now);
/* Is it time for a stall report? */
bool quiesce__patience_stalled(struct quiesce__patience *p, uint64_t now);
/* The wait is over. */
void quiesce__patience_end(struct quiesce__patience *p);

#endif
