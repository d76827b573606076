/* SPDX-License-Identifier: MIT */
/* hazptr_waits.c - scenarios: hazptr_barrier(), synchronize_hazptr(); every wait ends, and not too early. */
#include "hazptr_world.h"

#include "hazptr/hazptr.h"

/* ---- hazptr_barrier(): callbacks of objects retired before it have run when it returns ---- */

static void retire_and_wait(void *index)
{
	struct item *mine[3];
	uint64_t id[3];

	for (int i = 0; i < 3; i++) {
		mine[i] = world_replace((intptr_t)index);
		id[i] = quiesce_load_relaxed(&mine[i]->id);
		world_retire(mine[i], world_free_head);
	}
	hazptr_barrier();
	for (int i = 0; i < 3; i++)
		sim_assert(sim_obj_is_free(id[i]));
}

static void setup_barrier(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(retire_and_wait, (void *)0, "waiter");
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_barriers(void)
{
	world_begin();
	world_readers(1);
	for (intptr_t i = 0; i < 3; i++)
		sim_spawn(retire_and_wait, (void *)i, "waiter");
}

/* Objects that the caller itself protects are not reclaimed. */
static void retire_and_try(void *index)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *mine[3] = { world_protect(slot, (intptr_t)index) };
	uint64_t id[3];

	for (int i = 0; i < 3; i++) {
		mine[i] = world_replace((intptr_t)index);
		id[i] = quiesce_load_relaxed(&mine[i]->id);
		world_retire(mine[i], world_free_head);
	}
	if (hazptr_try_barrier())
		sim_fail("nothing is left, and an object is protected");
	sim_assert(!sim_obj_is_free(id[0]));
	hazptr_clear(slot);
	while (!hazptr_try_barrier())
		platform_yield();
	for (int i = 0; i < 3; i++)
		sim_assert(sim_obj_is_free(id[i]));
	hazptr_free(NULL, slot);
}

static void setup_try_barrier(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(retire_and_try, (void *)0, "waiter");
	sim_spawn(sim_random(2) ? retire_and_try : retire_and_wait, (void *)1, "waiter");
}

/* A barrier waits for an object that another thread retired before, as the waiter knows. */
static uint64_t has_retired, first_id;

static void retire_and_signal(void *nr)
{
	struct item *old = world_replace(0);

	quiesce_store_relaxed(&first_id, quiesce_load_relaxed(&old->id));
	world_retire(old, world_free_head);
	for (intptr_t i = 1; i < (intptr_t)nr; i++)
		world_update(0);
	quiesce_store_release(RU3, &has_retired, 1);
	world_update(1);
}

static void wait_for_others(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &has_retired))
		platform_yield();
	hazptr_barrier();
	sim_assert(sim_obj_is_free(quiesce_load_relaxed(&first_id)));
}

static void setup_barrier_others(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(retire_and_signal, (void *)1, "updater");
	sim_spawn(wait_for_others, NULL, "waiter");
}

static void setup_barrier_others_two(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(retire_and_signal, (void *)2, "updater");
	sim_spawn(wait_for_others, NULL, "waiter");
}

/* A barrier waits for an object that a thread without a queue retired. */
static void setup_barrier_list(void)
{
	setup_barrier_others();
	sim_config()->arm_exit_failures = -1;
}

/* Stores of callbacks are visible after a barrier, which also waits for callbacks that other threads are running. */
static uint64_t by_callback;

static void note(struct hazptr_head *head)
{
	world_free_head(head);
	for (uint32_t k = sim_random(20); k; k--)
		sim_point("in a callback");
	quiesce_fetch_add_relaxed(&by_callback, (uint64_t)1);
}

static void noting_updater(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), note);
	world_retire(world_replace(0), note);
	quiesce_store_release(RU3, &has_retired, 1);
}

static void wait_and_check(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &has_retired))
		platform_yield();
	hazptr_barrier();
	sim_assert(quiesce_load_relaxed(&by_callback) >= 2);
}

static void setup_barrier_order(void)
{
	world_begin();
	sim_config()->nr_cpus = 0;
	sim_spawn(noting_updater, NULL, "updater");
	spawn_each(2, wait_and_check, "waiter");
}

/* The barrier's caller runs the callbacks while the owner reaches its limit. */
static void owner_runs(void *unused)
{
	(void)unused;
	while (!quiesce_load_acquire(RU3, &has_retired))
		platform_yield();
	world_updater((void *)1);
}

static void setup_barrier_owners(void)
{
	setup_barrier_order();
	spawn_each(2, owner_runs, "updater");
}

/* Barriers drain the queue one after the other, and its owner runs callbacks that were queued since by itself. */
static uint64_t known[10], nr_known;

static void slowly(struct hazptr_head *head)
{
	for (uint32_t k = sim_random(30); k; k--)
		sim_point("in a callback");
	world_free_head(head);
}

static void retires_each(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 10; i++) {
		struct item *old = world_replace(0);

		quiesce_store_relaxed(&known[i], quiesce_load_relaxed(&old->id));
		world_retire(old, slowly);
		quiesce_store_release(RU3, &nr_known, i + 1);
		world_stay(20);
	}
}

static void waits_for_each(void *unused)
{
	(void)unused;
	for (int k = 0; k < 6; k++) {
		uint64_t nr = quiesce_load_acquire(RU3, &nr_known);

		hazptr_barrier();
		for (uint64_t i = 0; i < nr; i++)
			sim_assert(sim_obj_is_free(quiesce_load_relaxed(&known[i])));
		world_stay(40);
	}
}

static void setup_barrier_each(void)
{
	world_begin();
	world_inline = true;
	sim_spawn(retires_each, NULL, "updater");
	spawn_each(2, waits_for_each, "waiter");
}

/* ---- a reader that stays: the barrier waits until it clears, and is woken ---- */

static uint32_t holding, finished;

static void holder(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item = world_protect(slot, 0);

	(void)unused;
	world_set(&holding, 1);
	world_stay(2 + sim_random(2) * sim_random(300));
	world_check(item);
	if (sim_random(2)) {
		hazptr_clear(slot);
		world_stay(10);
		world_protect(slot, 1);
	}
	hazptr_free(NULL, slot);
}

static void barrier_for_holder(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	retire_and_wait((void *)0);
}

static void setup_barrier_held(void)
{
	world_begin();
	sim_spawn(holder, NULL, "holder");
	sim_spawn(barrier_for_holder, NULL, "waiter");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void setup_barrier_held_two(void)
{
	setup_barrier_held();
	sim_spawn(barrier_for_holder, NULL, "waiter");
}

/* ---- synchronize_hazptr() ---- */

static void waiting_updater(void *index)
{
	for (int i = 0; i < 2; i++) {
		struct item *old = world_replace((intptr_t)index);

		synchronize_hazptr(&old->head);
		sim_obj_free(quiesce_load_relaxed(&old->id));
	}
}

static void setup_wait(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(waiting_updater, (void *)0, "waiter");
	sim_spawn(world_updater, (void *)0, "updater");
}

static void setup_wait_skip(void)
{
	setup_wait();
	sim_spawn(waiting_updater, (void *)0, "waiter");
	quiesce_set_skip_self_scan(1);
}

static void wait_for_holder(void *unused)
{
	struct item *old;

	(void)unused;
	world_await(&holding, 1);
	old = world_replace(0);
	synchronize_hazptr(old);
	sim_obj_free(quiesce_load_relaxed(&old->id));
	world_set(&finished, 1);
}

/* A slot that is freed, or set to another address while it is held, wakes the waiter. */
static void wakes(void *how)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item *item = world_protect(slot, 0);

	world_set(&holding, 1);
	while (!quiesce_load_acquire(RU3, (uint64_t *)&slot->value + QUIESCE_LINE_WORDS)) /* the scan writes this word */
		platform_yield();
	world_stay(2 + sim_random(2) * sim_random(300));
	world_check(item);
	if ((intptr_t)how == 1)
		world_protect(slot, 1);
	else if ((intptr_t)how == 2)
		hazptr_clear(slot);
	if ((intptr_t)how == 2)
		world_protect(slot, 1);
	hazptr_free(NULL, slot);
}

/* The wake-up is guaranteed: no time may pass with all threads asleep. */
static void wake(intptr_t how)
{
	world_begin();
	sim_config()->idle_limit_ns = 1;
	sim_spawn(wakes, (void *)how, "holder");
	sim_spawn(wait_for_holder, NULL, "waiter");
}

static void setup_wake_free(void) { wake(0); }
static void setup_wake_set(void) { wake(1); }
static void setup_wake_cleared(void) { wake(2); }

static void setup_full_wake_set(void)
{
	wake(1);
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static void setup_wake_no_thread(void)
{
	wake(1);
	sim_config()->thread_start_failures = -1;
}

static void finish_wake(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	if (stats.wakeups)
		sim_saw();
}

/* Readers never stop protecting, in one slot each; the address is never unpublished for long. */
static uint32_t nr_waiting;

static void hot_reader(void *clears)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	struct item **where = &world_pointer[0];

	while (quiesce_load_relaxed(&nr_waiting)) {
		world_check(hazptr_protect(slot, where));
		if (clears)
			hazptr_clear(slot);
		platform_yield();
	}
	hazptr_free(NULL, slot);
}

/* Two slots protect the object in turn, without a gap. */
static void hot_chain(void *unused)
{
	hazptr_t *slot[2] = { hazptr_alloc(NULL), hazptr_alloc(NULL) };

	(void)unused;
	for (uint32_t i = 0; quiesce_load_relaxed(&nr_waiting); i++) {
		hazptr_protect(slot[i & 1], &world_pointer[0]);
		hazptr_clear(slot[!(i & 1)]);
		platform_yield();
	}
	hazptr_free(NULL, slot[0]);
	hazptr_free(NULL, slot[1]);
}

static void hot_waiter(void *unused)
{
	(void)unused;
	synchronize_hazptr(world_pointer[0]);
	quiesce_fetch_add_relaxed(&nr_waiting, -1u);
}

static void hot(void (*reader)(void *), void *arg, uint32_t nr)
{
	world_begin();
	sim_config()->max_steps = 60000;
	nr_waiting = nr;
	sim_spawn(reader, arg, "hot");
	sim_spawn(reader, arg, "hot");
	for (uint32_t i = 0; i < nr; i++)
		sim_spawn(hot_waiter, NULL, "waiter");
}

static void setup_hot(void) { hot(hot_reader, NULL, 1); }
static void setup_hot_clears(void) { hot(hot_reader, world_pointer, 2); }
static void setup_hot_chain(void) { hot(hot_chain, NULL, 2); }

static void setup_hot_full(void)
{
	hot(hot_reader, NULL, 2);
	sim_config()->membarrier = SIM_MEMBARRIER_ABSENT;
}

static void setup_hot_skip(void)
{
	hot(hot_chain, NULL, 2);
	quiesce_set_skip_self_scan(1);
}

static void setup_hot_no_thread(void)
{
	hot(hot_reader, NULL, 2);
	sim_config()->thread_start_failures = -1;
}

/* ---- an owner is in a callback, and its queue is empty: what was behind the object was for the helper ---- */

static uint32_t is_listed, is_retired;
static bool slow_has_run;

static void free_slowly(struct hazptr_head *head)
{
	uint32_t never = 0;

	platform_futex_wait(&never, 0, 3000000);
	world_free_head(head);
	slow_has_run = true;
}

/* The second object is a batch of bytes; if a sweeper has the lock, it stays in the queue.  Then the third call hands its own object
 * over, and reclaims the second. */
static void reclaims_and_hands_over(void *unused)
{
	struct item *listed = world_replace(0), *slow = world_replace(1), *last = world_replace(2);

	(void)unused;
	world_inline = true;
	world_retire(listed, world_free_head);
	world_set(&is_listed, 1);
	world_retire_large(slow, free_slowly, HAZPTR_BATCH_BYTES);
	world_set(&is_retired, 1);
	world_inline = false;
	world_hands_over = true;
	world_retire(last, world_free_head);
}

static void sweeps_beside(void *unused)
{
	(void)unused;
	world_await(&is_listed, 1);
	hazptr_barrier();
}

static void waits_for_slow_one(void *unused)
{
	(void)unused;
	world_await(&is_retired, 1);
	if (!slow_has_run)
		sim_saw();
	hazptr_barrier();
	sim_assert(slow_has_run);
}

static void setup_barrier_emptied(void)
{
	is_listed = is_retired = 0;
	slow_has_run = false;
	world_begin();
	quiesce_set_hazptr_batch(2, 2);
	sim_spawn(reclaims_and_hands_over, NULL, "owner");
	sim_spawn(sweeps_beside, NULL, "sweeper");
	sim_spawn(waits_for_slow_one, NULL, "waiter");
}

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }
#define WAKES(label, text) \
	{ .name = #label, .what = text, .setup = setup_##label, .finish = finish_wake, .must_see = "a wake-up" }

const struct sim_scenario hazptr_wait_scenarios[] = {
	SCENARIO(barrier, "hazptr_barrier(), and others retire"),
	VARIANT(full_barrier, barrier, without_membarrier, "... without membarrier"),
	SCENARIO(barriers, "three of them"),
	SCENARIO(try_barrier, "hazptr_try_barrier() beside one's own protection"),
	VARIANT(barriers_no_worker, barriers, without_threads, "... without a worker"),
	SCENARIO(barrier_others, "what another thread has retired"),
	SCENARIO(barrier_others_two, "... a batch of it"),
	VARIANT(full_barrier_others, barrier_others, without_membarrier, "... without membarrier"),
	{ .name = "barrier_others_no_worker", .what = "... without a worker", .setup = setup_barrier_others, .but = without_threads },
	SCENARIO(barrier_list, "... without a queue"),
	SCENARIO(barrier_order, "callbacks that others run are waited for"),
	SCENARIO(barrier_owners, "... also those of owners"),
	SCENARIO(barrier_each, "... one after the other"),
	VARIANT(full_barrier_each, barrier_each, without_membarrier, "... without membarrier"),
	SCENARIO(barrier_held, "it waits for a slot"),
	VARIANT(full_barrier_held, barrier_held, without_membarrier, "... without membarrier"),
	{ .name = "barrier_held_no_worker", .what = "... without a worker", .setup = setup_barrier_held, .but = without_threads },
	SCENARIO(barrier_held_two, "two wait for a slot"),
	{ .name = "barrier_emptied", .what = "... and the queue of one is empty meanwhile", .setup = setup_barrier_emptied,
	  .finish = world_finish, .must_see = "an object that is retired and not reclaimed" },
	{ .name = "full_barrier_emptied", .what = "... without membarrier", .setup = setup_barrier_emptied, .but = without_membarrier,
	  .finish = world_finish },
	SCENARIO(wait, "synchronize_hazptr()"),
	VARIANT(wait_cpu_each, wait, with_many_cpus, "... a CPU for every thread"),
	VARIANT(full_wait, wait, without_membarrier, "... without membarrier"),
	SCENARIO(wait_skip, "... without the self-scan"),
	WAKES(wake_free, "a free wakes the scan"),
	WAKES(wake_set, "another protection in the slot does"),
	WAKES(wake_cleared, "... after a clear, too"),
	WAKES(full_wake_set, "... without membarrier"),
	WAKES(wake_no_thread, "... without a thread"),
	SCENARIO(hot, "a slot is set for ever"),
	SCENARIO(hot_clears, "... and cleared"),
	SCENARIO(hot_chain, "... two slots by turns"),
	SCENARIO(hot_full, "... without membarrier"),
	SCENARIO(hot_skip, "... without the self-scan"),
	SCENARIO(hot_no_thread, "... without a thread"),
	{ .name = NULL },
};
