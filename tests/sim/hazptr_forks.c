/* SPDX-License-Identifier: MIT */
/* hazptr_forks.c - scenarios: the child of a fork has one thread, and the objects that the parent's threads have retired. */
#include "hazptr_world.h"

#include "hazptr/hazptr.h"
#include "runtime/core.h"

static uint32_t forked;

/* Number of threads inside a retiring call: each that vanishes there may lose one object. */
static int nr_calling;

static void update_here(int index)
{
	nr_calling++;
	world_update(index);
	nr_calling--;
}

static void parents_updater(void *index)
{
	for (int i = 0; i < 6; i++)
		update_here((intptr_t)index);
}

/* Retire more than there is room for, so that much is left to the worker. */
static void retire_two(struct hazptr_head *head)
{
	world_free_head(head);
	for (int i = 0; i < 2 && world_nr_retired < 30; i++)
		world_retire(world_new(NULL), retire_two);
}

static void parents_chain(void *index)
{
	nr_calling++;
	world_retire(world_replace((intptr_t)index), retire_two);
	world_retire(world_replace((intptr_t)index), retire_two);
	nr_calling--;
	parents_updater(index);
}

static void parents_reader(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	for (int i = 0; i < 12; i++)
		world_protect(slot, i & 1);
	hazptr_free(NULL, slot);
}

static void parents_barrier(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		update_here(3);
		hazptr_barrier();
	}
}

static int may_be_lost;

static void child_of_fork(void)
{
	struct item *mine = world_replace(0);
	uint64_t id = quiesce_load_relaxed(&mine->id);

	world_retire(mine, world_free_head);
	world_update(2);
	hazptr_barrier();
	sim_assert(sim_obj_is_free(id));
	sim_spawn(world_reader, NULL, "reader");
	sim_spawn(world_updater, (void *)0, "updater");
	world_updater((void *)1);
}

/* Without handlers other threads of the child may make the first call, while this one protects by inline code. */
static void fork_now(bool announced)
{
	if (announced) {
		quiesce__fork_prepare();
		sim_fork();
		may_be_lost = nr_calling;
		quiesce__fork_child();
		/* The child has inherited no waiter, so readers take the fast path. */
		sim_assert(quiesce_shazptr_v1.hazptr_slow == (quiesce_fence() == QUIESCE_FENCE_LIGHT ? 0 : QUIESCE_HAZPTR_FULL));
		return;
	}
	sim_fork();
	if (sim_random(2))
		sim_spawn(world_updater, (void *)0, "child's updater");
	if (sim_random(2))
		sim_spawn(world_reader, NULL, "child's reader");
	for (uint32_t n = sim_random(60); n; n--)
		sim_point("in the child");
}

static void forker(void *announced)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item = world_protect(slot, 0);
	struct hazptr_context ctx;
	hazptr_t *other;

	sim_assert(!init_hazptr_context(&ctx));
	other = hazptr_alloc(&ctx);
	world_protect(other, 1);
	update_here(1);
	world_stay(200);
	fork_now(announced != NULL);
	world_check(item);
	world_check(world_protect(other, 1));
	world_update(0);
	world_check(item);
	hazptr_free(NULL, slot);
	hazptr_free(&ctx, other);
	cleanup_hazptr_context(&ctx);
	quiesce_store_relaxed(&forked, 1);
	child_of_fork();
}

static void fork_threads(void)
{
	quiesce_slots();
	sim_spawn(forker, &forked, "forker");
	sim_spawn(parents_updater, (void *)0, "updater");
	sim_spawn(parents_updater, (void *)1, "updater");
	sim_spawn(parents_reader, NULL, "reader");
}

static void setup_fork(void)
{
	world_begin();
	fork_threads();
}

static void setup_full_fork(void)
{
	world_begin();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
	fork_threads();
}

static void setup_fork_barrier(void)
{
	world_begin();
	quiesce_slots();
	sim_spawn(forker, &forked, "forker");
	sim_spawn(parents_barrier, NULL, "barrier");
	sim_spawn(parents_updater, (void *)0, "updater");
	sim_spawn(parents_reader, NULL, "reader");
}

static void setup_fork_chain(void)
{
	world_begin();
	quiesce_slots();
	sim_spawn(forker, &forked, "forker");
	sim_spawn(parents_chain, (void *)0, "chain");
	sim_spawn(parents_chain, (void *)1, "chain");
}

static void setup_fork_unannounced(void)
{
	world_begin();
	world_short_of_slots = true; /* a line in which the parent's reader held a slot is never given to another */
	quiesce_slots();
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_updater, (void *)0, "updater");
	sim_spawn(parents_chain, (void *)1, "chain");
	sim_spawn(parents_reader, NULL, "reader");
}

/* ---- the gate of callbacks in steps: none runs between the two halves of a fork ---- */

static int nr_inside;     /* threads in a callback of their own */
static bool being_forked; /* the fork is prepared, and has not happened */

static void runs_outside_of_forks(struct hazptr_head *head)
{
	sim_assert(!being_forked);
	nr_inside++;
	sim_point("in a callback");
	sim_assert(!being_forked);
	nr_inside--;
	world_free_head(head);
}

static void retires_beside_forks(void *index)
{
	for (int i = 0; i < 10; i++)
		world_retire(world_replace((intptr_t)index), runs_outside_of_forks);
}

static void prepares_forks(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		quiesce__fork_prepare();
		being_forked = true;
		sim_assert(!nr_inside);
		sim_point("prepared");
		being_forked = false;
		quiesce__fork_parent();
		world_stay(20);
	}
}

static void setup_fork_steps(void)
{
	being_forked = false;
	nr_inside = 0;
	world_begin();
	world_inline = true;
	sim_spawn(retires_beside_forks, (void *)0, "updater");
	sim_spawn(prepares_forks, NULL, "forker");
}

static void setup_full_fork_steps(void)
{
	setup_fork_steps();
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

/* ---- a callback in a step forks, and retires an object in the child, whose queues were empty ---- */

static int fork_at; /* index of the object whose callback forks */
static bool has_forked;

static void forks_in_a_step(struct hazptr_head *head)
{
	int index = world_nr_freed;

	world_free_head(head);
	if (index < fork_at || has_forked)
		return;
	has_forked = true;
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	for (int i = (int)sim_random(3); i; i--)
		world_retire(world_new(NULL), forks_in_a_step);
	sim_saw();
}

static void retires_and_forks(void *unused)
{
	(void)unused;
	for (int i = 0; i < 8 && !has_forked; i++)
		world_retire(world_replace(0), forks_in_a_step);
	if (!has_forked) {
		hazptr_barrier();
		sim_assert(has_forked);
	}
}

static void setup_fork_called(void)
{
	has_forked = false;
	fork_at = (int)sim_random(6);
	world_begin();
	world_inline = true;
	sim_spawn(retires_and_forks, NULL, "updater");
}

/* Objects that vanished threads were just handling may be lost, so none are counted. */
static void finish_unannounced(void)
{
	sim_assert(quiesce_load_relaxed(&forked));
}

/* All objects but those that vanished threads were handling have been reclaimed. */
static void finish_fork(void)
{
	int left = world_nr_retired - world_nr_freed;

	sim_assert(quiesce_load_relaxed(&forked));
	if (left > may_be_lost)
		sim_fail("of %d objects %d were not reclaimed, and %d may be lost", world_nr_retired, left, may_be_lost);
}

const struct sim_scenario hazptr_fork_scenarios[] = {
	{ .name = "fork", .what = "the child of a fork", .setup = setup_fork, .finish = finish_fork },
	{ .name = "full_fork", .what = "... without membarrier", .setup = setup_full_fork, .finish = finish_fork },
	{ .name = "fork_barrier", .what = "... in the middle of a barrier", .setup = setup_fork_barrier, .finish = finish_fork },
	{ .name = "fork_chain", .what = "... in the middle of callbacks that retire", .setup = setup_fork_chain,
	  .finish = finish_fork },
	{ .name = "fork_steps", .what = "callbacks in steps, and forks", .setup = setup_fork_steps, .finish = world_finish },
	{ .name = "full_fork_steps", .what = "... without membarrier", .setup = setup_full_fork_steps, .finish = world_finish },
	{ .name = "fork_called", .what = "a callback forks, and retires in the child", .setup = setup_fork_called, .finish = world_finish },
	{ .name = "fork_unannounced", .what = "... by a bare system call", .setup = setup_fork_unannounced, .finish = finish_unannounced },
	{ .name = NULL },
};
