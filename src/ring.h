/* SPDX-License-Identifier: MIT */
/* ring.h - a thread's queue of retired objects.
 *
 *      taken        snap            queued
 *        |           |                |
 *   ...  v           v                v
 *   [run][ to run now][ next pass    ][ free ...
 *
 * The owner writes @queued and its line, the worker everything else.  An array of
 * pointers and not a list, so that the worker can prefetch what it will touch and
 * an object needs no link; it is bounded, and that bounds the garbage of a thread
 * that may wait.
 */
#ifndef QUIESCE_RING_H
#define QUIESCE_RING_H

#include "core.h"
#include "garbage.h"

#if defined(QUIESCE_SIM)
#define QUIESCE_RING_SLOTS 4u
#else
#define QUIESCE_RING_SLOTS 8192u
#endif

/* Bit 0 of a slot: a whole object for free(), not a struct rcu_head. */
#define QUIESCE_SLOT_FREE ((uintptr_t)1)

struct quiesce__ring {
	/* The owner's line. */
	uint64_t queued;      /* slots ever filled; read by the worker */
	uint64_t bytes_in;    /* bytes ever queued; read by the worker */
	uint64_t taken_seen;  /* what the owner knows of @taken */
	uint64_t bytes_told;  /* of bytes_in, what the process-wide sum knows */
	uint32_t owner_gone;  /* the thread has exited; the worker may free the ring */
	/* The worker's line. */
	uint64_t taken __attribute__((aligned(QUIESCE_CACHELINE))); /* slots emptied; read by the owner */
	uint64_t run;         /* callbacks that have returned */
	uint64_t snap;        /* slots that this pass empties */
	uint64_t bytes_out;   /* bytes of what was reclaimed */
	uint64_t bytes_snap;
	uint32_t blocked;     /* the owner sleeps until there is room */
	struct quiesce__ring *next; /* under reclaim's rings_lock */
	uintptr_t slot[QUIESCE_RING_SLOTS] __attribute__((aligned(QUIESCE_CACHELINE)));
};

/* Is there room for one more?  The owner asks. */
static inline bool quiesce__ring_full(struct quiesce__ring *ring)
{
	uint64_t queued = quiesce_load_relaxed(&ring->queued); /* Relaxed: the owner's own. */

	if (quiesce_likely(queued - ring->taken_seen < QUIESCE_RING_SLOTS))
		return false;
	/* CB2: acquire, pairs with CB2 in run_chunk() */
	ring->taken_seen = quiesce_load_acquire(CB2, &ring->taken);
	return queued - ring->taken_seen >= QUIESCE_RING_SLOTS && !QUIESCE_MUTANT(cb_full_overwrites);
}

/* Is there enough to be worth a pass?  The owner asks. */
static inline bool quiesce__ring_well_filled(struct quiesce__ring *ring)
{
	uint64_t queued = quiesce_load_relaxed(&ring->queued); /* Relaxed: the owner's own. */

	if (quiesce_likely(queued - ring->taken_seen < QUIESCE_RING_SLOTS / 4))
		return false;
	/* CB2: acquire, pairs with CB2 in run_chunk() */
	ring->taken_seen = quiesce_load_acquire(CB2, &ring->taken);
	return queued - ring->taken_seen >= QUIESCE_RING_SLOTS / 4;
}

/* Append; there is room. */
static inline void quiesce__ring_push(struct quiesce__ring *ring, uintptr_t item, size_t bytes)
{
	uint64_t queued = quiesce_load_relaxed(&ring->queued); /* Relaxed: the owner's own. */

	/* Relaxed: CB1 publishes both. */
	quiesce_store_relaxed(&ring->slot[queued % QUIESCE_RING_SLOTS], item);
	quiesce_store_relaxed(&ring->bytes_in, ring->bytes_in + bytes);
	/* CB1: release, pairs with CB1 in snapshot_ring() */
	quiesce_store_release(CB1, &ring->queued, queued + 1);
}

/* ---- the process-wide half; see reclaim.c for the theory ---- */

struct quiesce__queues {
	struct quiesce__lock lock; /* guards the list of rings */
	struct quiesce__ring *rings;
	struct rcu_head *overflow;       /* pushed by anybody, taken whole by a pass */
	struct rcu_head *taken_overflow; /* of the present pass, before its grace period */
	struct rcu_head *ready_overflow; /* and after it */
	uint64_t overflow_pushed, overflow_run;
	bool overflow_running;
	uint64_t freed_run; /* callbacks run from rings that are gone */
};
extern struct quiesce__queues quiesce__queues;

struct quiesce__pass {
	struct quiesce__lock lock; /* held for a whole pass, grace period and callbacks included */
	uint64_t begun, done;
	uint32_t done_word; /* futex that changes with every pass */
	uint32_t waiting;   /* callers that wait for a pass */
	uint32_t again;     /* work came while a caller ran a pass */
};
extern struct quiesce__pass quiesce__pass;

/* worker.sleep.  Dozing: asleep for RCU, but it will look after hazard pointers by itself. */
enum { QUIESCE_AWAKE, QUIESCE_NAPPING, QUIESCE_ASLEEP, QUIESCE_DOZING };

struct quiesce__worker {
	uint32_t running;   /* a worker thread exists, or is being started */
	uint32_t sleep;     /* the futex it sleeps on */
	uint32_t urgent;    /* do not nap, hurry the readers */
	uint32_t stop;
	uint32_t failures;  /* to start a thread, in a row */
	uint64_t gp_wanted; /* cookie of a polled grace period, 0 none */
};
extern struct quiesce__worker quiesce__worker;

/* Make sure that there is a worker; false if none can be had now. */
bool quiesce__worker_ensure(void);
/* Break off the worker's sleep or nap. */
void quiesce__worker_kick(void);
/* Callbacks run between these two, in chunks, so that fork() can wait until none does; @running is the caller's. */
void quiesce__gate_enter(uint32_t *running);
void quiesce__gate_leave(uint32_t *running);
/* Run a pass here, or see to it that whoever runs one runs another. */
void quiesce__pass_yourself(void);
/* Take part in a pass that begins after this call; false at @deadline (0: none). */
bool quiesce__pass_wait(uint64_t deadline_ns);

/* Tell the process-wide sum what the owner has queued; by the owner, or without one. */
static inline void quiesce__ring_tell(struct quiesce__ring *ring)
{
	uint64_t bytes = ring->bytes_in - ring->bytes_told;

	ring->bytes_told = ring->bytes_in;
	quiesce__garbage_add((int64_t)bytes);
}

/* May the calling thread have a queue of its own?  Only if that can be taken back when it exits. */
static inline bool quiesce__may_have_queue(const struct quiesce_tls_v1 *self)
{
	if (self->state & QUIESCE_TLS_EXITING)
		return false;
	quiesce__init();
	quiesce__used();
	return platform_arm_thread_exit() == 0;
}

/* May the calling thread sleep for a grace period? */
static inline bool quiesce__may_sleep(const struct quiesce_tls_v1 *self)
{
	return !rcu_read_lock_held() && !(self->state & QUIESCE_TLS_CALLBACKS);
}

#endif
