/* SPDX-License-Identifier: MIT */
/* hazptr_retired.c - scenarios: queues of retired objects, callbacks that retire, and objects that ended threads leave. */
#include "hazptr_world.h"

#include "hazptr/hazptr_retired.h"
#include "runtime/helper.h"

static void two_updates(void *index)
{
	world_update((intptr_t)index);
	world_update((intptr_t)index);
}

static void one_update(void *index)
{
	world_update((intptr_t)index);
}

/* Retire with pauses, so that the worker goes to sleep in between. */
static void slow_updater(void *index)
{
	for (int i = 0; i < 3; i++) {
		world_update((intptr_t)index);
		world_stay(60);
	}
}

/* ---- the worker reclaims objects that ended threads leave behind ---- */

static void setup_left(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(one_update, (void *)0, "updater");
	sim_spawn(two_updates, (void *)1, "updater");
	sim_spawn(slow_updater, (void *)2, "updater");
}

/* The queue of a thread that has ended is adopted, or swept, or both at once. */
static void generation(void *left)
{
	world_update((intptr_t)left % NR_POINTERS);
	if (left)
		sim_spawn(generation, (void *)((intptr_t)left - 1), "updater");
	world_update((intptr_t)left % NR_POINTERS);
	world_update((intptr_t)left % NR_POINTERS);
}

static void setup_generations(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(generation, (void *)3, "updater");
	sim_spawn(generation, (void *)3, "updater");
}

/* ---- the worker sweeps while others retire: they alternate, woken by callbacks ---- */

static uint32_t turn;

static void next_turn(struct hazptr_head *head)
{
	world_free_head(head);
	quiesce_fetch_add(RU3, &turn, 1u);
	platform_futex_wake(&turn, INT32_MAX);
}

/* Sleep, so that time passes and the worker sweeps. */
static void await_turn(uint32_t least)
{
	uint32_t found;

	while ((found = quiesce_load_acquire(RU3, &turn)) < least)
		platform_futex_wait(&turn, found, PLATFORM_FOREVER);
}

static void turn_taker(void *index)
{
	for (uint32_t i = 0; i < 3; i++) {
		world_retire(world_replace((intptr_t)index), next_turn);
		await_turn(i + 1);
	}
	world_update((intptr_t)index);
}

static void setup_turns(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(turn_taker, (void *)0, "updater");
	sim_spawn(turn_taker, (void *)1, "updater");
}

/* ---- long protections: objects that are kept raise the limit, so an owner does not scan for every object ---- */

static uint32_t holding, release;

static void holder(void *unused)
{
	hazptr_t *slot[2] = { hazptr_alloc(NULL), hazptr_alloc(NULL) };
	struct item *item[2];

	(void)unused;
	item[0] = world_protect(slot[0], 0);
	item[1] = world_protect(slot[1], 1);
	world_set(&holding, 1);
	world_await(&release, 1);
	world_stay(80);
	world_check(item[0]);
	world_check(item[1]);
	hazptr_free(NULL, slot[0]);
	hazptr_clear(slot[1]);
	hazptr_free(NULL, slot[1]);
}

/* ---- an object is retired while its queue is drained, and its owner does not scan: callbacks raise the limit too ---- */

static struct hazptr_cohort cohort;

static void retires(struct hazptr_head *head)
{
	world_free_head(head);
	world_update(3);
}

static void retire_into_cohort(void (*callback)(struct hazptr_head *head))
{
	struct item *old = world_replace(2);

	world_last_words(old);
	world_nr_retired++;
	call_hazptr_cohort(&cohort, &old->head, callback);
}

/* Sleep until about the time of a sweep; then watch for it by accesses that order nothing. */
static void await_sweep(void)
{
	uint32_t never = 0;

	platform_futex_wait(&never, 0, 99900000);
	for (int k = 0; k < 1500 && !quiesce__sweep.sweeper; k++)
		platform_yield();
	for (uint32_t k = sim_random(40); k; k--)
		sim_point("before the next object");
}

/* Wait for the helper, because without one an owner sweeps sooner. */
static void await_helper(void)
{
	quiesce__helper_ensure();
	while (!quiesce__helper_running())
		platform_yield();
}

static void retires_while_swept(void *unused)
{
	(void)unused;
	await_helper();
	retire_into_cohort(world_free_head);
	retire_into_cohort(retires); /* one object is queued now, and the queue has room */
	await_sweep();
	world_retire(world_replace(3), next_turn);
	if (quiesce__sweep.sweeper)
		sim_saw();
	await_turn(1); /* the wait is here, because the exit of this thread would wake the worker */
}

static void setup_drained(void)
{
	world_begin();
	sim_spawn(retires_while_swept, NULL, "updater");
}

/* The worker finds objects that were protected until long after its last sweep. */
static void retires_protected(void *unused)
{
	(void)unused;
	world_await(&holding, 1);
	world_update(0);
	world_update(1);
	world_update(2);
	world_set(&release, 1);
}

static void setup_held(void)
{
	world_begin();
	sim_spawn(holder, NULL, "holder");
	sim_spawn(retires_protected, NULL, "updater");
}

/* ---- callbacks that retire ---- */

static void retire_more(struct hazptr_head *head)
{
	struct item *item = (struct item *)head;

	world_free(item);
	if (world_nr_retired < 24)
		world_retire(world_new(NULL), world_free_head);
	if (world_nr_retired < 24)
		world_retire(world_new(NULL), retire_more);
	if (world_nr_retired < 24 && sim_random(2))
		world_retire(world_new(NULL), world_free_head);
}

static void nester(void *index)
{
	for (int i = 0; i < 2; i++)
		world_retire(world_replace((intptr_t)index), retire_more);
}

static void setup_nested(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(nester, (void *)0, "updater");
}

static void setup_nested_two(void)
{
	world_begin();
	sim_spawn(nester, (void *)0, "updater");
	sim_spawn(nester, (void *)1, "updater");
}

/* Only the worker runs callbacks: one object for each owner. */
static void nests_later(void *index)
{
	world_retire(world_replace((intptr_t)index), retire_more);
}

static void setup_nested_swept(void)
{
	world_begin();
	sim_spawn(nests_later, (void *)0, "updater");
	sim_spawn(nests_later, (void *)1, "updater");
	world_readers(1);
}

/* Each object of a chain retires the next. */
static void retire_next(struct hazptr_head *head)
{
	world_free_head(head);
	if (world_nr_retired < 12)
		world_retire(world_new(NULL), retire_next);
}

static void chain(void *index)
{
	world_retire(world_replace((intptr_t)index), retire_next);
	world_retire(world_replace((intptr_t)index), retire_next);
}

static void setup_chain(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(chain, (void *)0, "updater");
	sim_spawn(chain, (void *)0, "updater");
}

/* ---- callbacks of one kind queue the other ---- */

static void rcu_to_hazptr(struct rcu_head *head)
{
	struct item *item = (struct item *)((char *)head - offsetof(struct item, rcu));

	world_nr_retired--; /* the item has been counted */
	world_retire(item, world_free_head);
}

static void hazptr_to_rcu(struct hazptr_head *head)
{
	struct item *item = (struct item *)head;

	world_nr_freed++; /* the item has run as a hazptr object, and its next retirement counts again */
	world_nr_retired++;
	call_rcu(&item->rcu, rcu_to_hazptr);
}

static void mixed_updater(void *index)
{
	for (int i = 0; i < 2; i++)
		world_retire(world_replace((intptr_t)index), hazptr_to_rcu);
}

static void section_reader(void *unused)
{
	(void)unused;
	rcu_read_lock();
	world_check(rcu_dereference(world_pointer[0]));
	rcu_read_unlock();
}

static void setup_mixed(void)
{
	world_begin();
	world_readers(1);
	sim_spawn(section_reader, NULL, "section");
	sim_spawn(mixed_updater, (void *)0, "updater");
	sim_spawn(mixed_updater, (void *)1, "updater");
}

static void finish_mixed_no_worker(void)
{
	sim_assert(world_nr_freed <= world_nr_retired);
}

/* Objects are retired inside a section of RCU, and inside a callback of RCU. */
static void retires_in_section(void *unused)
{
	(void)unused;
	rcu_read_lock();
	world_update(0);
	world_update(0);
	world_update(0);
	rcu_read_unlock();
}

static void setup_section(void)
{
	world_begin();
	world_readers(1);
	spawn_each(2, retires_in_section, "updater");
}

/* ---- no memory for a queue, or no promise of an exit hook ---- */

static void setup_no_queue(void)
{
	world_begin();
	sim_config()->arm_exit_failures = -1;
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(slow_updater, (void *)1, "updater");
}

static void setup_queue_later(void)
{
	setup_no_queue();
	sim_config()->arm_exit_failures = 2;
}

/* ---- kfree_hazptr() ---- */

static void freed(void *object)
{
	world_free(object);
}

static void kfree_updater(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		struct item *old = world_replace(0);

		world_nr_retired++;
		world_last_words(old);
		kfree_hazptr(old, field);
	}
}

static void field_reader(void *unused)
{
	hazptr_t *slot = hazptr_alloc(NULL);

	(void)unused;
	for (int i = 0; i < 2; i++)
		world_check(hazptr_protect(slot, &world_pointer[0], field));
	hazptr_free(NULL, slot);
}

static void setup_kfree(void)
{
	world_begin();
	sim_config()->free_hook = freed;
	spawn_each(driver_readers, field_reader, "reader");
	sim_spawn(kfree_updater, NULL, "updater");
}

/* ---- the first start of the worker fails ---- */

static void setup_late_worker(void)
{
	world_begin();
	sim_config()->thread_start_failures = 1;
	world_readers(1);
	sim_spawn(world_updater, (void *)0, "updater");
	sim_spawn(world_updater, (void *)1, "updater");
}

/* The next caller retries only after a while, so objects may stay until then, or until a barrier. */
static void finish_late_worker(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
	sim_assert(stats.hazptr_retired - stats.hazptr_reclaimed == (uint64_t)(world_nr_retired - world_nr_freed));
}

/* The owner tries again before it has a batch. */
static void retires_now_and_then(void *unused)
{
	uint32_t never = 0;

	(void)unused;
	world_update(0);
	platform_futex_wait(&never, 0, 1000000);
	world_update(0);
}

static void setup_late_worker_few(void)
{
	world_begin();
	world_hands_over = true;
	quiesce_set_hazptr_batch(3, 3);
	sim_config()->spurious_wakeups = false; /* a sleep that ends early would make the retry come too early */
	sim_config()->thread_start_failures = 1;
	sim_spawn(retires_now_and_then, NULL, "updater");
}

/* The bound: a batch for each retirer, and the protected objects, may wait. */
static void setup_bound(void)
{
	world_begin();
	world_inline = true;
	sim_config()->thread_start_failures = -1;
	sim_spawn(holder, NULL, "holder");
	sim_spawn(retires_protected, NULL, "updater");
	sim_spawn(world_updater, (void *)2, "updater");
	sim_spawn(world_updater, (void *)3, "updater");
}

static void finish_bound(void)
{
	sim_assert(world_nr_retired - world_nr_freed <= (int)(3 * QUIESCE_HAZPTR_BATCH + 2));
}

/* ---- what callbacks retire ---- */

/* A chain is followed to its end at once, without a pause. */
static uint64_t chain_begun, chain_took;

static void retire_next_at_once(struct hazptr_head *head)
{
	world_free_head(head);
	if (world_nr_retired == 1)
		chain_begun = platform_now_ns();
	if (world_nr_retired < 40)
		world_retire(world_new(NULL), retire_next_at_once);
	else
		chain_took = platform_now_ns() - chain_begun;
}

static void begins_chain(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), retire_next_at_once);
}

static void setup_chain_at_once(void)
{
	world_begin();
	sim_spawn(begins_chain, NULL, "updater");
}

static void finish_chain_at_once(void)
{
	if (chain_took > 3000000)
		sim_fail("a chain took %llu ns", (unsigned long long)chain_took);
	world_finish();
}

/* The callback of an object that retires itself again runs once in a while. */
#define AGAIN 10
static uint64_t again_begun, again_took;

static void retire_self(struct hazptr_head *head)
{
	struct item *item = (struct item *)head;

	world_free(item);
	if (world_nr_retired == 1)
		again_begun = platform_now_ns();
	if (world_nr_retired < AGAIN)
		world_retire(world_new(item), retire_self);
	else
		again_took = platform_now_ns() - again_begun;
}

static void begins_again(void *unused)
{
	(void)unused;
	world_retire(world_replace(0), retire_self);
}

static void setup_again(void)
{
	world_begin();
	sim_spawn(begins_again, NULL, "updater");
}

static void finish_again(void)
{
	if (again_took < (AGAIN / 2 - 1) * 1000000ull)
		sim_fail("%d times in %llu ns", AGAIN, (unsigned long long)again_took);
	world_finish();
}

#define SCENARIO(label, text) { .name = #label, .what = text, .setup = setup_##label, .finish = world_finish }
#define VARIANT(label, other, change, text) \
	{ .name = #label, .what = text, .setup = setup_##other, .but = change, .finish = world_finish }

const struct sim_scenario hazptr_retire_scenarios[] = {
	SCENARIO(left, "the worker reclaims what is left behind"),
	VARIANT(full_left, left, without_membarrier, "... without membarrier"),
	{ .name = "queues", .what = "queues of threads that have gone", .setup = setup_generations, .finish = world_finish },
	{ .name = "full_queues", .what = "... without membarrier", .setup = setup_generations, .but = without_membarrier,
	  .finish = world_finish },
	SCENARIO(turns, "the worker's callbacks wake the retirer"),
	VARIANT(full_turns, turns, without_membarrier, "... without membarrier"),
	{ .name = "drained", .what = "an object comes while its queue is drained", .setup = setup_drained, .finish = world_finish,
	  .must_see = "one that came during a sweep" },
	{ .name = "drained_cpu_each", .what = "... a CPU for every thread", .setup = setup_drained, .but = with_many_cpus,
	  .finish = world_finish, .must_see = "one that came during a sweep" },
	{ .name = "full_drained", .what = "... without membarrier", .setup = setup_drained, .but = without_membarrier,
	  .finish = world_finish, .must_see = "one that came during a sweep" },
	SCENARIO(held, "protected for long, then not"),
	VARIANT(full_held, held, without_membarrier, "... without membarrier"),
	SCENARIO(nested, "callbacks retire more than there is room for"),
	SCENARIO(nested_two, "... two retirers"),
	SCENARIO(nested_swept, "... run by the worker"),
	SCENARIO(chain, "each callback retires the next object"),
	SCENARIO(mixed, "callbacks of one kind queue the other"),
	{ .name = "mixed_no_worker", .what = "... without a worker", .setup = setup_mixed, .but = without_threads,
	  .finish = finish_mixed_no_worker },
	SCENARIO(section, "retired inside a section of RCU"),
	SCENARIO(no_queue, "no queues can be had"),
	VARIANT(full_no_queue, no_queue, without_membarrier, "... without membarrier"),
	SCENARIO(queue_later, "... at first"),
	SCENARIO(kfree, "kfree_hazptr()"),
	{ .name = "late_worker", .what = "the first start of a thread fails", .setup = setup_late_worker,
	  .finish = finish_late_worker },
	SCENARIO(late_worker_few, "... and its owner retires few"),
	{ .name = "bound", .what = "without a worker: how much waits", .setup = setup_bound, .finish = finish_bound },
	{ .name = "chain_at_once", .what = "a chain takes no pauses", .setup = setup_chain_at_once, .finish = finish_chain_at_once },
	{ .name = "again", .what = "an object that retires itself again", .setup = setup_again, .finish = finish_again },
	{ .name = NULL },
};
