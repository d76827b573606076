/* SPDX-License-Identifier: MIT */
/* hazptr_retire.c - call_hazptr(): a thread's queue of retired objects, as its owner sees it.
 *
 *   owner:   push to own queue -> at the limit: hand over what only the helper may run; of the rest, if there is a
 *            batch: fence, look at all slots, run what nobody protects, push what somebody does again
 *   sweeper: (the helper, or hazptr_barrier()) take what was handed over, drain queues whose owners do not come
 *            back -> fence, look -> run what nobody protects, keep the rest
 *
 *        taken                    queued     limit     room
 *          |                        |          |        |
 *   ...    v                        v          v        v
 *   [run ][ waiting                ][ free ... look here
 *
 * I1. What is reclaimed was queued before the fence that comes before the look.
 * I2. @taken, @limit, @base and what lies between @taken and @queued belong to who holds the queue's lock; only the
 *     owner pushes, and never at @room, which it sets under the lock.
 * I3. An object is taken from its queue or list before its callback runs, and chunks of callbacks run
 *     inside the gate (worker.c), so after a fork nothing runs twice.
 * I4. A queue that is not empty is listed, or has a limit above what is queued only until who sweeps, and drains it,
 *     has looked at it once more.  An empty one has the limit 0: its next object makes the owner list it.
 * I5. Callbacks do not reclaim: what they retire is queued, or if there is no room pushed to a list.
 * I6. The owner waits for nobody: where the lock is taken who sweeps has it, and looks again when it has let go;
 *     where the fork gate is closed, or no room is left, the objects wait in the queue, or go to a list.
 * I7. A callback that ends its thread leaves a visit to visit_ended(): the queue is as after a visit that ran fewer, and listed.
 *
 * HP2  object queued                                 | queue drained
 * HP4  object queued, then limit read                | limit 0, fence, then queued read
 * HP6  object queued, then the lock found taken      | the lock let go, fence, then queued read
 */
#include "hazptr_retired.h"

#define CHUNK 64u            /* callbacks between two visits of the fork gate */
#define PREFETCH 8u
#define ROUNDS 16u
#define FEW 8u               /* so many objects may be moved to the front of the array */
#if defined(QUIESCE_SIM)
#define TRY_HELPER 1u
#else
#define TRY_HELPER 8u        /* without a helper, after so many objects another start is tried */
#endif

static void push(struct quiesce__retired *r, uintptr_t item)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	quiesce_store_relaxed(quiesce__retired_entry(r, queued), item); /* Relaxed: HP2 publishes it. */
	/* HP2: release, pairs with HP2 in quiesce__retired_waiting() */
	quiesce_store_release(HP2, &r->queued, queued + 1);
}

static void push_again(struct quiesce__retired *r, uintptr_t item)
{
	push(r, item);
	quiesce_store_relaxed(&r->again, r->again + 1); /* Relaxed: a statistic. */
}

/* ---- the owner reclaims ---- */

/* One round of several: mark what is protected. */
static void mark(struct quiesce__retired *r, uint64_t end, const struct quiesce__hazptr_scan *set)
{
	for (uint64_t i = r->taken; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: the lock's. */

		if (quiesce__hazptr_scan_has(set, quiesce__retired_address(item)))
			quiesce_store_relaxed(quiesce__retired_entry(r, i), item | QUIESCE_RETIRED_MARK); /* Relaxed: as above. */
	}
}

/* The marks are those of one look. */
static QUIESCE_COLD void unmark(struct quiesce__retired *r, uint64_t end)
{
	for (uint64_t i = r->taken; i != end; i++) {
		uintptr_t *entry = quiesce__retired_entry(r, i);

		quiesce_store_relaxed(entry, quiesce_load_relaxed(entry) & ~QUIESCE_RETIRED_MARK); /* Relaxed: the lock's. */
	}
}

static void run_one(struct quiesce__retired *r, uint64_t i, const struct quiesce__hazptr_scan *set, struct quiesce__run *run)
{
	uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: the lock's. */

	/* Relaxed: a hint. */
	__builtin_prefetch((const void *)quiesce_load_relaxed(quiesce__retired_entry(r, i + PREFETCH)));
	quiesce_store_relaxed(&r->taken, i + 1); /* Relaxed: the lock's. */
	if (((item & QUIESCE_RETIRED_MARK) || quiesce__hazptr_scan_has(set, quiesce__retired_address(item))) &&
	    !QUIESCE_MUTANT(hazptr_no_look)) {
		push_again(r, item & ~QUIESCE_RETIRED_MARK);
	} else {
		quiesce__hazptr_call(run, (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS));
		quiesce_store_relaxed(&r->run, r->run + 1); /* Relaxed: a statistic. */
	}
}

/* Inside the gate already?  In a callback, unless it is one of a cohort. */
static bool in_gate(const struct quiesce_tls_v1 *self)
{
	return (self->state & QUIESCE_TLS_CALLBACKS) && !(self->state & QUIESCE_TLS_UNGATED);
}

/* False: it is closed, which nobody waits for here. */
static bool enter_gate(const struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	if (QUIESCE_MUTANT(hazptr_waits_for_gate) && !in_gate(self)) {
		quiesce__gate_enter(&r->running);
		return true;
	}
	return in_gate(self) || quiesce__gate_try_enter(&r->running);
}

static void leave_gate(const struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	if (!in_gate(self) && !QUIESCE_MUTANT(hazptr_stays_in_gate))
		quiesce__gate_leave(&r->running);
}

static void run_chunk(struct quiesce_tls_v1 *self, struct quiesce__retired *r, uint64_t stop, const struct quiesce__hazptr_scan *set)
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

/* False: a fork is being prepared, and the rest is for the next time. */
static bool run_until(struct quiesce_tls_v1 *self, struct quiesce__retired *r, uint64_t end, const struct quiesce__hazptr_scan *set)
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

/* Under the lock, by the owner, not in a callback.  All that is queued now may be run here. */
static bool reclaim_own(struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */
	struct quiesce__hazptr_scan set;
	bool many, done;

	quiesce__hazptr_scan_begin(&set, r->table, r->table_look);
	many = quiesce__hazptr_scan_more(&set);
	while (quiesce__hazptr_scan_more(&set)) {
		mark(r, end, &set);
		quiesce__hazptr_scan_next(&set);
	}
	done = run_until(self, r, end, &set);
	quiesce__batch_adapt(r, &set);
	quiesce__retired_fit_table(r, &set, many);
	return done;
}

/* ---- the owner hands over ---- */

static struct quiesce__sweep_shard *shard_of(const struct quiesce_tls_v1 *self, const struct quiesce__retired *r)
{
	return &quiesce__sweep.shard[r ? r->shard : quiesce__hash_address((uintptr_t)self) % QUIESCE_NR_SWEEP_SHARDS];
}

/* Of a thread with queue @r, or without one. */
static void push_to_list(const struct quiesce__retired *r, struct hazptr_head *head)
{
	quiesce__hazptr_count_pushed();
	quiesce__hazptr_push(&shard_of(quiesce__self(), r)->left, head);
	quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

/* Is there anything that the owner may not run? */
static bool any_for_helper(struct quiesce__retired *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */

	for (uint64_t i = r->taken; i != end; i++)
		if (!(quiesce_load_relaxed(quiesce__retired_entry(r, i)) & QUIESCE_RETIRED_HERE)) /* Relaxed: the lock's. */
			return true;
	return false;
}

/* Push to the shard's list what the owner may not run, or @all there is.  Under the lock, inside the gate. */
static void hand_over(const struct quiesce_tls_v1 *self, struct quiesce__retired *r, bool all)
{
	uint64_t end = quiesce_load_relaxed(&r->queued), nr = 0; /* Relaxed: the owner's own. */
	struct hazptr_head *first = NULL, *last = NULL;

	while (r->taken != end) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken)); /* Relaxed: the lock's. */
		struct hazptr_head *head = (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);

		quiesce_store_relaxed(&r->taken, r->taken + 1); /* Relaxed: the lock's. */
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
	quiesce__hazptr_push_chain(&shard_of(self, r)->left, first, last);
}

static bool try_hand_over(const struct quiesce_tls_v1 *self, struct quiesce__retired *r, bool all)
{
	if (!enter_gate(self, r))
		return false;
	hand_over(self, r, all);
	leave_gate(self, r);
	return true;
}

/* ---- at the limit ---- */

/* I2, I4: the next visit, when @target objects wait. */
static void set_limit(struct quiesce__retired *r, uint64_t target)
{
	r->room = r->taken + QUIESCE_RETIRED_SLOTS;
	if (target > QUIESCE_RETIRED_SLOTS - 1)
		target = QUIESCE_RETIRED_SLOTS - 1;
	quiesce_store_relaxed(&r->limit, quiesce__retired_waiting(r) ? r->taken + target : 0); /* Relaxed: the lock's. */
}

/* Nobody else would start the helper for what is listed. */
static uint64_t next_target(const struct quiesce__retired *r, uint64_t target)
{
	uint64_t soon = quiesce__retired_waiting(r) + TRY_HELPER;

	return quiesce_likely(quiesce__helper_running()) || soon > target || QUIESCE_MUTANT(hazptr_helper_tried_late) ? target : soon;
}

/* A queue that is often empty uses the first page of its array and no more.  The objects are where they were until they are where they
 * will be, so the child of a fork without handlers finds them in any case. */
static void start_over(struct quiesce__retired *r)
{
	uint64_t nr = quiesce__retired_waiting(r), at = (r->taken - r->base) % QUIESCE_RETIRED_SLOTS;

	if (nr > FEW || at < nr || at + nr > QUIESCE_RETIRED_SLOTS)
		return;
	for (uint64_t i = 0; i < nr; i++)
		quiesce_store_relaxed(&r->slot[i], quiesce_load_relaxed(&r->slot[at + i])); /* Relaxed: the lock's. */
	r->base = r->taken;
}

/* Until no batch is left, because callbacks may have retired another; but not for ever. */
static void reclaim_batches(struct quiesce_tls_v1 *self, struct quiesce__retired *r)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t run = r->run, again = r->again;

		if (!reclaim_own(self, r) || r->run == run || quiesce__retired_waiting(r) - (r->again - again) < r->batch ||
		    any_for_helper(r))
			return;
	}
}

/* There is a batch, of either kind, or @large: fewer objects with as many bytes.  True: something was handed over. */
static bool reclaim_or_hand_over(struct quiesce_tls_v1 *self, struct quiesce__retired *r, bool large)
{
	bool handed = any_for_helper(r);

	if (handed && !try_hand_over(self, r, false))
		return false;
	if (quiesce__retired_waiting(r) >= (large ? 1 : r->batch))
		reclaim_batches(self, r);
	/* As many are protected, or callbacks retire them. */
	if (quiesce__retired_waiting(r) > QUIESCE_RETIRED_SLOTS / 2)
		handed |= try_hand_over(self, r, true);
	return handed;
}

/* So many bytes are a batch, however few objects they are. */
static inline bool is_large(const struct quiesce__retired *r)
{
	return r->bytes >= HAZPTR_BATCH_BYTES && !QUIESCE_MUTANT(hazptr_bytes_unbounded);
}

/* Of an owner that holds its lock. */
struct visit {
	struct quiesce__run run;
	struct quiesce__retired *r;
	struct hazptr_head *next; /* what is retired, and not yet queued because there was no room; NULL: it is */
	enum quiesce__sweeps when; /* whom to tell how soon */
};

static void list_if_any(struct quiesce__retired *r)
{
	if (quiesce__retired_waiting(r) && !r->listed)
		quiesce__retired_list(r);
}

static void visit(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;
	struct quiesce__retired *r = v->r;
	struct quiesce_tls_v1 *self = quiesce__self();
	uint64_t target = r->batch;
	bool handed = false, large = is_large(r);

	quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, r->bytes); /* Relaxed: a statistic. */
	r->bytes = 0;
	if (self->state & QUIESCE_TLS_IN_HAZPTR) {
		target = QUIESCE_RETIRED_SLOTS; /* I5 */
	} else if (quiesce__retired_waiting(r) >= target || large) {
		handed = reclaim_or_hand_over(self, r, large);
		target = quiesce__retired_waiting(r) + r->batch;
	}
	start_over(r);
	set_limit(r, next_target(r, target));
	list_if_any(r);
	v->when = handed ? QUIESCE_SWEEPS_SOON : QUIESCE_SWEEPS_LATER;
}

/* I7. */
static void visit_ended(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;
	struct quiesce__retired *r = v->r;

	r->consuming = 0;
	if (run->func)
		quiesce_store_relaxed(&r->run, r->run + 1); /* Relaxed: a statistic. */
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

/* I6.  False: who has it looks at this queue once more. */
static bool lock_own(struct quiesce__retired *r)
{
	if (quiesce__trylock(&r->lock))
		return true;
	/* HP6: pairs with HP6 in scan_again() */
	quiesce_fence_full(HP6);
	return quiesce__trylock(&r->lock);
}

static QUIESCE_COLD void at_limit(struct quiesce__retired *r, struct hazptr_head *next)
{
	struct visit v = { .run.call = "call_hazptr_inline()", .r = r, .next = next };

	if (r->consuming) { /* the lock is ours */
		r->room = r->taken + QUIESCE_RETIRED_SLOTS;
		quiesce_store_relaxed(&r->limit, r->room); /* Relaxed: the lock's. */
		return;
	}
	if (!lock_own(r))
		return;
	quiesce__run(&v.run, visit, visit_ended);
	quiesce__unlock(&r->lock);
	quiesce__sweep_schedule(v.when); /* also where it is listed already: in a forked child nobody may have been told */
}

static inline void queue(struct quiesce__retired *r, uintptr_t item, size_t bytes)
{
	r->bytes += bytes;
	push(r, item);
	/* If this misses the limit 0, whoever set it sees what was pushed, and takes it; if they miss that, this sees the limit. */
	/* HP4: pairs with HP4 in quiesce__hazptr_scan_begin() */
	quiesce_fence_mode(HP4);
	/* Relaxed: HP4. */
	if (quiesce_unlikely(quiesce_load_relaxed(&r->queued) >= quiesce_load_relaxed(&r->limit)) || quiesce_unlikely(is_large(r)))
		at_limit(r, NULL);
}

/* ---- the calls ---- */

static inline bool full(const struct quiesce__retired *r)
{
	return quiesce_load_relaxed(&r->queued) >= r->room; /* Relaxed: the owner's own. */
}

/* The calling thread's queue with room for @next, or NULL. */
static struct quiesce__retired *queue_with_room(struct quiesce_tls_v1 *self, struct hazptr_head *next)
{
	struct quiesce__retired *r = self->retired ? self->retired : quiesce__retired_new(self);

	if (r && full(r))
		at_limit(r, next);
	return r && !full(r) ? r : NULL;
}

/* free() is no callback of the user's. */
static inline uintptr_t may_run_here(void (*func)(struct hazptr_head *head), uintptr_t here)
{
	bool free = (uintptr_t)func <= QUIESCE_KFREE_OFFSET_MAX || QUIESCE_MUTANT(hazptr_runs_in_caller);

	return free ? QUIESCE_RETIRED_HERE : here;
}

/* The first of a thread or of a forked child; no room; or wrong. */
static QUIESCE_COLD void call_slowly(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes, uintptr_t here)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired *r;

	if (!head || !func) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "call_hazptr() with a NULL %s", head ? "function" : "hazptr_head");
		return;
	}
	quiesce__fork_check();
	head->func = func;
	r = queue_with_room(self, head);
	if (r) {
		queue(r, (uintptr_t)head | may_run_here(func, here), bytes);
		return;
	}
	quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, (uint64_t)bytes); /* Relaxed: a statistic. */
	push_to_list(self->retired, head);
}

static inline void call(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes, uintptr_t here)
{
	struct quiesce_tls_v1 *self = quiesce__self();
	struct quiesce__retired *r = self->retired;

	/* Relaxed: as in quiesce__fork_check(). */
	if (quiesce_unlikely(!head || !func || !r || !quiesce_load_relaxed(quiesce__fork_canary) || full(r))) {
		call_slowly(head, func, bytes, here);
		return;
	}
	head->func = func;
	queue(r, (uintptr_t)head | may_run_here(func, here), bytes);
}

/* There is no memory to wait elsewhere. */
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
	quiesce_fetch_add_relaxed(&quiesce__sweep.run, (uint64_t)1); /* Relaxed: a statistic. */
	run->func = (uintptr_t)d->deleter;
	d->deleter(d->object);
}

/* Nothing is held. */
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
	struct quiesce__note *note;

	if (quiesce_unlikely(!object || !deleter)) {
		quiesce__misuse(QUIESCE_MISUSE_NULL, "hazptr_retire() with a NULL %s", object ? "function" : "object");
		return;
	}
	quiesce__fork_check();
	note = quiesce__note_get(quiesce__self());
	if (quiesce_unlikely(!note)) {
		delete_here(object, deleter);
		return;
	}
	note->object = object;
	note->deleter = deleter;
	call(&note->head, quiesce__hazptr_run_note, bytes, QUIESCE_RETIRED_HERE | QUIESCE_RETIRED_NOTE);
}

void quiesce_call_hazptr(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, 0);
}

void quiesce_call_hazptr_inline(struct hazptr_head *head, void (*func)(struct hazptr_head *head), size_t bytes)
{
	call(head, func, bytes, QUIESCE_RETIRED_HERE);
}
