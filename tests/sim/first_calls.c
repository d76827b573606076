/* SPDX-License-Identifier: MIT */
/* first_calls.c - scenario: the first call initialises the library, whichever call it is.
 *
 * On a real machine a constructor initialises it, and only another object's constructor can run before.  Here there is no constructor.
 * In the child of a fork without handlers, too, the first call has to reinitialise the library, whichever call it is.
 */
#include "rcu_world.h"

#include <quiesce/detail/qsbr.h>
#include <quiesce/detail/urcu_words.h>
#include <quiesce/hazptr.h>
#include <quiesce/hazptr_cohort.h>
#include <quiesce/hazptr_retire.h>
#include <quiesce/percpu_ref.h>
#include <quiesce/percpu_rwsem.h>
#include <quiesce/shazptr.h>
#include <quiesce/srcu.h>

static struct rcu_head head;
static struct hazptr_head hazptr;
static struct hazptr_context context;
static struct hazptr_cohort cohort = HAZPTR_COHORT_INIT;
static struct percpu_ref ref;
static struct quiesce_urcu_domain urcu;
DEFINE_STATIC_SRCU(domain);
DEFINE_STATIC_SRCU(inherited);
DEFINE_STATIC_PERCPU_RWSEM(rwsem);
static DEFINE_RCU_SYNC(rss);

static void nothing(struct rcu_head *unused) { (void)unused; }
static void nothing_of_hazptr(struct hazptr_head *unused) { (void)unused; }
static void nothing_of_ref(struct percpu_ref *unused) { (void)unused; }

static void section(void)
{
	rcu_read_lock();
	rcu_read_unlock();
}

static void polls(void)
{
	struct rcu_gp_seq seq = start_poll_synchronize_rcu();

	while (!poll_state_synchronize_rcu(seq))
		platform_yield();
}

static void gets_state(void) { (void)get_state_synchronize_rcu(); }
static void calls(void) { call_rcu(&head, nothing); }
static void qsbr_registers(void) { sim_assert(quiesce_qsbr_register(QUIESCE_LAYOUT) == 0); quiesce_qsbr_unregister(); }
static void qsbr_polls(void) { (void)quiesce_qsbr_start_poll(); }
static void urcu_adds(void) { (void)quiesce_urcu_domain_add(&urcu); }
static void claims(void) { shazptr_clear(shazptr_acquire(&head)); }
static void claims_detached(void) { shazptr_clear(shazptr_acquire_detached(&head)); }
static void waits_for_object(void) { synchronize_shazptr(&head); }
static void takes_slot(void) { hazptr_free(NULL, hazptr_alloc(NULL)); }
static void takes_detached_slot(void) { hazptr_free(NULL, hazptr_alloc_detached()); }
static void takes_slots(void) { hazptr_free_array(NULL, hazptr_alloc_array(NULL, 2), 2); }
static void takes_context(void) { sim_assert(init_hazptr_context(&context) == 0); }
static void retires(void) { call_hazptr(&hazptr, nothing_of_hazptr); }
static void retires_here(void) { call_hazptr_inline(&hazptr, nothing_of_hazptr); }
static void retires_to_cohort(void) { call_hazptr_cohort(&cohort, &hazptr, nothing_of_hazptr); }
static void waits_for_cohort(void) { synchronize_hazptr_cohort(&cohort); }
static void tries_barrier(void) { (void)hazptr_try_barrier(); }
static void chooses_own_batch(void) { sim_assert(quiesce_set_thread_hazptr_batch(100, 200) == 0); }
static void enters_domain(void) { srcu_read_unlock(&domain, srcu_read_lock(&domain)); }
static void waits_for_domain(void) { synchronize_srcu(&domain); }
static void calls_in_domain(void) { call_srcu(&domain, &head, nothing); }
static void waits_for_calls_in_domain(void) { srcu_barrier(&domain); }
static void gets_state_of_domain(void) { (void)get_state_synchronize_srcu(&domain); }
static void enters_sync(void) { rcu_sync_enter(&rss); }
static void reads(void) { percpu_down_read(&rwsem); percpu_up_read(&rwsem); }
static void tries_to_read(void) { sim_assert(percpu_down_read_trylock(&rwsem)); percpu_up_read(&rwsem); }
static void writes(void) { percpu_down_write(&rwsem); percpu_up_write(&rwsem); }
static void makes_ref(void) { sim_assert(percpu_ref_init(&ref, nothing_of_ref, 0) == 0); }
static void sets_fence(void) { (void)quiesce_set_fence(QUIESCE_FENCE_FULL); }
static void asks_fence(void) { (void)quiesce_fence(); }
static void asks_slots(void) { (void)quiesce_slots(); }
static void sets_yield(void) { quiesce_set_yield(1); }
static void sets_skip(void) { quiesce_set_skip_self_scan(1); }
static void sets_ceiling(void) { quiesce_set_garbage_ceiling(1 << 20); }
static void sets_throttle(void) { quiesce_set_throttle(1); }
static void sets_timeout(void) { quiesce_set_stall_timeout(1000000000); }
static void sets_warning(void) { quiesce_set_garbage_warning(1 << 20); }
static void sets_thread(void) { (void)quiesce_set_thread_attr(QUIESCE_THREAD_WORKER, NULL); }
static void shuts_down(void) { sim_assert(quiesce_shutdown(0) == 0); }

/* The debug build's lock accesses shared state beside srcu_read_lock(), which is a reader's call. */
static void enters_in_debug_build(void)
{
	int idx = quiesce__srcu_lock_debug(&inherited);

	sim_assert(platform_canary()->intact);
	quiesce__srcu_unlock_debug(&inherited, idx);
}

static void writes_many(void)
{
	struct percpu_rw_semaphore *sems[] = { &rwsem };

	percpu_down_write_many(sems, 1);
	percpu_up_write(&rwsem);
}

static void asks_stats(void)
{
	struct quiesce_stats stats;

	quiesce_get_stats(&stats, sizeof stats);
}

static void describes(void)
{
	char text[400];

	(void)quiesce_describe_settings(text, sizeof text);
}

/* Calls that access state of all threads: it is the parent's in a child, so these check for a fork first. */
static void (*const shared[])(void) = {
	enters_in_debug_build, synchronize_rcu, synchronize_rcu_expedited, polls, calls, quiesce_rcu_barrier, quiesce_rcu_throttle,
	qsbr_registers, quiesce_qsbr_synchronize, qsbr_polls, waits_for_object, takes_detached_slot, takes_context,
	retires, retires_here, retires_to_cohort, waits_for_cohort, quiesce_hazptr_barrier, tries_barrier,
	chooses_own_batch, enters_domain, waits_for_domain, calls_in_domain, waits_for_calls_in_domain,
	gets_state_of_domain, enters_sync, reads, tries_to_read, writes, writes_many, makes_ref, sets_thread,
	shuts_down, asks_stats,
};

/* Calls of readers, and settings, need no such check. */
static void (*const others[])(void) = {
	section, gets_state, urcu_adds, claims, claims_detached, takes_slot, takes_slots, sets_fence, asks_fence,
	asks_slots, sets_yield, sets_skip, sets_ceiling, sets_throttle, sets_timeout, sets_warning, describes,
};

#define NR_SHARED (sizeof shared / sizeof shared[0])
#define NR_OTHERS (sizeof others / sizeof others[0])
static void one(void *unused)
{
	uint32_t which = sim_random(NR_SHARED + NR_OTHERS);

	(void)unused;
	sim_assert(!*quiesce__fork_canary);
	if (which < NR_SHARED)
		shared[which]();
	else
		others[which - NR_SHARED]();
	if (!*quiesce__fork_canary)
		sim_fail("after call %u the library is not initialised", which);
}

/* Make one call in the child of a fork without handlers. */
static void one_in_child(void *unused)
{
	uint32_t which = sim_random(NR_SHARED);

	(void)unused;
	calls();
	section();
	srcu_read_unlock(&inherited, srcu_read_lock(&inherited));
	sim_fork();
	shared[which]();
	if (quiesce__fork_generation != 1)
		sim_fail("after call %u the parent is not forgotten", which);
}

static void setup_first_in_child(void)
{
	sim_spawn(one_in_child, NULL, "first");
}

static void setup_first(void)
{
	sim_spawn(one, NULL, "first");
}

const struct sim_scenario first_call_scenarios[] = {
	{ .name = "first_call", .what = "whichever call comes first, it initialises the library", .setup = setup_first },
	{ .name = "first_call_in_child", .what = "whichever call comes first in a child forgets the parent",
	  .setup = setup_first_in_child },
	{ .name = NULL },
};
