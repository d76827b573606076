// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Threads for hazptr_cases.c.  Each ends in kthread_complete_and_exit(), so
 * that the module may go as soon as they are waited for.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include <linux/hazptr.h>

#include "hazptr_threads.h"

void note_run(struct callback_head *head)
{
	WRITE_ONCE(container_of(head, struct object, head)->done, true);
}

/* Waits long enough for several scans. */
bool stays(struct object *object)
{
	msleep(SHORT_MS);
	return !READ_ONCE(object->done);
}

bool goes(struct object *object)
{
	unsigned long end = jiffies + msecs_to_jiffies(LONG_MS);

	while (!READ_ONCE(object->done) && time_before(jiffies, end))
		usleep_range(100, 200);
	return READ_ONCE(object->done);
}

static int wait_thread(void *arg)
{
	struct wait *wait = arg;

	if (wait->object)
		synchronize_hazptr(&wait->object->head);
	else
		hazptr_barrier();
	kthread_complete_and_exit(&wait->done, 0);
}

bool start_wait(struct wait *wait)
{
	init_completion(&wait->done);
	return !IS_ERR(kthread_run(wait_thread, wait, "hazptr_wait"));
}

bool waits(struct wait *wait)
{
	msleep(SHORT_MS);
	return !completion_done(&wait->done);
}

bool ends(struct wait *wait)
{
	return wait_for_completion_timeout(&wait->done, msecs_to_jiffies(LONG_MS));
}

#define CHURN_CONTEXTS 500

static int churn_thread(void *arg)
{
	struct hazptr_context *ctxs = vzalloc(array_size(CHURN_CONTEXTS, sizeof(*ctxs)));
	struct churn *churn = arg;
	int i;

	for (i = 0; ctxs && i < CHURN_CONTEXTS; i++)
		init_hazptr_context(&ctxs[i]);
	while (ctxs && !READ_ONCE(churn->stop)) {
		struct hazptr_context *ctx = &ctxs[i++ % CHURN_CONTEXTS];
		hazptr_t *slot;

		cleanup_hazptr_context(ctx);
		init_hazptr_context(ctx);
		slot = hazptr_alloc(ctx);
		hazptr_protect(slot, &churn->gp, head);
		hazptr_free(ctx, slot);
		WRITE_ONCE(churn->rounds, churn->rounds + 1);
		cond_resched();
	}
	for (i = 0; ctxs && i < CHURN_CONTEXTS; i++)
		cleanup_hazptr_context(&ctxs[i]);
	vfree(ctxs);
	kthread_complete_and_exit(&churn->done, 0);
}

bool start_churn(struct churn *churn)
{
	init_completion(&churn->done);
	return !IS_ERR(kthread_run(churn_thread, churn, "hazptr_churn"));
}

static int flip_thread(void *arg)
{
	struct flip *flip = arg;

	while (!READ_ONCE(flip->stop)) {
		WRITE_ONCE(flip->other, xchg(&flip->gp, flip->other));
		cond_resched();
	}
	kthread_complete_and_exit(&flip->done, 0);
}

bool start_flip(struct flip *flip)
{
	init_completion(&flip->done);
	return !IS_ERR(kthread_run(flip_thread, flip, "hazptr_flip"));
}

void share_slot(void *arg)
{
	struct sharer *sharer = arg;
	hazptr_t *slot = hazptr_alloc(sharer->ctx);
	struct object *object;

	sharer->rounds++;
	if (!slot) {
		sharer->bad++;
		return;
	}
	object = hazptr_protect(slot, &sharer->gp, head);
	if (!object || READ_ONCE(slot->value) != (unsigned long)&object->head)
		sharer->bad++;
	hazptr_free(sharer->ctx, slot);
}

static int share_thread(void *arg)
{
	struct sharer *sharer = arg;

	while (!READ_ONCE(sharer->stop)) {
		share_slot(sharer);
		cond_resched();
	}
	kthread_complete_and_exit(&sharer->done, 0);
}

bool start_sharer(struct sharer *sharer)
{
	struct task_struct *task;

	init_completion(&sharer->done);
	task = kthread_create(share_thread, sharer, "hazptr_share");
	if (IS_ERR(task))
		return false;
	kthread_bind(task, cpumask_last(cpu_online_mask));
	wake_up_process(task);
	return true;
}
