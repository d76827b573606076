/* SPDX-License-Identifier: MIT */
/* jobs.h - what jobs.c (the list of jobs) and helper.c (the threads that take steps of them) share. */
#ifndef QUIESCE_JOBS_H
#define QUIESCE_JOBS_H

#include "helper.h"

/* Callbacks that may block at one time, plus one. */
#if defined(QUIESCE_SIM)
#define QUIESCE_NR_HELPERS 3u
#else
#define QUIESCE_NR_HELPERS 32u
#endif

/* One that takes steps. */
struct quiesce__runner {
	const struct quiesce_tls_v1 *by; /* NULL: nobody */
	struct quiesce__job *job;        /* it takes a step of; NULL: none */
	uint64_t callbacks_since;        /* it runs the program's callbacks; 0: it does not */
	uint32_t in_gate;
};

/* Under the lock, but for what says otherwise. */
struct quiesce__helper {
	struct quiesce__lock lock;
	uint32_t asleep; /* 1: who leads sleeps, or is about to */
	uint32_t wake_wanted;  /* 1: take a step of every job; without the lock, too */
	uint32_t stop;   /* asked to stop; whoever lists a job takes it back */
	/* Jobs. */
	uint32_t nr_listed;
	struct quiesce__job *moving; /* from list to list; NULL: none */
	struct quiesce__job *ready, **ready_end; /* to be taken, the first one first; their @due is 0 */
	struct quiesce__job *timed;              /* the others, in no order */
	uint64_t next_due;                       /* of those, or earlier */
	uint32_t steps;   /* futex: steps that are over, while somebody waits for one */
	uint32_t waiting; /* for that */
	/* Threads. */
	struct quiesce__runner *leader, *watcher; /* NULL: nobody */
	const void *starter; /* the thread that is STARTING the first one */
	uint32_t nr;         /* threads that are there */
	uint32_t coming;     /* that were started, and are not there yet */
	uint32_t watch;      /* futex of the watcher */
	/* The last is for a caller that takes steps because there is no thread. */
	struct quiesce__runner runner[QUIESCE_NR_HELPERS + 1];
	/* Callers look at this all the time; it changes only when the first thread comes, the last goes, or none can be had. */
	uint32_t started __attribute__((aligned(QUIESCE_CACHELINE))); /* QUIESCE_HELPER_* */
};
enum { QUIESCE_HELPER_NONE, QUIESCE_HELPER_STARTING, QUIESCE_HELPER_RUNNING };
extern struct quiesce__helper quiesce__helper;

/* jobs.c; under the lock */
/* Make ready those whose time has come, and all if @all but those that are deferred. */
void quiesce__jobs_make_ready(uint64_t now, bool all);
/* The first that is ready and of which nobody takes a step. */
struct quiesce__job *quiesce__jobs_next(void);
/* Is any listed of which nobody takes a step? */
bool quiesce__jobs_any_waiting(void);
/* Lets go of the lock meanwhile. */
void quiesce__job_take_step(struct quiesce__runner *me, struct quiesce__job *job);

/* helper.c; under the lock */
/* There is a thread, or somebody starts one, unless the last start has failed a short while ago.  May let go of the
 * lock meanwhile. */
bool quiesce__helper_ensure_locked(void);
/* If who leads runs callbacks, and something is to be done: see that somebody watches.  The same. */
void quiesce__helper_ensure_watcher(void);
/* Wake who leads. */
void quiesce__helper_wake_locked(void);

#endif
