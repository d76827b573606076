/* SPDX-License-Identifier: MIT */
/* call_rcu_data.h - a queue of callbacks with a thread. */
#ifndef QUIESCE_URCU_SRC_CALL_RCU_DATA_H
#define QUIESCE_URCU_SRC_CALL_RCU_DATA_H

#include "flavor.h"

#include <quiesce/ds/wfcqueue.h>
#include <semaphore.h>

struct call_rcu_data {
	struct wfcq_head head __attribute__((aligned(QUIESCE_CACHELINE))); /* of whoever calls callbacks */
	struct wfcq_tail tail __attribute__((aligned(QUIESCE_CACHELINE))); /* of those who queue */
	struct flavor *flavor __attribute__((aligned(QUIESCE_CACHELINE)));
	sem_t work;           /* something was queued, or something else is asked of the thread */
	uint32_t hurry;       /* somebody waits for it: keep no pace */
	bool polls;           /* URCU_CALL_RCU_RT */
	int cpu;              /* -1: any */
	uint32_t stop, pause; /* asked of the thread; @pause changes under the flavour's lock */
	sem_t paused, resume; /* the thread's answer; go on */
	sem_t gone;           /* the thread, which was asked to stop, does not access it any more */
	bool asked_for;       /* the thread's id, by the program; under the flavour's lock */
	uint32_t has_thread;  /* under the flavour's lock, but for hints */
	uint64_t retry_at;    /* after a failed start, not before; under the lock, but for hints */
	pthread_t thread;
	pthread_mutex_t caller; /* held while its callbacks are called */
	struct wfcq_head rest_head; /* the holder's: in front of what is queued */
	struct wfcq_tail rest_tail;
	struct call_rcu_data *next, **at; /* of the flavour's list */
};

/* What @pause is. */
enum { PAUSE_NONE, PAUSE_ASKED, PAUSE_ANSWERED };

/* Start its thread, at once, unless it has one; false: none can be had. */
bool call_rcu_data_ensure_thread(struct call_rcu_data *c);
/* Ask its thread to look at once, whether it sleeps or keeps its pace. */
void call_rcu_data_wake(struct call_rcu_data *c);
/* Queue everything that is in @c in the default: all of it, so that a barrier's marker stays behind what was before it. */
void call_rcu_data_move_to_default(struct call_rcu_data *c);
/* Out of the list, under the flavour's lock; then freed, without it.  It has no thread. */
void call_rcu_data_unlist(struct call_rcu_data *c);
void call_rcu_data_release(struct call_rcu_data *c);

#endif
