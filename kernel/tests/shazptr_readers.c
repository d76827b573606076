// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Threads for shazptr_cases.c.  Each ends in kthread_complete_and_exit(), so
 * that the module may go as soon as they are waited for.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/timekeeping.h>

#include <linux/shazptr.h>

#include "shazptr_readers.h"

uint hold_ms = 2000;
bool expired;
char other;

static void linger(struct holder *holder)
{
	u64 end = ktime_get_mono_fast_ns() + (u64)hold_ms * NSEC_PER_MSEC;

	while (!READ_ONCE(holder->let_go)) {
		if (ktime_get_mono_fast_ns() > end) {
			WRITE_ONCE(expired, true);
			return;
		}
		cpu_relax();
	}
}

static int hold(void *arg)
{
	struct holder *holder = arg;
	struct shazptr_guard outer, inner;

	preempt_disable();
	outer = shazptr_acquire(holder->outer);
	if (holder->inner)
		inner = shazptr_acquire(holder->inner);
	if (holder->inner && holder->drop_inner)
		shazptr_clear(inner);
	/* TK1: release, pairs with TK1 in start_holder() */
	smp_store_release(&holder->holding, true);
	linger(holder);
	if (holder->inner && !holder->drop_inner)
		shazptr_clear(inner);
	shazptr_clear(outer);
	preempt_enable();
	kthread_complete_and_exit(&holder->done, 0);
}

unsigned int second_cpu(void)
{
	return cpumask_next(cpumask_first(cpu_online_mask), cpu_online_mask);
}

static struct task_struct *run_on(unsigned int cpu, int (*fn)(void *), void *arg, const char *name)
{
	struct task_struct *task = kthread_create(fn, arg, "%s", name);

	if (IS_ERR(task))
		return NULL;
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

bool start_holder(struct holder *holder)
{
	init_completion(&holder->done);
	if (!run_on(second_cpu(), hold, holder, "shazptr_hold"))
		return false;
	/* TK1: acquire, pairs with TK1 in hold() */
	while (!smp_load_acquire(&holder->holding))
		usleep_range(50, 100);
	return true;
}

void stop_holder(struct holder *holder)
{
	WRITE_ONCE(holder->let_go, true);
	wait_for_completion(&holder->done);
}

static int wait_thread(void *arg)
{
	struct wait *wait = arg;

	synchronize_shazptr(wait->ptr);
	kthread_complete_and_exit(&wait->done, 0);
}

bool start_wait(struct wait *wait, const void *ptr)
{
	wait->ptr = ptr;
	init_completion(&wait->done);
	return run_on(cpumask_first(cpu_online_mask), wait_thread, wait, "shazptr_wait");
}

bool waits(struct wait *wait)
{
	return !wait_for_completion_timeout(&wait->done, msecs_to_jiffies(SHORT_MS));
}

/* Ends the wait even if the test has failed, because it is on the caller's stack. */
bool ends(struct wait *wait)
{
	bool in_time = wait_for_completion_timeout(&wait->done, msecs_to_jiffies(LONG_MS));

	if (!in_time)
		wait_for_completion(&wait->done);
	return in_time;
}

static int hammer_thread(void *arg)
{
	struct hammer *hammer = arg;

	while (!READ_ONCE(hammer->stop)) {
		int i;

		preempt_disable();
		for (i = 0; i < 1000; i++) {
			struct shazptr_guard outer = shazptr_acquire(hammer->ptr);

			if (hammer->nested)
				shazptr_clear(shazptr_acquire(&other));
			ndelay(200);
			shazptr_clear(outer);
		}
		preempt_enable();
		WRITE_ONCE(hammer->sections, hammer->sections + 1000);
		cond_resched();
	}
	kthread_complete_and_exit(&hammer->done, 0);
}

bool start_hammer(struct hammer *hammer)
{
	init_completion(&hammer->done);
	if (!run_on(second_cpu(), hammer_thread, hammer, "shazptr_hammer"))
		return false;
	while (!READ_ONCE(hammer->sections))
		usleep_range(50, 100);
	return true;
}
