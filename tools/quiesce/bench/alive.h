/* SPDX-License-Identifier: MIT */
/* alive.h - threads that are registered readers and sleep. */
#ifndef QUIESCE_TOOL_ALIVE_H
#define QUIESCE_TOOL_ALIVE_H

#include "op.h"
#include "team.h"

struct sleepers {
	const struct op *op;
	struct team team;
	pthread_mutex_t lock;
	pthread_cond_t change;
	int ready; /* number of threads asleep; @lock guards it and @stop */
	bool stop;
};

/* Start @nr threads, each of which uses @op once and then sleeps; returns when all of them sleep. */
void sleepers_start(struct sleepers *sleepers, const struct op *op, int nr);
void sleepers_stop(struct sleepers *sleepers);

#endif
