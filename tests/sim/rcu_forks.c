/* SPDX-License-Identifier: MIT */
/* rcu_forks.c - scenarios: the child of a fork without handlers, in which any thread may make the first call. */
#include "rcu/reclaim.h"
#include "rcu_retired.h"
#include "runtime/readers.h"

static void fork_and_go_on(int generations);

static void child_forks(void *generations)
{
	world_section(1);
	fork_and_go_on((int)(intptr_t)generations);
}

static void spawn_some(int generations)
{
	if (sim_random(2))
		sim_spawn(world_reader, NULL, "child's reader");
	if (sim_random(2))
		sim_spawn(world_updater, (void *)(intptr_t)(1 + sim_random(2)), "child's updater");
	if (generations && sim_random(2))
		sim_spawn(child_forks, (void *)(intptr_t)generations, "child's forker");
}

/* Fork inside a section, or before the thread's first one.  The thread calls the library at its end, at the latest. */
static void fork_and_go_on(int generations)
{
	struct item *item = NULL;
	bool nested = sim_random(2);

	if (sim_random(2)) {
		rcu_read_lock();
		if (nested)
			rcu_read_lock();
		item = rcu_dereference(world_current);
	}
	sim_fork();
	spawn_some(generations - 1);
	if (item) {
		for (int i = 0; i < 5; i++)
			sim_point("in the child");
		sim_obj_read(item->id);
		world_check();
		if (nested)
			rcu_read_unlock();
		world_check();
		rcu_read_unlock();
	}
	world_section(1);
	if (sim_random(2))
		world_updater((void *)1);
	world_section(1);
	if (generations == 1 && sim_random(2))
		spawn_some(0);
	sim_saw();
}

static void forks(void *generations)
{
	if (sim_random(4))
		world_section(1);
	fork_and_go_on((int)(intptr_t)generations);
}

static void parents(void)
{
	quiesce_fence(); /* the library is initialised before there are threads, as a rule when it is loaded */
	world_begin();
	world_readers(driver_readers);
	sim_spawn(world_updater, (void *)2, "updater");
}

static void setup_unannounced(void)
{
	parents();
	sim_spawn(forks, (void *)1, "forker");
}

static void setup_full_unannounced(void)
{
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT; /* the first call must find it so */
	setup_unannounced();
}

/* Any of a child's threads may fork next, whether or not it has called the library. */
static void setup_unannounced_generations(void)
{
	parents();
	sim_spawn(forks, (void *)3, "forker");
}

/* There are more threads than registry entries, so sections are counted. */
static void setup_unannounced_unregistered(void)
{
	parents();
	world_readers(3);
	sim_spawn(forks, (void *)1, "forker");
}

/* Check that no section is counted any more, including those of ended threads. */
static void finish_unannounced(void)
{
	for (int i = 0; i < 2; i++)
		sim_assert(!quiesce__readers.unregistered[i]);
}

/* ---- callbacks ---- */

static void retire_and_wait(void *unused)
{
	struct item *mine[2];

	(void)unused;
	for (int i = 0; i < 2; i++) {
		mine[i] = world_replace();
		retire(mine[i], check_and_free);
	}
	rcu_barrier();
	for (int i = 0; i < 2; i++)
		sim_assert(sim_obj_is_free(mine[i]->id));
}

static void retires_and_forks(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		retire(world_replace(), check_and_free);
	sim_fork();
	if (sim_random(2))
		sim_spawn(retire_and_wait, NULL, "child's retirer");
	if (sim_random(2))
		sim_spawn(world_reader, NULL, "child's reader");
	world_section(1);
	retire_and_wait(NULL);
	sim_saw();
}

static void setup_unannounced_callbacks(void)
{
	quiesce_fence();
	world_begin();
	world_readers(1);
	sim_spawn(queuer, (void *)3, "queuer");
	sim_spawn(retires_and_forks, NULL, "forker");
}

#define ENDED .must_see = "a child that has ended", .finish = finish_unannounced

const struct sim_scenario rcu_fork_scenarios[] = {
	{ .name = "unannounced", .what = "the child of a bare system call, whose threads come in any order",
	  .setup = setup_unannounced, ENDED },
	{ .name = "full_unannounced", .what = "... without membarrier", .setup = setup_full_unannounced, ENDED },
	{ .name = "unannounced_generations", .what = "... and its children, forked by any of its threads",
	  .setup = setup_unannounced_generations, ENDED },
	{ .name = "unannounced_unregistered", .what = "... of a process with more threads than entries",
	  .setup = setup_unannounced_unregistered, ENDED },
	{ .name = "unannounced_callbacks", .what = "... with callbacks that were queued before",
	  .setup = setup_unannounced_callbacks, ENDED },
	{ .name = NULL },
};
