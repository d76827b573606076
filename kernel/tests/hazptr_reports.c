// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The reports of hazptr.ko: protections that last, and misuse.
 *
 * insmod hazptr_test.ko stall=1
 *	An object is protected for 4 s, while others are protected for a moment
 *	each.  With hazptr.stall_timeout=1 the log has
 *	"callback note_long ..., is protected for" and
 *	"synchronize_hazptr(...) by hazptr_wait/... waits for".
 * insmod hazptr_test.ko misuse=1
 *	In any build the log has "a callback waits for callbacks" and "called again", and with
 *	QUIESCE_DEBUG=1 "a slot given back twice", "a slot cleared that is not allocated"
 *	and "a context ends with slots taken".
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/sched.h>

#include <linux/hazptr.h>

#include "hazptr_threads.h"

static void note_long(struct callback_head *head)
{
	WRITE_ONCE(container_of(head, struct object, head)->done, true);
}

static void note_brief(struct callback_head *head)
{
	WRITE_ONCE(container_of(head, struct object, head)->done, true);
}

/*
 * Two slots take turns, so that every scan finds an object that is protected for
 * a moment, and finds it before @late, which is retired after them.
 */
static void hold_briefly(unsigned int ms, struct object *late)
{
	static struct object objects[2];
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	struct hazptr_context ctx;
	hazptr_t *slots[2];
	unsigned int i, nr = 0;

	init_hazptr_context(&ctx);
	slots[0] = hazptr_alloc(&ctx);
	slots[1] = hazptr_alloc(&ctx);
	objects[0].done = true;
	objects[1].done = true;
	for (i = 0; time_before(jiffies, end); i ^= 1) {
		struct object *gp = &objects[i];

		while (!READ_ONCE(gp->done))
			usleep_range(1000, 2000);
		gp->done = false;
		hazptr_protect(slots[i], &gp, head);
		call_hazptr(&gp->head, note_brief);
		if (nr++ == 10)
			call_hazptr(&late->head, note_long);
		msleep(20);
		hazptr_clear(slots[i ^ 1]);
	}
	hazptr_free(&ctx, slots[0]);
	hazptr_free(&ctx, slots[1]);
	cleanup_hazptr_context(&ctx);
}

static void hold_and_wait(hazptr_t *slot, struct object *object)
{
	struct wait wait = { .object = object };

	if (!start_wait(&wait))
		return;
	msleep(1500);
	hazptr_clear(slot);
	wait_for_completion(&wait.done);
}

void hazptr_hold_long(void)
{
	struct object object = {}, *gp = &object;
	struct hazptr_context ctx;
	hazptr_t *slot;

	/* All contexts are in one list, the newest first. */
	set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	hazptr_protect(slot, &gp, head);
	hold_and_wait(slot, &object);
	hazptr_protect(slot, &gp, head);
	hold_briefly(4000, &object);
	hazptr_free(&ctx, slot);
	hazptr_barrier();
	cleanup_hazptr_context(&ctx);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static void wait_in_callback(struct callback_head *head)
{
	hazptr_barrier();
	note_long(head);
}

static void count_run(struct callback_head *head)
{
	container_of(head, struct object, head)->number++;
}

/* The second call would make a ring of the queue. */
static void call_twice(void)
{
	struct object object = {};

	call_hazptr(&object.head, count_run);
	call_hazptr(&object.head, count_run);
	hazptr_barrier();
	pr_info("hazptr_test: called twice, run %ld times\n", object.number);
	/* A call after the callback has run is none of these. */
	call_hazptr(&object.head, count_run);
	hazptr_barrier();
	pr_info("hazptr_test: called once more, run %ld times\n", object.number);
}

void hazptr_do_wrong(void)
{
	struct object object = {};
	struct hazptr_context ctx;
	hazptr_t *slot;

	init_hazptr_context(&ctx);
	slot = hazptr_alloc(&ctx);
	hazptr_free(&ctx, slot);
	hazptr_free(&ctx, slot);
	hazptr_clear(slot);
	cleanup_hazptr_context(&ctx);
	call_hazptr(&object.head, wait_in_callback);
	hazptr_barrier();
	call_twice();
}
