/* SPDX-License-Identifier: MIT */
/* rwsem_world.h - shared by the scenarios of percpu_rwsem, rcu_sync and the helper.
 *
 * There are two oracles of exclusion: numbers of holders, and an object that readers read and each writer replaces and frees at
 * once, so that the order between any two holders that exclude each other has to be justified.  The lock lies
 * in a page of its own, which traps on access once the lock has been freed.
 */
#ifndef QUIESCE_TESTS_SIM_RWSEM_WORLD_H
#define QUIESCE_TESTS_SIM_RWSEM_WORLD_H

#include "world.h"

#include "runtime/core.h"
#include "percpu/percpu.h"

#include <quiesce/percpu_rwsem.h>

extern struct percpu_rw_semaphore *world_sem;
extern bool world_rests;      /* now and then a thread pauses so long that readers are fast again */
extern int world_nr_readers, world_nr_writers; /* inside, plain: they change between scheduling points */
extern int world_laps;

/* Begin with a computer of 2 CPUs, or a CPU for each thread; a lock, opened or not yet; an object. */
void world_begin(enum world_mode mode);
/* Forbid that time passes with all threads asleep: wake-ups are guaranteed. */
void world_no_idling(void);
/* Return another page, all zero, for an object that will be freed. */
void *world_page(void);
/* Declare that no thread may access the page any more. */
void world_page_gone(void *page);

void world_rest(void);

/* Read and replace the object, as a holder of the lock, or where other reasons exclude conflicting threads. */
void world_check(void);
void world_replace(void);
/* Record that the lock was just acquired, or is about to be released. */
void world_reader_in(void);
void world_reader_out(void);
void world_writer_in(void);
void world_writer_out(void);
/* Run one section as a reader, or as a writer. */
void world_read(void);
void world_write(void);

/* Threads of scenarios run these functions. */
void world_reader(void *unused);
void world_writer(void *unused);
/* Check that the lock is in its initial state. */
void world_finish(void);

extern const struct sim_scenario rwsem_lock_scenarios[], rwsem_queue_scenarios[], rwsem_end_scenarios[], rcu_sync_scenarios[],
	helper_scenarios[], pool_scenarios[];

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }

#endif
