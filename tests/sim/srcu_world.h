/* SPDX-License-Identifier: MIT */
/* srcu_world.h - shared by the scenarios of SRCU: domains, each with a pointer to an item that updaters replace.
 *
 * Each domain lies in a page of its own, which traps on access once the domain has been freed.
 */
#ifndef QUIESCE_TESTS_SIM_SRCU_WORLD_H
#define QUIESCE_TESTS_SIM_SRCU_WORLD_H

#include "world.h"

#include "srcu/srcu.h"

#define NR_DOMAINS 2
#define NR_ITEMS 100

struct item {
	struct rcu_head head;
	uint64_t id;
	intptr_t domain;
};

extern struct srcu_struct *world_domain[NR_DOMAINS];
extern int world_nr_queued, world_nr_run; /* callbacks */

/* Begin with a computer of 2 CPUs, or a CPU for each thread; domains, opened or not yet, and an item in each. */
void world_begin(enum world_mode mode);
/* Forbid that time passes with all threads asleep: wake-ups are guaranteed. */
void world_no_idling(void);
/* Free the domain after its cleanup: no thread may access it any more. */
void world_domain_gone(intptr_t domain);

/* Spawn a thread during a run, where that is a system call. */
void world_spawn(void (*fn)(void *), void *arg, const char *name);

struct item *world_new(intptr_t domain);
/* Publish a new item, return the old one; updaters may run at once. */
struct item *world_replace(intptr_t domain);
void world_free(struct item *item);
void world_free_head(struct rcu_head *head); /* a callback, which checks that stores before call_srcu() are visible */
/* Read the domain's item, inside a section. */
void world_check(intptr_t domain);
/* Count the item, write its last words, and call call_srcu(). */
void world_retire(struct item *item, void (*callback)(struct rcu_head *head));
void world_queue(intptr_t domain);

/* Bodies of threads; the argument is the domain. */
void world_section(intptr_t domain);
void world_reader(void *domain);  /* two sections */
void world_updater(void *domain); /* replace, synchronize_srcu(), free; twice */
void world_queuer(void *domain);  /* queues two callbacks */
void world_readers(int nr);       /* @nr readers of domain 0 */

/* Check that no reader is inside, nothing is pending, no thread leads, and all callbacks have run. */
void world_finish(void);
/* Check that the sums over all domains have their initial values. */
void world_nothing_is_garbage(void);

extern const struct sim_scenario srcu_wait_scenarios[], srcu_callback_scenarios[], srcu_poll_scenarios[],
	srcu_end_scenarios[], srcu_stop_scenarios[], srcu_exit_scenarios[], srcu_fork_scenarios[];

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }

#endif
