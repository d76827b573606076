/* SPDX-License-Identifier: MIT */
/* queuescale.h - the parts of queuescale. */
#ifndef QUIESCE_TOOL_QUEUESCALE_H
#define QUIESCE_TOOL_QUEUESCALE_H

#include "types/queue.h"
#include "tool.h"

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

/* Returns the scenario, whose number encodes the number of consumers. */
static inline enum scenario queue_scenario(struct queue_shape shape)
{
	return (enum scenario)(SCENARIO_QUEUE + shape.consumers);
}

/* A cell has these metrics besides the rate. */
enum queue_metric { QUEUE_WAITED, QUEUE_EMPTY, NR_QUEUE_METRICS };
#define NR_QUEUE_SCENARIOS (SCENARIO_QUEUE_END - SCENARIO_QUEUE)
_Static_assert(NR_QUEUE_METRICS * NR_QUEUE_SCENARIOS <= NR_SCENARIOS - SCENARIO_MORE, "numbers of scenarios");

static inline enum scenario queue_more(enum queue_metric metric, enum scenario scenario)
{
	return (enum scenario)(SCENARIO_MORE + (int)metric * NR_QUEUE_SCENARIOS + (int)scenario - SCENARIO_QUEUE);
}

/* queuescale_cell.c: measures and sends a cell.  False, after a note: a value was lost or found twice. */
bool queuescale_cell(const struct job *job, struct queue_shape shape);

#endif
