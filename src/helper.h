/* SPDX-License-Identifier: MIT */
/* helper.h - a thread that takes small steps for whoever waits for something, and never waits itself. */
#ifndef QUIESCE_HELPER_H
#define QUIESCE_HELPER_H

#include "core.h"

#define QUIESCE_JOB_DONE 0

/* To be embedded in what is waited with. */
struct quiesce__job {
	struct quiesce__job *next;
	/* One step, in the helper thread, inside the fork gate: it may run callbacks and does not sleep.
	 * Return: after how many ns to come again, QUIESCE_JOB_DONE not at all, PLATFORM_FOREVER
	 * when it is started again (it is not listed then). */
	uint64_t (*step)(struct quiesce__job *job);
	uint64_t due;
	bool listed;
};

/* Let the helper take a step of @job now.  Any thread, also inside a step; not in a signal handler.
 * False: there is no helper thread, and none can be had; then @job is not listed, and the caller does the work. */
bool quiesce__job_start(struct quiesce__job *job);
/* Let the helper, if there is one, take a step of every job that is listed.  Signal-safe. */
void quiesce__helper_poke(void);
/* Nobody takes a step of @job any more: it is not listed, and a step that was being taken is over.
 * Not in a step of @job. */
void quiesce__job_cancel(struct quiesce__job *job);
/* Is the calling thread the helper? */
bool quiesce__in_helper(void);

/* Call @func(@head) in the helper thread after some 5 to 10 ms; without it, at once.  No grace period. */
void quiesce__later(struct rcu_head *head, void (*func)(struct rcu_head *head));
/* Upcall, in a forked child, for each head that waits: it will not be called.  One thread, no lock of the parent may be taken. */
void quiesce__later_fork_child(struct rcu_head *head);
/* @head was given to quiesce__later(): call it now, in this thread; or wait until the helper has. */
void quiesce__later_now(struct rcu_head *head);

bool quiesce__helper_running(void);
bool quiesce__helper_paused(void);
void quiesce__helper_fork_prepare(void);
void quiesce__helper_fork_parent(void);
void quiesce__helper_fork_child(void);
/* Stop the thread once it has no more steps to take; until @deadline, 0: no limit.  Not in a step. */
void quiesce__helper_stop(uint64_t deadline);

#endif
