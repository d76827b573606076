/* SPDX-License-Identifier: MIT */
/* jobs.h - what jobs.c (the list of jobs) and helper.c (the threads that take steps of them) share. */
#ifndef QUIESCE_JOBS_H
#define QUIESCE_JOBS_H

#include "helper.h"

/* Most threads of the helper: so one fewer callbacks may block at a time. */
#if defined(QUIESCE_SIM)
#define QUIESCE_NR_RUNNERS 3u
#else
#define QUIESCE_NR_RUNNERS 32u
#endif

/* A thread that takes steps. */
struct quiesce__runner {
	const struct quiesce_tls_v1 *by; /* NULL: this entry is free */
	struct quiesce__job *job;        /* job of which it takes a step; NULL: none */
	uint64_t callbacks_since;        /* time from which it runs callbacks of the program; 0: it runs none */
	uint32_t in_gate;
};

/* The lock guards these fields, except where a comment says otherwise. */
struct quiesce__helper {
	struct quiesce__lock lock;
	uint32_t asleep; /* 1: the dispatcher sleeps, or is about to */
	uint32_t wake_wanted;  /* 1: take a step of every job; also changed without the lock */
	uint32_t stop;   /* request to stop; a caller that lists a job withdraws it */
	/* Jobs. */
	uint32_t nr_listed;
	struct quiesce__job *moving; /* job that moves from one list to the other; NULL: none */
	struct quiesce__job *ready, **ready_end; /* jobs that are ready, in order; their @due is 0 */
	struct quiesce__job *timed;              /* jobs that are not due, unordered */
	uint64_t next_due;                       /* lower bound of the due times of @timed */
	uint32_t steps;   /* futex; number of finished steps, counted while a caller waits for one */
	uint32_t waiting; /* 1: a caller waits for a step */
	/* Threads. */
	struct quiesce__runner *dispatcher, *watcher; /* NULL: none */
	const void *starter; /* thread that starts the first helper, in state STARTING */
	uint32_t nr;         /* number of threads */
	uint32_t starting;   /* number of threads that were started and are not in @runner yet */
	uint32_t watch;      /* futex of the watcher */
	/* The last entry is for a caller that takes steps because there is no thread. */
	struct quiesce__runner runner[QUIESCE_NR_RUNNERS + 1];
	/* Read often by callers; it changes only when the first thread arrives, the last ends, or none can be
	 * created. */
	uint32_t state __attribute__((aligned(QUIESCE_CACHELINE))); /* QUIESCE_HELPER_* */
};
enum { QUIESCE_HELPER_NONE, QUIESCE_HELPER_STARTING, QUIESCE_HELPER_RUNNING };
extern struct quiesce__helper quiesce__helper;

/* jobs.c has these functions; the caller holds the lock. */
/* Make ready the jobs that are due at @now, and with @all every job that is not deferred. */
void quiesce__jobs_make_ready(uint64_t now, bool all);
/* The first ready job that is not in a step. */
struct quiesce__job *quiesce__jobs_next(void);
/* True if a listed job is not in a step. */
bool quiesce__jobs_any_waiting(void);
/* Take a step of @job; releases the lock during the step. */
void quiesce__job_take_step(struct quiesce__runner *me, struct quiesce__job *job);

/* helper.c has these functions; the caller holds the lock. */
/* Ensure that there is a thread, or that one is being started, unless the last start failed a short while
 * ago.  May release the lock meanwhile. */
bool quiesce__helper_ensure_locked(void);
/* Ensure that a thread watches if the dispatcher runs callbacks and a job waits.  May release the lock meanwhile. */
void quiesce__helper_ensure_watcher(void);
/* Wake the dispatcher. */
void quiesce__helper_wake_locked(void);

#endif
