/* SPDX-License-Identifier: MIT */
/* helper.h - a thread that takes small steps for whoever waits for something, and others while a callback blocks it. */
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
	 * time): it does not sleep; where it runs callbacks, which may, it says so (quiesce__helper_runs_callbacks()).  In a
	 * helper thread; without one, in a thread that calls quiesce__jobs_take_steps().  One at a time of a job.
	 * Return: after how many ns to come again, QUIESCE_JOB_DONE not at all, PLATFORM_FOREVER
	 * when it is started again (it is not listed then); with QUIESCE_JOB_OPTIONAL: and the thread may end before that. */
	uint64_t (*step)(struct quiesce__job *job);
	uint64_t due;
	bool listed, in_step, optional, own_gate;
	bool deferred; /* it is not made ready by a wake-up of the helper, nor by the end of the helper, which waits for it */
};

/* Let the helper take a step of @job now.  Any thread, also inside a step; not in a signal handler.  Takes no step, and
 * does not wait for another thread; it may start the helper.
 * False: there is no helper thread, and none can be had.  Then @job stays listed, for the thread that the next one who
 * starts a job can have, and for quiesce__jobs_take_steps(). */
bool quiesce__job_start(struct quiesce__job *job);
/* The same after @ns, unless it is listed already.  False: there is no thread that runs, and it is not listed. */
bool quiesce__job_start_after(struct quiesce__job *job, uint64_t ns);
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
void quiesce__helper_wake(void);
/* Nobody takes a step of @job any more: it is not listed, and a step that was being taken is over.
 * Not in a step of @job. */
void quiesce__job_cancel(struct quiesce__job *job);
/* If a step of @job is being taken, until it is over.  Not in a step of @job. */
void quiesce__job_await_step(struct quiesce__job *job);
/* In a step: the program's callbacks come next, until the step is over.  If they block, another thread takes the steps of
 * other jobs. */
void quiesce__helper_runs_callbacks(void);
/* Does the calling thread take steps: is it the helper, or in quiesce__jobs_take_steps()? */
bool quiesce__in_helper(void);

bool quiesce__helper_running(void);
bool quiesce__helper_paused(void);
void quiesce__helper_fork_prepare(void);
void quiesce__helper_fork_parent(void);
void quiesce__helper_fork_child(void);
void quiesce__jobs_fork_child(void);
/* In a forked child with one thread: @job is not listed. */
void quiesce__job_forget(struct quiesce__job *job);
/* Stop the threads once there are no more steps to take but optional ones, and wait for that; until @deadline, 0: no limit.
 * Not in a step.  False: they go on, as some job needs them that was started meanwhile. */
bool quiesce__helper_stop(uint64_t deadline);

#endif
