/* SPDX-License-Identifier: MIT */
/* work_thread.c - the first use of the library in a thread, and the end of a thread that has used it. */
#include "workload.h"

#include <quiesce/hazptr.h>
#include <quiesce/rcu.h>
#include <quiesce/shazptr.h>

static uint64_t object;
static uint64_t *published = &object;

static void use(void)
{
	hazptr_t *slot;

	rcu_read_lock();
	rcu_read_unlock();
	shazptr_clear(shazptr_protect(&published));
	slot = hazptr_alloc(NULL);
	(void)hazptr_protect(slot, &published);
	hazptr_free(NULL, slot);
}

static void first_use(void *arg)
{
	scale_op();
	use();
	scale_set_group(SCALE_SETUP);
	*(bool *)arg = true;
}

static void ends(void *arg)
{
	use();
	scale_op();
	*(bool *)arg = true;
	scale_set_group(SCALE_MEASURED);
}

static void begins_and_ends(void *arg)
{
	scale_op();
	use();
	*(bool *)arg = true;
}

/* The thread runs where its creator does, which waits for it. */
static void run(void (*func)(void *arg), enum scale_group group)
{
	bool done = false;

	scale_spawn(func, &done, scale_cpu(), group);
	while (!done)
		scale_sleep(50000);
	scale_sleep(10000);
}

static void first_use_op(struct actor *a)
{
	(void)a;
	run(first_use, SCALE_MEASURED);
}

static void exit_op(struct actor *a)
{
	(void)a;
	run(ends, SCALE_SETUP);
}

static void both_op(struct actor *a)
{
	(void)a;
	run(begins_and_ends, SCALE_MEASURED);
}

#define THREAD(what, f) { .group = "thread", .name = what, .op = f, .warm = 2, .ops = 10 }
const struct workload scale_threads[] = { THREAD("first_use", first_use_op), THREAD("exit", exit_op), THREAD("whole", both_op), { 0 } };
