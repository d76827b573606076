// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Tests of what callbacks may do, for hazptr_cases.c. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include <linux/hazptr.h>

#include "hazptr_threads.h"

static void sleep_fn(struct work_struct *work)
{
	msleep(20);
}

static DECLARE_WORK(sleep_work, sleep_fn);

static void flush_and_note(struct callback_head *head)
{
	schedule_work(&sleep_work);
	flush_work(&sleep_work);
	note_run(head);
}

/* A worker that memory reclaim waits for may not do this: the kernel would warn. */
bool test_flush_in_callback(void)
{
	struct object object = {};

	call_hazptr(&object.head, flush_and_note);
	return goes(&object);
}

#define NR_IDLE 50000
#define NR_CALLS 100

/* Calls once in a tick; returns the number of scans meanwhile. */
static u64 scans_of_a_stream(void)
{
	static struct object objects[NR_CALLS];
	struct hazptr_stats before, after;
	int i;

	hazptr_get_stats(&before);
	for (i = 0; i < NR_CALLS; i++) {
		call_hazptr(&objects[i].head, note_run);
		schedule_timeout_uninterruptible(1);
	}
	hazptr_get_stats(&after);
	hazptr_barrier();
	return after.scans - before.scans;
}

/* A walk over many contexts is not made in every tick. */
bool test_many_contexts(void)
{
	struct hazptr_context *ctxs = vzalloc(array_size(NR_IDLE, sizeof(*ctxs)));
	u64 scans;
	int i;

	if (!ctxs)
		return false;
	for (i = 0; i < NR_IDLE; i++)
		init_hazptr_context(&ctxs[i]);
	scans = scans_of_a_stream();
	for (i = 0; i < NR_IDLE; i++)
		cleanup_hazptr_context(&ctxs[i]);
	vfree(ctxs);
	return scans > 0 && scans <= NR_CALLS / 2;
}

static struct {
	struct object object;
	struct completion let_go;
	bool runs;
} blocker;

static void block_and_note(struct callback_head *head)
{
	WRITE_ONCE(blocker.runs, true);
	wait_for_completion_timeout(&blocker.let_go, msecs_to_jiffies(LONG_MS));
	note_run(head);
}

/* A wait for an object that no slot protects ends while a callback is running. */
bool test_wait_beside_callbacks(void)
{
	struct object object = {};
	bool good;

	init_completion(&blocker.let_go);
	blocker.runs = false;
	blocker.object.done = false;
	call_hazptr(&blocker.object.head, block_and_note);
	while (!READ_ONCE(blocker.runs))
		usleep_range(100, 200);
	synchronize_hazptr(&object.head);
	good = !READ_ONCE(blocker.object.done);
	complete(&blocker.let_go);
	return goes(&blocker.object) && good;
}
