/* SPDX-License-Identifier: MIT */
/* srcu_exits.c - scenarios: callbacks of domains that end their thread: the helper, or one that waits for them. */
#include "srcu_world.h"

#include "runtime/jobs.h"

#define MOST_EXITS 3
static int nr_exits;

static void free_and_exit(struct rcu_head *head)
{
	world_free_head(head);
	sim_assert(!sim_cancelable());
	if (nr_exits == MOST_EXITS || sim_random(2))
		return;
	nr_exits++;
	sim_saw();
	sim_exit();
}

static void exiting_queuer(void *domain)
{
	for (int i = 0; i < 3; i++)
		world_retire(world_replace((intptr_t)domain), free_and_exit);
}

static void exits(enum world_mode mode)
{
	world_begin(mode);
	world_readers(1);
	sim_spawn(exiting_queuer, (void *)0, "queuer");
	sim_spawn(exiting_queuer, (void *)1, "queuer");
}

static void setup_exits(void) { exits(ANY); }
static void setup_full_exits(void) { exits(FULL); }

static void queue_and_wait(void *domain)
{
	struct item *mine[2];

	for (int i = 0; i < 2; i++) {
		mine[i] = world_replace((intptr_t)domain);
		world_retire(mine[i], free_and_exit);
	}
	srcu_barrier(world_domain[(intptr_t)domain]);
	for (int i = 0; i < 2; i++)
		sim_assert(sim_obj_is_free((int)mine[i]->id));
}

static void setup_exits_barrier(void)
{
	world_begin(ANY);
	world_readers(1);
	sim_spawn(queue_and_wait, (void *)0, "queuer");
	sim_spawn(queue_and_wait, (void *)0, "queuer");
}

/* The helper has jobs of another domain, too, of which a callback blocks meanwhile, so that a second helper watches it. */
static uint32_t may_go_on;

static void blocks(struct rcu_head *head)
{
	uint32_t never = 0;

	for (int i = 0; i < 5 && !quiesce_load_relaxed(&may_go_on); i++)
		platform_futex_wait(&never, 0, 20000000);
	free_and_exit(head);
}

static void blocking_queuer(void *domain)
{
	world_retire(world_replace((intptr_t)domain), blocks);
	world_retire(world_replace((intptr_t)domain), free_and_exit);
}

static void goes_on_later(void *domain)
{
	queue_and_wait(domain);
	quiesce_store_relaxed(&may_go_on, 1);
}

static void setup_exits_watched(void)
{
	world_begin(ANY);
	sim_spawn(blocking_queuer, (void *)0, "queuer");
	sim_spawn(goes_on_later, (void *)1, "queuer");
}

/* Without a helper the waiters run callbacks, and may end in their waits, so there are several waiters. */
static void waits_till_the_end(void *nr)
{
	uint32_t never = 0;

	do {
		platform_futex_wait(&never, 0, 10000000);
		srcu_barrier(world_domain[0]);
		srcu_barrier(world_domain[1]);
	} while (world_nr_run < (intptr_t)nr);
}

static void setup_exits_no_helper(void)
{
	exits(ANY);
	sim_config()->thread_start_failures = -1;
	for (int i = 0; i <= MOST_EXITS; i++)
		sim_spawn(waits_till_the_end, (void *)6, "waiter");
}

/* A callback blocks, another one ends the dispatcher, and no thread can be started: the blocked thread is left. */
static uint32_t is_blocked, has_ended;

static void blocks_a_while(struct rcu_head *head)
{
	world_set(&is_blocked, 1);
	world_await(&has_ended, 1);
	for (uint32_t k = sim_random(40); k; k--)
		platform_yield();
	world_free_head(head);
}

static void ends_the_dispatcher(struct rcu_head *head)
{
	world_free_head(head);
	sim_config()->thread_start_failures = -1;
	world_set(&has_ended, 1);
	sim_saw();
	sim_exit();
}

static void stops_the_helper(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), blocks_a_while);
	world_await(&is_blocked, 1);
	world_retire(world_replace(1), ends_the_dispatcher);
	world_await(&has_ended, 1);
	for (uint32_t k = sim_random(40); k; k--)
		platform_yield();
	while (!quiesce__helper_stop(0))
		;
	sim_assert(!quiesce__helper.nr && !quiesce__helper.starting);
	srcu_barrier(world_domain[0]);
	srcu_barrier(world_domain[1]);
}

static void setup_exits_stopped(void)
{
	world_begin(ANY);
	is_blocked = has_ended = 0;
	sim_config()->thread_start_failures = 0;
	sim_spawn(stops_the_helper, NULL, "stopper");
}

#define EXITS(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = world_finish, .must_see = "a thread that ended in a callback" }

const struct sim_scenario srcu_exit_scenarios[] = {
	EXITS(exits, "callbacks end the helper"),
	EXITS(full_exits, "... without membarrier"),
	EXITS(exits_barrier, "... beside srcu_barrier()"),
	EXITS(exits_watched, "... while another one watches, or leads"),
	EXITS(exits_stopped, "... while another one blocks, and none can be started"),
	EXITS(exits_no_helper, "callbacks end threads that wait for callbacks"),
	{ .name = NULL },
};
