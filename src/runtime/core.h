/* SPDX-License-Identifier: MIT */
/* core.h - process-wide state: settings, counters, what each thread has, misuse. */
#ifndef QUIESCE_CORE_H
#define QUIESCE_CORE_H

#include <quiesce/control.h>
#include <quiesce/detail/tls.h>

#include "fence.h"
#include "lock.h"

/* Settings: written by the calls of control.h, read anywhere, relaxed. */
struct quiesce__settings {
	uint64_t ceiling;
	uint64_t garbage_warning; /* so much is told; 0: never */
	uint64_t stall_ns;
	uint32_t yield;
	uint32_t skip_self_scan;
	uint32_t throttle; /* call_rcu() and call_srcu() wait above the ceiling */
	uint32_t reclaimers; /* threads that run callbacks of call_rcu(), at most */
	uint32_t allow_copies, verbose; /* fixed */
};
extern struct quiesce__settings quiesce__settings;

/* Counters that more than one thread writes. */
struct quiesce__counters {
	uint64_t grace_periods;
	uint64_t expedited;
	uint64_t membarriers;
	uint64_t sleeps;
	uint64_t wakeups;
	uint64_t stalls;
	uint64_t backpressure;
	uint64_t shazptr_waits;
	uint64_t shazptr_blocked;
	uint64_t scans;
	uint64_t overflows;
	uint64_t fallback_guards;
	uint64_t hazptr_scans;
	uint64_t hazptr_swept;
	uint64_t hazptr_queues_visited;
	uint64_t srcu_grace_periods;
	uint64_t garbage_warnings;
};
extern struct quiesce__counters quiesce__counters;
/* Relaxed: counters order nothing. */
#define quiesce__count(name) ((void)quiesce_fetch_add_relaxed(&quiesce__counters.name, (uint64_t)1))
/* Is this process a child of fork() that has used the library?  If not that is reported, as a misuse of @call. */
bool quiesce__is_child(const char *call);

/* The initial state of a thread's TLS block; the simulator makes its own blocks. */
void quiesce__tls_init(struct quiesce_tls_v1 *tls);
/* What threads find that have no slot yet: never empty. */
extern uintptr_t quiesce__no_slot;

/* Bits of quiesce_tls_v1.state. */
#define QUIESCE_TLS_EXITING 1u     /* the exit hook has run: sections are unregistered from now on */
#define QUIESCE_TLS_IN_CALLBACK 2u /* running callbacks */
#define QUIESCE_TLS_WORKER 4u      /* the worker thread */
#define QUIESCE_TLS_IN_HAZPTR 8u   /* running callbacks of call_hazptr() */
#define QUIESCE_TLS_UNGATED 16u    /* those of a cohort: outside the fork gate */
#define QUIESCE_TLS_HELPER 32u     /* taking steps of jobs: the helper thread always, who does its work meanwhile */
#define QUIESCE_TLS_IN_HEAP 64u    /* inside malloc() or free(), called by the library: quiesce__heap_begin() */
#define QUIESCE_TLS_RECLAIMER 128u /* a helper of the worker, for callbacks of its passes */
#define QUIESCE_TLS_CALLBACKS (QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_IN_HAZPTR | QUIESCE_TLS_HELPER)

/* fork.c: a word that reads 0 before initialisation, and in a child that the survivor has not come back to. */
extern uint32_t *quiesce__fork_canary;
/* The program's malloc() and free() may retire objects of their own, and are called between these two.  What they retire
 * needs no memory, and waits for nothing: it is linked by its head, so whatever is half changed here stays as it is.
 * False: this is such a call already; do without. */
static inline bool quiesce__heap_begin(struct quiesce_tls_v1 *self)
{
	bool first = !(self->state & QUIESCE_TLS_IN_HEAP);

	self->state |= QUIESCE_TLS_IN_HEAP;
	return first;
}

static inline void quiesce__heap_end(struct quiesce_tls_v1 *self)
{
	self->state &= ~QUIESCE_TLS_IN_HEAP;
}

void quiesce__init_slow(void);

/* To come first in every call that uses the process's state: the library is initialised, and repaired if this process is a child
 * that nobody announced.  Signal-safe, also before any constructor. */
static inline void quiesce__init(void)
{
	/* IN1: acquire, pairs with IN1 in quiesce__fork_init() and come() */
	if (quiesce_unlikely(!quiesce_load_acquire(IN1, quiesce_load_relaxed(&quiesce__fork_canary)))) /* Relaxed: a fixed address. */
		quiesce__init_slow();
}

/* The same, where only that is asked for: did this process fork without telling us? */
static inline void quiesce__fork_check(void)
{
	quiesce__init();
}

/* The fence mode is fixed from the first use on. */
extern uint32_t quiesce__in_use;
static inline void quiesce__used(void)
{
	/* Relaxed: for quiesce_set_fence(), which nobody may call while others begin. */
	if (quiesce_unlikely(!quiesce_load_relaxed(&quiesce__in_use)))
		quiesce_store_relaxed(&quiesce__in_use, 1);
}

/* Before and after fork(); and when a thread exits. */
void quiesce__fork_init(void);
void quiesce__fork_notice(void);
/* In a child that its survivor has not come back to: is @self, the caller's, known to be a thread that the child has made? */
bool quiesce__fork_is_new(const struct quiesce_tls_v1 *self);
void quiesce__fork_prepare(void);
void quiesce__fork_parent(void);
void quiesce__fork_child(void);
void quiesce__thread_exit(void);
/* In a child, the thread of the parent's that it has: whose thread called fork(); NULL: no child, or it has not come yet. */
extern const struct quiesce_tls_v1 *quiesce__fork_survivor;
extern uint32_t quiesce__fork_survivor_tid; /* its number in the parent; 0: it was never asked for */
extern uint32_t quiesce__fork_generation;

/* How often this process is the child of one that used the library.  It changes before any call of the child gets this far. */
static inline uint32_t quiesce__generation(void)
{
	quiesce__init();
	return quiesce_load_relaxed(&quiesce__fork_generation); /* Relaxed: IN1. */
}

/* Report; returns only if a hook did, or for kinds that are only told. */
void quiesce__misuse(enum quiesce_misuse kind, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* One line on stderr. */
void quiesce__say(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Report it if the program was built with other headers. */
void quiesce__check_layout(uint32_t layout);

#endif
