/* SPDX-License-Identifier: MIT */
/* core.h - process-wide state: settings, counters, the state of each thread, reports of misuse. */
#ifndef QUIESCE_CORE_H
#define QUIESCE_CORE_H

#include <quiesce/control.h>
#include <quiesce/detail/tls.h>

#include "fence.h"
#include "lock.h"

/* Settings: written by the calls of control.h, read by any thread, relaxed. */
struct quiesce__settings {
	uint64_t ceiling;
	uint64_t garbage_warning; /* report garbage from this many bytes on; 0: never */
	uint64_t stall_ns;
	uint32_t yield;
	uint32_t skip_self_scan;
	uint32_t throttle; /* call_rcu() and call_srcu() wait above the ceiling */
	uint32_t reclaimers; /* number of threads that run callbacks of call_rcu(), at most */
	uint32_t allow_copies, verbose; /* fixed at initialisation */
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
/* True if this process is a child of fork() whose parent used the library; else a misuse of @call is
 * reported. */
bool quiesce__is_child(const char *call);

/* The initial state of a thread's TLS block; the simulator makes its own blocks. */
void quiesce__tls_init(struct quiesce_tls_v1 *tls);
/* The slot that a thread without a cached slot reads: it is never empty, so no claim in it succeeds. */
extern uintptr_t quiesce__no_slot;

/* quiesce_tls_v1.state has these bits. */
#define QUIESCE_TLS_EXITING 1u     /* the exit hook has run: later sections are unregistered */
#define QUIESCE_TLS_IN_CALLBACK 2u /* running callbacks */
#define QUIESCE_TLS_WORKER 4u      /* the worker thread */
#define QUIESCE_TLS_IN_HAZPTR 8u   /* running callbacks of call_hazptr() */
#define QUIESCE_TLS_UNGATED 16u    /* running callbacks of a cohort, outside the fork gate */
#define QUIESCE_TLS_HELPER 32u     /* taking steps of jobs: the helper thread always, other threads in quiesce__jobs_take_steps() */
#define QUIESCE_TLS_IN_HEAP 64u    /* inside malloc() or free(), called by the library: quiesce__heap_begin() */
#define QUIESCE_TLS_RECLAIMER 128u /* running callbacks of a pass in a further reclaimer, with IN_CALLBACK */
#define QUIESCE_TLS_CALLBACKS (QUIESCE_TLS_IN_CALLBACK | QUIESCE_TLS_IN_HAZPTR | QUIESCE_TLS_HELPER)

/* fork.c: this word is 0 before initialisation, and in a forked child until its surviving thread has
 * re-entered the library. */
extern uint32_t *quiesce__fork_canary;
/* The program's malloc() and free() may themselves retire objects, so the library calls them between these
 * two functions.  An object retired there is linked through its own head: that needs no memory and waits for
 * nothing, and leaves the data structures that the interrupted code was changing untouched.  False if the
 * thread is already inside such a call; the caller then does without memory. */
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

/* True if process-wide state is initialised, and this is no child that still has to reinitialise it. */
static inline bool quiesce__is_intact(void)
{
	/* IN1: acquire, pairs with IN1 in quiesce__fork_init() and survivor_reenter() */
	return quiesce_load_acquire(IN1, quiesce_load_relaxed(&quiesce__fork_canary)); /* Relaxed: a fixed address. */
}

void quiesce__init_slow(void);

/* Every call that uses process-wide state begins with this: it initialises the library, and reinitialises it
 * in a child that was forked without fork handlers.  Signal-safe; works before any constructor has run. */
static inline void quiesce__init(void)
{
	if (quiesce_unlikely(!quiesce__is_intact()))
		quiesce__init_slow();
}

/* The fence mode is fixed from the first use on. */
extern uint32_t quiesce__in_use;
static inline void quiesce__fix_mode(void)
{
	/* Relaxed: quiesce_set_fence() reads it, and no other thread may use the library during that call. */
	if (quiesce_unlikely(!quiesce_load_relaxed(&quiesce__in_use)))
		quiesce_store_relaxed(&quiesce__in_use, 1);
}

/* These handle fork(), and the exit of a thread. */
void quiesce__fork_init(void);
void quiesce__fork_detect(void);
/* In a child whose survivor has not re-entered the library: true if @self, the calling thread, is known to
 * have been created in the child. */
bool quiesce__fork_is_new(const struct quiesce_tls_v1 *self);
void quiesce__fork_prepare(void);
void quiesce__fork_parent(void);
void quiesce__fork_child(void);
void quiesce__thread_exit(void);
/* In a forked child: the survivor, the one thread that it inherits from its parent, which called fork().
 * NULL in a process that is no child, and until the survivor has re-entered the library. */
extern const struct quiesce_tls_v1 *quiesce__fork_survivor;
extern uint32_t quiesce__fork_survivor_tid; /* thread id of the survivor in the parent; 0: it was never read */
extern uint32_t quiesce__fork_generation;

/* Number of forks between this process and the first ancestor that used the library.  quiesce__init() updates
 * it before the first call of a child proceeds. */
static inline uint32_t quiesce__generation(void)
{
	quiesce__init();
	return quiesce_load_relaxed(&quiesce__fork_generation); /* Relaxed: IN1. */
}

/* The call of the function that this is in, for messages.  The return address is that of the next
 * statement, so this is an address inside the call. */
#define quiesce__caller() ((const void *)((const char *)__builtin_return_address(0) - 1))

/* Report a misuse.  Returns only if a hook returned, or for the kinds that never abort. */
void quiesce__misuse(enum quiesce_misuse kind, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Print one line of text on stderr. */
void quiesce__say(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Report a misuse if the program was built with headers of another layout. */
void quiesce__check_layout(uint32_t layout);

#endif
