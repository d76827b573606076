/* SPDX-License-Identifier: MIT */
/* reclaim.h - deferred callbacks: queues, passes, worker, barrier. */
#ifndef QUIESCE_RECLAIM_H
#define QUIESCE_RECLAIM_H

#include <quiesce/rcu.h>

#include "runtime/gate.h"

/* ---- for other rooms ---- */

/* Let the worker run a grace period that completes @cookie. */
void quiesce__reclaim_request_gp(uint64_t cookie);
bool quiesce__reclaim_has_worker(void);
/* The caller may sleep, but not run callbacks: where no worker could be had, free what needs none. */
void quiesce__free_here(void);
/* Has every callback of call_rcu() that this thread can know of run? */
bool quiesce__nothing_queued(void);
/* Would a wait for callbacks be one for oneself?  Then it is reported. */
bool quiesce__barrier_is_misuse(const char *call, const void *caller);
void quiesce__reclaim_thread_exit(struct quiesce_tls_v1 *self);
/* The ceiling has changed: so do the steps in which threads report their garbage. */
void quiesce__report_bytes_changed(void);
void quiesce__reclaim_stats(struct quiesce_stats *stats);

#if defined(QUIESCE_SIM)
#define QUIESCE_WELL_FILLED 2u
#else
#define QUIESCE_WELL_FILLED 4096u /* so many objects of one thread are worth a pass, and few enough to be in its caches still */
#endif

/* ---- passes: pass.c ---- */

struct quiesce__pass {
	struct quiesce__lock lock; /* held for a whole pass, grace period and callbacks included */
	uint64_t begun, done;
	uint64_t ran; /* the newest that is done, and ran callbacks */
	uint64_t wanted;    /* the newest that somebody waits for */
	uint32_t done_word; /* futex that changes with every pass */
	uint32_t waiting;   /* callers that wait for a pass */
	uint32_t again;     /* work came while a caller ran a pass */
};
extern struct quiesce__pass quiesce__pass;

/* Under pass.lock, which is given back if a callback ends the thread: one pass.  Without @callbacks they stay queued. */
void quiesce__pass_run(bool callbacks);
/* When a pass is due to free what owners have not come back for; PLATFORM_FOREVER: nothing is left to them. */
uint64_t quiesce__visit_due(void);
/* Does the next pass begin with a queue that need not be listed? */
bool quiesce__pass_carries(void);
/* Run a pass here, or see to it that whoever runs one runs another. */
void quiesce__pass_yourself(bool callbacks);
/* Take part in a pass that begins after this call, which @call of the program waits for; false at @deadline (0: none). */
bool quiesce__pass_wait(const char *call, uint64_t deadline_ns);
/* Is a pass wanted that has not been made? */
bool quiesce__pass_wanted(void);
uint64_t quiesce__queues_visited(void);
/* The most that this pass has taken from one queue. */
uint64_t quiesce__pass_most(void);
/* Has a callback of the last pass queued its own object again? */
bool quiesce__pass_requeued(void);
void quiesce__pass_fork_child(void);
void quiesce__throttle_fork_child(void);

/* ---- who runs the callbacks of a pass: reclaimers.c ---- */

struct quiesce__reclaimer {
	uint32_t in_gate;  /* a chunk of callbacks runs */
	uint32_t tid;      /* 0: of whoever makes the pass */
	uintptr_t func;    /* the callback that runs; 0: none */
	struct quiesce__queue *queue; /* whose callbacks it runs; NULL: none's */
	const struct quiesce_tls_v1 *by; /* of a helper: its thread; NULL: nobody has this place */
	uint32_t generation; /* of forks, in which it has @queue */
	bool requeued;      /* a callback has queued its own object again */
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* The first is whoever makes the pass, the others are helpers of the worker. */
extern struct quiesce__reclaimer quiesce__reclaimer[QUIESCE_RECLAIMERS_MAX];
#define quiesce__pass_maker (&quiesce__reclaimer[0])

/* A callback of the program's. */
static inline void quiesce__pass_call(struct quiesce__reclaimer *me, struct rcu_head *head)
{
	quiesce_store_relaxed(&me->func, (uintptr_t)head->func); /* Relaxed: for reports. */
	head->func(head);
	quiesce__init(); /* it may have forked without a word, and this be the child */
}

/* By the maker of a pass: run what its snapshot has of the callbacks of @queue. */
void quiesce__run_callbacks(struct quiesce__queue *queue);
/* By the worker in a pass, before that: run those of all of @queues, with helpers where that is worth it.  What a callback that has ended
 * a helper's thread leaves of its queue is left. */
void quiesce__share_callbacks(struct quiesce__queue *queues);
/* A callback has ended the maker's thread: it counts as run, and helpers are through with what they have begun. */
void quiesce__reclaimers_ended(void);
bool quiesce__reclaimers_paused(void); /* no callback runs */
/* For reports: who is in a callback, and in which; NULL: nobody. */
const struct quiesce__reclaimer *quiesce__reclaimer_in_callback(uintptr_t *ret_func);
void quiesce__reclaimers_stats(struct quiesce_stats *stats);
/* The setting has changed: those that are too many end. */
void quiesce__reclaimers_changed(void);
/* Stop the helpers when they have nothing to do; until @deadline, 0: no limit.  False: a worker has started others. */
bool quiesce__reclaimers_stop(uint64_t deadline);
/* In the child; @in_callback: the survivor makes a pass, and is in a callback of it. */
void quiesce__reclaimers_fork_child(bool in_callback);

/* spill.c: statistics of objects that are linked by their heads. */
uint64_t quiesce__spills_run(void);
uint64_t quiesce__spills_bytes_out(void);

/* ---- the worker: worker.c ---- */

#if defined(QUIESCE_SIM)
#define QUIESCE_PACED 4u
#else
#define QUIESCE_PACED 64u /* fewer objects of one thread are not worth a grace period, if there has just been one */
#endif

/* worker.sleep */
enum { QUIESCE_AWAKE, QUIESCE_BATCHING, QUIESCE_PACING, QUIESCE_ASLEEP };
/* worker.running */
enum { QUIESCE_WORKER_NONE, QUIESCE_WORKER_STARTS, QUIESCE_WORKER_RUNS };

struct quiesce__worker {
	uint32_t sleep;     /* the futex it sleeps on */
	uint32_t urgent;    /* above the ceiling: do not batch, expedite */
	uint32_t filled;    /* a queue has enough to be worth a pass: do not batch */
	uint32_t prompt;    /* a callback is queued, for which somebody may wait, or a queue has enough not to be put off: do not pace */
	uint32_t stop;
	uint64_t gp_wanted; /* cookie of a polled grace period, 0 none */
	uint64_t gp_due;    /* then it is overdue, and a poller takes part; then the next one may */
	/* Owners load it often; it changes when the thread comes or goes. */
	uint32_t running __attribute__((aligned(QUIESCE_CACHELINE)));
};
extern struct quiesce__worker quiesce__worker;

/* Has it begun?  A start that is under way may fail. */
static inline bool quiesce__worker_runs(void)
{
	return quiesce_load_relaxed(&quiesce__worker.running) == QUIESCE_WORKER_RUNS; /* Relaxed: it only ever helps. */
}

/* Make sure that there is a worker; false if none can be had now. */
bool quiesce__worker_ensure(void);
/* None can be had, and there is too much garbage: say so, once. */
void quiesce__report_no_worker(void);
/* Wake the worker, also while it batches. */
void quiesce__worker_wake(void);
/* The same, also if somebody has taken the request to wake it and does not run: for who waits. */
void quiesce__worker_wake_for_sure(void);
/* What was queued, before a full fence, is not to be put off. */
void quiesce__worker_prompt(void);
/* Stop it when it has nothing to do; until @deadline, 0: no limit.  False: somebody has started another. */
bool quiesce__worker_stop(uint64_t deadline);
/* Does a polled grace period wait to be run? */
bool quiesce__gp_wanted(void);
/* Is one that completes @cookie, and should the worker have run it by now?  True for one caller at a time, now and then. */
bool quiesce__gp_overdue(uint64_t cookie);

#endif
