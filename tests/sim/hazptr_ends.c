/* SPDX-License-Identifier: MIT */
/* hazptr_ends.c - scenarios: cohorts and quiesce_shutdown(). */
#include "hazptr_world.h"

static uint32_t holding;

static void long_holder(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);
	uint32_t never = 0;

	(void)unused;
	world_protect(slot, 0);
	world_set(&holding, 1);
	platform_futex_wait(&never, 0, 6000000);
	hazptr_free(NULL, slot);
}

/* ---- cohorts ---- */

static struct hazptr_cohort cohort;
static uint32_t nr_in_cohort;

static void retire_with(int index, void (*callback)(struct hazptr_head *head))
{
	struct item *old = world_replace(index);

	world_nr_retired++;
	world_last_words(old);
	call_hazptr_cohort(&cohort, &old->head, callback);
}

static void retire_into(int index)
{
	retire_with(index, world_free_head);
}

static void cohort_updater(void *index)
{
	for (int i = 0; i < 3; i++)
		retire_into((intptr_t)index);
	quiesce_fetch_add(RU3, &nr_in_cohort, 1u);
}

static void cohort_waiter(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &nr_in_cohort) < 2)
		platform_yield();
	synchronize_hazptr_cohort(&cohort);
	sim_assert(world_nr_freed == 6);
}

static void setup_cohort(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(cohort_updater, (void *)0, "updater");
	sim_spawn(cohort_updater, (void *)0, "updater");
	sim_spawn(cohort_waiter, NULL, "waiter");
}

static void setup_cohort_held(void)
{
	setup_cohort();
	sim_spawn(long_holder, NULL, "holder");
}

/* A callback retires another object, in the thread that runs it. */
static void retires_one_more(struct hazptr_head *head)
{
	world_free_head(head);
	retire_into(1);
}

static void chain_updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++)
		retire_with(0, retires_one_more);
	retire_into(0);
	quiesce_fetch_add(RU3, &nr_in_cohort, 1u);
}

static void chain_waiter(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &nr_in_cohort) < 2)
		platform_yield();
	synchronize_hazptr_cohort(&cohort);
	sim_assert(world_nr_freed == 10);
}

static void setup_cohort_chain(void)
{
	world_begin();
	world_readers(1);
	spawn_each(2, chain_updater, "updater");
	sim_spawn(chain_waiter, NULL, "waiter");
}

/* Objects with a cohort as a member: a callback waits for it.  A child of that cohort retires one more into the outer one. */
static void child_retires_outside(struct hazptr_head *head)
{
	world_free_head(head);
	retire_into(1);
}

static void destroys_a_member(struct hazptr_head *head)
{
	struct hazptr_cohort inner = HAZPTR_COHORT_INIT;
	struct item *child = world_replace(1);

	world_nr_retired++;
	world_last_words(child);
	call_hazptr_cohort(&inner, &child->head, child_retires_outside);
	synchronize_hazptr_cohort(&inner);
	world_free_head(head);
}

static void member_updater(void *unused)
{
	(void)unused;
	retire_with(0, destroys_a_member);
	retire_into(0);
	quiesce_fetch_add(RU3, &nr_in_cohort, 1u);
}

static void member_waiter(void *unused)
{
	(void)unused;
	while (quiesce_load_acquire(RU3, &nr_in_cohort) < 2)
		platform_yield();
	synchronize_hazptr_cohort(&cohort);
	sim_assert(world_nr_freed == 8);
}

static void setup_cohort_member(void)
{
	world_begin();
	world_readers(1);
	spawn_each(2, member_updater, "updater");
	sim_spawn(member_waiter, NULL, "waiter");
}

/* One thread waits, beside others that retire until its wait has ended, or for long. */
static uint32_t cohort_done, nr_mine;

static void free_mine(struct hazptr_head *head)
{
	world_free_head(head);
	nr_mine++;
}

static void waits_for_its_own(void *unused)
{
	(void)unused;
	for (uint32_t i = 1; i <= 2; i++) {
		retire_with(0, free_mine);
		synchronize_hazptr_cohort(&cohort);
		sim_assert(nr_mine == i);
	}
	if (nr_in_cohort < 2)
		sim_saw();
	quiesce_store_relaxed(&cohort_done, 1);
}

static void goes_on_retiring(void *index)
{
	for (int i = 0; i < 12 && !quiesce_load_relaxed(&cohort_done); i++)
		retire_into((intptr_t)index);
	nr_in_cohort++;
	synchronize_hazptr_cohort(&cohort);
}

static void setup_cohort_beside(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(waits_for_its_own, NULL, "waiter");
	sim_spawn(goes_on_retiring, (void *)1, "updater");
	sim_spawn(goes_on_retiring, (void *)2, "updater");
}

/* One thread waits for an object that another is just reclaiming, protected or not. */
static void retires_two(void *unused)
{
	(void)unused;
	retire_with(0, free_mine);
	world_set(&nr_in_cohort, 1);
	retire_into(1);
}

static void waits_for_the_first(void *unused)
{
	(void)unused;
	world_await(&nr_in_cohort, 1);
	synchronize_hazptr_cohort(&cohort);
	sim_assert(nr_mine == 1);
	if (world_nr_retired < 2 || world_nr_freed < 2)
		sim_saw();
}

static void last_of_cohort(void *unused)
{
	(void)unused;
	retires_two(NULL);
	synchronize_hazptr_cohort(&cohort);
}

static void setup_cohort_inside(void)
{
	world_begin();
	world_readers(driver_readers);
	sim_spawn(last_of_cohort, NULL, "updater");
	sim_spawn(waits_for_the_first, NULL, "waiter");
}

/* A wait for a cohort ends although a later caller is still inside a callback of an object that was retired later. */
static uint32_t retired_first, inside_later, wait_over;

static void holds_until_inside(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	world_protect(slot, 0);
	world_set(&holding, 1);
	world_await(&inside_later, 1);
	hazptr_free(NULL, slot);
}

static void waits_for_what_was_first(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	retire_into(0);
	world_set(&retired_first, 1);
	synchronize_hazptr_cohort(&cohort);
	world_set(&wait_over, 1);
}

static void outlasts_the_wait(struct hazptr_head *head)
{
	world_set(&inside_later, 1);
	world_await(&wait_over, 1);
	world_free_head(head);
}

static void retires_later(void *unused)
{
	(void)unused;
	world_await(&retired_first, 1);
	while (quiesce_load_relaxed(&cohort.list)) /* until the wait has taken the list */
		platform_yield();
	retire_with(1, outlasts_the_wait);
}

static void setup_cohort_later(void)
{
	sim_assert(quiesce_set_hazptr_batch(2, 2) == 0);
	world_begin();
	sim_spawn(holds_until_inside, NULL, "holder");
	sim_spawn(waits_for_what_was_first, NULL, "waiter");
	sim_spawn(retires_later, NULL, "updater");
}

/* Threads retire into the cohort and outside of it while others wait for the cohort. */
static void cohort_busy(void *unused)
{
	(void)unused;
	retire_into(0);
	world_update(0);
	retire_into(0);
	synchronize_hazptr_cohort(&cohort);
	retire_into(0);
	synchronize_hazptr_cohort(&cohort);
}

static void setup_cohorts(void)
{
	world_begin();
	world_readers(driver_readers);
	spawn_each(2, cohort_busy, "updater");
}

/* ---- the end ---- */

static int nr_rcu, nr_rcu_done;

static void rcu_callback(struct rcu_head *head)
{
	struct item *item = (struct item *)((char *)head - offsetof(struct item, rcu));

	nr_rcu_done++;
	world_retire(item, world_free_head);
}

static void shutter(void *index)
{
	world_update((intptr_t)index);
	nr_rcu++;
	call_rcu(&world_replace((intptr_t)index)->rcu, rcu_callback);
	world_update((intptr_t)index);
	sim_assert(quiesce_shutdown(0) == 0);
	world_update((intptr_t)index);
}

static void finish_shutdown(void)
{
	sim_assert(nr_rcu == nr_rcu_done);
	world_finish();
}

static void setup_shutdown(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(shutter, (void *)0, "shutter");
	sim_spawn(world_updater, (void *)1, "updater");
}

static void setup_shutdown_two(void)
{
	world_begin();
	sim_spawn(shutter, (void *)0, "shutter");
	sim_spawn(shutter, (void *)1, "shutter");
	world_readers(1);
}

/* When the shutdown has returned all objects retired before are reclaimed, and those that their callbacks retired. */
static void retire_next(struct hazptr_head *head)
{
	world_free_head(head);
	if (world_nr_retired < 9)
		world_retire(world_new(NULL), retire_next);
}

static void sees_the_end(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), retire_next);
	world_stay(30);
	sim_assert(quiesce_shutdown(0) == 0);
	if (world_nr_freed != 9)
		sim_fail("quiesce_shutdown() returned with %d of 9 objects reclaimed", world_nr_freed);
}

static void setup_shutdown_chain(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(sees_the_end, NULL, "shutter");
}

/* The shutdown gives up while objects are protected, and these are reclaimed later. */
static void impatient(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	world_update(0);
	world_update(1);
	if (quiesce_shutdown(3000000))
		sim_saw();
	world_update(1);
}

static void setup_shutdown_late(void)
{
	world_begin();
	sim_spawn(long_holder, NULL, "holder");
	sim_spawn(impatient, NULL, "shutter");
	sim_spawn(world_updater, (void *)1, "updater");
}
#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }

const struct sim_scenario hazptr_end_scenarios[] = {
	SCENARIO(cohort, "two retire into a cohort, one waits for it"),
	VARIANT(full_cohort, cohort, without_membarrier, "... without membarrier"),
	SCENARIO(cohort_held, "... and a slot is in the way"),
	SCENARIO(cohorts, "two retire into it and wait"),
	SCENARIO(cohort_chain, "what callbacks retire into it is waited for"),
	SCENARIO(cohort_member, "callbacks wait for the cohort of what they destroy"),
	VARIANT(full_cohort_member, cohort_member, without_membarrier, "... without membarrier"),
	{ .name = "cohort_inside", .what = "... and what another one reclaims", .setup = setup_cohort_inside, .finish = world_finish,
	  .must_see = "a wait that is over before others are" },
	{ .name = "cohort_later", .what = "later callers run callbacks meanwhile", .setup = setup_cohort_later,
	  .finish = world_finish },
	{ .name = "cohort_beside", .what = "one waits, others go on retiring", .setup = setup_cohort_beside, .finish = world_finish,
	  .must_see = "a wait that is over while others retire" },
	{ .name = "shutdown", .what = "quiesce_shutdown() with both kinds", .setup = setup_shutdown, .finish = finish_shutdown },
	{ .name = "shutdown_two", .what = "... by two threads", .setup = setup_shutdown_two, .finish = finish_shutdown },
	SCENARIO(shutdown_chain, "... and nothing is left when it returns"),
	{ .name = "shutdown_late", .what = "... that gives up", .setup = setup_shutdown_late, .finish = world_finish,
	  .must_see = "one that gave up" },
	{ .name = NULL },
};
