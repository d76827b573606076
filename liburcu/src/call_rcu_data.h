/* SPDX-License-Identifier: MIT */
/* call_rcu_data.h - a queue of callbacks with a thread of its own. */
#ifndef QUIESCE_URCU_SRC_CALL_RCU_DATA_H
#define QUIESCE_URCU_SRC_CALL_RCU_DATA_H

#include "flavor.h"

#include <quiesce/ds/wfcqueue.h>
#include <semaphore.h>

struct call_rcu_data {
	struct wfcq_head head __attribute__((aligned(QUIESCE_CACHELINE))); /* written by the holder of @caller */
	struct wfcq_tail tail __attribute__((aligned(QUIESCE_CACHELINE))); /* written by callers of call_rcu() */
	struct flavor *flavor __attribute__((aligned(QUIESCE_CACHELINE)));
	sem_t work;           /* posted after a callback was queued, and for other requests to the thread */
	uint32_t awaited;     /* 1: a caller waits for callbacks, so the thread keeps no pace */
	bool polls;           /* created with URCU_CALL_RCU_RT */
	int cpu;              /* CPU of the thread; -1: any */
	uint32_t stop, pause; /* requests to the thread; @pause changes under the flavour's lock */
	sem_t paused, resume; /* answer of the thread; permission to go on */
	sem_t gone;           /* posted by a thread that was asked to stop, after its last access to the queue */
	bool asked_for;       /* the program has asked for the thread's id; guarded by the flavour's lock */
	uint32_t has_thread;  /* guarded by the flavour's lock, except for hints */
	uint64_t retry_at;    /* no earlier start after a failed one; guarded by the lock, except for hints */
	pthread_t thread;
	pthread_mutex_t caller; /* held while callbacks of the queue are called */
	struct wfcq_head rest_head; /* callbacks in front of the queue; the holder of @caller uses it */
	struct wfcq_tail rest_tail;
	struct call_rcu_data *next, **at; /* links of the flavour's list */
};

/* Values of @pause. */
enum { PAUSE_NONE, PAUSE_ASKED, PAUSE_ANSWERED };

/* Starts the thread of @c at once, unless it has one; false: no thread can be started. */
bool call_rcu_data_ensure_thread(struct call_rcu_data *c);
/* Makes the thread of @c check its queue at once, whether it sleeps or keeps its pace. */
void call_rcu_data_wake(struct call_rcu_data *c);
/* Moves everything in @c to the default queue: all of it, so that the marker of
 * a barrier stays behind the callbacks before it. */
void call_rcu_data_move_to_default(struct call_rcu_data *c);
/* Unlists @c, under the flavour's lock; then frees it, without the lock.  @c has no thread. */
void call_rcu_data_unlist(struct call_rcu_data *c);
void call_rcu_data_release(struct call_rcu_data *c);

#endif
