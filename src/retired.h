/* SPDX-License-Identifier: MIT */
/* quiesce__sweep.h - queues of retired objects; see hazptr_retire.c for the theory. */
#ifndef QUIESCE_RETIRED_H
#define QUIESCE_RETIRED_H

#include "hazptr.h"
#include "queue.h"
#include "reclaim.h"

#define QUIESCE_RETIRED_MARK ((uintptr_t)1) /* on an entry: protected, as an earlier round of the look has found */

struct quiesce__retired {
	/* The owner's line. */
	uint64_t queued;      /* ever; read by sweepers */
	uint64_t limit;       /* a sweeper sets it to 0 */
	uint64_t again;       /* of @queued, pushes of what had been protected */
	uint64_t run;         /* callbacks run by the owner */
	uint32_t batch;
	uint32_t consuming;   /* the owner holds the lock, below in its stack */
	/* Of who holds the lock. */
	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t running;     /* inside the gate */
	uint64_t taken;
	uint64_t swept;       /* of @taken, those drained into a list */
	uint64_t taken_swept; /* as the last sweep saw it */
	bool busy;            /* its owner has reclaimed since the last but one */
	uint32_t owner_gone;
	uintptr_t *table;     /* for looks at many slots */
	uint32_t table_size, table_look; /* words that are there; that the next look uses */
	struct quiesce__retired *next; /* under sweep.lock */
	uintptr_t slot[QUIESCE_RETIRED_SLOTS] __attribute__((aligned(QUIESCE_CACHELINE)));
};

/* One that waits in hazptr_barrier(), with what it waits for. */
struct quiesce__barrier {
	struct quiesce__barrier *next;
	uint64_t number;
	struct hazptr_head *list, *ready;
	const struct quiesce_tls_v1 *by;
	uint32_t running; /* inside the gate */
};

struct quiesce__sweep {
	struct quiesce__lock sweeping; /* held by who sweeps, callbacks included; rings are freed under it */
	struct quiesce__lock lock;     /* guards the list of rings */
	struct quiesce__retired *rings;
	struct hazptr_head *left;      /* pushed by anybody, taken by who sweeps */
	struct hazptr_head *ready;     /* of who sweeps: to run */
	struct hazptr_head *kept;      /* of who sweeps: protected */
	uint32_t keeps;                /* is anything in it; between sweeps */
	const struct quiesce_tls_v1 *sweeper;
	uint32_t running;              /* who sweeps is inside the gate */
	struct quiesce__barrier *barriers; /* under @lock */
	uint64_t nr_barriers;          /* ever; under @sweeping */
	uint32_t barriers_gone;        /* futex */
	uint32_t nr_unqueued;          /* objects that came without memory for a queue, and without a worker */
	bool any_busy;                 /* owners that reclaim themselves, at this sweep */
	uint64_t ran;                  /* callbacks that sweeps have run */
	uint64_t sweep_at, sweep_ns;   /* the worker's */
	uint64_t pushed, run;          /* to the list by call_hazptr(); from lists */
	uint64_t gone_queued, gone_run; /* of rings that are gone */
};
extern struct quiesce__sweep quiesce__sweep;

static inline uint64_t quiesce__retired_waiting(const struct quiesce__retired *r)
{
	/* HP2: acquire, pairs with HP2 in push() */
	return quiesce_load_acquire(HP2, &r->queued) - quiesce_load_relaxed(&r->taken); /* Relaxed: the lock's, or a hint. */
}

static inline uintptr_t *quiesce__retired_entry(struct quiesce__retired *r, uint64_t i)
{
	return &r->slot[i % QUIESCE_RETIRED_SLOTS];
}

static inline void quiesce__hazptr_run(struct hazptr_head *head)
{
	uintptr_t func = (uintptr_t)head->func;

	if (func <= QUIESCE_KFREE_OFFSET_MAX)
		platform_free((char *)head - (func - 1));
	else
		head->func(head);
}

#define QUIESCE_SWEEP_CHUNK 64u /* callbacks between two visits of the fork gate */

/* hazptr_sweep.c: one sweeps at a time, between begin (false at @deadline) and end. */
bool quiesce__sweep_begin(uint64_t deadline);
void quiesce__sweep_end(void);
/* Gather what is queued and left behind; if not @all, of those who do not reclaim themselves.  False at @deadline. */
bool quiesce__sweep_gather(bool all, uint64_t deadline);
/* One look at what was gathered.  True if nothing is protected. */
bool quiesce__sweep_once(void);
void quiesce__sweep_keep(struct hazptr_head *list);
/* hazptr_barrier.c */
void quiesce__barriers_fork_child(void);

/* A queue for the calling thread; NULL: it exits, or there is no memory. */
struct quiesce__retired *quiesce__retired_new(struct quiesce_tls_v1 *self);
/* Make room for the owner's next look: more if @many slots were in use than there was room for. */
void quiesce__retired_fit_table(struct quiesce__retired *r, const struct quiesce__hazards *set, bool many);
/* Drain @r into @list; under its lock. */
struct hazptr_head *quiesce__retired_drain(struct quiesce__retired *r, struct hazptr_head *list);
/* There is something that its owner may not come back for: does the worker know?  False if there is none. */
bool quiesce__retired_tell_worker(void);
/* Is anything in the lists? */
static inline bool quiesce__hazptr_left_behind(void)
{
	/* Relaxed: hints. */
	return quiesce_load_relaxed(&quiesce__sweep.left) || quiesce_load_relaxed(&quiesce__sweep.keeps);
}
/* Without a worker: a sweep, unless in a callback or somebody sweeps. */
void quiesce__hazptr_sweep_yourself(void);

#endif
