/* SPDX-License-Identifier: MIT */
/* hazptr_handed.c - scenarios: objects that call_hazptr() hands over to the helper, and callers that it never delays. */
#include "hazptr_world.h"

#include "runtime/helper.h"
#include "hazptr/hazptr_retired.h"

/* ---- the helper runs callbacks, whatever other threads do ---- */

static void run_by_helper(struct hazptr_head *head)
{
	sim_assert(quiesce__in_helper());
	world_free_head(head);
}

static void hands_over(void *index)
{
	for (int i = 0; i < 5; i++)
		world_retire(world_replace((intptr_t)index), run_by_helper);
}

static void setup_handed(void)
{
	world_begin();
	world_hands_over = true;
	world_readers(driver_readers);
	sim_spawn(hands_over, (void *)0, "updater");
	sim_spawn(hands_over, (void *)0, "updater");
}

/* ---- large objects: a batch is full by bytes ---- */

static uint32_t nr_large_run;

static void run_large(struct hazptr_head *head)
{
	nr_large_run++;
	world_free_head(head);
}

/* The first object is queued before the helper knows the queue, so no other thread can hold its lock. */
static void retires_large(void *unused)
{
	(void)unused;
	world_retire_large(world_replace(0), run_large, HAZPTR_BATCH_BYTES);
	sim_assert(nr_large_run == 1);
	for (int i = 0; i < 3; i++)
		world_retire_large(world_replace(0), run_large, HAZPTR_BATCH_BYTES / 2);
}

static void setup_sized(void)
{
	nr_large_run = 0;
	world_begin();
	sim_spawn(retires_large, NULL, "updater");
}

/* ---- the owner keeps pace ---- */

static uint32_t nr_run_here;

/* Callbacks in the helper do not count. */
static void count_here(struct hazptr_head *head)
{
	nr_run_here += !quiesce__in_helper();
	world_free_head(head);
}

/* With batches of two objects the owner reclaims one object in each call. */
static void retires_at_pace(void *unused)
{
	(void)unused;
	for (int i = 0; i < 8; i++) {
		uint32_t before = nr_run_here;

		world_retire(world_replace(0), count_here);
		sim_assert(nr_run_here - before <= 1);
	}
}

static void setup_paced(void)
{
	nr_run_here = 0;
	world_begin();
	world_inline = true;
	world_readers(1);
	sim_spawn(retires_at_pace, NULL, "updater");
}

/* ---- steps: the owner frees without the lock, while barriers drain its queue ---- */

static void step_freed(void *object)
{
	world_free(object);
}

static void retires_in_steps(void *unused)
{
	(void)unused;
	for (int i = 0; i < 10; i++) {
		struct item *old = world_replace(0);

		world_nr_retired++;
		world_last_words(old);
		kfree_hazptr(old, head);
	}
}

static void waits_beside_steps(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		hazptr_barrier();
}

static void setup_steps(void)
{
	world_begin();
	sim_config()->free_hook = step_freed;
	sim_spawn(retires_in_steps, NULL, "updater");
	sim_spawn(waits_beside_steps, NULL, "waiter");
}

/* With callbacks: a barrier waits for those of a step that is under way. */
static struct item *called[10];
static uint32_t nr_called;

static void ends_late(struct hazptr_head *head)
{
	world_free_head(head);
	sim_point("in a callback");
	quiesce_store_relaxed(&((struct item *)head)->between, 1);
}

static void calls_in_steps(void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 10; i++) {
		called[i] = world_replace(0);
		quiesce_store_relaxed(&called[i]->between, 0);
		world_retire(called[i], ends_late);
		quiesce_store_release(RU3, &nr_called, i + 1);
	}
}

static void waits_for_calls(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		uint32_t nr = quiesce_load_acquire(RU3, &nr_called);

		hazptr_barrier();
		while (nr--)
			sim_assert(quiesce_load_relaxed(&called[nr]->between) == 1);
	}
}

static void setup_steps_called(void)
{
	quiesce_store_relaxed(&nr_called, 0);
	world_begin();
	world_inline = true;
	sim_spawn(calls_in_steps, NULL, "updater");
	sim_spawn(waits_for_calls, NULL, "waiter");
}

/* A free() by the owner may retire one more object, and ends the thread; another thread adopts the queue. */
static uint32_t nr_ended;
static int in_retirer; /* the thread that is in kfree_hazptr(); -1: none */
static const struct quiesce__retired_queue *left_queue; /* the queue of the thread that has ended; NULL: none has */

static void retire_for_step(struct item *item)
{
	world_last_words(item);
	world_nr_retired++;
	kfree_hazptr(item, head);
}

static void free_and_end(void *object)
{
	world_free(object);
	if (in_retirer != sim_self() || nr_ended || sim_random(3))
		return;
	nr_ended = 1;
	in_retirer = -1;
	if (sim_random(2))
		retire_for_step(world_new(NULL));
	left_queue = quiesce__self()->retired;
	sim_saw();
	sim_exit();
}

static void ends_in_step(void *unused)
{
	(void)unused;
	for (int i = 0; i < 10; i++) {
		struct item *old = world_replace(0);

		in_retirer = sim_self();
		retire_for_step(old);
		in_retirer = -1;
	}
}

static void retires_after_the_end(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	platform_futex_wait(&never, 0, 1000000);
	for (int i = 0; i < 10; i++) {
		const struct quiesce__retired_queue *before = quiesce__self()->retired, *r;

		retire_for_step(world_replace(1));
		r = quiesce__self()->retired;
		/* The first object of the next owner makes it visit the queue, although what the free() retired had raised the limit. */
		if (!before && r == left_queue)
			sim_assert(quiesce_load_relaxed(&r->limit) != r->max_queued);
	}
	hazptr_barrier();
}

static void setup_steps_end(void)
{
	nr_ended = 0;
	left_queue = NULL;
	in_retirer = -1;
	world_begin();
	sim_config()->free_hook = free_and_end;
	sim_spawn(ends_in_step, NULL, "updater");
	sim_spawn(waits_beside_steps, NULL, "waiter");
	sim_spawn(retires_after_the_end, NULL, "adopter");
}

/* ---- the program's free() retires: the library does not enter it again ---- */

static bool in_free[SIM_MAX_THREADS];

static void retire_of_either_kind(struct item *item)
{
	world_nr_retired++;
	world_last_words(item);
	if (world_nr_retired % 2)
		kfree_hazptr(item, head);
	else
		kfree_rcu(item, rcu);
}

static void free_under_a_lock(void *object)
{
	sim_assert(!in_free[sim_self()]);
	in_free[sim_self()] = true;
	world_free(object);
	if (world_nr_retired < 40)
		retire_of_either_kind(world_new(NULL));
	in_free[sim_self()] = false;
}

static void retires_both(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	for (int i = 0; i < 12; i++) {
		retire_of_either_kind(world_replace(0));
		if (sim_random(2))
			platform_futex_wait(&never, 0, 3000000);
	}
	hazptr_barrier();
	rcu_barrier();
	sim_saw();
}

static void setup_allocator(void)
{
	for (int i = 0; i < SIM_MAX_THREADS; i++)
		in_free[i] = false;
	world_begin();
	sim_config()->free_hook = free_under_a_lock;
	spawn_each(2, retires_both, "updater");
}

static void finish_allocator(void)
{
	sim_assert(world_nr_freed == world_nr_retired);
}

/* ---- objects without a head: another address is protected than the one that is queued ---- */

static void delete_item(void *item)
{
	world_free(item);
}

static void retires_by_address(void *unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		struct item *old = world_replace(0);

		world_last_words(old);
		world_nr_retired++;
		hazptr_retire(old, delete_item);
	}
}

/* Stay for a random time, perhaps until the others have ended. */
static void stays_with_item(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item = world_protect(slot, 0);

	(void)unused;
	world_stay(60);
	world_check(item);
	hazptr_free(NULL, slot);
}

static void setup_proxies(void)
{
	world_begin();
	sim_spawn(stays_with_item, NULL, "reader");
	spawn_each(2, retires_by_address, "updater");
}

static void setup_proxies_three_cpus(void)
{
	setup_proxies();
	sim_config()->nr_cpus = 3;
}

/* An object is protected while its thread's queue is turned into a list. */
static uint32_t held, listed;

static void holds_item(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item = world_protect(slot, 0);

	(void)unused;
	world_set(&held, 1);
	world_await(&listed, 1);
	world_check(item);
	hazptr_free(NULL, slot);
}

static void lists_a_note(void *unused)
{
	struct item *old;

	(void)unused;
	world_await(&held, 1);
	old = world_replace(0);
	world_last_words(old);
	world_nr_retired++;
	hazptr_retire(old, delete_item);
	sim_assert(!hazptr_try_barrier());
	world_set(&listed, 1);
}

static void setup_proxies_listed(void)
{
	held = listed = 0;
	world_begin();
	sim_spawn(holds_item, NULL, "holder");
	sim_spawn(lists_a_note, NULL, "updater");
}

/* There is no memory for queues and proxies, so a retirer waits. */
static void setup_no_proxies(void)
{
	setup_proxies();
	sim_config()->arm_exit_failures = -1;
}

/* Objects handed over while the helper is about to sleep are reclaimed soon, and not only at its next periodic visit. */
#define SOON_NS 50000000u
static uint32_t nr_run;

static void run_and_report(struct hazptr_head *head)
{
	run_by_helper(head);
	quiesce_fetch_add(RU3, &nr_run, 1u);
	platform_futex_wake(&nr_run, INT32_MAX);
}

static void hands_over_then_waits(void *index)
{
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t found = quiesce_load_acquire(RU3, &nr_run);
		uint64_t begun = platform_now_ns();

		world_retire(world_replace((intptr_t)index), run_and_report);
		world_retire(world_replace((intptr_t)index), run_and_report);
		while (quiesce_load_acquire(RU3, &nr_run) == found)
			platform_futex_wait(&nr_run, found, PLATFORM_FOREVER);
		sim_assert(platform_now_ns() - begun < SOON_NS);
		for (uint32_t k = sim_random(40); k; k--)
			sim_point("before the next batch");
	}
}

static void setup_rests(void)
{
	world_begin();
	world_hands_over = true;
	sim_spawn(hands_over_then_waits, (void *)0, "updater");
	sim_spawn(hands_over_then_waits, (void *)1, "updater");
}

/* A reader of RCU that stays delays no hazptr callback. */
static uint32_t inside, reclaimed;

static void stays_inside(void *unused)
{
	(void)unused;
	rcu_read_lock();
	world_set(&inside, 1);
	world_await(&reclaimed, 3);
	rcu_read_unlock();
}

static void count_reclaimed(struct hazptr_head *head)
{
	world_free_head(head);
	world_set(&reclaimed, reclaimed + 1);
}

static void nothing(struct rcu_head *unused)
{
	(void)unused;
}

static void retires_beside_rcu(void *unused)
{
	static struct rcu_head rcu;

	(void)unused;
	world_await(&inside, 1);
	call_rcu(&rcu, nothing);
	world_stay(100);
	for (int i = 0; i < 3; i++)
		world_retire(world_replace(0), count_reclaimed);
}

static void setup_beside_rcu(void)
{
	world_begin();
	world_hands_over = true;
	sim_spawn(stays_inside, NULL, "reader");
	sim_spawn(retires_beside_rcu, NULL, "updater");
}

/* ---- a fork waits for a callback, and the callback for a retirer: the retirer does not wait for the fork ---- */

#define MUCH 12
static uint32_t in_callback, much_retired;
static uint64_t took;

static void waits_for_much(struct hazptr_head *head)
{
	world_set(&in_callback, 1);
	world_await(&much_retired, 1);
	world_free_head(head);
}

static void retires_much(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), waits_for_much);
	world_await(&in_callback, 1);
	world_stay(100);
	world_inline = true;
	for (int i = 0; i < MUCH; i++)
		world_update(1);
	world_set(&much_retired, 1);
}

static void prepares_a_fork(void *unused)
{
	uint64_t begun;

	(void)unused;
	world_await(&in_callback, 1);
	begun = platform_now_ns();
	quiesce__fork_prepare();
	quiesce__fork_parent();
	took = platform_now_ns() - begun;
}

static void setup_gate(void)
{
	world_begin();
	world_hands_over = true;
	sim_spawn(retires_much, NULL, "updater");
	sim_spawn(prepares_a_fork, NULL, "forker");
}

/* The fork ended before its time limit, which is longer. */
static void finish_gate(void)
{
	if (took > 50000000)
		sim_fail("a fork waited for %llu ns", (unsigned long long)took);
	world_finish();
}

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }

const struct sim_scenario hazptr_handed_scenarios[] = {
	SCENARIO(handed, "callbacks run in the helper only"),
	VARIANT(handed_cpu_each, handed, with_many_cpus, "... a CPU for every thread"),
	VARIANT(full_handed, handed, without_membarrier, "... without membarrier"),
	SCENARIO(proxies, "objects without a head"),
	SCENARIO(proxies_three_cpus, "... on three CPUs, with the helper"),
	VARIANT(full_proxies, proxies, without_membarrier, "... without membarrier"),
	SCENARIO(proxies_listed, "... in lists"),
	SCENARIO(no_proxies, "... without memory"),
	SCENARIO(sized, "a few large objects are a batch"),
	SCENARIO(paced, "the owner reclaims one object in a call"),
	SCENARIO(steps, "the owner frees in steps, beside barriers"),
	SCENARIO(steps_called, "the owner runs callbacks in steps, beside barriers"),
	VARIANT(full_steps_called, steps_called, without_membarrier, "... without membarrier"),
	{ .name = "allocator", .what = "the program's free() retires", .setup = setup_allocator, .finish = finish_allocator,
	  .must_see = "both barriers" },
	VARIANT(full_steps, steps, without_membarrier, "... without membarrier"),
	{ .name = "steps_end", .what = "a free() in a step ends its thread", .setup = setup_steps_end, .finish = world_finish,
	  .must_see = "a thread that ended in a free()" },
	{ .name = "full_steps_end", .what = "... without membarrier", .setup = setup_steps_end, .but = without_membarrier,
	  .finish = world_finish },
	SCENARIO(rests, "batches come as the helper is about to rest"),
	VARIANT(full_rests, rests, without_membarrier, "... without membarrier"),
	SCENARIO(beside_rcu, "a reader of RCU stays"),
	{ .name = "gate", .what = "a retirer does not wait for a fork", .setup = setup_gate, .finish = finish_gate },
	{ .name = NULL },
};
