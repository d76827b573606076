/* SPDX-License-Identifier: MIT */
/* reclaim.h - deferred callbacks: passes, reclaimers, the worker, and the functions that other parts of the library call. */
#ifndef QUIESCE_RECLAIM_H
#define QUIESCE_RECLAIM_H

#include <quiesce/rcu.h>

#include "platform/probe.h"
#include "runtime/gate.h"

/* ---- for other parts of the library ---- */

/* Request that the worker runs a grace period that completes @cookie. */
void quiesce__reclaim_request_gp(uint64_t cookie);
/* True if the worker runs or is being started. */
bool quiesce__reclaim_has_worker(void);
/* Free what kfree_rcu() has queued, if no worker could be started; the caller may sleep, but must not run callbacks. */
void quiesce__free_without_worker(void);
/* True if all callbacks of which the calling thread can know have run, and all such objects of kfree_rcu() are freed. */
bool quiesce__nothing_queued(void);
/* True if @call, made at @caller, would wait for a callback, or a section, of its own thread; that is reported here. */
bool quiesce__barrier_is_misuse(const char *call, const void *caller);
void quiesce__reclaim_thread_exit(struct quiesce_tls_v1 *self);
/* Choose the quantum in which threads report their garbage; called when the ceiling has changed. */
void quiesce__report_bytes_changed(void);
void quiesce__reclaim_stats(struct quiesce_stats *stats);

#if defined(QUIESCE_SIM)
#define QUIESCE_WELL_FILLED 2u
#else
#define QUIESCE_WELL_FILLED 4096u /* objects of one thread that are worth a pass, and that the caches still hold */
#endif

/* ---- passes: pass.c ---- */

struct quiesce__pass {
	struct quiesce__lock lock; /* held for a whole pass, grace period and callbacks included */
	uint64_t begun;     /* number of the newest pass that has begun */
	uint64_t done;      /* number of the newest pass that has ended */
	uint64_t ran_callbacks; /* number of the newest pass that has ended and ran callbacks */
	uint64_t wanted;    /* number of the newest pass that a caller waits for */
	uint32_t done_word; /* futex that changes when a pass ends */
	uint32_t waiting;   /* number of callers that wait for a pass */
	uint32_t again;     /* 1: a caller found @lock taken, and its holder is to make another pass */
};
extern struct quiesce__pass quiesce__pass;

/* Make one pass; the caller holds pass.lock, which is released if a callback ends the thread.  Without @callbacks, these stay queued. */
void quiesce__pass_run(bool callbacks);
/* Time at which a pass is to free the ready objects that owners have not freed; PLATFORM_FOREVER: there are none. */
uint64_t quiesce__visit_due(void);
/* True if a queue is carried over to the next pass; it may be in no list. */
bool quiesce__pass_carries(void);
/* Make a pass here, or have the thread that makes one make another.  @callbacks: the caller may run callbacks. */
void quiesce__pass_make_here(bool callbacks);
/* Wait until a pass that begins after this call has run callbacks; false at @deadline (0: none).  @call is the program's, for reports. */
bool quiesce__pass_wait(const char *call, uint64_t deadline);
/* True if a caller waits for a pass that has not been made. */
bool quiesce__pass_wanted(void);
/* Number of queues that passes have visited, for statistics. */
uint64_t quiesce__queues_visited(void);
/* The largest number of addresses that the last pass took from one queue. */
uint64_t quiesce__pass_max_taken(void);
/* True if a callback of the last pass has queued its own object again. */
bool quiesce__pass_requeued(void);
void quiesce__pass_fork_child(void);
void quiesce__throttle_fork_child(void);

/* ---- the threads that run the callbacks of a pass: reclaimers.c ---- */

struct quiesce__reclaimer {
	uint32_t in_gate;  /* set while a chunk of callbacks runs, whose end fork() awaits */
	uint32_t tid;      /* thread of a further reclaimer; 0 for the holder of a pass */
	uintptr_t func;    /* function of the callback that runs; 0: none */
	struct quiesce__queue *queue; /* queue whose callbacks it runs; NULL: none */
	const struct quiesce_tls_v1 *by; /* block of the further reclaimer's thread; NULL: this entry is free */
	uint32_t generation; /* generation of forks in which the reclaimer took @queue */
	bool requeued;       /* a callback of this pass has queued its own object again */
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* The first entry is for the holder of a pass, the others are for the further reclaimers beside the worker. */
extern struct quiesce__reclaimer quiesce__reclaimer[QUIESCE_RECLAIMERS_MAX];
#define quiesce__pass_holder (&quiesce__reclaimer[0])

/* Run one callback of the program. */
static inline void quiesce__pass_call(struct quiesce__reclaimer *me, struct rcu_head *head)
{
	quiesce_store_relaxed(&me->func, (uintptr_t)head->func); /* Relaxed: for reports. */
	quiesce_probe(callback_begin, head, head->func);
	head->func(head);
	quiesce_probe(callback_end, head);
	quiesce__init(); /* the callback may have forked without the library's handlers, and this be the child */
}

/* Run the callbacks that the snapshot of @queue has; called by the holder of a pass. */
void quiesce__run_callbacks(struct quiesce__queue *queue);
/* Run the callbacks of all of @queues, with further reclaimers where they are worth a wake-up; called by the worker in a pass.  If a
 * callback ends the thread of a further reclaimer, the other callbacks of its queue remain for quiesce__run_callbacks(). */
void quiesce__share_callbacks(struct quiesce__queue *queues);
/* Clean up after a callback that has ended the thread of the holder: count it as run, and wait until no other reclaimer has a queue. */
void quiesce__reclaimers_ended(void);
/* True if no callback runs. */
bool quiesce__reclaimers_paused(void);
/* Return a reclaimer that is in a callback, and the callback's function, for reports; NULL: none is. */
const struct quiesce__reclaimer *quiesce__reclaimer_in_callback(uintptr_t *ret_func);
void quiesce__reclaimers_stats(struct quiesce_stats *stats);
/* End the reclaimers that are more than the changed setting allows. */
void quiesce__reclaimers_changed(void);
/* Stop the further reclaimers, and wait for their end until @deadline (0: no limit).  False: a worker has started others. */
bool quiesce__reclaimers_stop(uint64_t deadline);
/* Reinitialise in the child of a fork.  @in_callback: its thread makes a pass, and is in a callback of that. */
void quiesce__reclaimers_fork_child(bool in_callback);

/* Number of spilled objects (spill.c) that have been reclaimed. */
uint64_t quiesce__spills_run(void);
/* Bytes of the reclaimed objects that were spilled by threads without a queue. */
uint64_t quiesce__spills_bytes_out(void);

/* ---- the worker: worker.c ---- */

#if defined(QUIESCE_SIM)
#define QUIESCE_PACED 4u
#else
#define QUIESCE_PACED 64u /* objects of one thread that are worth a grace period soon after another one */
#endif

/* worker.sleep has one of these values.  Batching lets a pass grow; pacing puts off the grace period of a few objects for free(). */
enum { QUIESCE_AWAKE, QUIESCE_BATCHING, QUIESCE_PACING, QUIESCE_ASLEEP };
/* worker.running has one of these values. */
enum { QUIESCE_WORKER_NONE, QUIESCE_WORKER_STARTS, QUIESCE_WORKER_RUNS };

struct quiesce__worker {
	uint32_t sleep;     /* futex that the worker sleeps on */
	uint32_t urgent;    /* garbage is above the ceiling: do not batch, expedite the grace period */
	uint32_t filled;    /* a queue is worth a pass at once: do not batch */
	uint32_t prompt;    /* a callback, which the program may wait for, or QUIESCE_PACED objects are in a queue: do not pace */
	uint32_t stop;      /* the worker is to end */
	uint64_t gp_wanted; /* newest cookie whose grace period a poller has requested; 0: none */
	uint64_t gp_due;    /* time from which a poller takes part in that grace period; each one that does postpones it */
	/* QUIESCE_WORKER_NONE, ...  Owners load it often; it only changes when a worker starts or ends. */
	uint32_t running __attribute__((aligned(QUIESCE_CACHELINE)));
};
extern struct quiesce__worker quiesce__worker;

/* True if the worker runs; false while it is being started, which may fail. */
static inline bool quiesce__worker_runs(void)
{
	/* Relaxed: worker_exit() makes up for a caller that relies on a worker that has just ended. */
	return quiesce_load_relaxed(&quiesce__worker.running) == QUIESCE_WORKER_RUNS;
}

/* Start the worker if there is none; false if none can be had now. */
bool quiesce__worker_ensure(void);
/* Report, once, that there is too much garbage and no worker can be had. */
void quiesce__report_no_worker(void);
/* Wake the worker, also from batching or pacing. */
void quiesce__worker_wake(void);
/* Wake the worker for a caller that waits, even if another thread has marked it awake and was preempted before it woke it. */
void quiesce__worker_wake_for_sure(void);
/* Request that the worker makes the next pass without pacing; a hint, unless the caller has executed a full fence since it queued. */
void quiesce__worker_prompt(void);
/* Stop the worker, and wait for its end until @deadline (0: no limit).  False: another thread has started a new worker. */
bool quiesce__worker_stop(uint64_t deadline);
/* True if a requested grace period is not over. */
bool quiesce__gp_wanted(void);
/* Claim to run the requested grace period that completes @cookie, if it is overdue; one caller at a time gets true, at intervals. */
bool quiesce__gp_claim_overdue(uint64_t cookie);

#endif
