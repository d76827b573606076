/* SPDX-License-Identifier: MIT */
/* hazptr_retired.h - queues of retired objects, and who sweeps them; see hazptr_retire.c for the theory. */
#ifndef QUIESCE_HAZPTR_RETIRED_H
#define QUIESCE_HAZPTR_RETIRED_H

#include "hazptr.h"
#include "runtime/helper.h"
#include "runtime/run.h"
#include "rcu/queue.h"
#include "rcu/reclaim.h"

/* Bits of an entry, whose address is one of pointers. */
#define QUIESCE_RETIRED_MARK ((uintptr_t)1) /* protected, as an earlier round of the look has found */
#define QUIESCE_RETIRED_HERE ((uintptr_t)2) /* its owner may run it: free(), call_hazptr_inline() */
#define QUIESCE_RETIRED_NOTE ((uintptr_t)4) /* it is a struct quiesce__note */
#define QUIESCE_RETIRED_BITS ((uintptr_t)7)

/* What stands for an object without a head: see hazptr_notes.c. */
struct quiesce__note {
	struct hazptr_head head; /* its function is quiesce__hazptr_run_note */
	union {
		void *object;
		struct hazptr_head *others; /* of the first of a pack in the depot */
	};
	union {
		void (*deleter)(void *object);
		uint32_t nr; /* of the pack: the same */
	};
};

/* Notes to use, of one thread. */
struct quiesce__notes {
	struct quiesce__note *few, *pack; /* linked by their heads; a whole pack, or NULL */
	uint32_t nr_few;
};

struct quiesce__retired {
	/* The owner's line. */
	uint64_t queued;      /* ever; read by sweepers */
	uint64_t limit;       /* a sweeper sets it to 0 */
	uint64_t room;        /* of @queued, where the array was full when the owner last had the lock */
	uint64_t base;        /* the position that is the first of the array; under the lock */
	uint64_t again;       /* of @queued, pushes of what had been queued before */
	uint64_t run;         /* callbacks run by the owner */
	uint32_t batch;
	uint32_t consuming;   /* the owner holds the lock, below in its stack */
	uint64_t bytes;       /* queued since the last visit; the owner's own */
	/* Of who holds the lock. */
	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t running;     /* inside the gate */
	uint64_t taken;
	uint64_t swept;       /* of @taken, those drained into a list */
	uint64_t taken_swept; /* as the last visit saw it */
	bool listed;          /* in a shard's list, or about to be visited */
	bool visited;         /* of who sweeps: to be looked at once more */
	uint32_t shard;
	uint32_t owner_gone;  /* under sweep.lock */
	uint32_t own_least, own_most; /* the owner's choice of a batch; 0: the process's */
	struct quiesce__notes notes;  /* the owner's own */
	uintptr_t *table;     /* for looks at many slots */
	uint32_t table_size, table_look; /* words that are there; that the next look uses */
	struct quiesce__retired *next_listed;
	struct quiesce__retired *next_visited;    /* of who sweeps */
	struct quiesce__retired *next, **at;      /* under sweep.lock: all queues */
	struct quiesce__retired *next_orphan;     /* under sweep.lock: those whose owner has gone */
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

/* What others leave to who sweeps; several, so that they do not all write one line. */
#if defined(QUIESCE_SIM)
#define QUIESCE_NR_SWEEP_SHARDS 2u
#else
#define QUIESCE_NR_SWEEP_SHARDS 8u
#endif
struct quiesce__sweep_shard {
	struct hazptr_head *left;        /* objects: pushed by anybody, taken by who sweeps */
	struct quiesce__retired *listed; /* queues that are not empty: the same */
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* When will somebody sweep without being told?  In this order: a higher one is sooner. */
enum quiesce__sweeps { QUIESCE_SWEEPS_NEVER, QUIESCE_SWEEPS_RARELY, QUIESCE_SWEEPS_LATER, QUIESCE_SWEEPS_SOON };

struct quiesce__sweep {
	struct quiesce__lock sweeping; /* held by who sweeps, callbacks included; queues are freed under it */
	uint32_t wanted;               /* who waits for that lock, the helper aside */
	struct quiesce__lock lock;     /* guards the lists of queues and barriers */
	struct quiesce__retired *rings;
	struct quiesce__retired *orphans;
	/* Of who sweeps. */
	const struct quiesce_tls_v1 *sweeper;
	struct hazptr_head *fresh;     /* to be looked at */
	struct hazptr_head *ready;     /* to run */
	struct hazptr_head *kept;      /* protected */
	struct hazptr_head *came_back; /* run in this turn, and retired again by it */
	struct quiesce__retired *visits;  /* queues to visit */
	struct quiesce__retired *visited; /* to be looked at once more after the fence, or when its lock is free */
	uint32_t keeps;                /* is anything in these; between sweeps */
	uint32_t running;              /* inside the gate */
	uint64_t ran;                  /* callbacks that sweeps have run */
	bool any_busy;                 /* owners that reclaim themselves, at the last visits */
	struct quiesce__barrier *barriers; /* under @lock */
	uint64_t nr_barriers;          /* ever; under @sweeping */
	uint32_t barriers_gone;        /* futex */
	uint32_t nr_made;              /* queues, ever; under @lock */
	uint64_t pushed, run;          /* to lists by call_hazptr(); from lists */
	uint64_t bytes;                /* of what was queued before its owner's last visit, ever */
	uint64_t gone_queued, gone_run; /* of queues that are gone */
	struct quiesce__sweep_shard shard[QUIESCE_NR_SWEEP_SHARDS];
	uint32_t scheduled __attribute__((aligned(QUIESCE_CACHELINE))); /* enum quiesce__sweeps */
};
extern struct quiesce__sweep quiesce__sweep;

static inline uint64_t quiesce__retired_waiting(const struct quiesce__retired *r)
{
	/* HP2: acquire, pairs with HP2 in push() */
	return quiesce_load_acquire(HP2, &r->queued) - quiesce_load_relaxed(&r->taken); /* Relaxed: the lock's, or a hint. */
}

static inline uintptr_t *quiesce__retired_entry(struct quiesce__retired *r, uint64_t i)
{
	return &r->slot[(i - r->base) % QUIESCE_RETIRED_SLOTS];
}

void quiesce__hazptr_run_note(struct hazptr_head *head);

/* What is protected, if @head, or the entry @item, stands for an object that is. */
static inline uintptr_t quiesce__head_address(const struct hazptr_head *head)
{
	return head->func == quiesce__hazptr_run_note && !QUIESCE_MUTANT(hazptr_looks_for_note) ?
		       (uintptr_t)((const struct quiesce__note *)head)->object :
		       (uintptr_t)head;
}

static inline uintptr_t quiesce__retired_address(uintptr_t item)
{
	uintptr_t head = item & ~QUIESCE_RETIRED_BITS;

	return item & QUIESCE_RETIRED_NOTE && !QUIESCE_MUTANT(hazptr_looks_for_own_note) ?
		       (uintptr_t)((const struct quiesce__note *)head)->object :
		       head;
}

/* In @run, which gets to know what is called. */
static inline void quiesce__hazptr_call(struct quiesce__run *run, struct hazptr_head *head)
{
	uintptr_t func = (uintptr_t)head->func;

	if (func <= QUIESCE_KFREE_OFFSET_MAX) {
		platform_free((char *)head - (func - 1));
		return;
	}
	run->func = func;
	head->func(head);
	quiesce__init(); /* it may have forked without a word, and this be the child */
}

/* hazptr_batch.c: how many, after a look. */
void quiesce__batch_adapt(struct quiesce__retired *r, const struct quiesce__hazptr_scan *set);

/* hazptr_notes.c: a note; NULL: there is no memory. */
struct quiesce__note *quiesce__note_get(struct quiesce_tls_v1 *self);
/* The thread has gone: others may have what it had. */
void quiesce__notes_leave(struct quiesce__notes *notes);
void quiesce__notes_fork_child(void);

#define QUIESCE_SWEEP_CHUNK 64u /* callbacks between two visits of the fork gate */

/* hazptr_queue.c: a queue for the calling thread; NULL: it exits, or there is no memory. */
struct quiesce__retired *quiesce__retired_new(struct quiesce_tls_v1 *self);
/* See that who sweeps visits @r; under its lock. */
void quiesce__retired_list(struct quiesce__retired *r);
/* Drain @r into @list; under its lock. */
struct hazptr_head *quiesce__retired_drain(struct quiesce__retired *r, struct hazptr_head *list);
/* Make room for the owner's next look: more if @many slots were in use than there was room for. */
void quiesce__retired_fit_table(struct quiesce__retired *r, const struct quiesce__hazptr_scan *set, bool many);
/* Return to the system the queues of threads that have gone, if they are empty; by who sweeps. */
void quiesce__retired_free_orphans(void);

/* hazptr_sweep.c: one sweeps at a time, between begin (false at @deadline) and end. */
bool quiesce__sweep_begin(uint64_t deadline);
bool quiesce__sweep_try_begin(void);
void quiesce__sweep_end(void);
/* Does the calling thread sweep? */
bool quiesce__sweep_mine(void);
/* A callback has ended its thread, in @run: what is left stays where it was, and is swept soon. */
void quiesce__sweep_ended(struct quiesce__run *run);
/* Gather what was handed over, and the calling thread's own queue. */
void quiesce__sweep_gather(void);
/* Gather what is in queues, and what was protected; if not @all, of those who do not reclaim themselves.
 * False at @deadline. */
bool quiesce__sweep_visit(bool all, uint64_t deadline);
/* One look at much of what was gathered, and at the queues that were visited.  False: nothing was gathered. */
bool quiesce__sweep_scan(void);
/* Run what is ready, until @deadline.  True: all of it. */
bool quiesce__sweep_run(uint64_t deadline);
void quiesce__sweep_add(struct hazptr_head **to, struct hazptr_head *list);
/* What came back in the last turn is gathered; from now on it is looked what comes back in this one. */
void quiesce__sweep_new_turn(void);
/* hazptr_helper.c: something was left that nobody may come back for: see that it is swept by @when, at the latest. */
void quiesce__sweep_schedule(enum quiesce__sweeps when);
/* Was anything pushed, was any queue listed? */
bool quiesce__sweep_any_left(void);
bool quiesce__sweep_any_listed(void);
/* hazptr_report.c: tell, if it is time to, how much is retired; @kept: of an object that is protected, 0: none is known. */
void quiesce__hazptr_check_garbage(uintptr_t kept);
/* hazptr_barrier.c */
void quiesce__barriers_fork_child(void);

#endif
