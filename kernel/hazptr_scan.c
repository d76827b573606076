// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Hazard pointers: callbacks, and the scan that finds which of them may run.
 *
 * call_hazptr() puts a callback into a queue of its CPU.  One worker takes all
 * queues, enters a batch of callbacks into a hash table by their addresses,
 * walks all slots of all contexts once, keeps the callbacks whose objects a slot
 * protects, and runs the others.
 *
 * H1  A slot holds the address of the callback head in its object, so the two
 *     are compared without an access to the object; the table links callbacks
 *     through their own words.  Nothing is allocated after module load.
 * H2  The scan begins with a full barrier after the queues were taken.  An
 *     object in the batch was unlinked before; a reader that protects it later
 *     finds it unlinked.
 * H3  Callbacks that were queued before hazptr_barrier() was called are in a
 *     group of their own until the last of them has run.
 * H4  Kept callbacks are scanned again in pauses that grow to 100 ms.  A walk over
 *     many contexts is long: the next one comes after 16 times its estimated
 *     duration, at most 100 ms.
 *
 * Only the worker uses the groups and the table: they need no lock.  There is one
 * walk at a time, the worker's or that of a waiter (hazptr_sync.c).
 * It is not frozen in suspend, because objects may be freed there as well; it is
 * bound to no CPU, and walks the lists of offline CPUs, too.
 *
 * Barriers (litmus tests: HK*.litmus)
 * HK1	set the slot, then load the pointer again	| unlink, queue, take, then scan the slots
 * HK2	accesses, then clear, free or set again	| read the slot, then run the callback
 * HK3	unlink, then queue			| take the queue, then scan the slots
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kmsan-checks.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include <linux/hazptr.h>

#include "hazptr_callbacks.h"
#include "hazptr_scan.h"

#define BUCKET_BITS 10
/* Most callbacks that share a walk over all slots, beside those that are kept. */
#define BATCH_MAX (4U << BUCKET_BITS)
#define RETRY_MAX max(HZ / 10, 1)
/* Without a caller that waits, walks take at most one part in so many of the time. */
#define WALK_SHARE 16
/*
 * A walk is taken to last so long for each slot: a measured time would include
 * what else its CPU did.
 */
#define SLOT_NS 3

#ifdef QUIESCE_MUTANTS
DEFINE_MUTANTS(HAZPTR_MUTANTS, hazptr_planted);
#endif

struct call_queue {
	struct llist_head queued;	/* this CPU adds, the worker takes all */
	u64 calls;
} ____cacheline_aligned_in_smp;

static DEFINE_PER_CPU(struct call_queue, call_queues);

/* Guards what a walk uses: there is one walk at a time. */
DEFINE_MUTEX(hazptr_walking);

/* Each caller of hazptr_barrier() has one of these on its stack. */
struct barrier {
	struct list_head node;
	struct completion done;
};

/* Requests to the worker. */
static struct {
	spinlock_t lock;		/* guards the list; nothing nests inside */
	struct list_head barriers;
} asked = {
	.lock = __SPIN_LOCK_UNLOCKED(asked.lock),
	.barriers = LIST_HEAD_INIT(asked.barriers),
};

/* The kept callback that is checked for a stall: objects have no room for a time. */
struct watch {
	struct callback_head *head;
	struct stall stall;
	unsigned int turn;
};

/* Only the worker uses it; other threads read the counters. */
static struct {
	struct group groups[2];
	struct group *new;		/* group of new callbacks */
	struct group *old;		/* group of the callbacks that a barrier waits for */
	struct list_head barriers;	/* barriers that wait for the old group */
	struct callback_head *buckets[1 << BUCKET_BITS];
	struct callbacks *protected;	/* list for callbacks that a slot protects */
	struct watch watch;
	unsigned long retry;		/* jiffies until kept callbacks are scanned again */
	unsigned long pause;		/* jiffies until new ones are; read locklessly */
	u64 run, scans, slots, kept;
} scan = {
	.pause = 1,
	.new = &scan.groups[0],
	.old = &scan.groups[1],
	.barriers = LIST_HEAD_INIT(scan.barriers),
};

static struct callback_head **bucket_of(unsigned long head)
{
	return &scan.buckets[hash_long(head, BUCKET_BITS)];
}

/* Moves the callback with the head @value to the protected ones. */
static void keep_callback(unsigned long value, const struct hazptr_owner *owner)
{
	struct callback_head **link;

	if (value == (unsigned long)scan.watch.head)
		stall_blame(&scan.watch.stall, owner);
	for (link = bucket_of(value); *link; link = &(*link)->next) {
		struct callback_head *head = *link;

		if ((unsigned long)head == value) {
			*link = head->next;
			callbacks_add(scan.protected, head);
			break;
		}
	}
}

/* Walks once over all slots, and calls @found for each that protects an object. */
void hazptr_scan(hazptr_found_t *found)
{
	unsigned long ticks;

	lockdep_assert_held(&hazptr_walking);
	/*
	 * Either a slot is seen below, or its owner's next load sees what was
	 * unlinked before it was queued.
	 */
	if (!HAZPTR_MUTANT(no_scan_fence)) {
		/* HK1: full, pairs with HK1 in __hazptr_set() */
		smp_mb();
	}
	if (HAZPTR_MUTANT(no_scan))
		return;
	WRITE_ONCE(scan.slots, hazptr_walk(found));
	ticks = nsecs_to_jiffies(WALK_SHARE * SLOT_NS * scan.slots);
	WRITE_ONCE(scan.pause, clamp_t(unsigned long, ticks, 1, RETRY_MAX));
	WRITE_ONCE(scan.scans, scan.scans + 1);
}

/* Moves the callbacks that slots protect from the table to @protected. */
static void scan_callbacks(struct callbacks *protected)
{
	scan.protected = protected;
	mutex_lock(&hazptr_walking);
	hazptr_scan(keep_callback);
	mutex_unlock(&hazptr_walking);
}

/* Moves the kept callbacks and as many fresh ones as a batch may have into the table. */
static void fill_table(struct group *group, bool with_kept)
{
	struct callback_head *head, **bucket;
	unsigned int nr = 0;

	while ((head = with_kept ? callbacks_take(&group->kept) : NULL) ||
	       (nr++ < BATCH_MAX && (head = callbacks_take(&group->fresh)))) {
		bucket = bucket_of((unsigned long)head);
		head->next = *bucket;
		*bucket = head;
	}
}

static void run(struct callback_head *head)
{
	rcu_callback_t func = callback_func(head);

	/* Before the call, since the callback may call call_hazptr() for it again. */
	head->func = func;
	if (head == scan.watch.head)
		scan.watch.head = NULL;
	if ((unsigned long)func < HAZPTR_KFREE_OFFSETS)
		kvfree((void *)head - (unsigned long)func);
	else
		func(head);
	WRITE_ONCE(scan.run, scan.run + 1);
}

/* No slot protects the callbacks that are left in the table. */
static void run_table(void)
{
	for (int i = 0; i < ARRAY_SIZE(scan.buckets); i++) {
		struct callback_head *head;

		while ((head = scan.buckets[i])) {
			scan.buckets[i] = head->next;
			run(head);
			cond_resched();
		}
	}
}

static void scan_group(struct group *group)
{
	bool with_kept = true;

	if (group_empty(group))
		return;
	do {
		fill_table(group, with_kept);
		scan_callbacks(&group->kept);
		run_table();
		with_kept = false;
	} while (group->fresh.first);
}

/* Takes the callbacks of every queue, oldest first. */
static bool take_queues(void)
{
	struct llist_node *node, *next;
	bool any = false;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct call_queue *calls = per_cpu_ptr(&call_queues, cpu);

		/* The next call_hazptr() that finds this queue empty starts the work again. */
		if (llist_empty(&calls->queued))
			continue;
		any = true;
		/* HK3: acquire, pairs with HK3 in call_hazptr() */
		node = llist_reverse_order(llist_del_all(&calls->queued));
		llist_for_each_safe(node, next, node) {
			callbacks_add(&scan.new->fresh, (struct callback_head *)node);
			cond_resched();
		}
	}
	return any;
}

/*
 * New barriers are taken only when the old group is empty: then the new group
 * becomes old for them.
 */
static bool take_barriers(void)
{
	if (!group_empty(scan.old))
		return false;
	spin_lock_irq(&asked.lock);
	list_splice_tail_init(&asked.barriers, &scan.barriers);
	spin_unlock_irq(&asked.lock);
	return !list_empty(&scan.barriers);
}

static void end_barriers(void)
{
	struct barrier *barrier, *next;

	if (!HAZPTR_MUTANT(early_barrier) && !group_empty(scan.old))
		return;
	list_for_each_entry_safe(barrier, next, &scan.barriers, node) {
		list_del(&barrier->node);
		/* The waiter may return, and its stack frame end. */
		complete(&barrier->done);
	}
}

/* The kept callbacks take turns, or those that are kept for a moment would hide one that stays. */
static struct callback_head *choose_kept(void)
{
	unsigned long nr = scan.old->kept.nr + scan.new->kept.nr;
	struct callback_head *head = scan.old->kept.first;

	if (!nr)
		return NULL;
	nr = scan.watch.turn++ % nr;
	if (nr >= scan.old->kept.nr) {
		nr -= scan.old->kept.nr;
		head = scan.new->kept.first;
	}
	while (nr--)
		head = head->next;
	return head;
}

/* Checks one callback for a stall until it is no longer kept. */
static void watch_kept(void)
{
	struct watch *watch = &scan.watch;

	if (!watch->head) {
		watch->head = choose_kept();
		stall_start(&watch->stall);
	} else if (stall_report_due(&watch->stall)) {
		pr_warn("head %p, callback %ps, is protected for %u ms, " STALL_OWNER,
			watch->head, callback_func(watch->head),
			jiffies_to_msecs(jiffies - watch->stall.start), stall_owner(&watch->stall));
	}
	WRITE_ONCE(scan.kept, scan.old->kept.nr + scan.new->kept.nr);
}

/* Returns the ticks until the next scan, if there is no request before. */
static unsigned long rescan_after(bool fresh)
{
	/* Barriers that were requested while others waited. */
	if (group_empty(scan.old) && !list_empty_careful(&asked.barriers))
		return 0;
	if (!scan.old->kept.first && !scan.new->kept.first)
		return MAX_SCHEDULE_TIMEOUT;
	scan.retry = fresh ? 1 : min(scan.retry * 2, RETRY_MAX);
	return max(scan.retry, scan.pause);
}

unsigned long hazptr_work(void)
{
	/*
	 * A caller has queued its callbacks before its request: so take the
	 * requests before the queues.
	 */
	bool barriers = take_barriers();
	bool fresh;

	/*
	 * The scan takes the callback of a call that found the timer running.
	 *
	 * HK3: full, pairs with HK3 in call_hazptr()
	 */
	smp_mb();
	fresh = take_queues();
	if (barriers)
		swap(scan.old, scan.new);
	scan_group(scan.old);
	scan_group(scan.new);
	end_barriers();
	watch_kept();
	return rescan_after(fresh);
}

/**
 * call_hazptr() - call a function when no slot protects an object
 * @head: the callback head in the object, which is unlinked
 * @func: the callback, which runs in process context of a worker and may sleep; it may call
 *	call_hazptr() and call_rcu(), also with @head, but no function that waits for callbacks
 *
 * Callbacks run one after the other, so they ought to be short.  A second call for
 * a head whose callback has not run is reported and ignored, if @func is the same;
 * with another @func it is a bug that nothing notices.
 *
 * Context: Any but NMI.
 * Cost: one atomic operation on a line of this CPU; the first call after a scan starts a timer.
 */
void call_hazptr(struct callback_head *head, rcu_callback_t func)
{
	struct call_queue *calls;

	BUILD_BUG_ON(offsetof(struct callback_head, next));
	/* The first call finds what was in memory that may never have been written. */
	kmsan_unpoison_memory(&head->func, sizeof(head->func));
	func = callback_hidden(head, func);
	if (WARN_ONCE(READ_ONCE(head->func) == func,
		      "hazptr: %pS called again for %p, which is queued\n",
		      callback_func(head), head))
		return;
	WRITE_ONCE(head->func, func);
	/*
	 * The caller must not be preempted between the two: while the queue is
	 * not empty no other caller on this CPU would start the work.
	 */
	preempt_disable();
	calls = this_cpu_ptr(&call_queues);
	this_cpu_inc(call_queues.calls);
	/*
	 * Starts a tick later or more, so that one walk over all contexts serves many callbacks.
	 *
	 * HK3: full, pairs with HK3 in take_queues() and hazptr_work()
	 */
	if (llist_add((struct llist_node *)head, &calls->queued))
		hazptr_wake_later(READ_ONCE(scan.pause));
	preempt_enable();
}
EXPORT_SYMBOL_GPL(call_hazptr);

/**
 * hazptr_barrier() - wait until the callbacks of all earlier calls of call_hazptr() have run
 *
 * Includes calls on all CPUs, and objects that are protected now.  A module that
 * contains callbacks calls it before it is unloaded.
 *
 * Context: Process; may sleep.  Not in a callback, which would wait for itself:
 * there it warns, and does not wait.
 */
void hazptr_barrier(void)
{
	struct barrier barrier = { .done = COMPLETION_INITIALIZER_ONSTACK(barrier.done) };

	might_sleep();
	if (WARN_ONCE(hazptr_in_worker(), "hazptr: a callback waits for callbacks\n"))
		return;
	spin_lock_irq(&asked.lock);
	list_add_tail(&barrier.node, &asked.barriers);
	spin_unlock_irq(&asked.lock);
	hazptr_wake();
	wait_for_completion(&barrier.done);
}
EXPORT_SYMBOL_GPL(hazptr_barrier);

/**
 * hazptr_get_stats() - fill in the counters
 * @stats: receives the counters, which are not one snapshot
 *
 * Context: Any.
 */
void hazptr_get_stats(struct hazptr_stats *stats)
{
	int cpu;

	*stats = (struct hazptr_stats) {
		.run = READ_ONCE(scan.run),
		.scans = READ_ONCE(scan.scans),
		.slots = READ_ONCE(scan.slots),
		.kept = READ_ONCE(scan.kept),
		.waiting = hazptr_nr_waiting(),
		.contexts = hazptr_nr_contexts(),
	};
	for_each_possible_cpu(cpu)
		stats->calls += READ_ONCE(per_cpu(call_queues, cpu).calls);
}
EXPORT_SYMBOL_GPL(hazptr_get_stats);

static int __init hazptr_init(void)
{
	int i, err;

	hazptr_contexts_init();
	for (i = 0; i < ARRAY_SIZE(scan.groups); i++) {
		callbacks_init(&scan.groups[i].fresh);
		callbacks_init(&scan.groups[i].kept);
	}
	err = hazptr_start_worker();
	if (err)
		return err;
	hazptr_show_stats();
	return 0;
}

/* No caller is left: callers hold a reference to the module.  Queued callbacks have to run. */
static void __exit hazptr_exit(void)
{
	struct hazptr_stats stats;

	hazptr_get_stats(&stats);
	WARN_ONCE(stats.contexts, "hazptr: %llu contexts are left\n", stats.contexts);
	hazptr_hide_stats();
	/* A callback may have called call_hazptr() again. */
	do {
		hazptr_barrier();
		hazptr_get_stats(&stats);
	} while (stats.run != stats.calls);
	hazptr_stop_worker();
}

module_init(hazptr_init);
module_exit(hazptr_exit);
MODULE_DESCRIPTION("Hazard pointers: readers that may sleep, updaters that defer their frees");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
