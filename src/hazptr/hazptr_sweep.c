/* SPDX-License-Identifier: MIT */
/* hazptr_sweep.c - sweep objects that were handed over, that threads queued and then retired no more, or that
 * were protected at the last scan.
 *
 * SW1. There is one sweeper at a time, and it holds the lock while callbacks run: a caller that has waited for
 *      that lock, and for the step and the lock of each listed queue, has waited for the callbacks that were running.
 * SW2. Gathered objects are in @fresh, @ready, @kept or @retired_again, and removed objects count as run: a fork
 *      waits until that holds.
 * SW3. A drained queue is checked once more after the fence of the scan, and listed if it is not empty, or if
 *      its owner has taken objects meanwhile: the owner may be running them without having listed the queue,
 *      so SW1 needs its lock.
 * SW4. Only listed queues are visited.  A round without visits, for objects that callbacks retire, checks the
 *      lists of the shards, and the sweeper's own queue.
 *
 * HP4  object queued, then limit read           | limit 0, fence, then queued read
 * HP6  object queued, then the lock found taken | lock released, fence, then queued read
 * HP7  step begun, then revoked read            | steps revoked, then stepping read
 * HP3  see hazptr_queue.c
 */
#include "hazptr_retired.h"

#include <string.h>

#define POLL_NS 1000000u
#define STEP_POLL_NS 50000u
#if defined(QUIESCE_SIM)
#define SCAN_MAX 4u
#define NR_SEEN 4u
#else
#define SCAN_MAX 4096u /* objects of one scan: few enough to stay in a cache until they are reclaimed */
#define NR_SEEN 256u
#endif

struct quiesce__sweep quiesce__sweep;

/* ---- the sweeper ---- */

static bool lock_until(struct quiesce__lock *lock, uint64_t deadline)
{
	if (deadline == QUIESCE_NO_DEADLINE) {
		quiesce__lock(lock);
		return true;
	}
	while (!quiesce__trylock(lock)) {
		uint32_t never = 0;

		if (platform_now_ns() >= deadline)
			return false;
		platform_futex_wait(&never, 0, POLL_NS);
	}
	return true;
}

/* Become the sweeper.  The helper yields to callers that wait here. */
bool quiesce__sweep_begin(uint64_t deadline)
{
	bool locked;

	quiesce_fetch_add_relaxed(&quiesce__sweep.wanted, 1u); /* Relaxed: a hint. */
	locked = lock_until(&quiesce__sweep.sweeper_lock, deadline);
	quiesce_fetch_add_relaxed(&quiesce__sweep.wanted, (uint32_t)-1); /* Relaxed: a hint. */
	if (locked)
		quiesce__sweep.sweeper = quiesce__self();
	return locked;
}

bool quiesce__sweep_try_begin(void)
{
	if (!quiesce__trylock(&quiesce__sweep.sweeper_lock))
		return false;
	quiesce__sweep.sweeper = quiesce__self();
	return true;
}

void quiesce__sweep_end(void)
{
	struct quiesce__sweep *s = &quiesce__sweep;

	/* Relaxed: a hint. */
	quiesce_store_relaxed(&s->has_objects, s->fresh || s->ready || s->kept || s->retired_again || s->to_visit || s->to_recheck);
	s->sweeper = NULL;
	quiesce__retired_free_orphans();
	quiesce__unlock(&s->sweeper_lock);
}

bool quiesce__is_sweeper(void)
{
	return quiesce__sweep.sweeper == quiesce__self();
}

void quiesce__sweep_ended(struct quiesce__run *run)
{
	quiesce__hazptr_list_ended(run);
	quiesce__gate_leave(&quiesce__sweep.in_gate);
	quiesce__sweep_end();
	quiesce__sweep_schedule(QUIESCE_SWEEPS_SOON);
}

bool quiesce__sweep_any_handed_over(void)
{
	bool any = false;

	for (uint32_t i = 0; i < QUIESCE_NR_SWEEP_SHARDS && !any; i++)
		any = quiesce_load_relaxed(&quiesce__sweep.shard[i].handed_over) != NULL; /* Relaxed: HP5 orders it, or a hint. */
	return any;
}

bool quiesce__sweep_any_listed(void)
{
	bool any = false;

	for (uint32_t i = 0; i < QUIESCE_NR_SWEEP_SHARDS && !any; i++)
		any = quiesce_load_relaxed(&quiesce__sweep.shard[i].listed) != NULL; /* Relaxed: HP5 orders it, or a hint. */
	return any;
}

bool quiesce__hazptr_any_left(void)
{
	/* Relaxed: hints.  A sweeper that is at work has objects, and may leave some. */
	return quiesce_load_relaxed(&quiesce__sweep.sweeper_lock.word) || quiesce_load_relaxed(&quiesce__sweep.has_objects) ||
	       quiesce__sweep_any_handed_over() || quiesce__sweep_any_listed();
}

void quiesce__sweep_add(struct hazptr_head **to, struct hazptr_head *list)
{
	struct hazptr_head *next;

	if (!*to) {
		*to = list;
		return;
	}
	for (; list; list = next) {
		next = list->next;
		list->next = *to;
		*to = list;
	}
}

/* Move the objects of @list to @fresh, to be scanned for again. */
static void move_to_fresh(struct hazptr_head **list)
{
	quiesce__gate_enter(&quiesce__sweep.in_gate);
	quiesce__sweep_add(&quiesce__sweep.fresh, *list);
	*list = NULL;
	quiesce__gate_leave(&quiesce__sweep.in_gate);
}

/* ---- objects that callbacks retire repeatedly ---- */

/* Addresses of objects that came through the sweeper's own queue in this slice; a later address replaces an
 * earlier one. */
static uintptr_t seen[NR_SEEN];
static bool any_seen;

void quiesce__sweep_new_slice(void)
{
	if (any_seen)
		memset(seen, 0, sizeof seen);
	any_seen = false;
	if (quiesce__sweep.retired_again)
		move_to_fresh(&quiesce__sweep.retired_again);
}

/* Record @address; true if it was recorded before, in this slice. */
static bool record_seen(uintptr_t address)
{
	uintptr_t *entry = &seen[quiesce__hash_address(address) % NR_SEEN];
	bool before = *entry == address;

	*entry = address;
	any_seen = true;
	return before;
}

/* ---- gathering ---- */

/* Gather objects that callbacks in this thread have retired. */
static void gather_own(struct quiesce__retired_queue *r)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	struct hazptr_head *head;

	if (!r || !quiesce__retired_nr_waiting(r) || !quiesce__trylock(&r->lock))
		return;
	quiesce__gate_enter(&s->in_gate);
	quiesce_store_relaxed(&r->limit, 0); /* Relaxed: this thread is the owner. */
	while ((head = quiesce__retired_drain_one(r))) {
		struct hazptr_head **to = record_seen((uintptr_t)head) ? &s->retired_again : &s->fresh;

		head->next = *to;
		*to = head;
	}
	quiesce__gate_leave(&s->in_gate);
	quiesce__unlock(&r->lock);
}

void quiesce__sweep_gather(void)
{
	struct quiesce__sweep *s = &quiesce__sweep;

	gather_own(quiesce__self()->retired);
	for (uint32_t i = 0; i < QUIESCE_NR_SWEEP_SHARDS; i++) {
		if (!quiesce_load_relaxed(&s->shard[i].handed_over)) /* Relaxed: a pusher schedules a sweep. */
			continue;
		quiesce__gate_enter(&s->in_gate);
		quiesce__sweep_add(&s->fresh, quiesce__hazptr_take(&s->shard[i].handed_over));
		quiesce__gate_leave(&s->in_gate);
	}
}

static void visit_later(struct quiesce__retired_queue *r)
{
	r->next_listed = quiesce__sweep.to_visit;
	quiesce__sweep.to_visit = r;
}

static void take_listed(void)
{
	for (uint32_t i = 0; i < QUIESCE_NR_SWEEP_SHARDS; i++) {
		struct quiesce__sweep_shard *shard = &quiesce__sweep.shard[i];
		struct quiesce__retired_queue *r, *next;

		if (!quiesce_load_relaxed(&shard->listed)) /* Relaxed: a thread that lists a queue schedules a sweep. */
			continue;
		/* HP3: full, pairs with HP3 in quiesce__retired_list() */
		for (r = quiesce_xchg(HP3, &shard->listed, NULL); r; r = next) {
			next = r->next_listed;
			visit_later(r);
		}
	}
}

/* Check whether the owner has reclaimed a batch since the last visit, and record that for the next one; if so, the queue is not
 * drained. */
static bool check_busy(struct quiesce__retired_queue *r)
{
	uint64_t taken = quiesce_load_relaxed(&r->taken); /* Relaxed: a hint. */
	bool fast = taken - r->taken_swept >= quiesce_load_relaxed(&r->batch); /* Relaxed: a hint. */
	bool busy = fast && !quiesce_load_relaxed(&r->owner_gone); /* Relaxed: a hint. */

	r->taken_swept = taken;
	quiesce__sweep.any_busy |= busy;
	return busy;
}

static void drain_to(struct quiesce__retired_queue *r, struct hazptr_head **list)
{
	struct hazptr_head *head;

	if (quiesce__retired_nr_waiting(r) && !QUIESCE_MUTANT(hazptr_drain_unmarked))
		quiesce_store_relaxed(&r->limit, 0); /* Relaxed: HP4's fence follows before any thread relies on it. */
	while ((head = quiesce__retired_drain_one(r))) {
		head->next = *list;
		*list = head;
	}
}

static void drain(struct quiesce__retired_queue *r)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	uint64_t swept = r->swept;

	quiesce__gate_enter(&s->in_gate);
	drain_to(r, &s->fresh);
	quiesce__gate_leave(&s->in_gate);
	quiesce_fetch_add_relaxed(&quiesce__counters.hazptr_swept, r->swept - swept); /* Relaxed: a statistic. */
	r->taken_swept = r->taken;
	r->listed = false;
	if (r->in_recheck)
		return;
	r->in_recheck = true;
	r->next_recheck = s->to_recheck;
	s->to_recheck = r;
}

/* ---- steps of owners, which take no lock ---- */

/* Make the owners of the queues to visit take the lock. */
static void revoke_all(void)
{
	if (!quiesce__sweep.to_visit)
		return;
	for (struct quiesce__retired_queue *r = quiesce__sweep.to_visit; r; r = r->next_listed)
		quiesce_store_relaxed(&r->revoked, 1); /* Relaxed: the fence follows. */
	/* HP7: pairs with HP7 in quiesce__retired_step_begin() */
	quiesce_fence_heavy(HP7);
}

static void allow(struct quiesce__retired_queue *r)
{
	/* HP7: release, pairs with HP7 in quiesce__retired_step_begin() */
	quiesce_store_release(HP7, &r->revoked, 0);
}

static bool is_stepping(const struct quiesce__retired_queue *r)
{
	/* HP7: acquire, pairs with HP7 in quiesce__retired_step_end() */
	return quiesce_load_acquire(HP7, &r->stepping);
}

static bool wait_for_step(const struct quiesce__retired_queue *r, uint64_t deadline)
{
	while (is_stepping(r)) {
		uint32_t never = 0;

		if (deadline != QUIESCE_NO_DEADLINE && platform_now_ns() >= deadline)
			return false;
		platform_futex_wait(&never, 0, STEP_POLL_NS);
	}
	return true;
}

/* Drain @r; with @all, wait until its owner runs no callbacks.  False at @deadline.  Unless it is drained, it is visited later. */
static bool visit(struct quiesce__retired_queue *r, bool all, uint64_t deadline)
{
	if (!all && (check_busy(r) || is_stepping(r) || !quiesce__trylock(&r->lock))) {
		visit_later(r);
		return true;
	}
	if (all && (!wait_for_step(r, deadline) || !lock_until(&r->lock, deadline))) {
		visit_later(r);
		return false;
	}
	drain(r);
	quiesce__unlock(&r->lock);
	return true;
}

/* True if the owner of @r has taken an object since the queue was drained; it may still be in its callback. */
static bool owner_has_taken(const struct quiesce__retired_queue *r)
{
	/* Relaxed: the lock decides. */
	return quiesce_load_relaxed(&r->taken) != r->taken_swept && !QUIESCE_MUTANT(hazptr_owner_unawaited);
}

/* An owner that pushed meanwhile may have seen the old limit or the taken lock, so check its queue again (SW3).
 * If the owner holds the lock now, it is about to list the queue, or reclaims the object that it pushed: then
 * the queue stays in @to_recheck. */
static void recheck_drained_queue(struct quiesce__retired_queue *r, bool wait, uint64_t deadline)
{
	struct quiesce__sweep *s = &quiesce__sweep;

	r->in_recheck = false;
	if (!quiesce__retired_nr_waiting(r) && !owner_has_taken(r))
		return;
	if (wait ? !lock_until(&r->lock, deadline) : !quiesce__trylock(&r->lock)) {
		r->in_recheck = true;
		r->next_recheck = s->to_recheck;
		s->to_recheck = r;
		return;
	}
	if (!r->listed) { /* listed even if it is empty: its owner may just be finding the lock taken (HP6) */
		r->listed = true;
		visit_later(r);
	}
	quiesce__unlock(&r->lock);
}

static void recheck_drained(bool wait, uint64_t deadline)
{
	struct quiesce__retired_queue *r = quiesce__sweep.to_recheck, *next;

	quiesce__sweep.to_recheck = NULL;
	if (!r || QUIESCE_MUTANT(hazptr_check_once))
		return;
	/* HP6: pairs with HP6 in lock_own() */
	quiesce_fence_full(HP6);
	for (; r; r = next) {
		next = r->next_recheck;
		recheck_drained_queue(r, wait, deadline);
	}
}

bool quiesce__sweep_visit(bool all, uint64_t deadline)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	struct quiesce__retired_queue *r, *next;
	bool in_time = true;

	if (s->kept)
		move_to_fresh(&s->kept);
	s->any_busy = false;
	recheck_drained(all, deadline);
	take_listed();
	revoke_all();
	r = s->to_visit;
	s->to_visit = NULL;
	for (; r; r = next) {
		next = r->next_listed;
		in_time = visit(r, all, in_time ? deadline : QUIESCE_DEADLINE_PAST) && in_time;
		allow(r);
		quiesce__count(hazptr_queues_visited);
	}
	return in_time;
}

/* ---- scanning ---- */

/* Take up to SCAN_MAX objects from @fresh. */
static struct hazptr_head *take_chunk(void)
{
	struct hazptr_head *first = quiesce__sweep.fresh, *last = first;

	for (uint32_t n = 1; last && n < SCAN_MAX; n++)
		last = last->next;
	quiesce__sweep.fresh = NULL;
	if (last) {
		quiesce__sweep.fresh = last->next;
		last->next = NULL;
	}
	return first;
}

bool quiesce__sweep_scan(void)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	struct quiesce__reclaim parts;
	bool some = s->fresh != NULL;

	if (some) {
		quiesce__gate_enter(&s->in_gate);
		quiesce__hazptr_partition(take_chunk(), &parts);
		quiesce__sweep_add(&s->kept, parts.kept); /* first: a fork that does not wait for the gate finds no object twice */
		quiesce__sweep_add(&s->ready, parts.ready);
		quiesce__gate_leave(&s->in_gate);
	}
	recheck_drained(false, QUIESCE_NO_DEADLINE);
	return some;
}

bool quiesce__sweep_run(uint64_t deadline)
{
	struct quiesce__sweep *s = &quiesce__sweep;

	if (s->ready)
		quiesce__helper_begin_callbacks();
	while (s->ready) {
		quiesce__gate_enter(&s->in_gate);
		s->callbacks_run += quiesce__hazptr_run_list(&s->ready, QUIESCE_SWEEP_CHUNK);
		quiesce__gate_leave(&s->in_gate);
		if (s->ready && platform_now_ns() >= deadline)
			return false;
	}
	return true;
}

/* True if every queue is empty, and no owner runs callbacks.  Called by the sweeper. */
static bool queues_done(void)
{
	bool done = true;

	take_listed();
	for (struct quiesce__retired_queue *r = quiesce__sweep.to_visit; r && done; r = r->next_listed)
		done = !quiesce__retired_nr_waiting(r) && !is_stepping(r) && !quiesce_load_relaxed(&r->lock.word); /* Relaxed: a hint. */
	return done;
}

bool quiesce__hazptr_check_all_done(uint64_t deadline)
{
	struct quiesce__sweep *s = &quiesce__sweep;
	bool done;

	if (!quiesce__sweep_begin(deadline))
		return false;
	done = queues_done() && !quiesce__sweep_any_handed_over() && !s->to_recheck && !s->kept && !s->fresh && !s->ready &&
	       !s->retired_again;
	quiesce__lock(&s->lists_lock);
	done = done && !s->barriers;
	quiesce__unlock(&s->lists_lock);
	if (done) { /* leave nothing to visit; an object may have been retired just now */
		done = quiesce__sweep_visit(true, QUIESCE_DEADLINE_PAST); /* false: an owner still runs callbacks */
		done = !quiesce__sweep_scan() && done;
	}
	quiesce__sweep_end();
	if (done)
		quiesce__helper_wake();
	return done;
}
