/* SPDX-License-Identifier: MIT */
/* rcu_world.h - shared by the scenarios on the real library: items that readers see and updaters replace. */
#ifndef QUIESCE_TESTS_SIM_RCU_WORLD_H
#define QUIESCE_TESTS_SIM_RCU_WORLD_H

#include "driver.h"
#include "platform/platform.h"
#include "runtime/core.h"

#include <quiesce/control.h>
#include <quiesce/rcu.h>

#define NR_ITEMS 64

struct item {
	struct rcu_head head;
	int id;
};

extern struct item world_item[NR_ITEMS];
extern struct item *world_current;
extern int world_nr_freed;

/* Publish the first item; every setup() calls this. */
void world_begin(void);
/* Return a new, initialised, unpublished item. */
struct item *world_new(void);
/* Publish a new item, return the old one; updaters may run at once. */
struct item *world_replace(void);
void world_free(struct item *item);
void world_free_head(struct rcu_head *head); /* a callback */
/* Read the items, inside a section. */
void world_check(void);
/* Read in one section, nested @depth times. */
void world_section(int depth);

/* Threads of scenarios run these functions; a name in the plural spawns such threads. */
void world_reader(void *unused);  /* a reader of two sections */
void world_readers(int nr);
void world_updater(void *nr);     /* replace, synchronize_rcu(), free; (intptr_t)nr times */
/* Wait until *@word is not @old, without ordering. */
uint64_t world_wait_change(uint64_t *word, uint64_t old);

extern const struct sim_scenario rcu_wait_scenarios[], rcu_gp_scenarios[], rcu_callback_scenarios[], rcu_queue_scenarios[],
	rcu_owner_scenarios[], rcu_paced_scenarios[], rcu_fork_scenarios[],
	rcu_exit_scenarios[], rcu_reclaimer_scenarios[], rcu_allocator_scenarios[],
	rcu_sum_scenarios[], rcu_scan_scenarios[], rcu_holdout_scenarios[], first_call_scenarios[];

#endif
