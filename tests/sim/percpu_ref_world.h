/* SPDX-License-Identifier: MIT */
/* percpu_ref_world.h - shared by the scenarios of references per CPU: one count, users and an owner of it.
 *
 * Checks: the release function runs once for each kill that is not taken back, after the kill, while no user has a
 * reference, and ordered after all accesses through one; a tryget_live that succeeds has not begun after a confirm
 * function; a user that enters after a reinit sees the stores before it; a count in atomic mode is exact.
 */
#ifndef QUIESCE_TESTS_SIM_PERCPU_REF_WORLD_H
#define QUIESCE_TESTS_SIM_PERCPU_REF_WORLD_H

#include "world.h"

#include "runtime/core.h"

#include <quiesce/percpu_ref.h>

extern struct percpu_ref world_ref;
/* The object that references keep; loaded relaxed. */
extern int world_current;

/* Plain, as they change between scheduling points.  References that there are at least, and at most, without the owner's. */
extern int world_at_least, world_at_most;
extern bool world_killed, world_confirmed, world_changing, world_reviving;
extern int world_nr_released, world_nr_lives, world_nr_revivals, world_nr_lost;
/* Each user runs this number of rounds. */
extern int world_laps;

/* Begin with a computer of 2 CPUs, or of one for each thread; an object, and the count.  With id_hook a thread with id 1 has no
 * words. */
extern bool world_cpu_each;
extern bool world_by_cpu; /* threads count by their CPU's number, so by calls */
void world_begin(unsigned int flags, percpu_ref_func_t *release);
int world_holes(int id);

/* Defines setup_NAME_full(), setup_NAME() with full fences: threads count by locked instructions in words that close. */
#define WORLD_FULL(name)                                                \
	static void setup_##name##_full(void)                           \
	{                                                               \
		sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;       \
		setup_##name();                                         \
	}

/* These functions get a reference, get another one as its holder, put it, and use the object that it keeps. */
bool world_enter(bool live);
void world_get(void);
void world_leave(void);
void world_check(void);

/* Threads of scenarios run these functions: tryget_live, get and put; references that others put; one kill. */
void world_user(void *unused);
void world_trader(void *unused);
void world_owner(void *unused);
/* Start @nr threads that run @fn. */
void world_users(int nr, void (*fn)(void *), const char *name);

/* Kill the count, with a confirm function. */
void world_kill(void);
/* Return the present value of the shared count. */
uint64_t world_count(void);
/* Sleep until there were @nr releases; an acquire. */
void world_wait_released(uint32_t nr);

/* The first release function frees the object; the second one also ends the count. */
void world_release(struct percpu_ref *ref);
void world_last_release(struct percpu_ref *ref);

void world_finish(void);

extern const struct sim_scenario percpu_ref_users[], percpu_ref_changes[];

#endif
