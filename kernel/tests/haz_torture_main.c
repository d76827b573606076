// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Torture of hazard pointers, in the manner of rcutorture: writers replace
 * elements in several published pointers and wait; readers in tasks, softirqs
 * and hard interrupts protect some of them at once, for a moment or for long, and
 * check their ages.  Contexts of hazptr come and go meanwhile.
 *
 * A missing fence shows only while the store before it waits in the store
 * buffer of its CPU.  So with stuff=1 readers store to a few lines of 64 MB right
 * before the slot is written: these miss every cache, and the slot's store waits
 * behind them.  With two CPUs a missing fence of the reader is found in seconds.
 *
 * Usage in a guest:
 *	insmod haz_torture.ko torture_type=shazptr seconds=10; sleep 11
 *	rmmod haz_torture		prints KTAP, unless `seconds` are over
 * With a mutant (parameter mutant= of shazptr.ko or hazptr.ko), or
 * torture_type=busted, the KTAP has "not ok".
 */
#define pr_fmt(fmt) "haz-torture: " fmt

#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "haz_torture.h"
#include "ktap.h"

static char *torture_type = "shazptr";
module_param(torture_type, charp, 0444);
MODULE_PARM_DESC(torture_type, "Type to torture; a wrong name lists all types");
static int nreaders = -1;
module_param(nreaders, int, 0444);
MODULE_PARM_DESC(nreaders, "Reader threads; -1: one for each CPU but the first, at least one");
int nwriters = 1;
module_param(nwriters, int, 0444);
MODULE_PARM_DESC(nwriters, "Writer threads, each with pointers of its own");
static int seconds;
module_param(seconds, int, 0444);
MODULE_PARM_DESC(seconds, "How long; 0: until the module is removed");
int irqreader = 1;
module_param(irqreader, int, 0444);
MODULE_PARM_DESC(irqreader, "Read in softirqs and hard interrupts, too");
int stuff = 1;
module_param(stuff, int, 0444);
MODULE_PARM_DESC(stuff, "Let stores to slots wait behind stores to 64 MB of memory");
int tight;
module_param(tight, int, 0444);
MODULE_PARM_DESC(tight, "For shazptr: one pointer and short stays, so that reader and writer meet most often");
static int stutter = 3;
module_param(stutter, int, 0444);
MODULE_PARM_DESC(stutter, "Pause after so many seconds, and count the elements; 0: never");
int shuffle_interval = 3;
module_param(shuffle_interval, int, 0444);
MODULE_PARM_DESC(shuffle_interval, "Readers that may sleep move to another CPU; 0: they do not");
static int onoff_interval;
module_param(onoff_interval, int, 0444);
MODULE_PARM_DESC(onoff_interval, "Take the last CPU off line and back every so many seconds; 0: no");
static int stat_interval = 5;
module_param(stat_interval, int, 0444);
MODULE_PARM_DESC(stat_interval, "Seconds between reports; 0: none");

const struct torture_ops *ops;
struct writer *writers;
struct reader *readers;
bool pausing, stopping;
static struct task_struct *controller;
static DEFINE_MUTEX(report_lock);
static bool reported;

static bool all_paused(void)
{
	int i;

	for (i = 0; i < nwriters; i++)
		if (!READ_ONCE(writers[i].paused))
			return false;
	for (i = 0; i < nreaders; i++)
		if (!READ_ONCE(readers[i].paused))
			return false;
	return true;
}

/* Each element is published or free when all threads have ended. */
static void count_elements(void)
{
	int i, j;

	if (ops->drain)
		ops->drain();
	for (i = 0; i < nwriters; i++) {
		unsigned int nr = READ_ONCE(writers[i].nr_free);

		for (j = 0; j < POINTERS; j++)
			nr += !!writers[i].published[j];
		if (nr != POOL)
			note_error(&astray, "elements are missing", POOL - nr);
	}
}

static void pause_all(void)
{
	unsigned long end = jiffies + 20 * HZ;

	WRITE_ONCE(pausing, true);
	while (!all_paused() && time_before(jiffies, end) && !kthread_should_stop())
		msleep(20);
	if (all_paused())
		count_elements();
	else if (!kthread_should_stop())
		note_error(&stalls, "a thread did not pause", 0);
	WRITE_ONCE(pausing, false);
}

static unsigned long sum_reads(int level)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < nreaders; i++)
		sum += READ_ONCE(readers[i].levels[level].reads);
	return sum;
}

static unsigned long sum_came(void)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < nreaders; i++)
		sum += READ_ONCE(readers[i].came);
	return sum;
}

static unsigned long sum_replaced(void)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < nwriters; i++)
		sum += READ_ONCE(writers[i].replaced);
	return sum;
}

static void print_stats(void)
{
	unsigned long ages[AGES] = {}, empty = 0;
	int i, j;

	for (i = 0; i < nreaders * LEVELS; i++)
		for (j = 0; j < AGES; j++)
			ages[j] += READ_ONCE(readers[i / LEVELS].levels[i % LEVELS].ages[j]);
	for (i = 0; i < nwriters; i++)
		empty += READ_ONCE(writers[i].empty);
	pr_alert("%s ver: %lu reads: %lu softirq: %lu hardirq: %lu contexts: %lu\n", ops->name,
		 sum_replaced(), sum_reads(IN_TASK), sum_reads(IN_SOFTIRQ), sum_reads(IN_HARDIRQ),
		 sum_came());
	pr_alert("%s tfle: %lu early: %lu dead: %lu astray: %lu\n", ops->name, empty, early, dead,
		 astray);
	pr_alert("%s%sReader Pipe: %lu %lu %lu %lu\n", ops->name,
		 ages[2] + ages[3] ? " !!! " : " ", ages[0], ages[1], ages[2], ages[3]);
}

/* Counts an error if no element was replaced since the last call. */
static void check_stall(unsigned long *last)
{
	unsigned long now = sum_replaced();

	if (now == *last)
		note_error(&stalls, "??? Writer stall", 0);
	*last = now;
}

static void judge(bool has, unsigned long times, const char *name, const char *why)
{
	if (has)
		KTAP_OK(times > 10, name);
	else
		ktap_skip(name, why);
}

static void report(void)
{
	mutex_lock(&report_lock);
	if (!reported) {
		reported = true;
		print_stats();
		ktap_start(9);
		KTAP_OK(sum_reads(IN_TASK) > 100, "readers ran");
		judge(irqreader, sum_reads(IN_SOFTIRQ), "readers ran in softirqs", "irqreader=0");
		judge(irqreader, sum_reads(IN_HARDIRQ), "readers ran in hard interrupts",
		      "irqreader=0");
		judge(ops->contexts, sum_came(), "contexts came and went", "the type has none");
		KTAP_OK(sum_replaced() > 20, "writers ran");
		KTAP_OK(!early, "no element was released early");
		KTAP_OK(!dead, "no element was reused early");
		KTAP_OK(!astray, "all elements came back");
		KTAP_OK(!stalls, "no thread stood still");
		pr_alert("%s--- End of test: %s\n", ops->name,
			 early || dead || astray || stalls ? "FAILURE" : "SUCCESS");
	}
	mutex_unlock(&report_lock);
}

static void stop_thread(struct task_struct **task)
{
	if (!IS_ERR_OR_NULL(*task))
		kthread_stop(*task);
	*task = NULL;
}

static void stop_all(void)
{
	int i;

	WRITE_ONCE(stopping, true);
	for (i = 0; i < nwriters; i++)
		stop_thread(&writers[i].task);
	for (i = 0; i < nreaders; i++)
		stop_thread(&readers[i].task);
	if (ops->drain)
		ops->drain();
}

static void cycle_cpu(void)
{
	unsigned int cpu = cpumask_last(cpu_online_mask);

	if (num_online_cpus() > 1 && !remove_cpu(cpu)) {
		msleep(200);
		add_cpu(cpu);
	}
}

static bool due(int second, int interval)
{
	return interval && second && second % interval == 0;
}

static int controller_thread(void *unused)
{
	unsigned long last = 0;
	int second;

	for (second = 1; !kthread_should_stop() && (!seconds || second <= seconds); second++) {
		schedule_timeout_interruptible(HZ);
		if (due(second, stat_interval))
			print_stats();
		if (due(second, 5))
			check_stall(&last);
		if (due(second, onoff_interval))
			cycle_cpu();
		if (due(second, stutter))
			pause_all();
	}
	if (!kthread_should_stop()) {
		stop_all();
		count_elements();
		report();
	}
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 10);
	return 0;
}

static void free_all(void)
{
	int i;

	for (i = 0; readers && i < nreaders; i++)
		cleanup_reader(&readers[i]);
	for (i = 0; writers && i < nwriters; i++)
		kfree(writers[i].pool);
	free_stuffing();
	kfree(writers);
	kfree(readers);
}

/*
 * The scan reads the reader's CPU first, so little time passes between the
 * unlinking and the read of the slot.
 */
static void place(struct task_struct *task, unsigned int cpu)
{
	if (tight)
		kthread_bind(task, cpu);
	wake_up_process(task);
}

static int start_threads(void)
{
	int i;

	for (i = 0; i < nwriters; i++) {
		writers[i].task = kthread_create(writer_thread, &writers[i], "haz_writer");
		if (IS_ERR(writers[i].task))
			return PTR_ERR(writers[i].task);
		place(writers[i].task, cpumask_last(cpu_online_mask));
	}
	for (i = 0; i < nreaders; i++) {
		readers[i].task = kthread_create(reader_thread, &readers[i], "haz_reader");
		if (IS_ERR(readers[i].task))
			return PTR_ERR(readers[i].task);
		place(readers[i].task, cpumask_first(cpu_online_mask));
	}
	controller = kthread_run(controller_thread, NULL, "haz_torture");
	return PTR_ERR_OR_ZERO(controller);
}

static int __init haz_torture_init(void)
{
	int i, err;

	ops = torture_ops_find(torture_type);
	if (!ops) {
		torture_ops_list();
		return -EINVAL;
	}
	if (nreaders < 0)
		nreaders = max(1, (int)num_online_cpus() - 1);
	if (nwriters < 1 || !nreaders || seconds < 0)
		return -EINVAL;
	writers = kcalloc(nwriters, sizeof(*writers), GFP_KERNEL);
	readers = kcalloc(nreaders, sizeof(*readers), GFP_KERNEL);
	err = init_stuffing();
	for (i = 0; readers && i < nreaders; i++)
		init_reader(&readers[i]);
	if (!writers || !readers)
		err = -ENOMEM;
	for (i = 0; !err && i < nwriters; i++)
		err = init_writer(&writers[i]);
	if (!err) {
		pr_alert("%s--- Start of test: nreaders=%d nwriters=%d seconds=%d\n", ops->name,
			 nreaders, nwriters, seconds);
		err = start_threads();
		if (err)
			stop_all();
	}
	if (err)
		free_all();
	return err;
}

static void __exit haz_torture_exit(void)
{
	stop_thread(&controller);
	stop_all();
	count_elements();
	report();
	free_all();
}

module_init(haz_torture_init);
module_exit(haz_torture_exit);
MODULE_DESCRIPTION("Torture of hazard pointers");
MODULE_AUTHOR("The quiesce authors");
MODULE_LICENSE("Dual MIT/GPL");
