/* SPDX-License-Identifier: MIT */
/* srcu_forks.c - scenarios: the child of a fork has one thread, and the callbacks that the parent's threads have queued. */
#include "srcu_world.h"

#include <quiesce/control.h>

#include "runtime/core.h"

#include <errno.h>

static uint32_t asked;

static uint32_t forked;
static int nr_calling, may_be_lost; /* a thread that vanishes inside a call may lose its callback */

/* No thread forks while another initialises the library. */
static void fork_begin(enum world_mode mode)
{
	world_begin(mode);
	quiesce_slots();
}

static void parents_queuer(void *domain)
{
	for (int i = 0; i < 6; i++) {
		nr_calling++;
		world_queue((intptr_t)domain);
		nr_calling--;
	}
}

static void parents_waiter(void *domain)
{
	for (int i = 0; i < 6; i++)
		world_updater(domain);
}

static void parents_barrier(void *domain)
{
	for (int i = 0; i < 3; i++) {
		nr_calling++;
		world_queue((intptr_t)domain);
		nr_calling--;
		srcu_barrier(world_domain[(intptr_t)domain]);
	}
}

static void child_of_fork(void)
{
	struct item *mine = world_replace(0);

	world_retire(mine, world_free_head);
	if (sim_random(2))
		world_updater((void *)1);
	srcu_barrier(world_domain[0]);
	sim_assert(sim_obj_is_free((int)mine->id));
	world_spawn(world_reader, (void *)1, "reader");
	world_updater((void *)1);
	srcu_barrier(world_domain[1]);
}

static bool unannounced; /* other threads of the child may make the first call */

static void fork_now(void)
{
	if (!unannounced)
		quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	if (!unannounced)
		quiesce__fork_child();
	else if (sim_random(2))
		sim_spawn(parents_waiter, (void *)0, "child's waiter");
	else
		sim_spawn(parents_barrier, (void *)1, "child's queuer");
}

/* Fork inside a section, which goes on in the child. */
static void forker(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_check(0);
	world_stay(200);
	fork_now();
	world_check(0);
	srcu_read_unlock(world_domain[0], idx);
	quiesce_store_relaxed(&forked, 1);
	child_of_fork();
}

static void fork_threads(enum world_mode mode)
{
	fork_begin(mode);
	sim_config()->max_steps = 80000; /* many threads, whose sequences restart at each switch */
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)1, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork(void) { fork_threads(ANY); }
static void setup_full_fork(void) { fork_threads(FULL); }
static void setup_fork_unannounced(void) { unannounced = true, fork_threads(ANY); }

static void setup_fork_barrier(void)
{
	fork_begin(ANY);
	sim_spawn(forker, NULL, "forker");
	sim_spawn(parents_barrier, (void *)0, "queuer");
	sim_spawn(parents_barrier, (void *)1, "queuer");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork_no_helper(void)
{
	fork_threads(ANY);
	sim_config()->thread_start_failures = -1;
}

/* Fork without handlers, while the helper takes queued callbacks: all of them belong to the child, except for one that is running. */
static void forks_while_taken(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++)
		world_queue(0);
	for (uint32_t n = sim_random(300); n; n--)
		sim_point("before the fork");
	sim_fork();
	may_be_lost = 1;
	quiesce_store_relaxed(&forked, 1);
	srcu_barrier(world_domain[0]);
}

static void setup_fork_taking(void)
{
	fork_begin(ANY);
	sim_spawn(forks_while_taken, NULL, "forker");
}

/* In the child, too, the callbacks of the thread that forks run in the order of its calls: those queued before shards were found, those in
 * shards, and the child's. */
static uint64_t last_run;

static void in_order(struct rcu_head *head)
{
	struct item *item = (struct item *)head;

	if (item->id < last_run)
		sim_fail("item %llu runs after %llu", (unsigned long long)item->id, (unsigned long long)last_run);
	last_run = item->id;
	world_free_head(head);
}

static void forks_in_order(void *unused)
{
	(void)unused;
	for (int i = 0; i < 6; i++) {
		world_retire(world_replace(0), in_order);
		if (sim_random(2))
			world_stay(10);
	}
	for (uint32_t n = sim_random(100); n; n--)
		sim_point("before the fork");
	sim_fork();
	may_be_lost = 1;
	quiesce_store_relaxed(&forked, 1);
	world_retire(world_replace(0), in_order);
	srcu_barrier(world_domain[0]);
}

static void setup_fork_order(void)
{
	fork_begin(ANY);
	sim_spawn(forks_in_order, NULL, "forker");
}

/* The child uses one domain only; callbacks pending in the other must not delay the helper. */
static void forks_one(void *unused)
{
	(void)unused;
	world_stay(200);
	quiesce__fork_prepare();
	sim_fork();
	quiesce__fork_child();
	quiesce_store_relaxed(&forked, 1);
	world_queuer((void *)1);
	srcu_barrier(world_domain[1]);
}

static void setup_fork_one(void)
{
	fork_begin(ANY);
	sim_spawn(forks_one, NULL, "forker");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
}

/* Sections of threads that the child does not have delay its inherited callbacks, and never end. */
static void parents_section(void *unused)
{
	int idx = srcu_read_lock(world_domain[0]);

	(void)unused;
	world_set(&asked, 1);
	world_stay(400);
	srcu_read_unlock(world_domain[0], idx);
}

static void forks_beside_section(void *unused)
{
	uint64_t limit = sim_random(2) ? 200000000 : 0;
	int left, mine = sim_random(2) ? -1 : srcu_read_lock(world_domain[1]);

	(void)unused;
	world_await(&asked, 1);
	world_stay(100);
	quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	if (mine >= 0)
		srcu_read_unlock(world_domain[1], mine);
	world_queue(1);
	left = quiesce_shutdown(limit);
	if (left)
		sim_saw();
	sim_assert(left == -ETIMEDOUT || !left);
	sim_assert(limit || !quiesce__helper_running()); /* without a limit the helper ends as soon as it can */
	if (!left && world_nr_queued - world_nr_run > may_be_lost)
		sim_fail("quiesce_shutdown() returned 0 with callbacks pending");
	quiesce_store_relaxed(&forked, 1);
}

/* The child ends the sections of threads that it does not have. */
static void forks_and_forgets(void *unused)
{
	(void)unused;
	world_await(&asked, 1);
	world_stay(100);
	quiesce__fork_prepare();
	sim_fork();
	if (quiesce__srcu_inside(world_domain[0], 0) + quiesce__srcu_inside(world_domain[0], 1))
		sim_saw();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	srcu_after_fork_child(world_domain[0]);
	srcu_after_fork_child(world_domain[1]);
	quiesce_store_relaxed(&forked, 1);
	child_of_fork();
}

static void setup_fork_lost(void)
{
	fork_begin(ANY);
	spawn_each(2, parents_section, "reader");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(forks_and_forgets, NULL, "forker");
}

static void setup_fork_stuck(void)
{
	fork_begin(ANY);
	if (sim_random(4) == 0)
		sim_config()->thread_start_failures = -1;
	sim_spawn(parents_section, NULL, "reader");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_queuer, (void *)1, "queuer");
	sim_spawn(forks_beside_section, NULL, "forker");
}

/* Callbacks that a caller was moving from list to list are lost without a helper. */
static void finish_forked(void)
{
	sim_assert(quiesce_load_relaxed(&forked));
}

/* A callback forks, and the child uses the domain in that callback, or in another thread. */
static void childs_thread(void *unused)
{
	(void)unused;
	child_of_fork();
}

static void forks_in_callback(struct rcu_head *head)
{
	world_free_head(head);
	world_stay(60);
	quiesce__fork_prepare();
	sim_fork();
	may_be_lost = nr_calling;
	quiesce__fork_child();
	quiesce_store_relaxed(&forked, 1);
	if (sim_random(2))
		world_updater((void *)0);
	world_spawn(childs_thread, NULL, "child");
}

static void queues_fork(void *unused)
{
	(void)unused;
	world_stay(30);
	world_retire(world_replace(0), forks_in_callback);
}

static void fork_callback_threads(void)
{
	fork_begin(ANY);
	sim_spawn(queues_fork, NULL, "queuer");
	sim_spawn(parents_queuer, (void *)0, "queuer");
	sim_spawn(parents_waiter, (void *)0, "waiter");
	sim_spawn(parents_waiter, (void *)1, "waiter");
}

static void setup_fork_callback(void) { fork_callback_threads(); }

static void finish_fork(void)
{
	int left = world_nr_queued - world_nr_run;

	sim_assert(quiesce_load_relaxed(&forked));
	if (left > may_be_lost)
		sim_fail("of %d callbacks %d have not run, and %d may be lost", world_nr_queued, left, may_be_lost);
	world_nothing_is_garbage();
}

#define FORK(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = finish_fork }

const struct sim_scenario srcu_fork_scenarios[] = {
	FORK(fork, "the child of a fork"),
	FORK(full_fork, "... without membarrier"),
	FORK(fork_barrier, "... in the middle of srcu_barrier()"),
	{ .name = "fork_unannounced", .what = "... of a bare system call", .setup = setup_fork_unannounced, .finish = finish_forked },
	{ .name = "fork_no_helper", .what = "... without a helper", .setup = setup_fork_no_helper, .finish = finish_forked },
	FORK(fork_taking, "... while the helper takes what is queued"),
	FORK(fork_order, "... and the callbacks of the thread that forks stay in order"),
	FORK(fork_callback, "... that began in a callback"),
	{ .name = "fork_stuck", .what = "... whose sections the child does not have", .setup = setup_fork_stuck,
	  .finish = finish_forked, .must_see = "a callback that cannot run" },
	{ .name = "fork_lost", .what = "... which ends them", .setup = setup_fork_lost, .finish = finish_fork,
	  .must_see = "a section that the child does not have" },
	{ .name = "fork_one", .what = "... that uses one domain only", .setup = setup_fork_one, .finish = finish_forked },
	{ .name = NULL },
};
