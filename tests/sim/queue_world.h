/* SPDX-License-Identifier: MIT */
/* queue_world.h - shared by the scenarios of queues: items of several producers, and their takers. */
#ifndef QUIESCE_TESTS_SIM_QUEUE_WORLD_H
#define QUIESCE_TESTS_SIM_QUEUE_WORLD_H

#include "driver.h"
#include "platform/platform.h"

#define NR_PRODUCERS 4
#define NR_EACH 3 /* items of a producer */

/* Return item @nr of a producer as an object of the machine. */
#define ITEM_ID(producer, nr) (1 + (producer) * NR_EACH + (nr))

/* Fill in an item that is not published yet. */
void world_fill(int id);
/* Check that the caller has taken item @id, that no taker had it before, and that taker @by had no later one of its producer;
 * ANY_ORDER: without the check of the order.  The machine checks that all fields of the item are visible. */
#define ANY_ORDER (-1)
void world_taken(int id, int by);
/* Return how many items have been taken. */
int world_nr_taken(void);

extern const struct sim_scenario wfcq_scenarios[], lfq_scenarios[], value_queue_scenarios[], value_queue_stop_scenarios[];

#endif
