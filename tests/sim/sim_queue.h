/* SPDX-License-Identifier: MIT */
/* sim_queue.h - what the scenarios on queues share: items of several producers, and who took them. */
#ifndef QUIESCE_TESTS_SIM_QUEUE_H
#define QUIESCE_TESTS_SIM_QUEUE_H

#include "driver.h"
#include "platform/platform.h"

#define NR_PRODUCERS 4
#define NR_EACH 3 /* items of a producer */

/* Item @nr of a producer as an object of the machine. */
#define ITEM_ID(producer, nr) (1 + (producer) * NR_EACH + (nr))

/* Fill it in: nobody has it yet. */
void world_fill(int id);
/* The caller has taken item @id, which nobody has done before, and no later one of its producer as taker @by; ANY_ORDER: that is
 * not asked.  The machine says whether everything in it is visible. */
#define ANY_ORDER (-1)
void world_taken(int id, int by);
/* How many have been taken. */
int world_nr_taken(void);

extern const struct sim_scenario wfcq_scenarios[], lfq_scenarios[];

#endif
