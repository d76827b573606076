// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The cost of read-side sections, in the manner of refscale: threads on CPUs of
 * their own enter and leave sections in a loop, all at the same time.
 *
 * The types take turns, run by run, so that all run under the same conditions.
 * The timed pass has interrupts off, where the type allows it, and begins and
 * ends while all other threads run as well.
 *
 * Usage in a guest:
 *	insmod haz_refscale.ko scale_type=noop,preempt,rcu,shazptr loops=10000 nruns=9
 *	dmesg; rmmod haz_refscale	the run has ended when insmod returns
 * With QEMU's -icount shift=0 and one CPU a nanosecond is an instruction.
 */
#define pr_fmt(fmt) "haz-ref-scale: " fmt

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu-refcount.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/timekeeping.h>

#include <linux/hazptr.h>
#include <linux/shazptr.h>

#include "haz_stats.h"
#include "ktap.h"

static char *scale_type = "noop,preempt,rcu,srcu,refcnt,percpu_ref,shazptr,shazptr_wildcard,hazptr";
module_param(scale_type, charp, 0444);
MODULE_PARM_DESC(scale_type, "Types, with commas between; a wrong one lists them");
static int nreaders = -1;
module_param(nreaders, int, 0444);
MODULE_PARM_DESC(nreaders, "Reader threads; -1: one for each CPU");
static int loops = 10000;
module_param(loops, int, 0444);
MODULE_PARM_DESC(loops, "Sections in a run");
static int nruns = 9;
module_param(nruns, int, 0444);
MODULE_PARM_DESC(nruns, "Runs of each type");
static int readdelay;
module_param(readdelay, int, 0444);
MODULE_PARM_DESC(readdelay, "Nanoseconds in each section");
static int verbose;
module_param(verbose, int, 0444);
MODULE_PARM_DESC(verbose, "1: print each run");

struct object {
	long number;
	struct callback_head head;
};

struct reader {
	struct hazptr_context ctx;
	hazptr_t *slot;
	struct task_struct *task;
	u64 ns;
};

static struct object object;
static struct object *published = &object;
static atomic_t counter = ATOMIC_INIT(1);
static DEFINE_RWLOCK(rwlock);
static DECLARE_RWSEM(rwsem);
static DEFINE_SPINLOCK(lock);
DEFINE_STATIC_SRCU(srcu);
static struct percpu_ref percpu_ref;

/* Two loops for each type: without a delay the section contains the primitive alone. */
#define DEFINE_TYPE(name, declare, enter, leave)					\
static void read_##name(struct reader *reader, int nr)					\
{											\
	declare;									\
	int i;										\
											\
	if (!readdelay) {								\
		for (i = 0; i < nr; i++) {						\
			enter;								\
			barrier();							\
			leave;								\
		}									\
		return;									\
	}										\
	for (i = 0; i < nr; i++) {							\
		enter;									\
		udelay(readdelay / 1000);						\
		ndelay(readdelay % 1000);						\
		leave;									\
	}										\
}

#define NOTHING ((void)0)

DEFINE_TYPE(noop, NOTHING, NOTHING, NOTHING)
DEFINE_TYPE(preempt, NOTHING, preempt_disable(), preempt_enable())
DEFINE_TYPE(rcu, NOTHING, rcu_read_lock(), rcu_read_unlock())
DEFINE_TYPE(srcu, int idx, idx = srcu_read_lock(&srcu), srcu_read_unlock(&srcu, idx))
DEFINE_TYPE(refcnt, NOTHING, atomic_inc(&counter), atomic_dec(&counter))
DEFINE_TYPE(percpu_ref, NOTHING, percpu_ref_get(&percpu_ref), percpu_ref_put(&percpu_ref))
DEFINE_TYPE(shazptr, struct shazptr_guard guard,
	    preempt_disable(); guard = shazptr_acquire(&object),
	    shazptr_clear(guard); preempt_enable())
DEFINE_TYPE(shazptr_bare, struct shazptr_guard guard,
	    guard = shazptr_acquire(&object), shazptr_clear(guard))
DEFINE_TYPE(shazptr_protect, struct shazptr_guard guard,
	    preempt_disable(); (void)shazptr_tryprotect(&guard, &published),
	    shazptr_clear(guard); preempt_enable())
DEFINE_TYPE(shazptr_nested, struct shazptr_guard outer; struct shazptr_guard inner,
	    preempt_disable(); outer = shazptr_acquire(&object); inner = shazptr_acquire(&counter),
	    shazptr_clear(inner); shazptr_clear(outer); preempt_enable())
DEFINE_TYPE(shazptr_wildcard, struct shazptr_guard guard,
	    preempt_disable(); guard = shazptr_acquire(SHAZPTR_WILDCARD),
	    shazptr_clear(guard); preempt_enable())
DEFINE_TYPE(hazptr, NOTHING, (void)hazptr_tryprotect(reader->slot, &published, head),
	    hazptr_clear(reader->slot))
DEFINE_TYPE(hazptr_alloc, hazptr_t *slot,
	    slot = hazptr_alloc(&reader->ctx); (void)hazptr_tryprotect(slot, &published, head),
	    hazptr_free(&reader->ctx, slot))
DEFINE_TYPE(rwlock, NOTHING, read_lock(&rwlock), read_unlock(&rwlock))
DEFINE_TYPE(rwsem, NOTHING, down_read(&rwsem), up_read(&rwsem))
DEFINE_TYPE(lock_type, NOTHING, spin_lock(&lock), spin_unlock(&lock))

#define IRQS_ON 1	/* the section may sleep or wake a task */
#define PINNED 2	/* the caller has to disable preemption */

/* Sections without a delay that are timed in one piece. */
#define PIECE_SECTIONS 10000

struct type {
	const char *name;
	void (*read)(struct reader *reader, int nr);
	unsigned int flags;
	u64 *runs;	/* picoseconds per section, one value for each run */
};

/* The locks of the real-time kernel sleep. */
#define LOCK_FLAGS (IS_ENABLED(CONFIG_PREEMPT_RT) ? IRQS_ON : 0)

static struct type types[] = {
	{ "noop", read_noop }, { "preempt", read_preempt },
	{ "rcu", read_rcu }, { "srcu", read_srcu },
	{ "refcnt", read_refcnt }, { "percpu_ref", read_percpu_ref }, { "shazptr", read_shazptr },
	{ "shazptr_bare", read_shazptr_bare, PINNED },
	{ "shazptr_protect", read_shazptr_protect },
	{ "shazptr_nested", read_shazptr_nested }, { "shazptr_wildcard", read_shazptr_wildcard },
	{ "hazptr", read_hazptr }, { "hazptr_alloc", read_hazptr_alloc },
	{ "rwlock", read_rwlock, LOCK_FLAGS }, { "rwsem", read_rwsem, IRQS_ON },
	{ "lock", read_lock_type, LOCK_FLAGS },
};

static struct reader *readers;
static struct type *type_now;
static atomic_t started, warm, finished, left;
static unsigned int round_now;
static DECLARE_WAIT_QUEUE_HEAD(wait);

static void arrive(atomic_t *here)
{
	atomic_inc(here);
}

static bool all_are(const atomic_t *here)
{
	return atomic_read(here) >= nreaders;
}

/* Times one piece with interrupts off. */
static u64 timed_piece(struct reader *reader, const struct type *type, int nr)
{
	bool irqs_on = type->flags & IRQS_ON;
	unsigned long flags = 0;
	u64 start, ns;

	if (type->flags & PINNED)
		preempt_disable();
	if (!irqs_on)
		local_irq_save(flags);
	start = ktime_get_mono_fast_ns();
	type->read(reader, nr);
	ns = ktime_get_mono_fast_ns() - start;
	if (!irqs_on)
		local_irq_restore(flags);
	if (type->flags & PINNED)
		preempt_enable();
	return ns;
}

/* Interrupts are off for a few milliseconds only, however many sections there are. */
static void timed_pass(struct reader *reader, const struct type *type)
{
	int piece = max(1, PIECE_SECTIONS / (1 + readdelay / 100)), done, nr;

	reader->ns = 0;
	for (done = 0; done < loops; done += nr) {
		nr = min(loops - done, piece);
		reader->ns += timed_piece(reader, type, nr);
		cond_resched();
	}
}

static void load_until(struct reader *reader, const struct type *type, const atomic_t *here)
{
	do {
		if (type->flags & PINNED)
			preempt_disable();
		type->read(reader, loops / 10 + 1);
		if (type->flags & PINNED)
			preempt_enable();
		cond_resched();
	} while (!all_are(here));
}

static void run_once(struct reader *reader, const struct type *type)
{
	arrive(&started);
	while (!all_are(&started))
		cond_resched();
	load_until(reader, type, &started);
	arrive(&warm);
	load_until(reader, type, &warm);
	timed_pass(reader, type);
	arrive(&finished);
	load_until(reader, type, &finished);
	/* The time is stored before the end: TK4: release, pairs with TK4 in one_run() */
	atomic_inc_return_release(&left);
	wake_up_all(&wait);
}

static bool new_round(unsigned int seen)
{
	/* TK3: acquire, pairs with TK3 in one_run() */
	return smp_load_acquire(&round_now) != seen;
}

static int reader_thread(void *arg)
{
	struct reader *reader = arg;
	unsigned int seen = 0;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		wait_event(wait, kthread_should_stop() || new_round(seen));
		if (kthread_should_stop())
			break;
		seen = READ_ONCE(round_now);
		run_once(reader, type_now);
	}
	return 0;
}

static u64 one_run(struct type *type)
{
	u64 sum = 0;
	int i;

	type_now = type;
	atomic_set(&started, 0);
	atomic_set(&warm, 0);
	atomic_set(&finished, 0);
	atomic_set(&left, 0);
	/* A reader that is not asleep takes no lock: the type and the counters come first. */
	/* TK3: release, pairs with TK3 in new_round() */
	smp_store_release(&round_now, round_now + 1);
	wake_up_all(&wait);
	/* TK4: acquire, pairs with TK4 in run_once() */
	wait_event(wait, atomic_read_acquire(&left) >= nreaders);
	for (i = 0; i < nreaders; i++)
		sum += readers[i].ns;
	return div_u64(sum * 1000, nreaders * loops);
}

static struct type *find_type(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

static void list_types(const char *wrong)
{
	int i;

	pr_alert("no type %s; there are\n", wrong);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		pr_alert("  %s\n", types[i].name);
}

/* Allocates room for the results of the chosen types. */
static int choose_types(void)
{
	char *names = kstrdup(scale_type, GFP_KERNEL), *rest = names, *name;
	int err = names ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ","))) {
		struct type *type = find_type(name);

		if (!type) {
			list_types(name);
			err = -EINVAL;
		} else if (!type->runs) {
			type->runs = kcalloc(nruns, sizeof(u64), GFP_KERNEL);
			err = type->runs ? 0 : -ENOMEM;
		}
	}
	kfree(names);
	return err;
}

/* 32-bit kernels have no division of 64 bits but these. */
static u64 whole_ns(u64 ps)
{
	return div_u64(ps, 1000);
}

static u32 rest_ps(u64 ps)
{
	u32 rest;

	div_u64_rem(ps, 1000, &rest);
	return rest;
}

static void report(struct type *type)
{
	u64 median, most;
	int i;

	for (i = 0; verbose && i < nruns; i++)
		pr_alert("%s %d\t%llu.%03u\n", type->name, i + 1, whole_ns(type->runs[i]),
			 rest_ps(type->runs[i]));
	haz_sort(type->runs, nruns);
	median = haz_median(type->runs, nruns);
	most = type->runs[nruns - 1];
	pr_alert("%s: median %llu.%03u ns min %llu.%03u max %llu.%03u nreaders %d\n",
		 type->name, whole_ns(median), rest_ps(median), whole_ns(type->runs[0]),
		 rest_ps(type->runs[0]), whole_ns(most), rest_ps(most), nreaders);
}

static void stop_readers(void)
{
	int i;

	for (i = 0; i < nreaders; i++) {
		if (!IS_ERR_OR_NULL(readers[i].task))
			kthread_stop(readers[i].task);
		cleanup_hazptr_context(&readers[i].ctx);
	}
	kfree(readers);
}

static int start_readers(void)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	int i, err = 0;

	readers = kcalloc(nreaders, sizeof(*readers), GFP_KERNEL);
	if (!readers)
		return -ENOMEM;
	for (i = 0; i < nreaders; i++) {
		init_hazptr_context(&readers[i].ctx);
		readers[i].slot = hazptr_alloc(&readers[i].ctx);
	}
	for (i = 0; i < nreaders && !err; i++) {
		readers[i].task = haz_thread(reader_thread, &readers[i], cpu, "haz_ref");
		err = PTR_ERR_OR_ZERO(readers[i].task);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	}
	if (err)
		stop_readers();
	return err;
}

static int run_all(void)
{
	int i, run, nr = 0;

	for (run = 0; run < nruns; run++)
		for (i = 0; i < ARRAY_SIZE(types); i++) {
			if (fatal_signal_pending(current))
				return -EINTR;
			if (types[i].runs)
				types[i].runs[run] = one_run(&types[i]);
		}
	for (i = 0; i < ARRAY_SIZE(types); i++)
		nr += !!types[i].runs;
	pr_alert("END OF TEST\n");
	ktap_start(nr);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (!types[i].runs)
			continue;
		report(&types[i]);
		KTAP_OK(types[i].runs[0] > 0, types[i].name);
	}
	return 0;
}

static void release_percpu_ref(struct percpu_ref *ref)
{
}

static int __init haz_refscale_init(void)
{
	int i, err;

	if (nreaders < 0)
		nreaders = num_online_cpus();
	if (nreaders < 1 || loops < 1 || nruns < 1 || readdelay < 0 || loops > INT_MAX / nreaders)
		return -EINVAL;
	err = percpu_ref_init(&percpu_ref, release_percpu_ref, 0, GFP_KERNEL);
	if (err)
		return err;
	err = choose_types();
	if (!err)
		err = start_readers();
	if (!err) {
		err = run_all();
		stop_readers();
	}
	for (i = 0; i < ARRAY_SIZE(types); i++)
		kfree(types[i].runs);
	percpu_ref_exit(&percpu_ref);
	return err;
}

static void __exit haz_refscale_exit(void)
{
}

module_init(haz_refscale_init);
module_exit(haz_refscale_exit);
MODULE_DESCRIPTION("Cost of readers of hazard pointers and others");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
