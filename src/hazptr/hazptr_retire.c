/* SPDX-License-Identifier: MIT */
/* hazptr_retire.c - call_hazptr(): a thread's queue of retired objects, from its owner's side; hazptr_visit.c has the visits.
 *
 *   owner:   push to its queue -> at the limit: with a batch: hand over objects that only the helper may reclaim, fence, scan all
 *            slots, divide the others into ready ones and protected ones -> reclaim a few ready objects
 *   sweeper: (the helper, or hazptr_barrier()) take objects that were handed over, drain queues whose owners retire no more
 *            -> fence, scan -> reclaim objects that are not protected, keep the others
 *
 *        taken     ready          queued     limit  max_queued
 *          |         |              |          |        |
 *   ...    v         v              v          v        v
 *   [run ][  ready  ][   waiting   ][ free ... visit here
 *
 * I1. A reclaimed object was queued before the fence that precedes its scan.
 * I2. @taken, @ready, @limit, @base and the entries between @taken and @queued belong to the holder of the queue's
 *     lock; only the owner pushes, and never at @max_queued, which it sets under the lock.
 * I3. An object is removed from its queue or list before its callback runs, and chunks of callbacks run
 *     inside the gate (runtime/gate.h), so after a fork no callback runs twice.  At any moment no two entries have
 *     the same object: so a child that was forked without handlers may lose one that was being moved, and never
 *     reclaims one twice.
 * I4. A queue that is not empty is listed, or has a limit above @queued only until the sweeper that drains it
 *     has checked it once more.  An empty queue has the limit 0: its next object makes the owner list it.
 * I5. Callbacks do not reclaim: objects that they retire are queued, or pushed to a list if the queue is
 *     full.  Nor does a free() or malloc() that the library calls.
 * I6. The owner never waits.  Where the lock is taken, its holder is the sweeper, which checks the queue
 *     again after it has released the lock; where the fork gate is closed, or the queue is full, objects stay
 *     in the queue, or go to a list.
 * I7. If a callback ends its thread, visit_ended() or step_ended() finishes the visit: the queue is as after a visit that ran
 *     fewer callbacks, and listed.  If a free() does so in a step, which has no run, the thread's exit ends the step.
 * I8. The owner reclaims at most STEP objects in a call, and as many as it retires.  An allocator keeps a few
 *     objects of a size at hand, and is several times as slow if many are freed in a row and allocated in a row.
 *     As the waiting objects become more the ready ones become fewer, so together they are at most a batch, besides
 *     those that are protected.  An owner that is far behind, because callbacks retire or a reader has let many objects go,
 *     and one whose few objects are large, reclaims all that are ready.
 * I9. A step, a visit that reclaims a few ready objects, takes no lock: the owner sets @stepping, and goes on if
 *     @revoked is clear.  The sweeper revokes that, fences, and drains no queue whose owner is in a step.  A step begins
 *     only with a limit above 0, so the queue is listed: a barrier finds it, and waits for the callbacks of the step.
 *
 * HP2  object queued                                 | queue drained
 * HP4  object queued, then limit read                | limit 0, fence, then queued read
 * HP6  object queued, then the lock found taken      | lock released, fence, then queued read
 * HP7  step begun, then revoked read                 | steps revoked, then stepping read
 */
#include "hazptr_retired.h"

static void push(struct quiesce__retired_queue *r, uintptr_t item)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	quiesce_store_relaxed(quiesce__retired_entry(r, queued), item); /* Relaxed: HP2 publishes it. */
	/* HP2: release, pairs with HP2 in quiesce__retired_nr_waiting() */
	quiesce_store_release(HP2, &r->queued, queued + 1);
}

static inline void queue(struct quiesce__retired_queue *r, uintptr_t item, size_t bytes)
{
	r->bytes += bytes;
	r->for_helper += !(item & QUIESCE_RETIRED_KIND);
	push(r, item);
	/* Either this thread reads the limit 0, or the sweeper that set it sees the object that was pushed,
	 * and takes it. */
	/* HP4: pairs with HP4 in quiesce__hazptr_scan_begin() */
	quiesce_fence_mode(HP4);
	/* Relaxed: HP4. */
	if (quiesce_unlikely(quiesce_load_relaxed(&r->queued) >= quiesce_load_relaxed(&r->limit)) ||
	    quiesce_unlikely(quiesce__retired_is_large(r)))
		quiesce__retired_visit(r, NULL);
}

/* ---- the calls ---- */

static inline bool has_no_room(const struct quiesce__retired_queue *r)
{
	return quiesce_load_relaxed(&r->queued) >= r->max_queued; /* Relaxed: the owner's own. */
}

/* Return the calling thread's queue, if @next fits into it; else NULL. */
static struct quiesce__retired_queue *queue_for(struct quiesce_tls_v1 *self, struct hazptr_head *next)
{
	struct quiesce__retired_queue *r = self->retired ? self->retired : quiesce__retired_new(self);

	if (r && has_no_room(r))
		quiesce__retired_visit(r, next);
	return r && !has_no_room(r) ? r : NULL;
}

/* An object for free() may be reclaimed by its owner: free() is no callback of the program. */
static inline uintptr_t here_flag(void (*func)(struct hazptr_head *head), uintptr_t here)
{
	bool free = (uintptr_t)func <= QUIESCE_KFREE_OFFSET_MAX || QUIESCE_MUTANT(hazptr_runs_in_caller);

	return free ? QUIESCE_RETIRED_HERE : here;
}

/* The slow path: a thread's first object, or a forked child's; a full queue; misuse. */
static QUIESCE_COLD void call_slow(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes, uintptr_t here)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired_queue *r;

	if (!head || !func) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_hazptr() with a NULL %s", head ? "function" : "hazptr_head");
		return;
	}
	quiesce__init();
	head->func = func;
	r = queue_for(self, head);
	if (r) {
		queue(r, (uintptr_t)head | here_flag(func, here), bytes);
		return;
	}
	quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, (uint64_t)bytes); /* Relaxed: a statistic. */
	quiesce__retired_hand_over(self->retired, head);
}

static inline __attribute__((always_inline)) void call(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes,
						       uintptr_t here)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired_queue *r = self->retired;

	/* Relaxed: as in quiesce__init(). */
	if (quiesce_unlikely(!head || !func || !r || !quiesce_load_relaxed(quiesce__fork_canary) || has_no_room(r))) {
		call_slow(head, func, bytes, here);
		return;
	}
	head->func = func;
	queue(r, (uintptr_t)head | here_flag(func, here), bytes);
}

/* Without memory for a proxy the caller waits and deletes the object itself. */
struct deletion {
	struct quiesce__run run;
	void *object;
	void (*deleter)(void *object);
};

static void wait_and_delete(struct quiesce__run *run)
{
	struct deletion *d = (struct deletion *)run;

	quiesce__hazptr_count_pushed();
	quiesce_synchronize_shazptr(d->object);
	quiesce_fetch_add_relaxed(&quiesce__sweep.reclaimed, (uint64_t)1); /* Relaxed: a statistic. */
	run->func = (uintptr_t)d->deleter;
	d->deleter(d->object);
}

/* The run holds nothing that would have to be released. */
static void deletion_ended(struct quiesce__run *run)
{
	(void)run;
}

static QUIESCE_COLD void delete_here(void *object, void (*deleter)(void *object))
{
	struct deletion d = { .run.call = "hazptr_retire()", .object = object, .deleter = deleter };

	quiesce__run(&d.run, wait_and_delete, deletion_ended);
}

void quiesce_hazptr_retire(void *object, void (*deleter)(void *object), size_t bytes)
{
	struct quiesce__proxy *proxy;

	if (quiesce_unlikely(!object || !deleter)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "hazptr_retire() with a NULL %s", object ? "function" : "object");
		return;
	}
	quiesce__init();
	proxy = quiesce__proxy_get(quiesce__self());
	if (quiesce_unlikely(!proxy)) {
		delete_here(object, deleter);
		return;
	}
	proxy->object = object;
	proxy->deleter = deleter;
	call(&proxy->head, quiesce__hazptr_run_proxy, bytes, QUIESCE_RETIRED_PROXY);
}

void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, 0);
}

void quiesce__call_hazptr_freeing(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, QUIESCE_RETIRED_PLAIN);
}

void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, QUIESCE_RETIRED_HERE);
}
