// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Simple hazard pointers: the updater's side.
 *
 * synchronize_shazptr() scans the slots of all CPUs once: as a rule none holds
 * its address, and it returns.  Otherwise it sleeps, and a thread scans the
 * slots for all waiters, in pauses that grow with the wait.
 *
 * S1  A waiter must outlast the guards that were there when it called, and no
 *     other.  Readers may protect an address that is never unlinked (a list
 *     head) again and again, so the scan must tell one guard from the next.
 * S2  Therefore it marks the slots that a waiter waits for: it flips one bit of
 *     the value, by compare-and-exchange.  Readers overwrite the mark without a
 *     test.  A slot that has lost its mark holds another guard.
 * S3  There is one exception: a nested guard stores the wildcard over a marked
 *     address, and the outer guard goes on.  So a wildcard that follows an
 *     address is taken for the same guard, and marked in its turn.  Nested
 *     guards do not change a wildcard, so if its mark is lost the slot holds
 *     another guard.
 * S4  So a waiter outlasts at most four guards of each CPU, whatever readers do:
 *     the one that it finds; the one that has taken its place, with the same
 *     value, when the slot is marked; one that is under a wildcard when the mark
 *     is lost, and looks like that; and the one in its place when the wildcard is
 *     marked.  A CPU needs two words here for any number of waiters.
 *
 *	slot		scan n		reader		scan n+1	reader		n+2
 *	p		p -> p'		p' -> *		* -> *'		*' -> 0 -> p	p
 *	guard is of	n				still n				n+2
 *
 * Nothing is allocated after module load, because callers free memory.
 *
 * Barriers (litmus tests: SK*.litmus)
 * SK1	store to the slot, then access	| unlink, then scan the slots
 * SK2	accesses, then clear or next guard	| read the slot, then return
 * SK3	unlink and SK1, then queue	| take the queue, then scan the slots
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>

#include <linux/shazptr.h>

#include "shazptr_local.h"

#ifdef QUIESCE_MUTANTS
DEFINE_MUTANTS(SHAZPTR_MUTANTS, shazptr_planted);
#endif

DEFINE_PER_CPU(struct shazptr_slot, shazptr_slots);
EXPORT_PER_CPU_SYMBOL_GPL(shazptr_slots);

/* Each CPU writes its own counts, and readers of debugfs add them up. */
struct call_counts {
	u64 calls;
	u64 waits;
};

static DEFINE_PER_CPU(struct call_counts, call_counts);

/* Each caller of synchronize_shazptr() has one of these on its stack. */
struct waiter {
	struct llist_node queued;
	struct list_head node;		/* in scan.waiting */
	unsigned long ptr;
	u64 since;			/* number of the first scan that it takes part in */
	u64 start_ns;
	unsigned long report;		/* jiffies of the next report */
	unsigned long report_after;	/* jiffies between the last report and the next one */
	struct task_struct *task;
	struct completion done;
};

/* The scans so far have found a slot in this state. */
struct view {
	unsigned long value;		/* value of the slot; 0: any later value is a new guard */
	bool marked;
	u64 since;			/* number of the scan that saw its guard first */
};

/* A slot that is not empty, in the present scan. */
struct blocker {
	unsigned long ptr;		/* address, in comparable() form */
	u64 since;
	unsigned int cpu;
	bool wanted;			/* a waiter waits for it */
};

static struct {
	struct llist_head queued;	/* any CPU adds; the scan takes all */
	struct task_struct *thread;	/* NULL until the module is initialised */

	struct mutex lock;		/* guards all fields below; waiters rarely take it */
	struct list_head waiting;
	unsigned int nr_waiting;	/* on that list; read without the lock */
	u64 nr;				/* number of the present or last scan; never 0 */
	unsigned long last;		/* jiffies of the last scan or wake-up; read locklessly */
	struct view *views;		/* indexed by CPU */
	struct blocker *blockers;	/* room for one per CPU */
	unsigned int nr_blockers;
	struct shazptr_stats stats;
} scan = {
	.queued = LLIST_HEAD_INIT(scan.queued),
	.lock = __MUTEX_INITIALIZER(scan.lock),
	.waiting = LIST_HEAD_INIT(scan.waiting),
};

/* The mark does not count in comparisons: sets it in every value. */
static unsigned long comparable(unsigned long value)
{
	return value | SHAZPTR_MARK;
}

static unsigned long shazptr_slot_read(int cpu)
{
	/*
	 * SK2: acquire, pairs with SK2 in shazptr_acquire() and shazptr_clear()
	 */
	return smp_load_acquire(&per_cpu(shazptr_slots, cpu).value);
}

static bool blocks(unsigned long value, unsigned long ptr)
{
	if (!value)
		return false;
	if (__shazptr_is_wildcard(value))
		return !SHAZPTR_MUTANT(no_wildcard);
	return comparable(value) == comparable(ptr);
}

static bool any_slot_blocks(unsigned long ptr)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (blocks(shazptr_slot_read(cpu), ptr))
			return true;
	return false;
}

/* True if a slot with @value may still be under the guard that was seen before: S2, S3. */
static bool same_guard(const struct view *view, unsigned long value)
{
	if (view->value == value)
		return !SHAZPTR_MUTANT(lost_mark);
	if (!view->value || SHAZPTR_MUTANT(lost_upgrade))
		return false;
	return __shazptr_is_wildcard(value) && !__shazptr_is_wildcard(view->value);
}

static void scan_slot(int cpu)
{
	struct view *view = &scan.views[cpu];
	unsigned long value = shazptr_slot_read(cpu);

	if (SHAZPTR_MUTANT(lost_group) && cpu >= nr_cpu_ids / 2)
		value = 0;
	if (!same_guard(view, value))
		view->since = scan.nr;
	view->marked &= view->value == value;
	view->value = value;
	if (!value)
		return;
	scan.blockers[scan.nr_blockers++] = (struct blocker) {
		.ptr = comparable(value), .since = view->since, .cpu = cpu,
	};
}

static int compare_blockers(const void *left, const void *right)
{
	const struct blocker *a = left, *b = right;

	if (a->ptr != b->ptr)
		return a->ptr < b->ptr ? -1 : 1;
	/* The oldest guard of an address comes first, because it decides. */
	if (a->since != b->since)
		return a->since < b->since ? -1 : 1;
	return 0;
}

static void scan_slots(void)
{
	int cpu;

	scan.nr_blockers = 0;
	for_each_possible_cpu(cpu)
		scan_slot(cpu);
	sort(scan.blockers, scan.nr_blockers, sizeof(*scan.blockers), compare_blockers, NULL);
}

/* Returns the first blocker of an address, or NULL. */
static struct blocker *find_blocker(unsigned long ptr)
{
	unsigned int low = 0, high = scan.nr_blockers;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (scan.blockers[mid].ptr < ptr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < scan.nr_blockers && scan.blockers[low].ptr == ptr ? &scan.blockers[low] : NULL;
}

/* True if a guard of @ptr that was there in the waiter's first scan blocks the waiter. */
static bool blocked_by(const struct waiter *waiter, unsigned long ptr)
{
	struct blocker *blocker = find_blocker(comparable(ptr));

	if (!blocker || blocker->since > waiter->since)
		return false;
	blocker->wanted = true;
	return true;
}

static bool still_blocked(const struct waiter *waiter)
{
	/* Checks both addresses, so that the guards of both are marked. */
	bool by_ptr = blocked_by(waiter, SHAZPTR_MUTANT(lost_ptr) ? 0 : waiter->ptr);
	bool by_wildcard = !SHAZPTR_MUTANT(no_wildcard) &&
			   blocked_by(waiter, (unsigned long)SHAZPTR_WILDCARD);

	return by_ptr || by_wildcard;
}

/*
 * Flips the mark of a slot.  If the slot has another value by now, its guard
 * has ended, or is under a wildcard: S3.
 */
static void mark(int cpu)
{
	struct view *view = &scan.views[cpu];
	unsigned long seen = view->value, marked = seen ^ SHAZPTR_MARK, now;

	/* A mark must not turn a value into that of an empty slot. */
	if (!marked)
		return;
	/* Orders nothing: the next scan reads again. */
	now = cmpxchg_relaxed(&per_cpu(shazptr_slots, cpu).value, seen, marked);
	if (now == seen) {
		view->value = marked;
		view->marked = true;
		scan.stats.marks++;
	} else {
		view->value = same_guard(view, now) ? now : 0;
	}
}

static void mark_wanted(void)
{
	struct blocker *blocker = scan.blockers, *end = blocker + scan.nr_blockers;
	bool wanted = false;

	for (; blocker < end; blocker++) {
		/* The first blocker of each address decides for all of them. */
		if (blocker == scan.blockers || blocker->ptr != blocker[-1].ptr)
			wanted = blocker->wanted;
		if (wanted && !scan.views[blocker->cpu].marked)
			mark(blocker->cpu);
	}
}

static void adopt_waiters(void)
{
	struct waiter *waiter, *next;

	/*
	 * Each waiter executed its barrier before it was queued, and was queued
	 * before this exchange, which is a full barrier.
	 *
	 * SK3: full, pairs with SK3 in shazptr_wait()
	 */
	llist_for_each_entry_safe(waiter, next, llist_del_all(&scan.queued), queued) {
		waiter->since = scan.nr;
		list_add_tail(&waiter->node, &scan.waiting);
		WRITE_ONCE(scan.nr_waiting, scan.nr_waiting + 1);
	}
}

static void release(struct waiter *waiter)
{
	u64 waited = ktime_get_mono_fast_ns() - waiter->start_ns;

	scan.stats.longest_ns = max(scan.stats.longest_ns, waited);
	WRITE_ONCE(scan.nr_waiting, scan.nr_waiting - 1);
	list_del(&waiter->node);
	/* The waiter may return, and its stack frame end. */
	complete(&waiter->done);
}

static void report(struct waiter *waiter)
{
	unsigned int i, shown = 0;

	pr_warn("synchronize_shazptr(%p) by %s/%d waits for %llu ms\n", (void *)waiter->ptr,
		waiter->task->comm, task_pid_nr(waiter->task),
		div_u64(ktime_get_mono_fast_ns() - waiter->start_ns, NSEC_PER_MSEC));
	for (i = 0; i < scan.nr_blockers; i++) {
		struct blocker *blocker = &scan.blockers[i];

		if (blocker->since > waiter->since || !blocks(blocker->ptr, waiter->ptr))
			continue;
		pr_warn("  for a guard on CPU %u%s\n", blocker->cpu,
			__shazptr_is_wildcard(blocker->ptr) ? ", the wildcard" : "");
		if (shown++ < SHOWN_MAX)
			stall_show_cpu(blocker->cpu);
	}
	sched_show_task(waiter->task);
}

static void report_if_late(struct waiter *waiter)
{
	if (!waiter->report_after || time_before(jiffies, waiter->report))
		return;
	report(waiter);
	waiter->report_after *= 2;
	waiter->report = jiffies + waiter->report_after;
}

/*
 * Scans all slots once for all waiters.  Returns the time, in ns, at which the
 * youngest of those that go on waiting began; 0: no waiter is left.
 */
static u64 shazptr_scan(void)
{
	struct waiter *waiter, *next;
	u64 youngest = 0;

	lockdep_assert_held(&scan.lock);
	scan.nr++;
	scan.stats.scans++;
	adopt_waiters();
	scan_slots();
	list_for_each_entry_safe(waiter, next, &scan.waiting, node) {
		if (still_blocked(waiter)) {
			youngest = max(youngest, waiter->start_ns);
			report_if_late(waiter);
		} else {
			release(waiter);
		}
	}
	mark_wanted();
	WRITE_ONCE(scan.last, jiffies);
	return youngest;
}

/* Pauses for a quarter of the youngest wait so far; a new waiter ends the pause. */
static void pause_scan(u64 youngest)
{
	u64 waited = ktime_get_mono_fast_ns() - youngest;
	ktime_t pause = ns_to_ktime(clamp_t(u64, waited / 4, PAUSE_MIN_NS, PAUSE_MAX_NS));

	set_current_state(TASK_IDLE);
	if (llist_empty(&scan.queued))
		schedule_hrtimeout_range(&pause, PAUSE_MIN_NS, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
}

static void serve(void)
{
	u64 youngest;

	for (;;) {
		mutex_lock(&scan.lock);
		youngest = shazptr_scan();
		mutex_unlock(&scan.lock);
		if (!youngest)
			return;
		pause_scan(youngest);
	}
}

/* Returns true also for waiters that another waiter took from the queue when it scanned. */
static bool has_waiters(void)
{
	return !llist_empty(&scan.queued) || READ_ONCE(scan.nr_waiting);
}

/* No caller waits: the only time when the thread may be frozen. */
static void idle(void)
{
	set_current_state(TASK_IDLE | TASK_FREEZABLE);
	if (!has_waiters() && !kthread_should_stop())
		schedule();
	__set_current_state(TASK_RUNNING);
	try_to_freeze();
}

static int shazptr_scan_thread(void *unused)
{
	set_freezable();
	while (!kthread_should_stop()) {
		idle();
		if (has_waiters())
			serve();
	}
	return 0;
}

/*
 * The scan thread is frozen, as in late suspend, or is preempted by real-time
 * threads: the waiter scans for itself and all others.
 */
static void help(void)
{
	if (time_before(jiffies, READ_ONCE(scan.last) + HELP_JIFFIES) || !mutex_trylock(&scan.lock))
		return;
	scan.stats.helped++;
	shazptr_scan();
	mutex_unlock(&scan.lock);
}

static void shazptr_wait(const void *ptr)
{
	struct waiter waiter = {
		.ptr = (unsigned long)ptr,
		.start_ns = ktime_get_mono_fast_ns(),
		.report_after = READ_ONCE(stall_timeout) * HZ,
		.report = jiffies + READ_ONCE(stall_timeout) * HZ,
		.task = current,
		.done = COMPLETION_INITIALIZER_ONSTACK(waiter.done),
	};

	this_cpu_inc(call_counts.waits);
	/*
	 * SK3: full, pairs with SK3 in adopt_waiters()
	 */
	if (llist_add(&waiter.queued, &scan.queued)) {
		WRITE_ONCE(scan.last, jiffies);
		wake_up_process(scan.thread);
	}
	while (!wait_for_completion_timeout(&waiter.done, HELP_JIFFIES))
		help();
}

static bool may_sleep(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_COUNT) || preemptible();
}

/*
 * A wait without the scan thread.  It may be long where readers protect the
 * address again and again.
 */
static void spin_until_unblocked(unsigned long ptr)
{
	while (any_slot_blocks(ptr)) {
		cpu_relax();
		if (may_sleep())
			cond_resched();
	}
}

/**
 * synchronize_shazptr() - wait until all guards of an address that existed at the call have ended
 * @ptr: the address, unlinked before the call; NULL returns at once
 *
 * Waits for guards of @ptr and for nested ones (the wildcard) on any CPU.
 * It does not wait for guards that begin later, however many there are.
 *
 * Context: Process; may sleep.  Not under a guard.  Works while tasks are frozen, and,
 * where it is compiled into the kernel, also before it is initialised: it polls then.
 * Cost: a barrier and one load for each possible CPU; if a guard is in the way,
 * a wake-up of the scan thread and a sleep.  No reader's CPU is interrupted, but a
 * wake-up of a thread on an idle CPU is an interrupt there.
 */
void synchronize_shazptr(const void *ptr)
{
	might_sleep();
	lockdep_assert_preemption_enabled();
	this_cpu_inc(call_counts.calls);
	if (!ptr || SHAZPTR_MUTANT(no_wait))
		return;
	/* Either the guard is seen below, or its owner sees what was unlinked. */
	if (!SHAZPTR_MUTANT(no_updater_fence)) {
		/* SK1: full, pairs with SK1 in shazptr_acquire() */
		smp_mb();
	}
	if (WARN_ONCE(!may_sleep(), "shazptr: a wait where sleeping is forbidden\n") ||
	    !READ_ONCE(scan.thread)) {
		/* A late return is better than an early one. */
		spin_until_unblocked((unsigned long)ptr);
	} else if (READ_ONCE(skip_synchronize_self_scan) || any_slot_blocks((unsigned long)ptr)) {
		shazptr_wait(ptr);
	}
}
EXPORT_SYMBOL_GPL(synchronize_shazptr);

/**
 * shazptr_get_stats() - fill in the counters
 * @stats: receives the counters
 *
 * Context: Process; may sleep.
 */
void shazptr_get_stats(struct shazptr_stats *stats)
{
	int cpu;

	mutex_lock(&scan.lock);
	*stats = scan.stats;
	stats->waiting = scan.nr_waiting;
	mutex_unlock(&scan.lock);
	for_each_possible_cpu(cpu) {
		stats->calls += READ_ONCE(per_cpu(call_counts, cpu).calls);
		stats->waits += READ_ONCE(per_cpu(call_counts, cpu).waits);
	}
}
EXPORT_SYMBOL_GPL(shazptr_get_stats);

static int stats_show(struct seq_file *file, void *unused)
{
	struct shazptr_stats stats;

	shazptr_get_stats(&stats);
	seq_printf(file, "calls %llu\nwaits %llu\nscans %llu\nmarks %llu\nhelped %llu\nlongest_ns %llu\nwaiting %llu\n",
		   stats.calls, stats.waits, stats.scans, stats.marks, stats.helped,
		   stats.longest_ns, stats.waiting);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static struct dentry *debugfs;

static void shazptr_free(void)
{
	kvfree(scan.views);
	kvfree(scan.blockers);
}

/*
 * Publishes the thread under the lock: a waiter that finds it, and takes the
 * lock to help, finds the arrays as well.
 */
static int __init start_scan_thread(void)
{
	struct task_struct *thread = kthread_run(shazptr_scan_thread, NULL, "shazptr_scan");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	mutex_lock(&scan.lock);
	WRITE_ONCE(scan.thread, thread);
	mutex_unlock(&scan.lock);
	return 0;
}

static int __init shazptr_init(void)
{
	int err;

	scan.views = kvcalloc(nr_cpu_ids, sizeof(*scan.views), GFP_KERNEL);
	scan.blockers = kvcalloc(nr_cpu_ids, sizeof(*scan.blockers), GFP_KERNEL);
	if (!scan.views || !scan.blockers) {
		shazptr_free();
		return -ENOMEM;
	}
	stall_init();
	err = early ? 0 : start_scan_thread();
	if (err) {
		shazptr_free();
		return err;
	}
	debugfs = debugfs_create_dir("shazptr", NULL);
	debugfs_create_file("stats", 0444, debugfs, NULL, &stats_fops);
	return 0;
}

/* No caller is left, because callers hold a reference to the module. */
static void __exit shazptr_exit(void)
{
	debugfs_remove(debugfs);
	if (scan.thread)
		kthread_stop(scan.thread);
	stall_exit();
	shazptr_free();
}

module_init(shazptr_init);
module_exit(shazptr_exit);
MODULE_DESCRIPTION("Simple hazard pointers: wait for the readers of one object");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
