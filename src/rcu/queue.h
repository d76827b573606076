/* SPDX-License-Identifier: MIT */
/* queue.h - a thread's queue of retired objects, and the lists of the queues that are not empty.
 *
 * A queue has two sequences of addresses: callbacks, which are run in a pass, and objects for free().  A pass publishes how many of
 * these are ready, which means that their grace period is over.  The owner of the queue frees a ready object for each one that it
 * retires, or more while there is a backlog; a later pass frees the ready objects of an owner that has stopped retiring.  Where passes
 * are late the owner polls grace periods for itself.
 *
 *   owner:  append -> if the queue is not listed, list it, and wake the worker if it sleeps
 *   pass:   take the lists -> mark each queue unlisted, take its snapshot -> grace period -> publish what is ready, run callbacks
 *           -> list again each queue to which its owner has appended since
 *
 * I1. A queue that is not empty is listed; or it is in the pass in progress; or it is carried over to the next pass, because its owner
 *     has marked it listed but may not have pushed it yet (CB3, and the heavy fence of the pass's grace period); or it is unfreed: all
 *     objects in it are ready, and left to its owner.
 * I2. Each ready object was queued before the snapshot of a pass, or of its owner, and then a grace period began that is over.
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

/* queue.listed has one of these values. */
enum {
	QUIESCE_UNLISTED,
	QUIESCE_LISTED_FREES, /* the owner has queued only objects for free() since the queue was unlisted */
	QUIESCE_LISTED,       /* a callback is in the queue, so the next pass is not put off */
	QUIESCE_LISTED_LAST,  /* the owner has exited, and lists the queue for the last time */
};

struct quiesce__queue {
	/* The owner writes these. */
	struct quiesce__append callbacks, frees;
	uint64_t reported;      /* bytes ever queued, at the owner's last report */
	struct rcu_head *spill; /* objects linked by their heads, for want of memory for a segment; a pass takes the whole list */
	uint64_t spilled;       /* number of objects ever pushed to @spill */
	uint64_t full_at;       /* number of addresses ever queued at which the queue is worth a pass at once */
	int64_t until_check;    /* bytes until the owner frees ready objects and reports; below 0: now */
	uint32_t shard;         /* shard to whose list the queue is pushed */
	bool refused;           /* the kernel refuses the owner a membarrier, so it takes no part in grace periods */
	uint64_t cookie;        /* the owner polls this grace period, which makes the objects of @polled ready; 0: it polls none */
	struct quiesce__snapshot polled; /* objects for free() that the owner polls for */
	struct quiesce__snapshot known;  /* objects for free() that the owner knows to be ready */
	uint64_t brought;       /* number of objects that a grace period makes ready; after one that brings fewer it is halved at most */
	/* Passes write these, and the owner loads them in each call. */
	uint32_t listed __attribute__((aligned(QUIESCE_CACHELINE))); /* QUIESCE_UNLISTED, ... */
	uint32_t revoked;     /* a pass frees the ready objects, and the owner does not */
	uint64_t ready;       /* number of objects for free(), ever, whose grace period is over */
	uint64_t ready_bytes; /* bytes of these objects */
	struct quiesce__queue *next_listed; /* next queue in the shard's list; written by the thread that pushes this queue */
	uint32_t busy __attribute__((aligned(QUIESCE_CACHELINE))); /* the owner frees, unless it sees @revoked; only it writes this */
	/* The thread that has the right to free writes these: the owner while it is busy, or a pass that has revoked that. */
	uint32_t pace;           /* objects that the owner frees in each call */
	uintptr_t *row, *row_end; /* slots of a row of ready objects that are not taken */
	uintptr_t *row_single;   /* the owner frees single objects up to this slot, without any check */
	struct quiesce__consume freeing;
	uint64_t freed;          /* number of objects whose free() has returned; read by others */
	struct quiesce__snapshot goal; /* objects that were ready when the row began: the rows end there */
	uint64_t row_nr;         /* objects that the row had at its beginning */
	uint64_t reported_freed; /* bytes freed, at the last report by a thread that frees */
	/* The holder of a pass writes these, except @running and @run, which the reclaimer that has the queue writes. */
	struct quiesce__consume running __attribute__((aligned(QUIESCE_CACHELINE)));
	uint64_t nr_run;     /* number of callbacks that have returned */
	struct quiesce__snapshot callbacks_snap, frees_snap;
	uint64_t seen_taken; /* freeing.taken when the queue was last left to its owner */
	uint64_t share;      /* bytes of this queue in the process-wide sum of garbage; exchanged by each report */
	bool gone;           /* the owner has exited, so a pass may free the queue */
	bool unfreed;        /* the queue is in the list of unfreed queues: its ready objects are left to its owner */
	bool in_pass;        /* the queue is in the list of the pass in progress */
	bool carried;        /* the next pass begins with this queue, whether it has been pushed to a shard or not */
	struct quiesce__queue *next_in_pass, *next_unfreed, *next_carried;
	struct quiesce__queue *next, *prev; /* neighbours in the list of all queues, under queues.lock */
};

/* A list of queues.  There are several shards, so that threads that begin to retire do not all write the same cache line. */
struct quiesce__shard {
	struct quiesce__queue *listed; /* queues pushed by their owners; a pass takes the whole list */
	struct rcu_head *spill;        /* objects of threads that cannot have a queue, linked by their heads */
	uint64_t spilled, bytes;       /* number and bytes of the objects ever pushed to @spill */
} __attribute__((aligned(QUIESCE_CACHELINE)));

struct quiesce__queues {
	struct quiesce__lock lock; /* guards all fields before @shard */
	struct quiesce__queue *all;
	uint32_t nr;           /* number of queues */
	uint32_t nr_ever;      /* number of queues ever allocated */
	uint32_t report_bytes; /* bytes that a thread queues or frees before it reports them to the process-wide sum */
	uint64_t gone_queued, gone_run, gone_spilled; /* totals of the queues that have been freed */
	struct quiesce__shard shard[QUIESCE_NR_SHARDS];
};
extern struct quiesce__queues quiesce__queues;

/* Allocate a queue for the calling thread, which has none; NULL: it cannot have one. */
struct quiesce__queue *quiesce__queue_new(struct quiesce_tls_v1 *self);
/* Free a queue that is empty, not listed, and has no owner any more; the caller holds pass.lock. */
void quiesce__queue_free(struct quiesce__queue *queue);
/* List @queue, so that the next pass takes it; true if it was not listed.  @callback: a callback is in it, which is not put off. */
bool quiesce__queue_list(struct quiesce__queue *queue, bool callback);
/* List @queue for the last time: its owner exits, and does not access it after this call. */
void quiesce__queue_leave(struct quiesce__queue *queue);
/* Free @queue, whose owner exits, or list it for the last time.  True: the caller is to wake the worker, if that sleeps. */
bool quiesce__queue_end(struct quiesce__queue *queue);
/* True if a queue is listed, or an object of a thread without a queue waits.  The loads are relaxed: the caller orders them. */
bool quiesce__queues_listed(void);

/* Push @head to @list, to which other threads push at the same time, and which a pass takes as a whole. */
void quiesce__spill_push(struct rcu_head **list, struct rcu_head *head);

static inline uint64_t quiesce__queue_bytes(const struct quiesce__queue *queue)
{
	return queue->callbacks.bytes + queue->frees.bytes;
}

/* Make the share of @queue in the process-wide sum equal to the bytes that wait in it.  The owner or a pass calls this after a change. */
void quiesce__queue_report(struct quiesce__queue *queue);

/* Report the bytes of the calling owner, if it has queued anything since its last report. */
static inline void quiesce__queue_report_own(struct quiesce__queue *queue)
{
	uint64_t bytes = quiesce__queue_bytes(queue);

	if (bytes == queue->reported)
		return;
	queue->reported = bytes;
	quiesce__queue_report(queue);
}

/* The greater one of two numbers that count objects, and wrap. */
static inline uint64_t quiesce__newer(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0 ? a : b;
}

/* True if the owner, which calls this, knows of a ready object that is not freed. */
static inline bool quiesce__may_free(const struct quiesce__queue *queue)
{
	return (int64_t)(queue->known.nr - quiesce_load_relaxed(&queue->freeing.taken)) > 0; /* Relaxed: a hint. */
}

/* Let the owner, which calls this, know @ready, unless it knows more. */
static inline void quiesce__know(struct quiesce__queue *queue, struct quiesce__snapshot ready)
{
	uint64_t brought = ready.nr - queue->known.nr;

	if ((int64_t)brought <= 0)
		return;
	queue->brought = brought > queue->brought / 2 ? brought : queue->brought / 2;
	queue->known.bytes = ready.bytes;
	quiesce_store_relaxed(&queue->known.nr, ready.nr); /* Relaxed: passes read it for their policy. */
}

/* Return what passes have found ready. */
static inline struct quiesce__snapshot quiesce__queue_ready(const struct quiesce__queue *queue)
{
	/* CB2: acquire, pairs with CB2 in publish_ready() */
	struct quiesce__snapshot ready = { .nr = quiesce_load_acquire(CB2, &queue->ready) };

	/* Relaxed: these belong to this @ready or to a later one, and those beyond this one are not counted again. */
	ready.bytes = quiesce_load_relaxed(&queue->ready_bytes);
	return ready;
}

/* Free at most @nr ready objects; the caller has the right to. */
void quiesce__free_ready(struct quiesce__queue *queue, uint32_t nr);
/* Free as many ready objects as the pace of @queue is, unless a pass frees them; the caller is the owner. */
void quiesce__free_paced(struct quiesce_tls_v1 *self, struct quiesce__queue *queue);
/* End the free() that has ended the thread of the owner, if it is in one. */
void quiesce__end_free(struct quiesce__queue *queue);
/* Report the bytes that were freed since the last such report, if any; the caller has the right to free. */
void quiesce__queue_report_freed(struct quiesce__queue *queue);

/* True if the calling thread may have a queue of its own: its exit must be noticed, so that the queue can be taken back. */
static inline bool quiesce__may_have_queue(struct quiesce_tls_v1 *self)
{
	bool armed;

	if ((self->state & QUIESCE_TLS_EXITING) || (!quiesce__heap_begin(self) && !QUIESCE_MUTANT(cb_heap_two_queues)))
		return false;
	quiesce__init();
	quiesce__fix_mode();
	armed = platform_arm_thread_exit() == 0; /* this call may allocate memory */
	quiesce__heap_end(self);
	return armed;
}

/* True if the calling thread may sleep for a grace period. */
static inline bool quiesce__may_sleep(const struct quiesce_tls_v1 *self)
{
	return !rcu_read_lock_held() && !(self->state & QUIESCE_TLS_CALLBACKS) &&
	       (!(self->state & QUIESCE_TLS_IN_HEAP) || QUIESCE_MUTANT(cb_heap_waits));
}

#endif
