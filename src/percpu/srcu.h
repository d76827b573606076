/* SPDX-License-Identifier: MIT */
/* srcu.h - the private part of a domain, and what srcu.c and srcu_callbacks.c ask of each other. */
#ifndef QUIESCE_SRC_SRCU_H
#define QUIESCE_SRC_SRCU_H

#include <quiesce/srcu.h>

#include "runtime/helper.h"
#include "runtime/overdue.h"
#include "runtime/wait_policy.h"
#include "percpu.h"
#include "runtime/yield.h"

#define QUIESCE_SRCU_WORDS 4u /* entered, of index 0 and 1; left, of both */

/* One that waits, on its stack. */
struct quiesce__srcu_waiter {
	struct quiesce__srcu_waiter *next;
	uint64_t needed; /* the grace period to wait for; 0: not known yet */
	uint32_t state;
	uint32_t rank; /* of the followers that check whether the driver is late */
	bool expedited;
};

/* A grace period beside that of who drives: see srcu_follow.c. */
struct quiesce__srcu_alone {
	uint64_t number; /* 0: none */
	uint32_t seen;   /* bit i: index i was seen empty since its fence */
};

struct quiesce__srcu_update {
	/* Grace periods. */
	struct quiesce__lock lock; /* guards @driven, @waiters and the step of @begun; no other is taken inside */
	bool driven;               /* somebody drives, or has been chosen to */
	uint32_t generation;       /* I6; 0: not yet used */
	struct quiesce__srcu_waiter *waiters; /* the newest first */
	uint64_t begun, completed; /* numbers; the newest taken, and the newest that is over */
	uint32_t turn[2];          /* futex: changes when one of the waiters for an even number, or an odd one, is completed */
	uint64_t due;              /* who drives looks next, at the latest; 0: it does not sleep */
	uint64_t alone_until;      /* when another waiter may go on alone */
	uint64_t shared[QUIESCE_SRCU_WORDS]; /* counts of who has no set */
	uint32_t no_memory;        /* for sets; until the next grace period */
	uint32_t expedite;         /* somebody wants the grace period expedited */
	/* Of who drives. */
	uint64_t number;           /* of its grace period */
	bool fenced;               /* the heavy fence of that is over */
	uint32_t inherited;        /* I7 of srcu.c: sections may be in the way whose threads this process does not have */
	uint32_t seen;             /* bit i: index i was seen empty since */
	uint64_t force_not_before;
	uint64_t stuck_at, stall_at, checked_at; /* who tries found readers in the way; as in struct quiesce__wait_policy */
	/* Callbacks; see srcu_callbacks.c. */
	struct rcu_head *list;     /* pushed by anybody, the newest first */
	uint64_t queued, run;      /* callbacks, ever */
	uint64_t bytes_in;         /* of them, ever; see srcu_garbage.c */
	uint64_t bytes_reported;       /* of @bytes_in, what the process-wide sum knows */
	uint64_t bytes_taken;      /* @bytes_in when @taken was taken */
	uint64_t bytes_out;        /* taken off the sum again */
	struct quiesce__lock running; /* held by who takes a step, callbacks included */
	const struct quiesce_tls_v1 *runner; /* who is in a callback */
	struct rcu_head *taken;    /* the oldest first; they wait for @cookie */
	struct rcu_head *rest, *rest_next, *turned; /* I6 of srcu_callbacks.c: on the way to @taken */
	uint64_t nr_taken;         /* of them, those whose bytes have not been taken off */
	uint64_t cookie;
	uint64_t wanted;           /* the last grace period that start_poll_synchronize_srcu() asked for */
	uint64_t wanted_due;       /* then it is overdue, and a poller takes part; then the next one may */
	uint32_t done_word;        /* futex: changes when some have run */
	uint32_t waiting;          /* for that */
	uint64_t delay_ns;         /* until the next step */
	struct quiesce__srcu_alone alone; /* of who takes steps, if who drives does not run */
	struct quiesce__overdue late;
	struct quiesce__job job;
};
_Static_assert(sizeof(struct quiesce__srcu_update) <= sizeof(struct quiesce__srcu_space), "the private part has room");
_Static_assert(offsetof(struct srcu_struct, apart) == QUIESCE_CACHELINE, "readers look at one line");

/* Of all domains: a reader that has left may not look at its own. */
extern struct quiesce__yield quiesce__srcu_yield;

static inline struct quiesce__srcu_update *quiesce__srcu_update(struct srcu_struct *ssp)
{
	return (struct quiesce__srcu_update *)(void *)&ssp->space;
}

static inline struct srcu_struct *quiesce__srcu_domain(struct quiesce__srcu_update *u)
{
	return (struct srcu_struct *)(void *)((char *)u - offsetof(struct srcu_struct, space));
}

/* For messages. */
static inline const char *quiesce__srcu_name(const struct srcu_struct *ssp)
{
	return ssp->name ? ssp->name : "a domain without a name";
}
/* To be called first by whoever has to do with grace periods or callbacks of the domain. */
struct quiesce__srcu_update *quiesce__srcu_enter(struct srcu_struct *ssp);
/* Wait for a grace period that begins after this call; @call: of the program, for reports. */
void quiesce__srcu_wait(struct srcu_struct *ssp, const char *call, bool expedited);
/* Is the calling thread in a section of the domain, as far as the debug build knows?  Then it is reported. */
bool quiesce__srcu_wait_is_misuse(struct srcu_struct *ssp, const char *what);
/* Reinitialise what a child of fork() cannot go on with, unless that was done. */
void quiesce__srcu_reinit(struct quiesce__srcu_update *u);
/* The end of a section has an index that no srcu_read_lock() returned: report it. */
void quiesce__srcu_bad_index(const struct srcu_struct *ssp, int idx) __attribute__((cold));
/* False: @ssp is NULL, which has been reported as a misuse of @call. */
bool quiesce__srcu_exists(const struct srcu_struct *ssp, const char *call);
/* In a child: whoever of the parent was reinitialising a domain will not go on. */
void quiesce__srcu_fork_reinit(void);
/* srcu_follow.c: what becomes of a waiter: its grace period is over, it drives now, or waits for who drives no longer. */
enum { QUIESCE_SRCU_WAITS, QUIESCE_SRCU_LEADS, QUIESCE_SRCU_COMPLETED, QUIESCE_SRCU_ALONE };
uint32_t quiesce__srcu_join(struct srcu_struct *ssp, struct quiesce__srcu_update *u, struct quiesce__srcu_waiter *me);
/* Stop driving; the oldest waiter, if there is one, goes on. */
void quiesce__srcu_hand_over(struct quiesce__srcu_update *u);
/* Let who drives look; it may sleep. */
void quiesce__srcu_wake_driver(const struct srcu_struct *ssp);
/* Wait for @needed, or until nobody drives. */
void quiesce__srcu_wait_alone(struct srcu_struct *ssp, struct quiesce__srcu_update *u, const char *call, uint64_t needed);
/* A step of a grace period alone, without sleeping, of who holds @running; true: it is over. */
bool quiesce__srcu_try_alone(struct srcu_struct *ssp, struct quiesce__srcu_update *u);
/* Ask who leaves index @idx for @bits; 0: nothing, and readers leave by themselves. */
void quiesce__srcu_ask_one(struct srcu_struct *ssp, uint32_t idx, uint64_t bits);
/* Sections inside of index @idx. */
uint64_t quiesce__srcu_inside(struct srcu_struct *ssp, uint32_t idx);
/* @number is over, and so are older ones: complete who waits for them. */
void quiesce__srcu_publish(struct quiesce__srcu_update *u, uint64_t number);
/* A cookie for the grace period that would begin now; is it over? */
uint64_t quiesce__srcu_cookie(const struct quiesce__srcu_update *u);
bool quiesce__srcu_done(const struct quiesce__srcu_update *u, uint64_t cookie);
/* Try to complete @cookie without sleeping.  @ask: if readers are in the way, let them wake the helper. */
bool quiesce__srcu_try(struct srcu_struct *ssp, uint64_t cookie, bool ask);

/* srcu_report.c: @call has waited for so long, for readers of index @idx; or for callbacks. */
void quiesce__srcu_report_stall(struct srcu_struct *ssp, const char *call, uint32_t idx, uint64_t ns);
void quiesce__srcu_report_barrier(struct srcu_struct *ssp, uint64_t ns);
/* Tell, if it is time to, how much waits for domains, and for this one.  The caller may be in a step, but not in a section. */
void quiesce__srcu_check_garbage(struct srcu_struct *ssp);

/* srcu_callbacks.c */
uint64_t quiesce__srcu_step(struct quiesce__job *job);
/* NULL: a job of something else. */
static inline struct quiesce__srcu_update *quiesce__srcu_of_job(struct quiesce__job *job)
{
	if (job->step != quiesce__srcu_step)
		return NULL;
	return (struct quiesce__srcu_update *)(void *)((char *)job - offsetof(struct quiesce__srcu_update, job));
}
/* May the sections in the way be of threads that this process does not have? */
static inline bool quiesce__srcu_inherits(const struct quiesce__srcu_update *u)
{
	return quiesce_load_relaxed(&u->inherited) != 0; /* Relaxed: only the next grace period changes it. */
}
/* A grace period is over: is there anything for the helper to do? */
void quiesce__srcu_schedule(struct quiesce__srcu_update *u);
/* Callbacks that have not run, or are running. */
uint64_t quiesce__srcu_pending(const struct quiesce__srcu_update *u);
/* Nobody takes a step any more, until somebody queues again. */
void quiesce__srcu_callbacks_stop(struct quiesce__srcu_update *u);
void quiesce__srcu_callbacks_fork_child(struct quiesce__srcu_update *u);
/* Let a step be taken. */
void quiesce__srcu_start(struct quiesce__srcu_update *u);

/* srcu_garbage.c: what waits, of all domains.  A callback of @bytes is about to be queued; true: there is too much. */
bool quiesce__srcu_count_queued(struct quiesce__srcu_update *u, size_t bytes);
/* Shall readers yield, because there is too much?  If so, for some of the time. */
bool quiesce__srcu_yield_for_garbage(struct quiesce__srcu_update *u);
/* A callback has returned. */
void quiesce__srcu_count_run(void);
/* Under @running: report to the sum all bytes of the domain that it does not know. */
void quiesce__srcu_report_bytes(struct quiesce__srcu_update *u);
/* The same: @nr callbacks were taken; @nr of them have run, which may be the last ones. */
void quiesce__srcu_bytes_taken(struct quiesce__srcu_update *u, uint64_t nr);
void quiesce__srcu_bytes_run(struct quiesce__srcu_update *u, uint64_t nr);
/* In the child, once for each domain; @pending, or one is running that called fork(). */
void quiesce__srcu_garbage_fork_child(struct quiesce__srcu_update *u, uint64_t pending);

#endif
