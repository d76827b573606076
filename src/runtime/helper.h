/* SPDX-License-Identifier: MIT */
/* helper.h - a thread that takes small steps of jobs on behalf of waiters, and further threads while a
 * callback blocks it. */
#ifndef QUIESCE_HELPER_H
#define QUIESCE_HELPER_H

#include "core.h"

#define QUIESCE_JOB_DONE 0
#define QUIESCE_JOB_AT_ONCE 1u
#define QUIESCE_JOB_OPTIONAL (1ull << 63)

/* A unit of deferred work; to be embedded in a structure of its owner. */
struct quiesce__job {
	struct quiesce__job *next, **at;
	/* Take one step, inside the fork gate (with @own_gate the step itself enters a gate where it runs
	 * callbacks, for a few at a time).  A step does not sleep; before it runs callbacks, which may, it
	 * calls quiesce__helper_begin_callbacks().  Steps run in a helper thread; without one, in a thread
	 * that calls quiesce__jobs_take_steps().  One step of a job at a time.
	 * Return: ns until the next step; QUIESCE_JOB_DONE: no further step; PLATFORM_FOREVER: the next step
	 * when the job is started again (it is not listed until then); with QUIESCE_JOB_OPTIONAL: the thread
	 * may end before that step. */
	uint64_t (*step)(struct quiesce__job *job);
	uint64_t due;
	bool listed, in_step, optional, own_gate;
	bool deferred; /* neither a wake-up of the helper nor a request to stop makes it ready; the helper waits for it before it ends */
};

/* Let the helper take a step of @job now.  Any thread, also inside a step; not in a signal handler.  Takes no
 * step itself, and waits for no other thread; it may start the helper.
 * False: there is no helper thread, and none can be created.  Then @job stays listed: for the helper, if a
 * later start of a job can create it, and for quiesce__jobs_take_steps(). */
bool quiesce__job_start(struct quiesce__job *job);
/* Let the helper take a step of @job after @ns, unless the job is listed already.  False: no helper thread
 * runs, and @job is not listed. */
bool quiesce__job_start_after(struct quiesce__job *job, uint64_t ns);
/* To be called where the caller may run any callback of the program, and sleep for as long as they do: if
 * there is no helper thread, take one step of every listed job.  Does nothing in a callback or a step, or
 * while another thread takes these steps. */
void quiesce__jobs_take_steps(void);
/* True if a job is listed and no helper thread exists to take its steps. */
bool quiesce__jobs_need_caller(void);
/* Start the helper thread unless one runs; false: none can be created, or an attempt failed a short while
 * ago. */
bool quiesce__helper_ensure(void);
/* Sum of @of(job) over all jobs that are listed or in a step; under the lock, and in fork handlers without
 * it. */
uint64_t quiesce__jobs_sum_locked(uint64_t (*of)(struct quiesce__job *job));
uint64_t quiesce__jobs_sum(uint64_t (*of)(struct quiesce__job *job));
/* Sleep until a step of any job is over, at most @ns. */
void quiesce__helper_await_step(uint64_t ns);
/* Let the helper, if there is one, take a step of every listed job.  Signal-safe. */
void quiesce__helper_wake(void);
/* Unlist @job, and wait for a step of it in progress: after this call no thread takes a step of @job.  Not in
 * a step of @job. */
void quiesce__job_cancel(struct quiesce__job *job);
/* Wait for a step of @job in progress, if any.  Not in a step of @job. */
void quiesce__job_await_step(struct quiesce__job *job);
/* Announce, in a step, that its rest runs callbacks of the program.  If they block, another thread takes the
 * steps of other jobs. */
void quiesce__helper_begin_callbacks(void);
/* True if the calling thread takes steps: it is a helper thread, or in quiesce__jobs_take_steps(). */
bool quiesce__in_helper(void);
/* True in a helper thread; false in a caller that takes steps in its place. */
bool quiesce__in_helper_thread(void);

bool quiesce__helper_running(void);
bool quiesce__helper_paused(void);
void quiesce__helper_fork_prepare(void);
void quiesce__helper_fork_parent(void);
void quiesce__helper_fork_child(void);
void quiesce__jobs_fork_child(void);
/* Unlist @job in a forked child, which has one thread. */
void quiesce__job_forget(struct quiesce__job *job);
/* Stop the threads once no steps but optional ones remain, and wait for that until @deadline, 0: no limit.
 * Not in a step.  False: the threads continue, because a job that was started meanwhile needs them. */
bool quiesce__helper_stop(uint64_t deadline);

#endif
