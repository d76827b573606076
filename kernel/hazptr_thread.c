// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Hazard pointers: the worker, a thread that scans on request, and after a while.
 *
 * It is a thread of its own, not a work of a workqueue: callbacks may wait for
 * works of any queue, and it needs no memory to run.  It is never frozen.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/version.h>

#include "hazptr_scan.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define timer_delete_sync del_timer_sync
#endif

static struct task_struct *worker;
static DEFINE_SPINLOCK(lock);	/* guards wanted; nothing nests inside */
static bool wanted;

/* Makes the worker scan at once; requests that are queued before take part in the scan. */
void hazptr_wake(void)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	wanted = true;
	spin_unlock_irqrestore(&lock, flags);
	wake_up_process(worker);
}

static void timer_wakes(struct timer_list *unused)
{
	hazptr_wake();
}

static DEFINE_TIMER(timer, timer_wakes);

/* Makes the worker scan after so many ticks, unless it is to scan before anyway. */
void hazptr_wake_later(unsigned long ticks)
{
	timer_reduce(&timer, jiffies + ticks);
}

static bool take_request(void)
{
	bool was;

	spin_lock_irq(&lock);
	was = wanted;
	wanted = false;
	spin_unlock_irq(&lock);
	return was;
}

static int work(void *unused)
{
	unsigned long pause = MAX_SCHEDULE_TIMEOUT;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!take_request() && pause && !kthread_should_stop())
			schedule_timeout(pause);
		__set_current_state(TASK_RUNNING);
		/* The scan serves a request that ended the pause. */
		take_request();
		pause = hazptr_work();
	}
	return 0;
}

bool hazptr_in_worker(void)
{
	return current == worker;
}

int __init hazptr_start_worker(void)
{
	struct task_struct *task = kthread_create(work, NULL, "hazptr");

	if (IS_ERR(task))
		return PTR_ERR(task);
	worker = task;
	wake_up_process(worker);
	return 0;
}

/* There are no callbacks and no callers any more. */
void hazptr_stop_worker(void)
{
	timer_delete_sync(&timer);
	kthread_stop(worker);
}
