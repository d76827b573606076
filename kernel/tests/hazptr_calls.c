// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Tests of what callbacks may do, for hazptr_cases.c. */
#include <linux/delay.h>
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
