/* SPDX-License-Identifier: MIT */
/* hazptr_visit.c - visits of owners to their queues of retired objects, once a batch waits or objects are ready.
 *
 * The invariants are those of hazptr_retire.c.
 *
 * HP6  object queued, then the lock found taken | lock released, fence, then queued read
 * HP7  step begun, then revoked read            | steps revoked, then stepping read
 */
#include "hazptr_retired.h"

#define CHUNK 64u            /* callbacks between two passages of the fork gate */
#define PREFETCH 4u
#define FEW 8u               /* at most this many objects are moved to the front of the array at any visit */
#if defined(QUIESCE_SIM)
#define STEP 1u
#define TRY_HELPER 1u
#else
#define STEP 6u              /* most objects that an owner reclaims in one call while it keeps pace */
#define TRY_HELPER 8u        /* without a helper, a start is tried again after this many objects */
#endif

/* ---- the gate ---- */

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

/* ---- the owner scans ---- */

/* One round of a scan in several: mark the protected entries. */
static void mark(struct quiesce__retired_queue *r, uint64_t end, const struct quiesce__hazptr_scan *set)
{
	for (uint64_t i = r->ready; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: under the lock. */

		if (quiesce__hazptr_scan_has(set, quiesce__retired_address(item)))
			quiesce_store_relaxed(quiesce__retired_entry(r, i), item | QUIESCE_RETIRED_MARK); /* Relaxed: under the lock. */
	}
}

/* I3: make @item, of entry @i, the last ready one; the entry that was there takes its place.  @item: 0 if the object has gone to a
 * list. */
static void move_to_ready(struct quiesce__retired_queue *r, uint64_t i, uintptr_t item)
{
	uintptr_t *from = quiesce__retired_entry(r, i), *to = quiesce__retired_entry(r, r->ready);

	if (from == to) {
		quiesce_store_relaxed(to, item); /* Relaxed: under the lock. */
	} else {
		uintptr_t other = quiesce_load_relaxed(to); /* Relaxed: under the lock. */

		quiesce_store_relaxed(from, 0); /* Relaxed: under the lock. */
		quiesce_store_relaxed(to, item); /* Relaxed: under the lock. */
		quiesce_store_relaxed(from, other); /* Relaxed: under the lock. */
	}
	r->ready++;
}

/* Move the entries before @end that @set does not contain to the ready ones, and clear marks, which are valid for one scan. */
static void divide(struct quiesce__retired_queue *r, uint64_t end, const struct quiesce__hazptr_scan *set)
{
	for (uint64_t i = r->ready; i != end; i++) {
		uintptr_t *entry = quiesce__retired_entry(r, i), item = quiesce_load_relaxed(entry); /* Relaxed: under the lock. */

		if (((item & QUIESCE_RETIRED_MARK) || quiesce__hazptr_scan_has(set, quiesce__retired_address(item))) &&
		    !QUIESCE_MUTANT(hazptr_no_scan))
			quiesce_store_relaxed(entry, item & ~QUIESCE_RETIRED_MARK); /* Relaxed: under the lock. */
		else
			move_to_ready(r, i, item);
	}
}

/* Scan for the objects that wait.  By the owner, under the lock, inside the gate. */
static void scan_own(struct quiesce__retired_queue *r)
{
	uint64_t end = quiesce_load_relaxed(&r->queued); /* Relaxed: the owner's own. */
	struct quiesce__hazptr_scan set;
	bool many;

	quiesce__hazptr_scan_begin(&set, r->table, r->table_used);
	many = quiesce__hazptr_scan_incomplete(&set);
	if (!set.nr && !set.protects_all)
		r->ready = end;
	while (quiesce__hazptr_scan_incomplete(&set)) {
		mark(r, end, &set);
		quiesce__hazptr_scan_next(&set);
	}
	divide(r, end, &set);
	r->kept = end - r->ready;
	quiesce__batch_adapt(r, &set);
	quiesce__retired_fit_table(r, &set, many);
}

/* ---- the owner hands over ---- */

static struct quiesce__sweep_shard *shard_of(const struct quiesce_tls_v1 *self, const struct quiesce__retired_queue *r)
{
	return &quiesce__sweep.shard[r ? r->shard : quiesce__hash_address((uintptr_t)self) % QUIESCE_NR_SWEEP_SHARDS];
}

void quiesce__retired_hand_over(const struct quiesce__retired_queue *r, struct hazptr_head *head)
{
	quiesce__hazptr_count_pushed();
	quiesce__hazptr_push(&shard_of(quiesce__self(), r)->handed_over, head);
	quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

/* Push the waiting objects that only the helper may reclaim, or with @all every one, to the shard's list; false: there are none.
 * Under the lock, inside the gate. */
static bool hand_over(const struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, bool all)
{
	uint64_t end = quiesce_load_relaxed(&r->queued), nr = 0; /* Relaxed: the owner's own. */
	struct hazptr_head *first = NULL, *last = NULL;

	if (!r->for_helper && !all)
		return false;
	for (uint64_t i = r->ready; i != end; i++) {
		uintptr_t item = quiesce_load_relaxed(quiesce__retired_entry(r, i)); /* Relaxed: under the lock. */
		struct hazptr_head *head = (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);

		if (((item & QUIESCE_RETIRED_KIND) && !all) || !head) /* NULL: lost in a fork without handlers (I3) */
			continue;
		move_to_ready(r, i, 0);
		head->next = first;
		first = head;
		last = last ? last : head;
		nr++;
	}
	r->for_helper = 0;
	if (!nr) /* the sweeper has drained them */
		return false;
	r->swept += nr;
	quiesce_fetch_add_relaxed(&quiesce__counters.hazptr_swept, nr); /* Relaxed: a statistic. */
	quiesce__hazptr_push_chain(&shard_of(self, r)->handed_over, first, last);
	return true;
}

/* ---- the owner reclaims ---- */

/* Which ready objects a step reclaims, in ascending order: those for free(), those with a function that only frees memory, all. */
enum runs { RUNS_FREE, RUNS_PLAIN, RUNS_ALL };

static bool is_plain(uintptr_t item)
{
	return (item & QUIESCE_RETIRED_KIND) == QUIESCE_RETIRED_PLAIN || QUIESCE_MUTANT(hazptr_all_plain);
}

/* True if objects as that of entry @item are among those that @runs has. */
static bool is_among(uintptr_t item, enum runs runs)
{
	const struct hazptr_head *head = (const struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);

	return runs == RUNS_ALL || (runs == RUNS_PLAIN && is_plain(item)) ||
	       (uintptr_t)head->func <= QUIESCE_KFREE_OFFSET_MAX;
}

/* Remove the next ready object, if it is among those of @runs; NULL: it is not, or there is none. */
static struct hazptr_head *take_ready(struct quiesce__retired_queue *r, enum runs runs)
{
	uintptr_t item = 0;

	for (; !item && r->taken != r->ready; quiesce_store_relaxed(&r->taken, r->taken + 1)) { /* Relaxed: under the lock. */
		item = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken)) & ~QUIESCE_RETIRED_MARK; /* Relaxed: under the lock. */
		if (item && !is_among(item, runs))
			return NULL;
	}
	return (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);
}

/* Reclaim at most @nr of the ready objects that @runs has, until another one comes; all of them only in @run.  Returns how many of
 * @nr are left.  By the owner, under the lock or in a step, and inside the gate unless all are for free(). */
static uint32_t run_ready(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, uint32_t nr, enum runs runs,
			  struct quiesce__run *run)
{
	struct hazptr_head *head;

	r->consuming = 1;
	self->state |= QUIESCE_TLS_IN_HAZPTR;
	for (; nr && (head = take_ready(r, runs)); nr--) {
		uintptr_t later = quiesce_load_relaxed(quiesce__retired_entry(r, r->taken + PREFETCH)); /* Relaxed: a hint. */

		__builtin_prefetch((const void *)later);
		quiesce__hazptr_call(run, head);
		quiesce_store_relaxed(&r->nr_run, r->nr_run + 1); /* Relaxed: a statistic. */
	}
	self->state &= ~QUIESCE_TLS_IN_HAZPTR;
	r->consuming = 0;
	if (run)
		run->func = 0;
	return nr;
}

static void try_run_ready(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, uint32_t nr)
{
	if (!enter_gate(self, r))
		return;
	run_ready(self, r, nr, RUNS_ALL, self->runs);
	leave_gate(self, r);
}

/* Reclaim every ready object, in chunks; a fork that is being prepared leaves the rest. */
static void run_all_ready(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	uint64_t before;

	do {
		before = r->taken;
		try_run_ready(self, r, CHUNK);
	} while (r->taken != before);
}

/* ---- at the limit ---- */

static uint64_t nr_ready(const struct quiesce__retired_queue *r)
{
	return r->ready - r->taken;
}

/* The position at which a whole batch waits, besides what was protected. */
static uint64_t batch_end(const struct quiesce__retired_queue *r)
{
	return r->ready + r->kept + r->batch;
}

/* The position of the owner's next visit.  Without a helper it comes sooner: only a visit would start the helper for a queue that
 * is listed already. */
static uint64_t next_visit(const struct quiesce__retired_queue *r)
{
	uint64_t queued = quiesce_load_relaxed(&r->queued), at = batch_end(r); /* Relaxed: the owner's own. */

	if (nr_ready(r)) /* I8 */
		at = queued + (nr_ready(r) > r->batch ? (STEP + 1) / 2 : STEP);
	if (quiesce_unlikely(!quiesce__helper_running()) && at > queued + TRY_HELPER && !QUIESCE_MUTANT(hazptr_helper_tried_late))
		at = queued + TRY_HELPER;
	return at;
}

/* I2, I4: let the owner's next visit come at position @at. */
static void set_limit(struct quiesce__retired_queue *r, uint64_t at)
{
	r->max_queued = r->taken + QUIESCE_RETIRED_ENTRIES;
	if (at - r->taken > QUIESCE_RETIRED_ENTRIES - 1)
		at = r->max_queued - 1;
	quiesce_store_relaxed(&r->limit, quiesce__retired_nr_waiting(r) ? at : 0); /* Relaxed: under the lock. */
}

/* Move the remaining objects to the front of the array, so that a queue that is often empty uses only the array's first page, and
 * one of small batches a few pages.  The old entries stay valid until the new ones are, so a child that was forked without handlers
 * finds the objects either way. */
static void move_to_front(struct quiesce__retired_queue *r, bool scanned)
{
	uint64_t nr = quiesce__retired_nr_waiting(r), at = (r->taken - r->base) % QUIESCE_RETIRED_ENTRIES;

	if ((nr > FEW && !scanned) || at < (nr > FEW ? 4 * nr : nr) || at + nr > QUIESCE_RETIRED_ENTRIES)
		return;
	for (uint64_t i = 0; i < nr; i++)
		quiesce_store_relaxed(&r->entry[i], quiesce_load_relaxed(&r->entry[at + i])); /* Relaxed: under the lock. */
	r->base = r->taken;
}

/* I8: true if so many objects are ready that the owner would not keep pace with them. */
static bool is_behind(const struct quiesce__retired_queue *r)
{
	return r->batch <= STEP || nr_ready(r) > 2 * r->batch ||
	       quiesce__retired_nr_waiting(r) > QUIESCE_RETIRED_ENTRIES - QUIESCE_RETIRED_ENTRIES / 8;
}

/* The queue has a batch, or with @large fewer objects of as many bytes.  True: objects were handed over. */
static bool scan_or_hand_over(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r, bool large)
{
	bool handed;

	if (!enter_gate(self, r))
		return false;
	handed = hand_over(self, r, false);
	if (quiesce__retired_nr_waiting(r) - nr_ready(r) >= (large ? 1 : r->batch))
		scan_own(r);
	/* Half the array is protected. */
	if (quiesce__retired_nr_waiting(r) - nr_ready(r) > QUIESCE_RETIRED_ENTRIES / 2)
		handed |= hand_over(self, r, true);
	leave_gate(self, r);
	if (large || is_behind(r) || QUIESCE_MUTANT(hazptr_unpaced))
		run_all_ready(self, r);
	return handed;
}

/* True if a scan is due. */
static bool is_full(const struct quiesce__retired_queue *r)
{
	return quiesce_load_relaxed(&r->queued) >= batch_end(r) || quiesce__retired_is_large(r); /* Relaxed: the owner's own. */
}

/* A visit of the owner, which holds its queue's lock. */
struct visit {
	struct quiesce__run run;
	struct quiesce__retired_queue *r;
	struct hazptr_head *next; /* object that is being retired and did not fit into the queue; NULL: none */
	uint32_t nr;               /* most ready objects to reclaim */
	enum quiesce__sweeps when; /* how soon to schedule a sweep */
};

static void list_if_any(struct quiesce__retired_queue *r)
{
	if (quiesce__retired_nr_waiting(r) && !r->listed)
		quiesce__retired_list(r);
}

/* I5: true if the allocator makes this call, and may hold its locks. */
static bool is_in_heap(const struct quiesce_tls_v1 *self)
{
	return (self->state & QUIESCE_TLS_IN_HEAP) && !QUIESCE_MUTANT(hazptr_heap_frees);
}

static void visit(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;
	struct quiesce__retired_queue *r = v->r;
	struct quiesce_tls_v1 *self = quiesce__self();
	/* Relaxed: under the lock. */
	bool first = !quiesce_load_relaxed(&r->limit), large = quiesce__retired_is_large(r);
	bool in_heap = is_in_heap(self), full = !in_heap && is_full(r), handed = false;

	if (full) {
		quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, r->bytes); /* Relaxed: a statistic. */
		r->bytes = 0;
	}
	if (self->state & QUIESCE_TLS_IN_HAZPTR) {
		set_limit(r, r->taken + QUIESCE_RETIRED_ENTRIES); /* I5 */
	} else {
		if (full)
			handed = scan_or_hand_over(self, r, large);
		if (nr_ready(r) && !in_heap)
			try_run_ready(self, r, v->nr);
		move_to_front(r, full);
		set_limit(r, next_visit(r));
	}
	list_if_any(r);
	/* Schedule even if the queue was listed already: in a forked child no sweep may be scheduled. */
	v->when = handed ? QUIESCE_SWEEPS_SOON : first || full ? QUIESCE_SWEEPS_LATER : QUIESCE_SWEEPS_NEVER;
}

/* I7: a callback has ended the thread: it counts as run, and the gate is left, for which a sweeper may wait with the lock. */
static void leave_ended(struct quiesce__retired_queue *r)
{
	quiesce_store_relaxed(&r->nr_run, r->nr_run + r->consuming); /* Relaxed: a statistic. */
	r->consuming = 0;
	if (!QUIESCE_MUTANT(hazptr_ended_inside))
		leave_gate(quiesce__self(), r);
}

/* I7: finish the visit of a thread that has ended; under the lock, which is released. */
static void finish_ended(const struct visit *v)
{
	struct quiesce__retired_queue *r = v->r;

	set_limit(r, next_visit(r));
	if (!QUIESCE_MUTANT(hazptr_ended_unlisted))
		list_if_any(r);
	quiesce__unlock(&r->lock);
	if (v->next && !QUIESCE_MUTANT(hazptr_ended_next_lost))
		quiesce__retired_hand_over(r, v->next);
	else
		quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

static void visit_ended(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;

	leave_ended(v->r);
	finish_ended(v);
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

static void step_callbacks(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;

	v->nr = run_ready(quiesce__self(), v->r, v->nr, RUNS_ALL, run);
}

static void step_ended(struct quiesce__run *run)
{
	struct visit *v = (struct visit *)run;

	leave_ended(v->r);
	quiesce__retired_step_end(v->r);
	quiesce__lock(&v->r->lock);
	finish_ended(v);
}

/* The next ready entry, of which there is one. */
static uintptr_t next_ready(struct quiesce__retired_queue *r)
{
	return quiesce_load_relaxed(quiesce__retired_entry(r, r->taken)); /* Relaxed: the owner's own. */
}

/* I8: reclaim a few ready objects.  free() needs neither run nor gate; a function that only frees memory, as free() does, no run. */
static void run_step(struct quiesce_tls_v1 *self, struct visit *v)
{
	struct quiesce__retired_queue *r = v->r;

	if (!(next_ready(r) & QUIESCE_RETIRED_PLAIN))
		v->nr = run_ready(self, r, STEP, RUNS_FREE, NULL);
	if (!v->nr || !nr_ready(r) || !enter_gate(self, r))
		return;
	if (is_plain(next_ready(r)))
		v->nr = run_ready(self, r, v->nr, RUNS_PLAIN, NULL);
	if (v->nr && nr_ready(r))
		quiesce__run(&v->run, step_callbacks, step_ended);
	leave_gate(self, r);
}

/* I9: make the visit without the lock.  True: that was all of the visit; else up to @v->nr ready objects, or a scan, are left. */
static bool step(struct visit *v)
{
	struct quiesce__retired_queue *r = v->r;
	struct quiesce_tls_v1 *self = quiesce__self();
	bool done = false;

	if ((self->state & QUIESCE_TLS_IN_HAZPTR) || is_in_heap(self) || !quiesce__helper_running() || !quiesce__retired_step_begin(r))
		return false;
	if (nr_ready(r) && quiesce_load_relaxed(&r->limit) && !is_full(r)) { /* Relaxed: I9. */
		run_step(self, v);
		done = !v->nr || !nr_ready(r);
		if (done) /* not 0: the last object still waits, so the queue stays listed, also if a callback has forked */
			set_limit(r, next_visit(r));
	}
	quiesce__retired_step_end(r);
	return done;
}

void quiesce__retired_visit(struct quiesce__retired_queue *r, struct hazptr_head *next)
{
	struct visit v;

	/* By hand: a compiler clears the whole structure by a slow instruction otherwise. */
	v.run.call = "call_hazptr_inline()";
	v.run.func = 0;
	v.run.named = NULL;
	v.run.back = NULL;
	v.r = r;
	v.next = next;
	v.nr = STEP;
	v.when = QUIESCE_SWEEPS_NEVER;
	if (r->consuming) { /* this thread holds the lock */
		r->max_queued = r->taken + QUIESCE_RETIRED_ENTRIES;
		quiesce_store_relaxed(&r->limit, r->max_queued); /* Relaxed: under the lock. */
		return;
	}
	if (!step(&v)) {
		if (!lock_own(r))
			return;
		quiesce__run(&v.run, visit, visit_ended);
		quiesce__unlock(&r->lock);
	}
	if (quiesce_unlikely(!quiesce__helper_running()) && v.when < QUIESCE_SWEEPS_LATER)
		v.when = QUIESCE_SWEEPS_LATER; /* a callback may have forked, and this may be the child */
	if (v.when != QUIESCE_SWEEPS_NEVER)
		quiesce__sweep_schedule(v.when);
}
