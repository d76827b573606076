/* SPDX-License-Identifier: MIT */
/* hazptr_retired.h - queues of retired objects, and the sweeper; hazptr_retire.c has the theory. */
#ifndef QUIESCE_HAZPTR_RETIRED_H
#define QUIESCE_HAZPTR_RETIRED_H

#include "hazptr.h"
#include "runtime/helper.h"
#include "runtime/object.h"
#include "runtime/run.h"
#include "rcu/queue.h"
#include "rcu/reclaim.h"

/* Bits of an entry: the low bits of the address of a head, which is aligned as pointers are. */
#define QUIESCE_RETIRED_MARK ((uintptr_t)1) /* protected, as an earlier round of the scan has found */
#define QUIESCE_RETIRED_KIND ((uintptr_t)6)  /* one of the following kinds; 0: only the helper may reclaim it */
#define QUIESCE_RETIRED_HERE ((uintptr_t)2)  /* the owner may reclaim it, too: free(), call_hazptr_inline() */
#define QUIESCE_RETIRED_PLAIN ((uintptr_t)4) /* as HERE; its function frees memory and does nothing else */
#define QUIESCE_RETIRED_PROXY ((uintptr_t)6) /* as HERE; the head is that of a struct quiesce__proxy */
#define QUIESCE_RETIRED_BITS ((uintptr_t)7)

/* Represents an object without a head in a queue: see hazptr_proxies.c. */
struct quiesce__proxy {
	struct hazptr_head head; /* head.func is quiesce__hazptr_run_proxy */
	union {
		void *object;
		struct hazptr_head *others; /* first proxy of a magazine in the depot: the other proxies of the magazine */
	};
	union {
		void (*deleter)(void *object);
		uint32_t nr; /* first proxy of a magazine in the depot: number of proxies in the magazine */
	};
};

/* The unused proxies of one thread. */
struct quiesce__proxies {
	struct quiesce__proxy *loaded, *spare; /* the magazine to take from, linked by the heads; a full one, or NULL */
	uint32_t nr_loaded; /* number of proxies in @loaded */
};

/* A thread's queue of retired objects. */
struct quiesce__retired_queue {
	/* The owner writes this cache line. */
	uint64_t queued;      /* objects ever queued; read by sweepers */
	uint64_t limit;       /* a sweeper sets it to 0 */
	uint64_t max_queued;  /* value of @queued at which the array is full, as of the owner's last visit */
	uint64_t base;        /* position of the first entry of the array; under the lock */
	uint64_t nr_run;      /* number of callbacks that the owner has run */
	uint32_t batch;
	uint32_t for_helper;  /* 0: no object that waits is left to the helper; the owner's own */
	uint32_t consuming;   /* 1: the owner holds the lock, further up its call stack */
	uint32_t stepping;    /* 1: the owner has the queue without the lock */
	uint64_t bytes;       /* bytes queued since the last visit; the owner's own */
	/* The holder of the lock writes the following fields. */
	struct quiesce__lock lock __attribute__((aligned(QUIESCE_CACHELINE)));
	uint32_t in_gate;     /* 1: inside the fork gate */
	uint32_t revoked;     /* 1: the owner needs the lock for each visit; written by the sweeper only */
	uint64_t taken;
	uint64_t ready;       /* the entries from @taken to here were not protected at a scan; 0: the object has gone to a list */
	uint64_t kept;        /* number of objects that the owner's last scan found protected */
	uint64_t scanned_ns;  /* when the owner's last scan began */
	uint64_t swept;       /* number of objects that went to a list */
	uint64_t taken_swept; /* @taken at the sweeper's last visit */
	bool listed;          /* in a shard's list, or in the sweeper's list of queues to visit */
	bool in_recheck;      /* in the sweeper's list of queues to check once more */
	uint32_t shard;
	uint32_t owner_gone;  /* under sweep.lists_lock */
	uint32_t own_min, own_max; /* the owner's choice of a batch; 0: the process's */
	struct quiesce__proxies proxies; /* the owner's own */
	uintptr_t *table;     /* hash table for scans of many slots */
	uint32_t table_size, table_used; /* words of the table; words that the next scan uses */
	struct quiesce__retired_queue *next_listed;
	struct quiesce__retired_queue *next_recheck;    /* in that list */
	struct quiesce__retired_queue *next, **at;      /* under sweep.lists_lock: all queues */
	struct quiesce__retired_queue *next_orphan;     /* under sweep.lists_lock: queues whose owner has exited */
	uintptr_t entry[QUIESCE_RETIRED_ENTRIES] __attribute__((aligned(QUIESCE_CACHELINE)));
};

/* One caller of hazptr_barrier() waits here, with the objects that it waits for. */
struct quiesce__barrier {
	struct quiesce__barrier *next;
	uint64_t number;
	struct hazptr_head *list, *ready;
	const struct quiesce_tls_v1 *by;
	uint32_t in_gate; /* 1: inside the fork gate */
};

/* Objects and queues that other threads leave to the sweeper; in several shards, so that those threads do not
 * all write one cache line. */
#if defined(QUIESCE_SIM)
#define QUIESCE_NR_SWEEP_SHARDS 2u
#else
#define QUIESCE_NR_SWEEP_SHARDS 8u
#endif
struct quiesce__sweep_shard {
	struct hazptr_head *handed_over; /* objects; pushed by any thread, taken by the sweeper */
	struct quiesce__retired_queue *listed; /* queues that are not empty; pushed by any thread, taken by the sweeper */
} __attribute__((aligned(QUIESCE_CACHELINE)));

/* How soon a sweep is scheduled, in ascending order: a higher value is sooner. */
enum quiesce__sweeps { QUIESCE_SWEEPS_NEVER, QUIESCE_SWEEPS_RARELY, QUIESCE_SWEEPS_LATER, QUIESCE_SWEEPS_SOON };

struct quiesce__sweep {
	struct quiesce__lock sweeper_lock; /* held by the sweeper, callbacks included; queues are freed under it */
	uint32_t wanted;                   /* number of waiters for that lock, the helper aside */
	struct quiesce__lock lists_lock;   /* guards the lists of queues and barriers */
	struct quiesce__retired_queue *queues; /* all queues */
	struct quiesce__retired_queue *orphans;
	/* The sweeper owns the following fields. */
	const struct quiesce_tls_v1 *sweeper;
	struct hazptr_head *fresh;     /* objects to scan for */
	struct hazptr_head *ready;     /* objects to reclaim */
	struct hazptr_head *kept;      /* objects that were protected at the last scan */
	struct hazptr_head *retired_again; /* objects that were reclaimed in this slice, and retired again by it */
	struct quiesce__retired_queue *to_visit;   /* queues to visit */
	struct quiesce__retired_queue *to_recheck; /* queues to check once more, after the fence or when their locks are free */
	uint32_t has_objects;          /* 1: one of these lists is not empty; valid between sweeps */
	uint32_t in_gate;              /* 1: inside the fork gate */
	uint64_t callbacks_run;        /* number of callbacks that sweeps have run */
	bool any_busy;                 /* an owner was found reclaiming by itself at the last visits */
	struct quiesce__barrier *barriers; /* under @lists_lock */
	uint64_t nr_barriers;          /* barriers ever begun; under @sweeper_lock */
	uint32_t barriers_gone;        /* futex; number of barriers that have ended */
	uint32_t nr_made;              /* queues ever made; under @lists_lock */
	uint64_t pushed, reclaimed;    /* objects ever pushed to lists, and reclaimed from lists */
	uint64_t bytes;                /* bytes ever retired, as of the owners' last visits */
	uint64_t gone_queued, gone_run; /* sums of @queued and @nr_run of queues that were freed */
	struct quiesce__sweep_shard shard[QUIESCE_NR_SWEEP_SHARDS];
	uint32_t scheduled __attribute__((aligned(QUIESCE_CACHELINE))); /* enum quiesce__sweeps */
};
extern struct quiesce__sweep quiesce__sweep;

static inline uint64_t quiesce__retired_nr_waiting(const struct quiesce__retired_queue *r)
{
	/* HP2: acquire, pairs with HP2 in push() */
	return quiesce_load_acquire(HP2, &r->queued) - quiesce_load_relaxed(&r->taken); /* Relaxed: under the lock, or a hint. */
}

static inline uintptr_t *quiesce__retired_entry(struct quiesce__retired_queue *r, uint64_t i)
{
	return &r->entry[(i - r->base) % QUIESCE_RETIRED_ENTRIES];
}

/* Remove the next entry below @end that has an object, and return it; 0: none.  Under the lock. */
static inline uintptr_t quiesce__retired_take(struct quiesce__retired_queue *r, uint64_t end)
{
	uintptr_t item = 0;

	while (!item && r->taken != end) {
		item = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken)); /* Relaxed: HP2 orders it; under the lock. */
		quiesce_store_relaxed(&r->taken, r->taken + 1); /* Relaxed: under the lock. */
	}
	return item;
}

/* The owner begins a step, for which it needs no lock; false: the sweeper is about to drain the queue. */
static inline bool quiesce__retired_step_begin(struct quiesce__retired_queue *r)
{
	quiesce_store_relaxed(&r->stepping, 1); /* Relaxed: the fence follows. */
	/* HP7: pairs with HP7 in revoke_all() */
	quiesce_fence_mode(HP7);
	/* HP7: acquire, pairs with HP7 in allow() */
	if (quiesce_likely(!quiesce_load_acquire(HP7, &r->revoked)) || QUIESCE_MUTANT(hazptr_steps_on))
		return true;
	quiesce_store_relaxed(&r->stepping, 0); /* Relaxed: nothing was done. */
	return false;
}

static inline void quiesce__retired_step_end(struct quiesce__retired_queue *r)
{
	/* HP7: release, pairs with HP7 in is_stepping() */
	quiesce_store_release(HP7, &r->stepping, 0);
}

/* True if the queue holds so many bytes that they are a batch, however few objects there are. */
static inline bool quiesce__retired_is_large(const struct quiesce__retired_queue *r)
{
	return r->bytes >= HAZPTR_BATCH_BYTES && !QUIESCE_MUTANT(hazptr_bytes_unbounded);
}

void quiesce__hazptr_run_proxy(struct hazptr_head *head);

/* The address that slots protect for the object of @head, or of the entry @item. */
static inline uintptr_t quiesce__head_address(const struct hazptr_head *head)
{
	return head->func == quiesce__hazptr_run_proxy && !QUIESCE_MUTANT(hazptr_scans_for_proxy) ?
		       (uintptr_t)((const struct quiesce__proxy *)head)->object :
		       (uintptr_t)head;
}

static inline uintptr_t quiesce__retired_address(uintptr_t item)
{
	uintptr_t head = item & ~QUIESCE_RETIRED_BITS;

	return (item & QUIESCE_RETIRED_KIND) == QUIESCE_RETIRED_PROXY && !QUIESCE_MUTANT(hazptr_scans_for_own_proxy) ?
		       (uintptr_t)((const struct quiesce__proxy *)head)->object :
		       head;
}

/* Call the function of @head in @run, which records it; NULL: the function only frees memory. */
static inline void quiesce__hazptr_call(struct quiesce__run *run, struct hazptr_head *head)
{
	uintptr_t func = (uintptr_t)head->func;

	if (func <= QUIESCE_KFREE_OFFSET_MAX) {
		quiesce__object_free_in_heap((char *)head - (func - 1));
		return;
	}
	if (run)
		run->func = func;
	head->func(head);
	quiesce__init(); /* the callback may have forked without handlers, and this may be the child */
}

/* hazptr_batch.c: choose the size of the next batch after a scan. */
void quiesce__batch_adapt(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set);

/* hazptr_proxies.c: take a proxy; NULL: no memory. */
struct quiesce__proxy *quiesce__proxy_get(struct quiesce_tls_v1 *self);
/* The thread exits: return its proxies to the depot. */
void quiesce__proxies_leave(struct quiesce__proxies *proxies);
void quiesce__proxies_fork_child(void);

/* Values of a deadline besides a time. */
#define QUIESCE_NO_DEADLINE 0u   /* wait for as long as it takes */
#define QUIESCE_DEADLINE_PAST 1u /* do not wait */

#define QUIESCE_SWEEP_CHUNK 64u /* callbacks between two visits of the fork gate */

/* hazptr_visit.c: the owner of @r visits it at its limit; @next: object that is being retired, and does not fit; or NULL. */
void quiesce__retired_visit(struct quiesce__retired_queue *r, struct hazptr_head *next);
/* Push @head to a shard's list, for a thread with queue @r, or without one. */
void quiesce__retired_hand_over(const struct quiesce__retired_queue *r, struct hazptr_head *head);
/* hazptr_queue.c: a queue for the calling thread; NULL: it exits, or memory is exhausted. */
struct quiesce__retired_queue *quiesce__retired_new(struct quiesce_tls_v1 *self);
/* List @r, so that the sweeper visits it; under its lock. */
void quiesce__retired_list(struct quiesce__retired_queue *r);
/* Remove the first object of @r; NULL: the queue is empty.  Under its lock. */
struct hazptr_head *quiesce__retired_drain_one(struct quiesce__retired_queue *r);
/* Fit the table to the owner's next scan: larger if @many slots did not fit. */
void quiesce__retired_fit_table(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set, bool many);
/* The sweeper returns the memory of empty queues whose owners have exited. */
void quiesce__retired_free_orphans(void);

/* hazptr_sweep.c: one sweeper at a time, between begin (false at @deadline) and end. */
bool quiesce__sweep_begin(uint64_t deadline);
bool quiesce__sweep_try_begin(void);
void quiesce__sweep_end(void);
/* True if the calling thread is the sweeper. */
bool quiesce__is_sweeper(void);
/* A callback has ended the sweeper's thread in @run: the remaining objects stay in their lists, and are swept
 * soon. */
void quiesce__sweep_ended(struct quiesce__run *run);
/* Gather objects that were handed over, and the calling thread's own queue. */
void quiesce__sweep_gather(void);
/* Gather the objects in queues, and those that were protected; unless @all, leave out queues whose owners
 * reclaim by themselves.  False at @deadline. */
bool quiesce__sweep_visit(bool all, uint64_t deadline);
/* Scan for a part of the gathered objects, and check drained queues again.  False: nothing was gathered. */
bool quiesce__sweep_scan(void);
/* Reclaim objects that are ready, until @deadline.  True: all of them. */
bool quiesce__sweep_run(uint64_t deadline);
void quiesce__sweep_add(struct hazptr_head **to, struct hazptr_head *list);
/* Begin a slice of a sweep: gather objects that the last slice retired again, and begin to record those of this slice. */
void quiesce__sweep_new_slice(void);
/* hazptr_helper.c: objects were left that no thread may return to: schedule a sweep no later than @when. */
void quiesce__sweep_schedule(enum quiesce__sweeps when);
/* True if an object was handed over to a shard; true if a queue is listed in a shard. */
bool quiesce__sweep_any_handed_over(void);
bool quiesce__sweep_any_listed(void);
/* hazptr_report.c: report the amount of retired objects if that is due; @kept: address of a protected object,
 * 0: none is known. */
void quiesce__hazptr_check_garbage(uintptr_t kept);
/* hazptr_barrier.c */
void quiesce__barriers_fork_child(void);

#endif
