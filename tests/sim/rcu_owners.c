/* SPDX-License-Identifier: MIT */
/* rcu_owners.c - scenarios: owners free without a lock what is ready in their queues, until a pass revokes that. */
#include "rcu/queue.h"
#include "rcu/reclaim.h"
#include "rcu_retired.h"
#include "runtime/core.h"
#include "runtime/pace.h"
#include "world.h"

#define NR_KNOWN 8

static struct item *known[NR_KNOWN];
static uint64_t nr_known;
static int freed_by_owner;

static void yield_some(uint32_t below)
{
	for (uint32_t k = sim_random(below); k; k--)
		platform_yield();
}

static void sleep_some(int times)
{
	uint32_t never = 0;

	for (int i = 0; i < times; i++)
		platform_futex_wait(&never, 0, 3000000);
}

/* An object is freed at a time that no other thread expects. */
static void free_later(void *object)
{
	if (in_call[sim_self()])
		yield_some(6);
	freed_by_owner += in_call[sim_self()];
	world_free(object);
}

static void free_one(struct item *old)
{
	bool nested = in_call[sim_self()];

	nr_queued++;
	in_call[sim_self()] = true;
	kfree_rcu(old, head);
	in_call[sim_self()] = nested;
}

static void begin(void (*hook)(void *object))
{
	nr_known = 0;
	freed_by_owner = 0;
	sim_config()->free_hook = hook;
	world_begin();
}

static void finish_owners(void)
{
	if (freed_by_owner)
		sim_saw();
	finish_all_run();
}

/* ---- a pass revokes while the owner frees ---- */

static void frees_known(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < NR_KNOWN; i++) {
		known[i] = world_replace();
		free_one(known[i]);
		quiesce_store_release(RU3, &nr_known, i + 1);
		yield_some(12);
	}
}

static void waits_for_known(void *unused)
{
	(void)unused;
	for (int k = 0; k < 3; k++) {
		uint64_t nr;

		yield_some(40);
		nr = quiesce_load_acquire(RU3, &nr_known);
		rcu_barrier();
		for (uint64_t i = 0; i < nr; i++)
			sim_assert(sim_obj_is_free(known[i]->id));
	}
}

static void setup_revoked(void)
{
	begin(free_later);
	sim_spawn(frees_known, NULL, "owner");
	sim_spawn(waits_for_known, NULL, "waiter");
}

/* ---- an owner that stops, and one that is slower than what is ready ---- */

static void frees_and_stops(void *unused)
{
	(void)unused;
	for (int i = 0; i < NR_KNOWN; i++)
		free_one(world_replace());
	sleep_some(1);
	free_one(world_replace());
	sleep_some(60);
	sim_assert(world_nr_freed == nr_queued);
}

static void setup_owner_stops(void)
{
	begin(free_later);
	sim_spawn(frees_and_stops, NULL, "owner");
}

/* ---- an owner catches up with more than grace periods bring ---- */

static int freed_in_call;

static void free_counted(void *object)
{
	freed_in_call += in_call[sim_self()];
	free_later(object);
}

/* Wait for a pass, which frees nothing for an owner. */
static void await_pass(void)
{
	const struct quiesce__queue *queue = quiesce__self()->queue;

	quiesce__worker_prompt();
	while (quiesce_load_relaxed(&queue->ready) != queue->frees.queued) /* Relaxed: loaded again. */
		sleep_some(1);
}

/* The first grace period brings as many objects as two well filled batches have, the others bring one each. */
static void frees_after_backlog(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 2 * QUIESCE_WELL_FILLED; i++)
		free_one(world_replace());
	for (int i = 0; i < NR_KNOWN; i++) {
		await_pass();
		freed_in_call = 0;
		free_one(world_replace());
		sim_assert(freed_in_call <= 4);
		if (freed_in_call > 1)
			sim_saw();
	}
}

static void setup_owner_catches_up(void)
{
	begin(free_counted);
	sim_spawn(frees_after_backlog, NULL, "owner");
}

/* ---- a pass takes the number of objects, and after others were queued the bytes; an owner polls in between ---- */

static void free_and_check(void *object)
{
	const struct quiesce__queue *queue = quiesce__self()->queue;

	if (in_call[sim_self()])
		sim_assert(queue->freeing.bytes_out <= queue->frees.bytes);
	free_later(object);
}

static void frees_many(void *unused)
{
	(void)unused;
	for (int i = 0; i < 6 * NR_KNOWN; i++) {
		free_one(world_replace());
		if (!sim_random(8))
			sleep_some(1);
	}
	rcu_barrier();
}

static void waits_often(void *unused)
{
	(void)unused;
	for (int k = 0; k < 4; k++) {
		yield_some(100);
		rcu_barrier();
	}
}

static void setup_owner_torn(void)
{
	sim_config()->thread_start_failures = -1;
	begin(free_and_check);
	sim_spawn(frees_many, NULL, "owner");
	sim_spawn(waits_often, NULL, "waiter");
}

/* ---- no worker: the owner polls ---- */

static void frees_alone(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3 * NR_KNOWN; i++) {
		free_one(world_replace());
		sleep_some(1);
	}
	if (freed_by_owner)
		sim_saw();
	rcu_barrier();
}

static void setup_owner_polls(void)
{
	sim_config()->thread_start_failures = -1;
	begin(free_later);
	world_readers(2);
	sim_spawn(frees_alone, NULL, "owner");
}

/* ---- no worker, and no membarrier: the owner polls once ---- */

static void frees_refused(void *unused)
{
	uint64_t before = quiesce_load_relaxed(&quiesce__counters.membarriers);

	(void)unused;
	for (int i = 0; i < 3 * NR_KNOWN; i++) {
		free_one(world_replace());
		sleep_some(1);
	}
	if (quiesce_load_relaxed(&quiesce__counters.membarriers) != before)
		sim_saw();
	sim_assert(quiesce_load_relaxed(&quiesce__counters.membarriers) <= before + 1);
	rcu_barrier();
}

static void setup_owner_refused(void)
{
	sim_config()->thread_start_failures = -1;
	begin(free_later);
	world_readers(2);
	sim_spawn(frees_refused, NULL, "owner");
	sim_config()->membarrier = SIM_MEMBARRIER_LOST;
}

/* ---- the worker is in a callback, and a polling owner loses its CPU ---- */

static uint32_t callback_begun, owner_done;

static void wait_for_owner(struct rcu_head *head)
{
	(void)head;
	world_set(&callback_begun, 1);
	world_await(&owner_done, 1);
}

static void frees_until_stopped(void *unused)
{
	(void)unused;
	free_one(world_replace());
	world_await(&callback_begun, 1);
	for (int i = 0; i < NR_KNOWN; i++)
		free_one(world_replace());
	sim_stop_within(200);
	for (int i = 0; i < 2 * NR_KNOWN; i++)
		free_one(world_replace());
	yield_some(400);
}

static void frees_beside(void *unused)
{
	static struct rcu_head head;

	(void)unused;
	free_one(world_replace());
	call_rcu(&head, wait_for_owner);
	world_await(&callback_begun, 1);
	for (int i = 0; i < 4 * NR_KNOWN; i++) {
		free_one(world_replace());
		sleep_some(1);
	}
	world_set(&owner_done, 1);
}

static void setup_owner_stopped(void)
{
	begin(free_later);
	callback_begun = owner_done = 0;
	sim_config()->stops_in_locks = true;
	sim_spawn(frees_until_stopped, NULL, "stopped");
	sim_spawn(frees_beside, NULL, "owner");
}

/* ---- several owners find at the same time that one of them may poll ---- */

static uint64_t paced;
static int nr_claims;

static void claims(void *unused)
{
	(void)unused;
	yield_some(3);
	nr_claims += quiesce__pace_claim(&paced, 3600 * 1000000000ull);
}

static void setup_claims(void)
{
	quiesce__pace_begin(&paced, 0);
	nr_claims = 0;
	spawn_each(3, claims, "owner");
}

static void finish_claims(void)
{
	sim_assert(nr_claims == 1);
}

/* ---- a free() that forks, or that ends its thread ---- */

static bool has_forked;

static void free_and_fork(void *object)
{
	if (in_call[sim_self()] && !has_forked && !sim_random(3)) {
		has_forked = true;
		quiesce__fork_prepare();
		sim_fork();
		quiesce__fork_child();
		free_one(world_replace());
		yield_some(100);
		sim_saw();
	}
	free_later(object);
}

static void frees_in_child_too(void *unused)
{
	(void)unused;
	quiesce__init();
	for (int i = 0; i < NR_KNOWN; i++) {
		free_one(world_replace());
		sleep_some(1);
	}
	rcu_barrier();
	sim_assert(world_nr_freed == nr_queued);
}

static void setup_free_forks(void)
{
	has_forked = false;
	begin(free_and_fork);
	sim_spawn(frees_in_child_too, NULL, "owner");
}

static void free_and_end(void *object)
{
	bool own = in_call[sim_self()];

	free_later(object);
	if (own && !sim_random(3)) {
		in_call[sim_self()] = false;
		sim_exit();
	}
}

static void setup_free_ends(void)
{
	begin(free_and_end);
	sim_spawn(frees_known, NULL, "owner");
	sim_spawn(waits_for_known, NULL, "waiter");
}

const struct sim_scenario rcu_owner_scenarios[] = {
	{ .name = "revoked", .what = "rcu_barrier() beside an owner that frees", .setup = setup_revoked, .finish = finish_owners,
	  .must_see = "an object that is freed by its owner" },
	{ .name = "full_fence_revoked", .what = "... without membarrier", .setup = setup_revoked, .finish = finish_owners,
	  .but = without_membarrier },
	{ .name = "owner_stops", .what = "the worker frees what an owner leaves", .setup = setup_owner_stops, .finish = finish_all_run },
	{ .name = "owner_catches_up", .what = "an owner frees more than it retires", .setup = setup_owner_catches_up,
	  .finish = finish_all_run, .must_see = "two objects that are freed in one call" },
	{ .name = "owner_torn", .what = "an owner polls beside passes", .setup = setup_owner_torn, .finish = finish_all_run },
	{ .name = "owner_polls", .what = "an owner polls for itself", .setup = setup_owner_polls, .finish = finish_all_run,
	  .must_see = "an object that is freed by its owner" },
	{ .name = "full_fence_owner_polls", .what = "... without membarrier", .setup = setup_owner_polls, .finish = finish_all_run,
	  .but = without_membarrier },
	{ .name = "owner_refused", .what = "no membarrier for an owner that polls", .setup = setup_owner_refused,
	  .finish = finish_all_run, .must_see = "a poll that is refused" },
	{ .name = "owner_stopped", .what = "an owner that polls is never given a CPU again", .setup = setup_owner_stopped },
	{ .name = "claims", .what = "one of several owners polls", .setup = setup_claims, .finish = finish_claims },
	{ .name = "free_forks", .what = "a free() of an owner forks", .setup = setup_free_forks, .finish = finish_all_run,
	  .must_see = "a child" },
	{ .name = "free_ends", .what = "a free() of an owner ends its thread", .setup = setup_free_ends, .finish = finish_owners },
	{ .name = NULL },
};
