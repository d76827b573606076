/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Private to shazptr.c: limits and parameters, and how the report of a stall
 * shows the task that holds a guard.
 *
 * A slot has no room for a task, but preemption is disabled under a guard: the
 * task is the one that its CPU runs.  Each CPU that a late waiter waits for is
 * interrupted, and shows its task and its stack.  That is asynchronous, because
 * the CPU may have disabled interrupts as well.
 */
#ifndef QUIESCE_SHAZPTR_LOCAL_H
#define QUIESCE_SHAZPTR_LOCAL_H

#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/time64.h>

#define PAUSE_MIN_NS (20 * NSEC_PER_USEC)
#define PAUSE_MAX_NS (10 * NSEC_PER_MSEC)
/* A waiter helps if there was no scan for this long. */
#define HELP_JIFFIES max(HZ / 10, 1)

/* Most CPUs whose stacks a report has. */
#define SHOWN_MAX 4

static int skip_synchronize_self_scan;
module_param(skip_synchronize_self_scan, int, 0644);
MODULE_PARM_DESC(skip_synchronize_self_scan,
		 "Leave the first scan to the scan thread, which spares callers a walk over all CPUs");

static uint stall_timeout = 21;
module_param(stall_timeout, uint, 0644);
MODULE_PARM_DESC(stall_timeout, "Report a wait after so many seconds, and after twice as many again; 0: never");

#ifdef QUIESCE_DEBUG
static bool early;
module_param(early, bool, 0444);
MODULE_PARM_DESC(early, "For tests: never start the scan thread, as before the module is initialised");
#else
#define early false
#endif

static void show_this_cpu(void *unused)
{
	pr_warn("CPU %d runs %s/%d:\n", raw_smp_processor_id(), current->comm,
		task_pid_nr(current));
	dump_stack();
}

static DEFINE_PER_CPU(call_single_data_t, stall_shows);

/* The loader of modules does not relocate initial values of variables per CPU. */
static void __init stall_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_CSD(&per_cpu(stall_shows, cpu), show_this_cpu, NULL);
}

/* Does nothing for a CPU that has not yet answered the report before. */
static void stall_show_cpu(int cpu)
{
	smp_call_function_single_async(cpu, &per_cpu(stall_shows, cpu));
}

static void nothing(void *unused)
{
}

/*
 * Waits until no CPU will run show_this_cpu() any more.  An interrupt runs the calls whose callers
 * wait before the others that are queued, so a CPU that has answered may still be in it; the grace
 * period lasts until it has left.
 */
static void stall_exit(void)
{
	on_each_cpu(nothing, NULL, true);
	synchronize_rcu();
}

#endif /* QUIESCE_SHAZPTR_LOCAL_H */
