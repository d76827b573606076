/* SPDX-License-Identifier: MIT */
/* shazptr_forks.c - scenarios: guards, claims and clears of a process that forks. */
#include "shazptr_world.h"

#include "slots/slots.h"
#include "runtime/core.h"

/* The child of a fork has one thread, whose guards are the parent's, and new slots. */
static void forked(void *unused)
{
	struct shazptr_guard old = shazptr_protect(&world_pointer[0]);

	(void)unused;
	quiesce_fence_full(RU3); /* the system call fork() is a full fence */
	quiesce__fork_child();
	sim_spawn(world_updater, NULL, "updater");
	sim_spawn(world_reader, NULL, "reader");
	world_read(0);
	shazptr_clear(old);
	world_read(0);
}

/* The handler forks in the midst of a claim. */
static void forks_in_handler(void)
{
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	sim_spawn(world_updater, NULL, "child's updater");
	sim_saw();
}

static void claims_and_forks(void *unused)
{
	(void)unused;
	sim_set_signal(forks_in_handler, 1);
	shazptr_clear(shazptr_acquire_detached(&world_pointer[0]));
	sim_set_signal(NULL, 0); /* a guard that a fork interrupts protects nothing in the child */
	for (int i = 0; i < 3; i++)
		world_read(0);
}

static void setup_fork_in_handler(void)
{
	quiesce_fence(); /* the library is initialised */
	world_begin();
	sim_spawn(claims_and_forks, NULL, "claimer");
}

static void setup_fork(void)
{
	world_begin();
	sim_spawn(forked, NULL, "child");
}

/* There are no handlers, so other threads of the child may make the first call.  This one waits before it takes a guard. */
static void forked_unannounced(void *unused)
{
	struct shazptr_guard old = shazptr_protect(&world_pointer[0]);

	(void)unused;
	sim_fork();
	if (sim_random(2))
		sim_spawn(world_updater, NULL, "child's updater");
	if (sim_random(2))
		sim_spawn(world_reader, NULL, "child's reader");
	for (uint32_t n = sim_random(40); n; n--)
		sim_point("in the child");
	if (sim_random(2))
		shazptr_clear(old);
	world_updater(NULL);
	world_read(0);
	world_read(0);
	sim_saw();
}

static void setup_fork_unannounced(void)
{
	quiesce_slots(); /* the library is initialised */
	world_begin();
	world_readers(2);
	world_updaters(1);
	sim_spawn(forked_unannounced, NULL, "forker");
}

/* ---- forks beside guards without a slot ---- */

/* This process can get no line. */
static void without_lines(void)
{
	quiesce_slots();
	quiesce__slots.lines.capacity = 0;
}

static void child_begins(void)
{
	bool announced = sim_random(2);

	if (announced)
		quiesce__fork_prepare();
	sim_fork();
	if (announced)
		quiesce__fork_child();
}

static void reads_without_lines(void *unused)
{
	without_lines();
	world_reader(unused);
}

static void threads_of_child(void)
{
	sim_spawn(reads_without_lines, NULL, "child's reader");
	sim_spawn(world_updater, NULL, "child's updater");
	sim_saw();
}

/* The handler forks between two instructions of a claim or a clear; the interrupted thread clears its guard later. */
static struct shazptr_guard of_handler;

static void forks_beside_guard(void)
{
	child_begins();
	if (sim_random(2)) {
		without_lines();
		of_handler = shazptr_protect_detached(&world_pointer[0]);
	}
	threads_of_child();
}

static void claims_without_slot(void *unused)
{
	(void)unused;
	sim_set_signal(forks_beside_guard, 1);
	shazptr_clear(shazptr_acquire(&world_pointer[1]));
	sim_set_signal(NULL, 0);
	quiesce_slots();
	if (shazptr_ptr(of_handler))
		world_check(shazptr_ptr(of_handler));
	shazptr_clear(of_handler);
	world_read(0);
}

static void setup_fork_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	without_lines();
	world_readers(1);
	sim_spawn(claims_without_slot, NULL, "claimer");
}

static void finish_fork_fallback(void)
{
	sim_assert(!quiesce__slots_fallback(0) && !quiesce__slots_fallback(1));
}

/* A guard of the grandparent's is cleared: that ends none of the grandchild's. */
static void clears_two_forks_later(void *unused)
{
	struct shazptr_guard old = shazptr_protect(&world_pointer[0]);

	(void)unused;
	for (int i = 0; i < 2; i++) {
		child_begins();
		without_lines();
	}
	threads_of_child();
	for (uint32_t n = sim_random(40); n; n--)
		sim_point("in the grandchild");
	shazptr_clear(old);
	world_read(0);
}

static void setup_fork_twice_fallback(void)
{
	world_begin();
	sim_config()->rseq_kind = PLATFORM_RSEQ_NONE;
	without_lines();
	sim_spawn(clears_two_forks_later, NULL, "grandchild");
}

const struct sim_scenario shazptr_fork_scenarios[] = {
	{ .name = "fork", .what = "a forked child", .setup = setup_fork },
	{ .name = "fork_in_handler", .what = "a handler forks in the midst of a claim", .setup = setup_fork_in_handler,
	  .must_see = "a child" },
	{ .name = "fork_unannounced", .what = "... of a bare system call, whose threads come in any order", .setup = setup_fork_unannounced,
	  .must_see = "a child that has ended" },
	{ .name = "fork_no_rseq", .what = "... without restartable sequences", .setup = setup_fork, .but = without_rseq },
	{ .name = "fork_fallback", .what = "a handler forks in the midst of a guard without a slot", .setup = setup_fork_fallback,
	  .finish = finish_fork_fallback, .must_see = "a child" },
	{ .name = "fork_twice_fallback", .what = "a guard without a slot is cleared in a grandchild", .setup = setup_fork_twice_fallback,
	  .finish = finish_fork_fallback, .must_see = "a grandchild" },
	{ .name = NULL },
};
