// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The duration of updaters' waits, in the manner of rcuscale: writers wait again
 * and again, while readers enter and leave sections on all CPUs.
 *
 * The types take turns, a few waits each, so that all run under the same
 * conditions.  With conflict=0 readers protect addresses that no writer waits
 * for, as in the row "shazptr" of the posting: the time is that of a scan.  With
 * conflict=1 they protect the objects that the writers wait for, except for
 * hazptr, whose objects have to be unlinked before.  The wildcard blocks all waits.
 *
 * Usage in a guest:
 *	insmod haz_rcuscale.ko scale_type=rcu,shazptr,shazptr_wildcard
 *	dmesg; rmmod haz_rcuscale	the run has ended when insmod returns
 *	echo 1 > /sys/module/shazptr/parameters/skip_synchronize_self_scan
 *	insmod haz_rcuscale.ko scale_type=shazptr,shazptr_wildcard label=_skip_self_scan
 */
#define pr_fmt(fmt) "haz-rcu-scale: " fmt

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/timekeeping.h>

#include <linux/hazptr.h>
#include <linux/shazptr.h>

#include "haz_stats.h"
#include "ktap.h"

static char *scale_type = "rcu,rcu_exp,srcu,shazptr,shazptr_wildcard,hazptr";
module_param(scale_type, charp, 0444);
MODULE_PARM_DESC(scale_type, "Types, with commas between; a wrong one lists them");
static char *label = "";
module_param(label, charp, 0444);
MODULE_PARM_DESC(label, "Text printed behind the names of types");
static int nreaders = -1;
module_param(nreaders, int, 0444);
MODULE_PARM_DESC(nreaders, "Reader threads; -1: one for each CPU");
static int nwriters = 1;
module_param(nwriters, int, 0444);
MODULE_PARM_DESC(nwriters, "Writer threads");
static int minmeas = 100;
module_param(minmeas, int, 0444);
MODULE_PARM_DESC(minmeas, "Waits of each writer and type");
static int conflict;
module_param(conflict, int, 0444);
MODULE_PARM_DESC(conflict, "1: readers of shazptr protect what writers wait for");
static int readdelay = 1000;
module_param(readdelay, int, 0444);
MODULE_PARM_DESC(readdelay, "Nanoseconds in each section of a reader");
static int writer_holdoff = 40;
module_param(writer_holdoff, int, 0444);
MODULE_PARM_DESC(writer_holdoff, "Microseconds between two waits, so that they do not keep in step with readers");
static int verbose;
module_param(verbose, int, 0444);
MODULE_PARM_DESC(verbose, "2: print each wait");

/* Waits of a type before the turn of the next one. */
#define TURN 10

struct object {
	long number;
	struct callback_head head;
	struct completion done;
};

/* The objects that readers protect, one for each CPU, and that writers wait for. */
static struct object *keys;
static struct object common;
DEFINE_STATIC_SRCU(srcu);

struct reader {
	struct hazptr_context ctx;
	hazptr_t *slot;
	struct object *key;
	struct object *gp;
	struct task_struct *task;
	unsigned int done;		/* last round with a section; written by the reader */
};

static void section_shazptr(struct reader *reader)
{
	struct shazptr_guard guard;

	preempt_disable();
	guard = shazptr_acquire(reader->key);
	ndelay(readdelay);
	shazptr_clear(guard);
	preempt_enable();
}

static void section_wildcard(struct reader *reader)
{
	struct shazptr_guard guard;

	preempt_disable();
	guard = shazptr_acquire(SHAZPTR_WILDCARD);
	ndelay(readdelay);
	shazptr_clear(guard);
	preempt_enable();
}

static void section_hazptr(struct reader *reader)
{
	hazptr_protect(reader->slot, &reader->gp, head);
	ndelay(readdelay);
	hazptr_clear(reader->slot);
}

static void section_rcu(struct reader *reader)
{
	rcu_read_lock();
	ndelay(readdelay);
	rcu_read_unlock();
}

static void section_srcu(struct reader *reader)
{
	int idx = srcu_read_lock(&srcu);

	ndelay(readdelay);
	srcu_read_unlock(&srcu, idx);
}

static void wait_rcu(struct object *object)
{
	synchronize_rcu();
}

static void wait_rcu_exp(struct object *object)
{
	synchronize_rcu_expedited();
}

static void wait_srcu(struct object *object)
{
	synchronize_srcu(&srcu);
}

static void wait_shazptr(struct object *object)
{
	synchronize_shazptr(object);
}

static void wait_hazptr(struct object *object)
{
	synchronize_hazptr(&object->head);
}

static void object_done(struct callback_head *head)
{
	complete(&container_of(head, struct object, head)->done);
}

/* Time from the call until the callback has run. */
static void wait_call_hazptr(struct object *object)
{
	init_completion(&object->done);
	call_hazptr(&object->head, object_done);
	wait_for_completion(&object->done);
}

struct type {
	const char *name;
	void (*section)(struct reader *reader);
	void (*wait)(struct object *object);
	bool keyed;		/* all writers may wait for one address at a time */
	u64 *waits;		/* ns; nwriters times minmeas */
	u64 met;		/* waits of shazptr that met a reader */
};

static struct type types[] = {
	{ "rcu", section_rcu, wait_rcu }, { "rcu_exp", section_rcu, wait_rcu_exp },
	{ "srcu", section_srcu, wait_srcu }, { "shazptr", section_shazptr, wait_shazptr, true },
	{ "shazptr_wildcard", section_wildcard, wait_shazptr, true },
	{ "hazptr", section_hazptr, wait_hazptr },
	{ "hazptr_call", section_hazptr, wait_call_hazptr },
};

struct writer {
	struct task_struct *task;
	struct object own;
	unsigned int nr;
};

static struct reader *readers;
static struct writer *writers;
static struct type *type_now;
static atomic_t at_work;
static unsigned int round_now;		/* round of the readers, while writers wait; or 0 */
static unsigned int last_round;
static unsigned int turn;
static DECLARE_WAIT_QUEUE_HEAD(wait);

static unsigned int round_on(void)
{
	/* TK7: acquire, pairs with TK7 in start_sections() */
	return smp_load_acquire(&round_now);
}

static int reader_thread(void *arg)
{
	struct reader *reader = arg;
	unsigned int seen;
	int i;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		struct type *type;

		wait_event(wait, (seen = round_on()) || kthread_should_stop());
		type = READ_ONCE(type_now);
		for (i = 0; seen && i < 100; i++)
			type->section(reader);
		/*
		 * Stores the number of the round, so that sections for the type
		 * before do not count for this one.
		 */
		if (seen)
			WRITE_ONCE(reader->done, seen);
		cond_resched();
		/* A writer needs this CPU, too; on the others a guard is almost always held. */
		if (reader < readers + nwriters)
			usleep_range(20, 50);
	}
	return 0;
}

static void wait_for_readers(struct writer *writer, struct type *type, int number)
{
	/* Only one writer at a time queues a callback head. */
	struct object *object = conflict && type->keyed ? &common : &writer->own;
	u64 start;
	int i;

	for (i = 0; i < TURN && writer->nr + i < minmeas; i++) {
		start = ktime_get_mono_fast_ns();
		type->wait(object);
		type->waits[number * minmeas + writer->nr + i] = ktime_get_mono_fast_ns() - start;
		udelay(writer_holdoff);
	}
}

static bool new_turn(unsigned int seen)
{
	/* TK5: acquire, pairs with TK5 in one_turn() */
	return smp_load_acquire(&turn) != seen;
}

static int writer_thread(void *arg)
{
	struct writer *writer = arg;
	unsigned int seen = 0;

	while (!kthread_should_stop()) {
		wait_event(wait, kthread_should_stop() || new_turn(seen));
		if (kthread_should_stop())
			break;
		seen = READ_ONCE(turn);
		wait_for_readers(writer, type_now, writer - writers);
		/* The times are stored before the end: TK6: full, pairs with TK6 in one_turn() */
		if (atomic_dec_and_test(&at_work))
			wake_up_all(&wait);
	}
	return 0;
}

/*
 * A turn may be over before a reader has woken up: so the waits begin when all
 * readers have sections.
 */
static void start_sections(struct type *type)
{
	int i;

	if (!++last_round)
		last_round = 1;
	WRITE_ONCE(type_now, type);
	/* A thread that is not asleep takes no lock: TK7: release, pairs with TK7 in round_on() */
	smp_store_release(&round_now, last_round);
	wake_up_all(&wait);
	for (i = 0; i < nreaders; i++)
		while (READ_ONCE(readers[i].done) != last_round)
			usleep_range(20, 50);
}

/* Counts the waits of all callers in the system: there should be no others. */
static u64 waits_so_far(void)
{
	struct shazptr_stats stats;

	shazptr_get_stats(&stats);
	return stats.waits;
}

static void one_turn(struct type *type, unsigned int nr)
{
	u64 before = waits_so_far();
	int i;

	start_sections(type);
	for (i = 0; i < nwriters; i++)
		writers[i].nr = nr;
	atomic_set(&at_work, nwriters);
	/* TK5: release, pairs with TK5 in new_turn() */
	smp_store_release(&turn, turn + 1);
	wake_up_all(&wait);
	/* TK6: acquire, pairs with TK6 in writer_thread() */
	wait_event(wait, !atomic_read_acquire(&at_work));
	WRITE_ONCE(round_now, 0);
	type->met += waits_so_far() - before;
}

static struct type *find_type(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	pr_alert("no type %s; there are\n", name);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		pr_alert("  %s\n", types[i].name);
	return NULL;
}

static int choose_types(void)
{
	char *names = kstrdup(scale_type, GFP_KERNEL), *rest = names, *name;
	int err = names ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ","))) {
		struct type *type = find_type(name);

		if (!type) {
			err = -EINVAL;
		} else if (!type->waits) {
			type->waits = kvcalloc(nwriters * minmeas, sizeof(u64), GFP_KERNEL);
			err = type->waits ? 0 : -ENOMEM;
		}
	}
	kfree(names);
	return err;
}

static void report(struct type *type)
{
	unsigned int i, nr = nwriters * minmeas;
	u64 *waits = type->waits, sum = 0;

	for (i = 0; i < nr; i++) {
		sum += waits[i];
		if (verbose >= 2)
			pr_alert("%s-scale: %4d writer-duration: %5d %llu\n", type->name,
				 i / minmeas, i % minmeas, waits[i]);
	}
	haz_sort(waits, nr);
	sum = div_u64(sum, nr);
	pr_alert("%s%s: avg %llu min %llu p50 %llu p90 %llu p99 %llu max %llu ns n %u met %llu\n",
		 type->name, label, sum, waits[0], haz_median(waits, nr),
		 haz_percentile(waits, nr, 90), haz_percentile(waits, nr, 99), waits[nr - 1], nr,
		 type->met);
}

/*
 * True if no wait met a reader although readers should block it: the contended
 * wait has not been measured.
 */
static bool missed(const struct type *type)
{
	bool contended = type->keyed && (conflict || type->section == section_wildcard);

	return contended && nreaders && !type->met;
}

static int run_all(void)
{
	unsigned int nr;
	int i, chosen = 0;

	for (nr = 0; nr < minmeas; nr += TURN)
		for (i = 0; i < ARRAY_SIZE(types); i++) {
			if (fatal_signal_pending(current))
				return -EINTR;
			if (types[i].waits)
				one_turn(&types[i], nr);
		}
	for (i = 0; i < ARRAY_SIZE(types); i++)
		chosen += !!types[i].waits;
	pr_alert("Test complete\n");
	ktap_start(chosen);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (!types[i].waits)
			continue;
		report(&types[i]);
		/* The waits are sorted: if the first is not 0, all have been timed. */
		if (types[i].waits[0] && missed(&types[i]))
			ktap_skip(types[i].name, "no wait met a reader");
		else
			KTAP_OK(types[i].waits[0] > 0, types[i].name);
	}
	return 0;
}

static unsigned int next_cpu(unsigned int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

static int start_readers(void)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	int i;

	for (i = 0; i < nreaders; i++) {
		struct reader *reader = &readers[i];

		init_hazptr_context(&reader->ctx);
		reader->slot = hazptr_alloc(&reader->ctx);
		reader->key = conflict ? &common : &keys[i];
		reader->gp = &keys[i];
	}
	for (i = 0; i < nreaders; i++) {
		readers[i].task = haz_thread(reader_thread, &readers[i], cpu, "haz_read");
		if (IS_ERR(readers[i].task))
			return PTR_ERR(readers[i].task);
		cpu = next_cpu(cpu);
	}
	return 0;
}

static int start_writers(void)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	int i;

	for (i = 0; i < nwriters; i++) {
		writers[i].task = haz_thread(writer_thread, &writers[i], cpu, "haz_write");
		if (IS_ERR(writers[i].task))
			return PTR_ERR(writers[i].task);
		cpu = next_cpu(cpu);
	}
	return 0;
}

static void stop_all(void)
{
	int i;

	for (i = 0; i < nwriters; i++)
		if (!IS_ERR_OR_NULL(writers[i].task))
			kthread_stop(writers[i].task);
	for (i = 0; i < nreaders; i++) {
		if (!IS_ERR_OR_NULL(readers[i].task))
			kthread_stop(readers[i].task);
		if (readers[i].slot)
			cleanup_hazptr_context(&readers[i].ctx);
	}
	/* The code of the callbacks is in this module. */
	hazptr_barrier();
}

static int __init haz_rcuscale_init(void)
{
	int i, err;

	if (nreaders < 0)
		nreaders = num_online_cpus();
	if (nwriters < 1 || nwriters > 4096 || minmeas < 1 || minmeas > 10000)
		return -EINVAL;
	readers = kcalloc(nreaders ?: 1, sizeof(*readers), GFP_KERNEL);
	keys = kcalloc(nreaders ?: 1, sizeof(*keys), GFP_KERNEL);
	writers = kcalloc(nwriters, sizeof(*writers), GFP_KERNEL);
	err = readers && keys && writers ? choose_types() : -ENOMEM;
	if (!err) {
		err = start_readers() ?: start_writers();
		if (!err)
			err = run_all();
		stop_all();
	}
	for (i = 0; i < ARRAY_SIZE(types); i++)
		kvfree(types[i].waits);
	kfree(writers);
	kfree(keys);
	kfree(readers);
	return err;
}

static void __exit haz_rcuscale_exit(void)
{
}

module_init(haz_rcuscale_init);
module_exit(haz_rcuscale_exit);
MODULE_DESCRIPTION("How long updaters wait for readers of hazard pointers and others");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
