/* SPDX-License-Identifier: MIT */
/* srcu.h - the private part of a domain, and declarations that the files of SRCU share. */
#ifndef QUIESCE_SRC_SRCU_H
#define QUIESCE_SRC_SRCU_H

#include <quiesce/srcu.h>

#include "runtime/helper.h"
#include "runtime/overdue.h"
#include "runtime/wait_policy.h"
#include "percpu/percpu.h"
#include "runtime/yield.h"

#define QUIESCE_SRCU_WORDS 4u /* entered[0], entered[1], left[0], left[1] */
#define QUIESCE_SRCU_LEFT 2u  /* place of left[0] */

/* A waiter has this on its own stack. */
struct quiesce__srcu_waiter {
	struct quiesce__srcu_waiter *next;
	uint64_t needed; /* number of the grace period to wait for; 0: not known yet */
	uint32_t state;
	uint32_t rank; /* position among the followers that check whether the leader is overdue */
	bool expedited;
};

/* The set of indexes that were seen empty: bit i is index i. */
#define QUIESCE_SRCU_SEEN_FIRST 1u
#define QUIESCE_SRCU_SEEN_BOTH 3u

/* The index that @seen, which has one index, does not have: 1 if it has index 0. */
static inline uint32_t quiesce__srcu_unseen_index(uint32_t seen)
{
	return seen & QUIESCE_SRCU_SEEN_FIRST;
}

/* A grace period beside the leader's, run by a thread that found the leader overdue: see srcu_follow.c. */
struct quiesce__srcu_alone {
	uint64_t number; /* number of the grace period; 0: none */
	uint32_t seen;   /* indexes seen empty since its fence */
};

/* Number of callbacks queued so far, and of their bytes: see srcu_garbage.c. */
struct quiesce__srcu_sums {
	uint64_t queued, bytes_in;
};

/* A list of callbacks that threads push to, with its sums; see srcu_lists.c. */
struct quiesce__srcu_list {
	struct rcu_head *first; /* the newest callback */
	struct quiesce__srcu_sums sums;
};

/* Where a thread pushes. */
struct quiesce__srcu_place {
	struct quiesce__srcu_list *list;
	struct quiesce__srcu_sums *sums;
	bool mine; /* no other thread adds to @sums */
};

/* Add @delta to a word of the sums of @place; returns the value before. */
static inline uint64_t quiesce__srcu_add(const struct quiesce__srcu_place *place, uint64_t *word, uint64_t delta)
{
	uint64_t before;

	if (!place->mine)
		return quiesce_fetch_add_relaxed(word, delta); /* Relaxed: the exchange of push() follows. */
	before = quiesce_load_relaxed(word);           /* Relaxed: the thread's own. */
	quiesce_store_relaxed(word, before + delta);   /* Relaxed: the exchange of push() follows. */
	return before;
}

struct quiesce__srcu_shards;

/* The part of a domain that updaters use: grace periods, waiters, and callbacks. */
struct quiesce__srcu_usage {
	/* Written by the holder of @step_lock. */
	struct quiesce__srcu_shards *shards; /* further lists; NULL: all threads push to @own */
	uint64_t takes, done;      /* number of takes of the lists that have begun, and of those whose callbacks have all run */
	uint32_t taking;           /* list that is being taken, plus one: I4 of srcu_lists.c */
	uint32_t starting;         /* a pusher has started the job since the last take, or is about to; the pusher writes it, too */
	uint64_t delay_ns;         /* delay until the next step */
	/* Leaders and waiters share the state of grace periods. */
	struct quiesce__lock lock; /* guards @led, @waiters and the increment of @begun; innermost */
	bool led;                  /* a thread leads, or has been chosen to */
	bool fenced;               /* the leader's: the heavy fence of its grace period is over */
	uint8_t seen;              /* the leader's: indexes seen empty since the fence */
	uint32_t generation;       /* process generation that initialised it (I6); 0: not yet used */
	uint32_t inherited;        /* open sections may be of threads that this process does not have: I7 of srcu.c */
	struct quiesce__srcu_waiter *waiters; /* stack of waiters, the newest first */
	uint64_t begun, completed; /* grace periods: newest number taken, newest number that is over */
	uint32_t wake_seq[2];      /* futexes: change when a waiter for an even, or an odd, number is completed */
	uint64_t due;              /* time of the leader's next check, at the latest; 0: it does not sleep */
	uint64_t alone_until;      /* time from which another waiter may run a grace period of its own */
	uint64_t shared[QUIESCE_SRCU_WORDS]; /* counts of threads that have no set */
	uint32_t no_memory;        /* allocation of sets has failed; until the next grace period */
	uint32_t expedite;         /* a waiter wants the grace period expedited */
	/* The leader owns the following fields. */
	uint64_t number;           /* number of its grace period */
	uint64_t left[2];          /* sections of each index that had left, as of an earlier pass over the counters */
	uint64_t force_not_before;
	uint64_t stuck_at, stall_at, checked_at; /* tries that find holdouts: as in struct quiesce__wait_policy */
	/* State of callbacks; see srcu_callbacks.c. */
	struct quiesce__srcu_list own; /* the list of all threads, or of those that have not found the shards yet */
	uint32_t last;             /* number of the thread that has pushed to @own last */
	uint32_t meets;            /* pushes to @own since the last take that followed one of another thread */
	uint64_t nr_run;           /* number of callbacks run so far */
	uint64_t bytes_reported;   /* bytes of all callbacks queued that were already added to the process-wide sum */
	uint64_t bytes_taken;      /* bytes of all callbacks queued when @taken was taken */
	uint64_t bytes_out;        /* bytes already taken off that sum */
	struct quiesce__lock step_lock; /* held by the thread that takes a step, callbacks included */
	const struct quiesce_tls_v1 *runner; /* the thread that runs a callback */
	struct rcu_head *taken;    /* callbacks that wait for @cookie, the oldest first */
	struct rcu_head *rest, *rest_next, *reversed; /* callbacks on the way to @taken: I4 of srcu_lists.c */
	uint64_t nr_taken;         /* number of taken callbacks whose bytes have not been taken off the sum */
	uint64_t cookie;
	uint64_t wanted;           /* the newest grace period that start_poll_synchronize_srcu() requested */
	uint64_t wanted_due;       /* time from which @wanted is overdue and the next poller takes part */
	uint32_t done_word;        /* futex: changes when callbacks have run */
	uint32_t waiting;          /* number of callers that sleep on @done_word */
	struct quiesce__srcu_alone alone; /* grace period of the thread that takes steps, if the leader does not run */
	struct quiesce__overdue late;
	struct quiesce__job job;
};
_Static_assert(sizeof(struct quiesce__srcu_usage) <= sizeof(struct quiesce__srcu_space), "the private part fits");
_Static_assert(offsetof(struct srcu_struct, name) == QUIESCE_CACHELINE, "readers load one cache line");

/* Shared by all domains, because a reader that has left may not access its own. */
extern struct quiesce__yield quiesce__srcu_yield;

static inline struct quiesce__srcu_usage *quiesce__srcu_usage(struct srcu_struct *ssp)
{
	return (struct quiesce__srcu_usage *)(void *)&ssp->space;
}

static inline struct srcu_struct *quiesce__srcu_domain(struct quiesce__srcu_usage *u)
{
	return (struct srcu_struct *)(void *)((char *)u - offsetof(struct srcu_struct, space));
}

/* Name of the domain, for messages. */
static inline const char *quiesce__srcu_name(const struct srcu_struct *ssp)
{
	return ssp->name ? ssp->name : "a domain without a name";
}
/* Initialise the domain, or reinitialise it in a child of fork(), if that is due; precedes each operation on its grace periods and
 * callbacks. */
struct quiesce__srcu_usage *quiesce__srcu_prepare(struct srcu_struct *ssp);
/* Wait for a grace period that begins after this call.  @call: the program's call, for reports. */
void quiesce__srcu_wait(struct srcu_struct *ssp, const char *call, bool expedited);
/* True, and reported, if the calling thread is in a section of the domain, as far as programs built with
 * QUIESCE_DEBUG record it. */
bool quiesce__srcu_wait_is_misuse(struct srcu_struct *ssp, const char *what);
/* In a child of fork(): reinitialise the parent's state, unless that was done. */
void quiesce__srcu_reinit(struct quiesce__srcu_usage *u);
/* Report that a section ends with an index that no srcu_read_lock() returned. */
void quiesce__srcu_bad_index(const struct srcu_struct *ssp, int idx) __attribute__((cold));
/* False: @ssp is NULL, which has been reported as a misuse of @call. */
bool quiesce__srcu_exists(const struct srcu_struct *ssp, const char *call);
/* In a child: reset the lock of a reinitialisation that a thread of the parent did not finish. */
void quiesce__srcu_fork_reinit(void);
/* srcu_follow.c: states of a waiter: waiting; leads the others; its grace period is completed; goes on alone
 * because the leader is overdue. */
enum { QUIESCE_SRCU_WAITS, QUIESCE_SRCU_LEADS, QUIESCE_SRCU_COMPLETED, QUIESCE_SRCU_ALONE };
uint32_t quiesce__srcu_join(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, struct quiesce__srcu_waiter *me);
/* Stop leading; the oldest waiter, if there is one, becomes the leader. */
void quiesce__srcu_hand_over(struct quiesce__srcu_usage *u);
/* Wake the leader, if it sleeps, to check the counts. */
void quiesce__srcu_wake_leader(const struct srcu_struct *ssp);
/* Wait for @needed in a grace period of its own, or until the domain has no leader. */
void quiesce__srcu_wait_alone(struct srcu_struct *ssp, struct quiesce__srcu_usage *u, const char *call, uint64_t needed);
/* Advance the grace period of the thread that holds @step_lock, without sleeping; true: it is over. */
bool quiesce__srcu_try_alone(struct srcu_struct *ssp, struct quiesce__srcu_usage *u);
/* Request @bits from readers that leave index @idx; 0: no request, and readers leave inline. */
void quiesce__srcu_request_one(struct srcu_struct *ssp, uint32_t idx, uint64_t bits);
/* Check the counts of both indexes; returns @seen and the indexes that are empty.  @left: for each index a sum of the sections that had
 * left as of an earlier check, or 0; it becomes that of this check. */
uint32_t quiesce__srcu_check(struct srcu_struct *ssp, uint32_t seen, uint64_t *left);
/* Returns the number of open sections of index @idx. */
uint64_t quiesce__srcu_inside(struct srcu_struct *ssp, uint32_t idx);
/* Publish that @number and all older grace periods are over, and complete their waiters. */
void quiesce__srcu_publish(struct quiesce__srcu_usage *u, uint64_t number);
/* A cookie for the grace period that would begin now.  quiesce__srcu_done() tests whether that grace period is
 * over. */
uint64_t quiesce__srcu_cookie(const struct quiesce__srcu_usage *u);
bool quiesce__srcu_done(const struct quiesce__srcu_usage *u, uint64_t cookie);
/* Try to complete @cookie without sleeping.  @may_request: request that holdouts wake the helper. */
bool quiesce__srcu_try(struct srcu_struct *ssp, uint64_t cookie, bool may_request);

/* srcu_report.c: report that @call has waited for @ns, for readers of index @idx; or for callbacks. */
void quiesce__srcu_report_stall(struct srcu_struct *ssp, const char *call, uint32_t idx, uint64_t ns);
void quiesce__srcu_report_barrier(struct srcu_struct *ssp, uint64_t ns);
/* Report, if a report is due, how much garbage waits for all domains, and for this one.  The caller may be in a
 * step, but not in a section. */
void quiesce__srcu_check_garbage(struct srcu_struct *ssp);

/* srcu_callbacks.c: take a step of the domain's job; returns the delay until the next step. */
uint64_t quiesce__srcu_step(struct quiesce__job *job);
/* The domain of a job; NULL if the job is of another kind. */
static inline struct quiesce__srcu_usage *quiesce__srcu_of_job(struct quiesce__job *job)
{
	if (job->step != quiesce__srcu_step)
		return NULL;
	return (struct quiesce__srcu_usage *)(void *)((char *)job - offsetof(struct quiesce__srcu_usage, job));
}
/* True if holdouts may be threads that this process does not have. */
static inline bool quiesce__srcu_inherits(const struct quiesce__srcu_usage *u)
{
	return quiesce_load_relaxed(&u->inherited) != 0; /* Relaxed: only the end of a grace period changes it. */
}
/* Call after a grace period: start the job if it has work to do. */
void quiesce__srcu_schedule(struct quiesce__srcu_usage *u);
/* Number of callbacks that have not run, or are running. */
uint64_t quiesce__srcu_pending(const struct quiesce__srcu_usage *u);
/* Cancel the job: no step is taken until a callback is queued again. */
void quiesce__srcu_callbacks_stop(struct quiesce__srcu_usage *u);
void quiesce__srcu_callbacks_fork_child(struct quiesce__srcu_usage *u);
/* Start the job of the domain, so that a step is taken. */
void quiesce__srcu_start_job(struct quiesce__srcu_usage *u);

/* srcu_lists.c: where the calling thread pushes callbacks. */
struct quiesce__srcu_place quiesce__srcu_place_of_thread(struct quiesce__srcu_usage *u);
/* Lists are numbered from 0, which is @own. */
uint32_t quiesce__srcu_nr_lists(const struct quiesce__srcu_usage *u);
struct quiesce__srcu_list *quiesce__srcu_list_at(struct quiesce__srcu_usage *u, uint32_t i);
/* Sums over all lists. */
uint64_t quiesce__srcu_queued(const struct quiesce__srcu_usage *u);
uint64_t quiesce__srcu_bytes_in(const struct quiesce__srcu_usage *u);
/* Under @step_lock: allocate shards if pushes have met often since the last take. */
void quiesce__srcu_shards_open(struct quiesce__srcu_usage *u);
/* Free them; no thread pushes any more. */
void quiesce__srcu_shards_close(struct quiesce__srcu_usage *u);
/* Under @step_lock: take all lists, and a cookie; false: callbacks of the last take are left. */
bool quiesce__srcu_take(struct quiesce__srcu_usage *u);
/* ... the callbacks of all takes have run. */
void quiesce__srcu_end_take(struct quiesce__srcu_usage *u);
/* In the child of a fork: complete a take, and take all lists. */
void quiesce__srcu_take_inherited(struct quiesce__srcu_usage *u);

/* srcu_garbage.c: garbage of all domains.  Count a callback of @bytes before it is queued; true: there is too much. */
bool quiesce__srcu_count_queued(struct quiesce__srcu_usage *u, const struct quiesce__srcu_place *place, size_t bytes);
/* Request that readers yield, for part of the time, if there is too much garbage; true if so. */
bool quiesce__srcu_request_yields(struct quiesce__srcu_usage *u);
/* Count a callback that has returned. */
void quiesce__srcu_count_run(void);
/* Under @step_lock: add to the process-wide sum all bytes of the domain that it does not include yet. */
void quiesce__srcu_report_bytes(struct quiesce__srcu_usage *u);
/* Under @step_lock: account for the bytes of @nr callbacks that were taken, or that have run and may be the last
 * ones.  @bytes_in: the bytes of all callbacks queued so far, among them all taken ones. */
void quiesce__srcu_bytes_taken(struct quiesce__srcu_usage *u, uint64_t nr, uint64_t bytes_in);
void quiesce__srcu_bytes_run(struct quiesce__srcu_usage *u, uint64_t nr);
/* In the child of a fork, once for each domain.  @pending: callbacks that are queued, or running in the thread that
 * forked. */
void quiesce__srcu_garbage_fork_child(struct quiesce__srcu_usage *u, uint64_t pending);

#endif
