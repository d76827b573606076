/* SPDX-License-Identifier: MIT */
/* hazptr_retire.c - call_hazptr(): a thread's queue of retired objects, from its owner's side.
 *
 *   owner:   push to its queue -> at the limit: hand over objects that only the helper may reclaim; with a batch of others:
 *            fence, scan all slots, reclaim objects that are not protected, queue the others again
 *   sweeper: (the helper, or hazptr_barrier()) take objects that were handed over, drain queues whose owners retire no more
 *            -> fence, scan -> reclaim objects that are not protected, keep the others
 *
 *        taken                    queued     limit  max_queued
 *          |                        |          |        |
 *   ...    v                        v          v        v
 *   [run ][ waiting                ][ free ... visit here
 *
 * I1. A reclaimed object was queued before the fence that precedes its scan.
 * I2. @taken, @limit, @base and the entries between @taken and @queued belong to the holder of the queue's
 *     lock; only the owner pushes, and never at @max_queued, which it sets under the lock.
 * I3. An object is removed from its queue or list before its callback runs, and chunks of callbacks run
 *     inside the gate (runtime/gate.h), so after a fork no callback runs twice.
 * I4. A queue that is not empty is listed, or has a limit above @queued only until the sweeper that drains it
 *     has checked it once more.  An empty queue has the limit 0: its next object makes the owner list it.
 * I5. Callbacks do not reclaim: objects that they retire are queued, or pushed to a list if the queue is
 *     full.
 * I6. The owner never waits.  Where the lock is taken, its holder is the sweeper, which checks the queue
 *     again after it has released the lock; where the fork gate is closed, or the queue is full, objects stay
 *     in the queue, or go to a list.
 * I7. If a callback ends its thread, visit_ended() finishes the visit: the queue is as after a visit that ran
 *     fewer callbacks, and listed.
 *
 * HP2  object queued                                 | queue drained
 * HP4  object queued, then limit read                | limit 0, fence, then queued read
 * HP6  object queued, then the lock found taken      | lock released, fence, then queued read
 */
#include "hazptr_retired.h"

#define CHUNK 64u            /* callbacks between two passages of the fork gate */
#define PREFETCH 8u
#define ROUNDS 16u
#define FEW 8u               /* at most this many objects are moved to the front of the array */
#if defined(QUIESCE_SIM)
#define TRY_HELPER 1u
#else
#define TRY_HELPER 8u        /* without a helper, a start is tried again after this many objects */
#endif

static void push(struct quiesce__retired_queue *r, uintptr_t item)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	quiesce_store_relaxed(quiesce__retired_entry(r, queued), item); /* Relaxed: HP2 publishes it. */
	/* HP2: release, pairs with HP2 in quiesce__retired_nr_waiting() */
	quiesce_store_release(HP2, &r->queued, queued + 1);
}

static void push_again(struct quiesce__retired_queue *r, uintptr_t item)
{
	push(r, item);
	quiesce_store_relaxed(&r->again, r->again + 1); /* Relaxed: a statistic. */
}

/* ---- the owner reclaims ---- */

/* One round of a scan in several: mark the protected entries. */
static void mark(struct quiesce__retired_queue *r, uint64_t end, const struct quiesce__hazptr_scan *set)
{
	for (uint64_t i = r->taken; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: under the lock. */

		if (quiesce__hazptr_scan_has(set, quiesce__retired_address(item)))
			quiesce_store_relaxed(quiesce__retired_entry(r, i), item | QUIESCE_RETIRED_MARK); /* Relaxed: under the lock. */
	}
}

/* Clear the marks, which are valid for one scan only. */
static QUIESCE_COLD void unmark(struct quiesce__retired_queue *r, uint64_t end)
{
	for (uint64_t i = r->taken; i != end; i++) {
		uintptr_t *entry = quiesce__retired_entry(r, i);

		quiesce_store_relaxed(entry, quiesce_load_relaxed(entry) & ~QUIESCE_RETIRED_MARK); /* Relaxed: under the lock. */
	}
}

static void run_one(struct quiesce__retired_queue *r, uint64_t i, const struct quiesce__hazptr_scan *set, struct quiesce__run *run)
{
	uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: under the lock. */

	/* Relaxed: a hint. */
	__builtin_prefetch((const void *)quiesce_load_relaxed(quiesce__retired_entry(r, i + PREFETCH)));
	quiesce_store_relaxed(&r->taken, i + 1); /* Relaxed: under the lock. */
	if (((item & QUIESCE_RETIRED_MARK) || quiesce__hazptr_scan_has(set, quiesce__retired_address(item))) &&
	    !QUIESCE_MUTANT(hazptr_no_scan)) {
		push_again(r, item & ~QUIESCE_RETIRED_MARK);
	} else {
		quiesce__hazptr_call(run, (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS));
		quiesce_store_relaxed(&r->nr_run, r->nr_run + 1); /* Relaxed: a statistic. */
	}
}

/* True if the thread is inside the gate already: in any callback but one of a cohort. */
static bool in_gate(const struct quiesce_tls_v1 *self)
{
	return (self->state & QUIESCE_TLS_CALLBACKS) && !(self->state & QUIESCE_TLS_UNGATED);
}

/* Enter the gate without waiting; false: it is closed. */
static bool enter_gate(const struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	if (QUIESCE_MUTANT(hazptr_waits_for_gate) && !in_gate(self)) {
		quiesce__gate_enter(&r->in_gate);
		return true;
	}
	return in_gate(self) || quiesce__gate_try_enter(&r->in_gate);
}

static void leave_gate(const struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	if (!in_gate(self) && !QUIESCE_MUTANT(hazptr_stays_in_gate))
		quiesce__gate_leave(&r->in_gate);
}

static void run_chunk(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, uint64_t stop, const struct quiesce__hazptr_scan *set)
{
	struct quiesce__run *run = self->runs;

	r->consuming = 1;
	self->state |= QUIESCE_TLS_IN_HAZPTR;
	while (r->taken != stop)
		run_one(r, r->taken, set, run);
	self->state &= ~QUIESCE_TLS_IN_HAZPTR;
	r->consuming = 0;
	run->func = 0;
}

/* Reclaim up to @end, in chunks; false: a fork is being prepared, and the rest waits for the next visit. */
static bool run_until(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, uint64_t end, const struct quiesce__hazptr_scan *set)
{
	while (r->taken != end) {
		if (!enter_gate(self, r)) {
			unmark(r, end);
			return false;
		}
		run_chunk(self, r, end - r->taken < CHUNK ? end : r->taken + CHUNK, set);
		leave_gate(self, r);
	}
	return true;
}

/* Reclaim the queue.  By the owner, under the lock, not in a callback; the owner may run everything that is
 * queued. */
static bool reclaim_own(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */
	struct quiesce__hazptr_scan set;
	bool many, done;

	quiesce__hazptr_scan_begin(&set, r->table, r->table_used);
	many = quiesce__hazptr_scan_incomplete(&set);
	while (quiesce__hazptr_scan_incomplete(&set)) {
		mark(r, end, &set);
		quiesce__hazptr_scan_next(&set);
	}
	done = run_until(self, r, end, &set);
	quiesce__batch_adapt(r, &set);
	quiesce__retired_fit_table(r, &set, many);
	return done;
}

/* ---- the owner hands over ---- */

static struct quiesce__sweep_shard *shard_of(const struct quiesce_tls_v1 *self, const struct quiesce__retired_queue *r)
{
	return &quiesce__sweep.shard[r ? r->shard : quiesce__hash_address((uintptr_t)self) % QUIESCE_NR_SWEEP_SHARDS];
}

/* Push @head to a shard's list, for a thread with queue @r, or without one. */
static void push_to_list(const struct quiesce__retired_queue *r, struct hazptr_head *head)
{
	quiesce__hazptr_count_pushed();
	quiesce__hazptr_push(&shard_of(quiesce__self(), r)->handed_over, head);
	quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

/* True if the queue has an object that only the helper may reclaim. */
static bool any_for_helper(struct quiesce__retired_queue *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	for (uint64_t i = r->taken; i != end; i++)
		if (!(quiesce_load_relaxed(quiesce__retired_entry(r, i)) & QUIESCE_RETIRED_HERE)) /* Relaxed: under the lock. */
			return true;
	return false;
}

/* Push the objects that only the helper may reclaim, or with @all every object, to the shard's list.  Under
 * the lock, inside the gate. */
static void hand_over(const struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, bool all)
{
	uint64_t end = quiesce_load_relaxed(&r->queued), nr = 0; /* Relaxed: the owner's own. */
	struct hazptr_head *first = NULL, *last = NULL;

	while (r->taken != end) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken)); /* Relaxed: under the lock. */
		struct hazptr_head *head = (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);

		quiesce_store_relaxed(&r->taken, r->taken + 1); /* Relaxed: under the lock. */
		if ((item & QUIESCE_RETIRED_HERE) && !all) {
			push_again(r, item);
			continue;
		}
		head->next = first;
		first = head;
		last = last ? last : head;
		nr++;
	}
	r->swept += nr;
	quiesce_fetch_add_relaxed(&quiesce__counters.hazptr_swept, nr); /* Relaxed: a statistic. */
	quiesce__hazptr_push_chain(&shard_of(self, r)->handed_over, first, last);
}

static bool try_hand_over(const struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, bool all)
{
	if (!enter_gate(self, r))
		return false;
	hand_over(self, r, all);
	leave_gate(self, r);
	return true;
}

/* ---- at the limit ---- */

/* I2, I4: let the owner's next visit come when @target objects wait. */
static void set_limit(struct quiesce__retired_queue *r, uint64_t target)
{
	r->max_queued = r->taken + QUIESCE_RETIRED_ENTRIES;
	if (target > QUIESCE_RETIRED_ENTRIES - 1)
		target = QUIESCE_RETIRED_ENTRIES - 1;
	quiesce_store_relaxed(&r->limit, quiesce__retired_nr_waiting(r) ? r->taken + target : 0); /* Relaxed: under the lock. */
}

/* Without a helper the owner visits sooner: only it would start the helper for a queue that is listed
 * already. */
static uint64_t next_target(const struct quiesce__retired_queue *r, uint64_t target)
{
	uint64_t soon = quiesce__retired_nr_waiting(r) + TRY_HELPER;

	return quiesce_likely(quiesce__helper_running()) || soon > target || QUIESCE_MUTANT(hazptr_helper_tried_late) ? target : soon;
}

/* Move the remaining objects to the front of the array, so that a queue that is often empty uses only the
 * array's first page.  The old entries stay valid until the new ones are, so a child that was forked without
 * handlers finds the objects either way. */
static void move_to_front(struct quiesce__retired_queue *r)
{
	uint64_t nr = quiesce__retired_nr_waiting(r), at = (r->taken - r->base) % QUIESCE_RETIRED_ENTRIES;

	if (nr > FEW || at < nr || at + nr > QUIESCE_RETIRED_ENTRIES)
		return;
	for (uint64_t i = 0; i < nr; i++)
		quiesce_store_relaxed(&r->entry[i], quiesce_load_relaxed(&r->entry[at + i])); /* Relaxed: under the lock. */
	r->base = r->taken;
}

/* Reclaim while a whole batch is left, because callbacks may retire another one; a limited number of rounds. */
static void reclaim_batches(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t run = r->nr_run, again = r->again;

		if (!reclaim_own(self, r) || r->nr_run == run || quiesce__retired_nr_waiting(r) - (r->again - again) < r->batch ||
		    any_for_helper(r))
			return;
	}
}

/* The queue has a batch, or with @large fewer objects of as many bytes.  True: objects were handed over. */
static bool reclaim_or_hand_over(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, bool large)
{
	bool handed = any_for_helper(r);

	if (handed && !try_hand_over(self, r, false))
		return false;
	if (quiesce__retired_nr_waiting(r) >= (large ? 1 : r->batch))
		reclaim_batches(self, r);
	/* Half the array is protected, or callbacks retire that many objects. */
	if (quiesce__retired_nr_waiting(r) > QUIESCE_RETIRED_ENTRIES / 2)
		handed |= try_hand_over(self, r, true);
	return handed;
}

/* True if the queue holds so many bytes that they are a batch, however few objects there are. */
static inline bool is_large(const struct quiesce__retired_queue *r)
{
	return r->bytes >= HAZPTR_BATCH_BYTES && !QUIESCE_MUTANT(hazptr_bytes_unbounded);
}

/* A visit of the owner, which holds its queue's lock. */
struct visit {
	struct quiesce__run run;
	struct quiesce__retired_queue *r;
	struct hazptr_head *next; /* object that is being retired and did not fit into the queue; NULL: none */
	enum quiesce__sweeps when; /* how soon to schedule a sweep */
};

static void list_if_any(struct quiesce__retired_queue *r)
{
	if (quiesce__retired_nr_waiting(r) && !r->listed)
		quiesce__retired_list(r);
}

static void visit(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;
	struct quiesce__retired_queue *r = v->r;
	struct quiesce_tls_v1 *self = quiesce__self();
	uint64_t target = r->batch;
	bool handed = false, large = is_large(r);

	quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, r->bytes); /* Relaxed: a statistic. */
	r->bytes = 0;
	if (self->state & QUIESCE_TLS_IN_HAZPTR) {
		target = QUIESCE_RETIRED_ENTRIES; /* I5 */
	} else if (quiesce__retired_nr_waiting(r) >= target || large) {
		handed = reclaim_or_hand_over(self, r, large);
		target = quiesce__retired_nr_waiting(r) + r->batch;
	}
	move_to_front(r);
	set_limit(r, next_target(r, target));
	list_if_any(r);
	v->when = handed ? QUIESCE_SWEEPS_SOON : QUIESCE_SWEEPS_LATER;
}

/* I7: finish a visit in which a callback ended the thread. */
static void visit_ended(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;
	struct quiesce__retired_queue *r = v->r;

	r->consuming = 0;
	if (run->func)
		quiesce_store_relaxed(&r->nr_run, r->nr_run + 1); /* Relaxed: a statistic. */
	unmark(r, quiesce_load_relaxed(&r->queued)); /* Relaxed: the owner's own. */
	if (!QUIESCE_MUTANT(hazptr_ended_inside))
		leave_gate(quiesce__self(), r);
	set_limit(r, r->batch);
	if (!QUIESCE_MUTANT(hazptr_ended_unlisted))
		list_if_any(r);
	quiesce__unlock(&r->lock);
	if (v->next && !QUIESCE_MUTANT(hazptr_ended_next_lost))
		push_to_list(r, v->next);
	else
		quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

/* I6: take the lock; false: its holder will check this queue once more. */
static bool lock_own(struct quiesce__retired_queue *r)
{
	if (quiesce__trylock(&r->lock))
		return true;
	/* HP6: pairs with HP6 in recheck_drained() */
	quiesce_fence_full(HP6);
	return quiesce__trylock(&r->lock);
}

static QUIESCE_COLD void visit_at_limit(struct quiesce__retired_queue *r, struct hazptr_head *next)
{
	struct visit v = { .run.call = "call_hazptr_inline()", .r = r, .next = next };

	if (r->consuming) { /* this thread holds the lock */
		r->max_queued = r->taken + QUIESCE_RETIRED_ENTRIES;
		quiesce_store_relaxed(&r->limit, r->max_queued); /* Relaxed: under the lock. */
		return;
	}
	if (!lock_own(r))
		return;
	quiesce__run(&v.run, visit, visit_ended);
	quiesce__unlock(&r->lock);
	quiesce__sweep_schedule(v.when); /* schedule even if the queue was listed already: in a forked child no sweep may be scheduled */
}

static inline void queue(struct quiesce__retired_queue *r, uintptr_t item, size_t bytes)
{
	r->bytes += bytes;
	push(r, item);
	/* Either this thread reads the limit 0, or the sweeper that set it sees the object that was pushed,
	 * and takes it. */
	/* HP4: pairs with HP4 in quiesce__hazptr_scan_begin() */
	quiesce_fence_mode(HP4);
	/* Relaxed: HP4. */
	if (quiesce_unlikely(quiesce_load_relaxed(&r->queued) >= quiesce_load_relaxed(&r->limit)) || quiesce_unlikely(is_large(r)))
		visit_at_limit(r, NULL);
}

/* ---- the calls ---- */

static inline bool is_full(const struct quiesce__retired_queue *r)
{
	return quiesce_load_relaxed(&r->queued) >= r->max_queued; /* Relaxed: the owner's own. */
}

/* Return the calling thread's queue, if @next fits into it; else NULL. */
static struct quiesce__retired_queue *queue_for(struct quiesce_tls_v1 *self, struct hazptr_head *next)
{
	struct quiesce__retired_queue *r = self->retired ? self->retired : quiesce__retired_new(self);

	if (r && is_full(r))
		visit_at_limit(r, next);
	return r && !is_full(r) ? r : NULL;
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
	push_to_list(self->retired, head);
}

static inline void call(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes, uintptr_t here)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired_queue *r = self->retired;

	/* Relaxed: as in quiesce__init(). */
	if (quiesce_unlikely(!head || !func || !r || !quiesce_load_relaxed(quiesce__fork_canary) || is_full(r))) {
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
	call(&proxy->head, quiesce__hazptr_run_proxy, bytes, QUIESCE_RETIRED_HERE | QUIESCE_RETIRED_PROXY);
}

void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, 0);
}

void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, QUIESCE_RETIRED_HERE);
}
