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

/* A scenario has a number of consumers, and the size of bursts of messages; 0: nodes circulate. */
#define QUEUE_SHAPES (QUEUE_MAX_CONSUMERS + 1)

/* A cell has these metrics besides the rate. */
enum queue_metric { QUEUE_WAITED = 1, QUEUE_EMPTY, QUEUE_IN_ALL, QUEUE_CPU_NS };

/* Both calls measure and send a cell, of nodes that circulate, and of messages in bursts of @burst; each has a file of its name.
 * They return false, after a note, if a value was lost or found twice. */
bool queuescale_cell(const struct job *job, struct queue_shape shape);
bool queuescale_messages(const struct job *job, struct queue_shape shape, uint32_t burst, int scenario);

/* Compares the counts and sums of all that was put and got; false, after a note: they do not agree. */
bool queuescale_judge(const struct queue_hand *sum, uint64_t found_empty);

#endif
