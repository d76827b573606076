/* SPDX-License-Identifier: MIT */
/* rcu_retired.h - shared by the scenarios of deferred reclamation: items that are retired, and counted. */
#ifndef QUIESCE_TESTS_SIM_RCU_RETIRED_H
#define QUIESCE_TESTS_SIM_RCU_RETIRED_H

#include "rcu_world.h"

extern int nr_queued;
extern bool in_call[SIM_MAX_THREADS]; /* inside call_rcu() or kfree_rcu(), where no callback may run */

/* This callback checks that stores before call_rcu() are visible to it. */
void check_and_free(struct rcu_head *head);
/* This hook is called for each object that is freed. */
void free_item(void *object);
void retire(struct item *old, void (*callback)(struct rcu_head *head));
void retire_sized(struct item *old, void (*callback)(struct rcu_head *head), size_t bytes);
void queue_one(void);
/* Threads of scenarios run these functions. */
void queuer(void *nr);
void throttle_at(void *nr); /* wait until @nr objects are queued, then for a safe point where callbacks run */
/* Set up two threads that retire, beside readers. */
void setup_callbacks(void);
/* Check by the sums of garbage that no object is left. */
void world_check_sums(void);
/* No barrier waits for the callbacks: the worker must run them all by itself. */
void finish_all_run(void);

#endif
