/* SPDX-License-Identifier: MIT */
/* quiesce/rcu_sync.h - a fast path for readers while no updater is active, with one grace period
 * for a burst of updates.
 *
 * Use to build locks and lists whose readers need no fence and no shared store as long as there is
 * no updater; percpu_rwsem.h is built on it.
 *
 *	rcu_read_lock();                    // reader
 *	if (rcu_sync_is_idle(&rss))
 *		fast();                     // no updater can be between enter and exit
 *	else
 *		slow();
 *	rcu_read_unlock();
 *
 *	rcu_sync_enter(&rss);               // updater: from here on all readers are slow
 *	...
 *	rcu_sync_exit(&rss);                // and some time after the last exit they are fast again
 *
 * The first enter waits for one grace period; enters that follow before readers are fast again do
 * not wait.  A callback makes readers fast again, after a grace period in which no updater
 * entered.
 *
 *	state    enter           last exit          callback
 *	IDLE     ENTER, waits    -                  -
 *	ENTER    waits           -                  PASSED
 *	PASSED   at once         EXIT, queue it     -
 *	EXIT     at once         REPLAY             updaters inside: PASSED; else IDLE
 *	REPLAY   at once         REPLAY             updaters inside: PASSED; else EXIT, queue it again
 *
 * Ordering.  After rcu_sync_enter() has returned, every reader that saw "idle" has ended, and what
 * it did is visible; readers that begin later see "not idle".  A reader that sees "idle" again
 * sees everything that was done before the rcu_sync_exit() that led to it.
 * Proof: docs/design/rcu_sync.md; tests/model/rcu_sync.pml; docs/ordering.md.
 *
 * Source: O. Nesterov, "Add rcu_sync infrastructure to avoid _expedited() in percpu-rwsem", LKML,
 *   2015, and the kernel's later single state.
 */
#ifndef QUIESCE_RCU_SYNC_H
#define QUIESCE_RCU_SYNC_H

#include <quiesce/rcu.h>

#include <stdbool.h>

QUIESCE_BEGIN_DECLS

enum rcu_sync_state { RCU_SYNC_IDLE, RCU_SYNC_ENTER, RCU_SYNC_PASSED, RCU_SYNC_EXIT, RCU_SYNC_REPLAY };

struct rcu_sync;

/* A kind of grace period: how to wait for one, and how to queue a callback after one.  The
 * functions must return, as described for call_rcu(); if @wait ends its thread, another updater
 * waits in its place.  @call is not cancelled. */
struct rcu_sync_ops {
	void (*wait)(void *domain);
	void (*call)(void *domain, struct rcu_head *head, void (*func)(struct rcu_head *head));
	/* Wait until @head, which was passed to @call, has been called, or at least all earlier
	 * heads.  May call it itself. */
	void (*barrier)(void *domain, struct rcu_head *head);
	/* NULL, or a function that is called when @rss becomes idle, or ceases to be; after the
	 * change of state, under its lock. */
	void (*idle)(struct rcu_sync *rss, bool idle);
};

/* All members are private; programs may use the size. */
struct rcu_sync {
	uint64_t gp_state; /* enum rcu_sync_state; first member */
	uint32_t gp_count; /* number of updaters inside */
	uint32_t wake_seq; /* futex of enters that wait for another enter */
	struct quiesce__lock lock;
	const struct rcu_sync_ops *ops; /* NULL: those of RCU */
	void *domain;
	struct rcu_head head;
};

/** RCU_SYNC_INIT - static initialiser of a struct rcu_sync for readers in sections of RCU. */
#define RCU_SYNC_INIT { 0, 0, 0, { 0 }, NULL, NULL, { NULL, NULL } }
#define DEFINE_RCU_SYNC(name) struct rcu_sync name = RCU_SYNC_INIT

/* Kinds: synchronize_rcu() and call_rcu(); the expedited form of these; heavy fences alone, for
 * readers that need no section because they announce themselves before they check, as those of
 * percpu_rwsem.h do. */
extern QUIESCE_DATA const struct rcu_sync_ops quiesce_rcu_sync_rcu, quiesce_rcu_sync_rcu_expedited, quiesce_rcu_sync_fence;
extern QUIESCE_DATA const struct rcu_sync_ops quiesce_rwsem_sync; /* private: for percpu_rwsem.h */

QUIESCE_API void quiesce_rcu_sync_init(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain);
QUIESCE_API void quiesce_rcu_sync_enter(struct rcu_sync *rss);
QUIESCE_API void quiesce_rcu_sync_exit(struct rcu_sync *rss);
QUIESCE_API void quiesce_rcu_sync_dtor(struct rcu_sync *rss);

/** rcu_sync_init - initialise @rss for readers in sections of RCU.
 * Context: no other thread uses @rss. */
QUIESCE_PLAIN void rcu_sync_init(struct rcu_sync *rss) { quiesce_rcu_sync_init(rss, NULL, NULL); }

/** rcu_sync_init_ops - initialise @rss for another kind of readers.
 * @ops: the kind of grace periods; not copied.  &quiesce_rcu_sync_rcu_expedited: RCU, whose
 *   readers yield while an updater waits.
 * @domain: argument of its functions, such as a struct srcu_struct.
 *
 * Context: no other thread uses @rss. */
QUIESCE_PLAIN void rcu_sync_init_ops(struct rcu_sync *rss, const struct rcu_sync_ops *ops, void *domain)
{
	quiesce_rcu_sync_init(rss, ops, domain);
}

/** rcu_sync_is_idle - test whether a reader may take its fast path.
 * Context: inside a section of the kind of @rss.
 * Cost: a load.
 * Return: true: no updater is inside, and none gets in before this section ends.
 * Orders: acquire. */
QUIESCE_FAST bool rcu_sync_is_idle(const struct rcu_sync *rss)
{
	/* RS1: acquire, pairs with RS1 in set_state() */
	return quiesce_load_acquire(RS1, &rss->gp_state) == RCU_SYNC_IDLE;
}

/** rcu_sync_enter - make readers take the slow path.
 * Context: may sleep; not in a section of the kind of @rss.  Any number of threads; for each enter
 *   there is one rcu_sync_exit(), in the same thread or in another.
 * Cost: the first of a burst: one grace period; otherwise a lock.
 * Orders: as stated under "Ordering" at the head of this header. */
QUIESCE_PLAIN void rcu_sync_enter(struct rcu_sync *rss) { quiesce_rcu_sync_enter(rss); }

/** rcu_sync_exit - let readers be fast again after a grace period, if no other updater is inside.
 * Context: does not sleep, unless the callback cannot be queued; the first call of a process
 *   starts a thread.
 * Misuse: without an enter: reported. */
QUIESCE_PLAIN void rcu_sync_exit(struct rcu_sync *rss) { quiesce_rcu_sync_exit(rss); }

/** rcu_sync_dtor - end the use of @rss; waits for a pending callback.
 * Context: may sleep; in a callback only if @rss is of the kind of fences.
 * Misuse: with an updater inside: reported, without effect. */
QUIESCE_PLAIN void rcu_sync_dtor(struct rcu_sync *rss) { quiesce_rcu_sync_dtor(rss); }

QUIESCE_END_DECLS

#endif
