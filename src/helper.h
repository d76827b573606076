/* SPDX-License-Identifier: MIT */
/* helper.h - a thread that takes small steps for whoever waits for something, and never waits itself. */
#ifndef QUIESCE_HELPER_H
#define QUIESCE_HELPER_H

#include "core.h"

#define QUIESCE_JOB_DONE 0
#define QUIESCE_JOB_AT_ONCE 1u
#define QUIESCE_JOB_OPTIONAL (1ull << 63)

/* To be embedded in what is waited with. */
struct quiesce__job {
	struct quiesce__job *next, **at;
	/* One step, inside the fork gate (unless @own_gate: then the step enters one where it runs callbacks, for some at a
	 * time): it may run callbacks and does not sleep.  In the helper thread; without one, in a thread that calls
	 * quiesce__jobs_take_steps().
	 * Return: after how many ns to come again, QUIESCE_JOB_DONE not at all, PLATFORM_FOREVER
	 * when it is started again (it is not listed then); with QUIESCE_JOB_OPTIONAL: and the thread may end before that. */
	uint64_t (*step)(struct quiesce__job *job);
	uint64_t due;
	bool listed, optional, own_gate;
};

/* Let the helper take a step of @job now.  Any thread, also inside a step; not in a signal handler.  Takes no step, and
 * does not wait for another thread; it may start the helper.
 * False: there is no helper thread, and none can be had.  Then @job stays listed, for the thread that the next one who
 * starts a job can have, and for quiesce__jobs_take_steps(). */
bool quiesce__job_start(struct quiesce__job *job);
/* To be called where the caller may run callbacks of anybody's, and sleep for what they sleep for: if there is no helper
 * thread, one step of every job that is listed.  Does nothing in a callback or a step, or while another thread does it. */
void quiesce__jobs_take_steps(void);
/* Is a job listed, and no helper thread there to take its steps? */
bool quiesce__jobs_need_caller(void);
/* Start the helper thread unless there is one; false: none can be had, or an attempt has failed a short while ago. */
bool quiesce__helper_ensure(void);
/* Sum of what @of says of every job that is listed or being stepped; under the lock.  In fork handlers without it. */
uint64_t quiesce__jobs_sum_locked(uint64_t (*of)(struct quiesce__job *job));
uint64_t quiesce__jobs_sum(uint64_t (*of)(struct quiesce__job *job));
/* Sleep until a step is over, at most @ns. */
void quiesce__helper_await_step(uint64_t ns);
/* Let the helper, if there is one, take a step of every job that is listed.  Signal-safe. */
void quiesce__helper_poke(void);
/* Nobody takes a step of @job any more: it is not listed, and a step that was being taken is over.
 * Not in a step of @job. */
void quiesce__job_cancel(struct quiesce__job *job);
/* Does the calling thread take steps: is it the helper, or in quiesce__jobs_take_steps()? */
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
/* Stop the thread once it has no more steps to take but optional ones, and wait for that; until @deadline, 0: no limit.
 * Not in a step.  It goes on if some job needs it that was started meanwhile. */
void quiesce__helper_stop(uint64_t deadline);

#endif
