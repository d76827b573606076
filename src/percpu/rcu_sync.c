/* SPDX-License-Identifier: MIT */
/* rcu_sync.c - the state machine; the table of its states is in the public header.
 *
 * I1. The state changes under the lock.
 * I2. From ENTER to PASSED, and from EXIT on, exactly one callback is pending: the enter calls it itself, or it is
 *     queued.  If the program's wait function ends its thread, the state is IDLE again, and one of the updaters that
 *     wait for that enter takes its place.
 * I3. An updater that is counted and past ENTER keeps the state from IDLE, because the callback checks the count.
 *
 * RS1  what updaters did, then idle   | idle seen, then the fast path
 *      grace period over, then PASSED | PASSED seen by another enter
 * PW1  see percpu_rwsem.c
 */
#include <quiesce/rcu_sync.h>

#include "runtime/core.h"
#include "runtime/delayed_call.h"
#include "runtime/run.h"
#include "percpu.h"
#include "rcu_sync.h"

/* ---- kinds ---- */

static void rcu_wait(void *domain)
{
	(void)domain;
	quiesce_synchronize_rcu();
}

static void rcu_wait_expedited(void *domain)
{
	(void)domain;
	quiesce_synchronize_rcu_expedited();
}

static void rcu_call(void *domain, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	(void)domain;
	call_rcu(head, func);
}

static void rcu_wait_for_calls(void *domain, struct rcu_head *head)
{
	(void)domain, (void)head;
	quiesce_rcu_barrier();
}

static void fence_wait(void *domain)
{
	(void)domain;
	/* Readers of a percpu_rwsem check in a sequence whether the lock is open, and count in the same sequence. */
	if (quiesce__percpu_uses_sequences() && !QUIESCE_MUTANT(rwsem_plain_fence))
		/* A sequence that missed the closed word has counted before the writer sums; one that has not
		 * counted restarts, and finds it closed. */
		/* PW1: pairs with PW1 in quiesce__percpu_down_read_until() */
		quiesce_fence_restart(PW1);
	else
		/* If a reader missed the closed word, the writer's sum includes its count; if the sum misses the
		 * count, the reader sees the lock closed. */
		/* PW1: pairs with PW1 in quiesce__percpu_down_read_until() */
		quiesce_fence_heavy_shared(PW1);
}

/* Readers load "idle" with acquire, so no grace period is needed: the delay only lets a burst of writes end. */
static void fence_call(void *domain, struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	(void)domain;
	quiesce__delayed_call(head, func);
}

static void fence_barrier(void *domain, struct rcu_head *head)
{
	(void)domain;
	quiesce__delayed_call_now(head);
}

const struct rcu_sync_ops quiesce_rcu_sync_rcu = { rcu_wait, rcu_call, rcu_wait_for_calls, NULL };
const struct rcu_sync_ops quiesce_rcu_sync_rcu_expedited = { rcu_wait_expedited, rcu_call, rcu_wait_for_calls, NULL };
const struct rcu_sync_ops quiesce_rcu_sync_fence = { fence_wait, fence_call, fence_barrier, NULL };
/* Readers of a percpu_rwsem check another word, in a sequence; the idle function updates it. */
const struct rcu_sync_ops quiesce_rwsem_sync = { fence_wait, fence_call, fence_barrier, quiesce__rwsem_set_idle };

static const struct rcu_sync_ops *ops_of(const struct rcu_sync *rss)
{
	const struct rcu_sync_ops *ops = quiesce_load_relaxed(&rss->ops); /* Relaxed: chosen before the first enter. */

	return ops ? ops : &quiesce_rcu_sync_rcu;
}

/* ---- the machine ---- */

static void set_state(struct rcu_sync *rss, uint64_t state)
{
	bool was_idle = rss->gp_state == RCU_SYNC_IDLE, idle = state == RCU_SYNC_IDLE;
	const struct rcu_sync_ops *ops = ops_of(rss);

	/* RS1: release, pairs with RS1 in rcu_sync_is_idle() and wait_until_passed() */
	quiesce_store_release(RS1, &rss->gp_state, state);
	if (ops->idle && idle != was_idle)
		ops->idle(rss, idle);
}

static void queue_callback(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain);

/* This is the callback after a grace period. */
static void quiesce__rcu_sync_func(struct rcu_head *head)
{
	struct rcu_sync *rss = (struct rcu_sync *)(void *)((char *)head - offsetof(struct rcu_sync, head));
	const struct rcu_sync_ops *ops = ops_of(rss);
	void *domain = rss->domain;
	uint64_t state;

	quiesce__lock(&rss->lock);
	if (rss->gp_count && !QUIESCE_MUTANT(sync_count_ignored))
		state = RCU_SYNC_PASSED;
	else if (rss->gp_state == RCU_SYNC_REPLAY && !QUIESCE_MUTANT(sync_no_replay))
		state = RCU_SYNC_EXIT;
	else
		state = RCU_SYNC_IDLE;
	set_state(rss, state);
	if (state == RCU_SYNC_PASSED)
		/* RS1: release, pairs with RS1 in wait_until_passed() */
		quiesce_store_release(RS1, &rss->wake_seq, rss->wake_seq + 1);
	quiesce__unlock(&rss->lock);
	/* If the state is idle, the object may have been freed from here on. */
	if (state == RCU_SYNC_PASSED)
		platform_futex_wake(&rss->wake_seq, INT32_MAX);
	else if (state == RCU_SYNC_EXIT)
		queue_callback(rss, ops, domain);
}

/* The program's function is not cancelled: without the callback the state would never change. */
static void queue_callback(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain)
{
	bool cancelable = platform_set_cancelable(false);

	ops->call(domain, &rss->head, quiesce__rcu_sync_func);
	if (cancelable)
		platform_set_cancelable(true);
}

/* If the lock was held by a thread that the child does not have, the object is left alone: the child must
 * initialise it again. */
static void forget(struct rcu_head *head)
{
	struct rcu_sync *rss = (struct rcu_sync *)(void *)((char *)head - offsetof(struct rcu_sync, head));

	if (!quiesce_load_relaxed(&rss->lock.word)) /* Relaxed: the child has one thread. */
		set_state(rss, rss->gp_count ? RCU_SYNC_PASSED : RCU_SYNC_IDLE);
}

void quiesce__rcu_sync_fork_child(void)
{
	quiesce__delayed_calls_forget(forget);
}

void quiesce_rcu_sync_init(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain)
{
	*rss = (struct rcu_sync){ .ops = ops, .domain = domain };
}

/* Sleep until the first enter is over; in EXIT and REPLAY readers are on the slow path too, so these need no wait.
 * Returns false if that enter was abandoned, and its place is vacant. */
static bool wait_until_passed(struct rcu_sync *rss)
{
	for (;;) {
		/* RS1: acquire, pairs with RS1 in quiesce__rcu_sync_func() */
		uint32_t seq = quiesce_load_acquire(RS1, &rss->wake_seq);
		/* RS1: acquire, pairs with RS1 in set_state() */
		uint64_t state = quiesce_load_acquire(RS1, &rss->gp_state);

		if (state != RCU_SYNC_ENTER)
			return state != RCU_SYNC_IDLE || QUIESCE_MUTANT(sync_place_vacant);
		platform_futex_wait(&rss->wake_seq, seq, PLATFORM_FOREVER);
	}
}

bool quiesce__rcu_sync_enter_begin(struct rcu_sync *rss)
{
	uint64_t state;

	quiesce__lock(&rss->lock);
	state = rss->gp_state;
	if (state == RCU_SYNC_IDLE)
		set_state(rss, RCU_SYNC_ENTER);
	quiesce_store_relaxed(&rss->gp_count, rss->gp_count + 1); /* Relaxed: under the lock. */
	quiesce__unlock(&rss->lock);
	return state == RCU_SYNC_IDLE;
}

void quiesce__rcu_sync_enter_end(struct rcu_sync *rss, bool first)
{
	if (first)
		quiesce__rcu_sync_func(&rss->head);
	else if (!QUIESCE_MUTANT(sync_no_wait))
		wait_until_passed(rss);
}

/* The wait function may be the program's and may end its thread, so it is called by quiesce__run(). */
struct enter_run {
	struct quiesce__run run;
	struct rcu_sync *rss;
};

static void wait_in_run(struct quiesce__run *run)
{
	struct rcu_sync *rss = ((struct enter_run *)run)->rss;

	ops_of(rss)->wait(rss->domain);
}

static void wait_ended(struct quiesce__run *run)
{
	struct rcu_sync *rss = ((struct enter_run *)run)->rss;

	quiesce__lock(&rss->lock);
	quiesce_store_relaxed(&rss->gp_count, rss->gp_count - 1); /* Relaxed: under the lock. */
	set_state(rss, RCU_SYNC_IDLE);
	/* RS1: release, pairs with RS1 in wait_until_passed() */
	quiesce_store_release(RS1, &rss->wake_seq, rss->wake_seq + 1);
	quiesce__unlock(&rss->lock);
	platform_futex_wake(&rss->wake_seq, INT32_MAX);
}

/* Take the place of an enter whose thread has ended; false if another updater has taken it. */
static bool take_enter(struct rcu_sync *rss)
{
	bool mine;

	quiesce__lock(&rss->lock);
	mine = rss->gp_state == RCU_SYNC_IDLE;
	if (mine)
		set_state(rss, RCU_SYNC_ENTER);
	quiesce__unlock(&rss->lock);
	return mine;
}

void quiesce__rcu_sync_wait(struct rcu_sync *rss)
{
	const struct rcu_sync_ops *ops = ops_of(rss);
	struct enter_run e = { .run = { .call = "rcu_sync_enter()", .func = (uintptr_t)ops->wait }, .rss = rss };

	quiesce__run(&e.run, wait_in_run, wait_ended);
}

void quiesce_rcu_sync_enter(struct rcu_sync *rss)
{
	bool first;

	quiesce__init();
	for (first = quiesce__rcu_sync_enter_begin(rss); !first; first = take_enter(rss))
		if (QUIESCE_MUTANT(sync_no_wait) || wait_until_passed(rss))
			return;
	quiesce__rcu_sync_wait(rss);
	quiesce__rcu_sync_func(&rss->head);
}

void quiesce_rcu_sync_exit(struct rcu_sync *rss)
{
	bool unbalanced, queue = false;
	uint32_t count;

	quiesce__init();
	quiesce__lock(&rss->lock);
	count = quiesce_load_relaxed(&rss->gp_count); /* Relaxed: under the lock. */
	unbalanced = !count;
	if (!unbalanced)
		quiesce_store_relaxed(&rss->gp_count, count - 1); /* Relaxed: under the lock. */
	if (count == 1) {
		queue = rss->gp_state == RCU_SYNC_PASSED;
		set_state(rss, queue ? RCU_SYNC_EXIT : RCU_SYNC_REPLAY);
	}
	quiesce__unlock(&rss->lock);
	if (quiesce_unlikely(unbalanced))
		quiesce__misuse(QUIESCE_MISUSE_UNBALANCED_UNLOCK, "rcu_sync_exit() without rcu_sync_enter()");
	if (queue)
		queue_callback(rss, ops_of(rss), rss->domain);
}

void quiesce_rcu_sync_dtor(struct rcu_sync *rss)
{
	bool inside, idle;

	quiesce__init();
	for (;;) {
		quiesce__lock(&rss->lock);
		inside = rss->gp_count != 0;
		if (rss->gp_state == RCU_SYNC_REPLAY && !inside)
			set_state(rss, RCU_SYNC_EXIT);
		idle = rss->gp_state == RCU_SYNC_IDLE;
		quiesce__unlock(&rss->lock);
		if (idle)
			return;
		if (quiesce_unlikely(inside)) {
			quiesce__misuse(QUIESCE_MISUSE_IN_USE, "rcu_sync_dtor() while an updater is between enter and exit");
			return;
		}
		/* Repeats if the callback was about to queue itself again. */
		ops_of(rss)->barrier(rss->domain, &rss->head);
	}
}
