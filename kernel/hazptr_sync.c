// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Hazard pointers: waits for one object.
 *
 * A caller of synchronize_hazptr() walks over the slots itself: it waits for no
 * callback, and for no thread but those that protect the object or walk.
 * Callers share walks, because a walk is for all that had asked when it began:
 * a caller whose object another walk has found free does not walk.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include <linux/hazptr.h>

#include "hazptr_scan.h"

#define BUCKET_BITS 8
#define PAUSE_MAX max(HZ / 10, 1)

/* Each caller has one of these on its stack. */
struct waiter {
	struct list_head node;		/* in asked.waiters, then in walks.waiters */
	struct hlist_node bucket;
	unsigned long head;
	bool taken;			/* a walk was made for it */
	bool held;			/* a slot protects the object, in the present walk */
	bool done;
	struct stall stall;
};

/* The callers that no walk was made for yet. */
static struct {
	spinlock_t lock;		/* guards the list; nothing nests inside */
	struct list_head waiters;
} asked = {
	.lock = __SPIN_LOCK_UNLOCKED(asked.lock),
	.waiters = LIST_HEAD_INIT(asked.waiters),
};

/* hazptr_walking guards it. */
static struct {
	struct list_head waiters;
	struct hlist_head buckets[1 << BUCKET_BITS];
	unsigned int nr;		/* waiters; read locklessly */
	unsigned long last;		/* jiffies of the last walk for waiters */
} walks = {
	.waiters = LIST_HEAD_INIT(walks.waiters),
};

static struct hlist_head *waiters_of(unsigned long head)
{
	return &walks.buckets[hash_long(head, BUCKET_BITS)];
}

static void keep_waiters(unsigned long value, const struct hazptr_owner *owner)
{
	struct waiter *waiter;

	hlist_for_each_entry(waiter, waiters_of(value), bucket)
		if (waiter->head == value) {
			waiter->held = true;
			stall_blame(&waiter->stall, owner);
		}
}

static void take_waiters(void)
{
	struct waiter *waiter;
	LIST_HEAD(fresh);

	spin_lock(&asked.lock);
	list_splice_tail_init(&asked.waiters, &fresh);
	spin_unlock(&asked.lock);
	list_for_each_entry(waiter, &fresh, node) {
		waiter->taken = true;
		hlist_add_head(&waiter->bucket, waiters_of(waiter->head));
		WRITE_ONCE(walks.nr, walks.nr + 1);
	}
	list_splice_tail(&fresh, &walks.waiters);
}

static void end_waiters(void)
{
	struct waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, &walks.waiters, node) {
		if (waiter->held) {
			waiter->held = false;
			continue;
		}
		list_del(&waiter->node);
		hlist_del(&waiter->bucket);
		WRITE_ONCE(walks.nr, walks.nr - 1);
		/* Its stack frame lives on until the lock is free. */
		waiter->done = true;
	}
}

static void walk_for_waiters(void)
{
	lockdep_assert_held(&hazptr_walking);
	take_waiters();
	hazptr_scan(keep_waiters);
	end_waiters();
	walks.last = jiffies;
}

static void report_waiter(const struct waiter *waiter)
{
	pr_warn("synchronize_hazptr(%p) by %s/%d waits for %u ms, blocked " STALL_OWNER,
		(void *)waiter->head, current->comm, task_pid_nr(current),
		jiffies_to_msecs(jiffies - waiter->stall.start), stall_owner(&waiter->stall));
}

/* Walks, unless another waiter has done so within the last @pause ticks. */
static bool found_free(struct waiter *waiter, unsigned long pause)
{
	bool done;

	mutex_lock(&hazptr_walking);
	if (!waiter->taken ||
	    (!waiter->done && time_after_eq(jiffies, walks.last + pause)))
		walk_for_waiters();
	done = waiter->done;
	if (!done && stall_report_due(&waiter->stall))
		report_waiter(waiter);
	mutex_unlock(&hazptr_walking);
	return done;
}

/**
 * synchronize_hazptr() - wait until no slot protects an object
 * @head: the callback head in the object, which is unlinked; it is not accessed
 *
 * It does not wait for callbacks, however many there are, and may be called in one,
 * where it delays the callbacks behind that.
 *
 * Context: Process; may sleep.  Not while the caller protects the object.
 * Cost: a walk over all contexts, which callers that wait at the same time share; if a slot
 * protects the object, further walks in pauses that grow from a tick to 100 ms.
 */
void synchronize_hazptr(struct callback_head *head)
{
	struct waiter waiter = { .head = (unsigned long)head };
	unsigned long pause = 1;

	might_sleep();
	stall_start(&waiter.stall);
	spin_lock(&asked.lock);
	list_add_tail(&waiter.node, &asked.waiters);
	spin_unlock(&asked.lock);
	while (!found_free(&waiter, pause)) {
		schedule_timeout_uninterruptible(pause);
		pause = min(pause * 2, PAUSE_MAX);
	}
}
EXPORT_SYMBOL_GPL(synchronize_hazptr);

/* Returns the number of callers that wait. */
unsigned int hazptr_nr_waiting(void)
{
	return READ_ONCE(walks.nr);
}
