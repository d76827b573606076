/* SPDX-License-Identifier: MIT */
/* queuescale.h - the parts of queuescale. */
#ifndef QUIESCE_TOOL_QUEUESCALE_H
#define QUIESCE_TOOL_QUEUESCALE_H

#include "types/queue.h"
#include "tool.h"

#define QUEUE_MAX_CONSUMERS 4
#define MAX_PRODUCERS 64

/* A value of --threads: @producers threads that put and @consumers threads that get; without consumers each thread
 * does both in turn.  A job carries it as one number. */
struct queue_shape {
	int producers, consumers;
};
#define QUEUE_CONSUMERS(n) ((n) << 16)

static inline struct queue_shape queue_shape(int number)
{
	return (struct queue_shape){ number & 0xffff, number >> 16 };
}

/* The number of consumers is that of the scenario.  A cell has these metrics besides the rate. */
enum queue_metric { QUEUE_WAITED = 1, QUEUE_EMPTY };

/* queuescale_cell.c: measures and sends a cell.  False, after a note: a value was lost or found twice. */
bool queuescale_cell(const struct job *job, struct queue_shape shape);

#endif
