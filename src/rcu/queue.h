/* SPDX-License-Identifier: MIT */
/* queue.h - a thread's queue of retired objects, and the lists of those queues that have something.
 *
 * A queue has two rows of addresses: callbacks, which whoever makes a pass runs, and objects for free(), which its owner
 * frees, a few at each retirement, once a pass has said that their grace period is over; the worker frees what its owner
 * does not come back for.
 *
 *   owner:  append -> is the queue listed? if not: list it, wake the worker if it sleeps
 *   pass:   take the lists; each queue: not listed, snapshot -> grace period -> frees are ready, callbacks run,
 *           what came meanwhile is listed again
 *
 * I1. A queue that has something is listed, or in the pass that is being made, or carried to the next pass because its owner
 *     is just listing it (CB3, and the heavy fence of the pass's grace period); or it has frees that are ready, and lingers.
 * I2. What is ready was queued before the snapshot of a pass whose grace period is over.
 */
#ifndef QUIESCE_QUEUE_H
#define QUIESCE_QUEUE_H

#include <quiesce/rcu.h>

#include "garbage.h"
#include "segments.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_NR_SHARDS 2u
#else
#define QUIESCE_NR_SHARDS 32u
#endif

/* queue.listed */
enum {
	QUIESCE_UNLISTED,
	QUIESCE_LISTED_FREES, /* only objects for free() were seen in it */
	QUIESCE_LISTED,
	QUIESCE_LISTED_LAST, /* and the owner has exited */
};

struct quiesce__queue {
	/* The owner's. */
	struct quiesce__append callbacks, frees;
	uint64_t reported;      /* bytes of both at the owner's last report */
	struct rcu_head *spill; /* without memory for a segment: linked by their heads; taken whole by a pass */
	uint64_t spilled;    /* objects, ever */
	uint64_t full_at;    /* so many retired: enough to be worth a pass */
	int64_t until_check;  /* below 0: the owner looks what is ready, and tells its bytes */
	uint32_t shard;
	/* Changed by each pass, read by the owner each time. */
	uint32_t listed __attribute__((aligned(QUIESCE_CACHELINE))); /* QUIESCE_UNLISTED, ... */
	uint64_t ready;       /* frees that have had their grace period, ever */
	uint64_t ready_bytes; /* of them */
	struct quiesce__queue *next_listed; /* of who lists it */
	/* Of who holds @lock: the owner for a few objects, or a pass. */
	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE)));
	struct quiesce__consume freeing;
	uint64_t freed;          /* objects whose free() has returned; others read it */
	uint64_t reported_freed; /* bytes of them at the last report of a thread that freed */
	/* Of who makes a pass. */
	struct quiesce__consume running __attribute__((aligned(QUIESCE_CACHELINE)));
	uint64_t run;        /* callbacks that have returned; written, as @running, by the reclaimer that has the queue */
	struct quiesce__snapshot callbacks_snap, frees_snap;
	uint64_t seen_taken; /* of @freeing, at the last visit */
	uint64_t share;      /* of this queue in the process-wide sum; exchanged by reports */
	bool gone;           /* the owner has exited: the pass may free the queue */
	bool unfreed;
	bool in_pass; /* in the list of this pass */
	bool carried; /* the next pass begins with it, listed or not */
	struct quiesce__queue *next_in_pass, *next_unfreed, *next_carried;
	struct quiesce__queue *next, *prev; /* of all; under queues.lock */
};

/* One of several, so that threads that begin to retire do not all write the same line. */
struct quiesce__shard {
	struct quiesce__queue *listed; /* pushed by owners, taken whole by a pass */
	struct rcu_head *spill;        /* of threads that cannot have a queue */
	uint64_t spilled, bytes;       /* of it, ever */
} __attribute__((aligned(QUIESCE_CACHELINE)));

struct quiesce__queues {
	struct quiesce__lock lock; /* guards the list of all */
	struct quiesce__queue *all;
	uint32_t nr;         /* of them, and */
	uint32_t nr_ever;    /* ever */
	uint32_t report_bytes; /* a thread tells the process-wide sum in steps of this */
	uint64_t gone_queued, gone_run, gone_spilled; /* of queues that are gone */
	struct quiesce__shard shard[QUIESCE_NR_SHARDS];
};
extern struct quiesce__queues quiesce__queues;

/* The calling thread's queue, a new one; NULL: it can have none. */
struct quiesce__queue *quiesce__queue_new(struct quiesce_tls_v1 *self);
/* A pass gives back a queue that is empty, is not listed and has no owner. */
void quiesce__queue_free(struct quiesce__queue *queue);
/* Let the next pass take @queue, unless it is listed already.  True if it was not. */
bool quiesce__queue_list(struct quiesce__queue *queue, bool callback);
/* Its owner exits, and touches it no more: let the next pass take it, for the last time. */
void quiesce__queue_leave(struct quiesce__queue *queue);
/* Its owner exits.  True: wake the worker, if it sleeps. */
bool quiesce__queue_end(struct quiesce__queue *queue);
/* Is any queue listed, or anything spilled by a thread without one?  Without regard to order. */
bool quiesce__queues_listed(void);

/* Push to a list that others push to and a pass takes whole. */
void quiesce__spill_push(struct rcu_head **list, struct rcu_head *head);

static inline uint64_t quiesce__queue_bytes(const struct quiesce__queue *queue)
{
	return queue->callbacks.bytes + queue->frees.bytes;
}

/* Bring the share of @queue in the process-wide sum up to date; after a change of what waits, by the owner or a pass. */
void quiesce__queue_report(struct quiesce__queue *queue);

/* By the owner, if it has queued anything since its last report. */
static inline void quiesce__queue_report_own(struct quiesce__queue *queue)
{
	uint64_t bytes = quiesce__queue_bytes(queue);

	if (bytes == queue->reported)
		return;
	queue->reported = bytes;
	quiesce__queue_report(queue);
}

/* Free at most @nr objects that are ready; under the lock. */
void quiesce__free_ready(struct quiesce__queue *queue, uint32_t nr);
/* Report what was freed, if any of it was not reported; under the lock. */
void quiesce__queue_report_freed(struct quiesce__queue *queue);

/* May the calling thread have a queue of its own?  Only if that can be taken back when it exits. */
static inline bool quiesce__may_have_queue(struct quiesce_tls_v1 *self)
{
	bool armed;

	if ((self->state & QUIESCE_TLS_EXITING) || (!quiesce__heap_begin(self) && !QUIESCE_MUTANT(cb_heap_two_queues)))
		return false;
	quiesce__init();
	quiesce__used();
	armed = platform_arm_thread_exit() == 0; /* which may allocate */
	quiesce__heap_end(self);
	return armed;
}

/* May the calling thread sleep for a grace period? */
static inline bool quiesce__may_sleep(const struct quiesce_tls_v1 *self)
{
	return !rcu_read_lock_held() && !(self->state & QUIESCE_TLS_CALLBACKS) &&
	       (!(self->state & QUIESCE_TLS_IN_HEAP) || QUIESCE_MUTANT(cb_heap_waits));
}

#endif
