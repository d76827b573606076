/* SPDX-License-Identifier: MIT */
/* hazptr_sweep.c - what is left behind: by threads that retire no more, or because it was protected.
 *
 * I1. One sweeps at a time, and holds the lock until the callbacks have returned: so who waits for
 *     that lock, and for the lock of each queue, has waited for the callbacks that run now.
 * I2. What was gathered is in @ready or in @kept, and what was taken out counts as run: a fork waits until it is so.
 *
 * HP4  object queued, then limit read           | limit 0, fence, then queued read
 */
#include "retired.h"

#define SWEEP_NS 100000000u
#define SWEEP_MAX_NS 1600000000u
#define POLL_NS 1000000u
#define PAUSE_NS 1000000u
#define ROUNDS 8u

struct quiesce__sweep quiesce__sweep;

static bool lock_until(struct quiesce__lock *lock, uint64_t deadline)
{
	if (!deadline) {
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

static bool any_queued(void)
{
	bool any = false;

	quiesce__lock(&quiesce__sweep.lock);
	for (struct quiesce__retired *r = quiesce__sweep.rings; r && !any; r = r->next)
		any = quiesce__retired_waiting(r) != 0;
	quiesce__unlock(&quiesce__sweep.lock);
	return any;
}

bool quiesce__hazptr_left(void)
{
	/* Relaxed: CB9 and HP4 order them.  Who sweeps now has some, and may leave some. */
	return quiesce_load_relaxed(&quiesce__sweep.sweeping.word) || quiesce_load_relaxed(&quiesce__sweep.left) ||
	       quiesce_load_relaxed(&quiesce__sweep.keeps) || any_queued(); /* Relaxed: as above. */
}

bool quiesce__hazptr_all_done(uint64_t deadline)
{
	bool done;

	if (!lock_until(&quiesce__sweep.sweeping, deadline))
		return false;
	quiesce__lock(&quiesce__sweep.lock);
	/* Relaxed: as above; a lock that is held has somebody who runs callbacks. */
	done = !quiesce_load_relaxed(&quiesce__sweep.left) && !quiesce__sweep.kept && !quiesce__sweep.barriers;
	for (struct quiesce__retired *r = quiesce__sweep.rings; r && done; r = r->next)
		done = !quiesce__retired_waiting(r) && !quiesce_load_relaxed(&r->lock.word); /* Relaxed: as above. */
	quiesce__unlock(&quiesce__sweep.lock);
	quiesce__unlock(&quiesce__sweep.sweeping);
	return done;
}

/* Which owners have reclaimed since the last sweep: theirs are left alone. */
static void find_the_busy(void)
{
	quiesce__lock(&quiesce__sweep.lock);
	quiesce__sweep.any_busy = false;
	for (struct quiesce__retired *r = quiesce__sweep.rings; r; r = r->next) {
		uint64_t taken = quiesce_load_relaxed(&r->taken); /* Relaxed: a hint. */

		r->busy = taken != r->taken_swept && !quiesce_load_relaxed(&r->owner_gone); /* Relaxed: a hint. */
		r->taken_swept = taken;
		quiesce__sweep.any_busy |= r->busy;
	}
	quiesce__unlock(&quiesce__sweep.lock);
}

/* What is waiting in @r; if @all, after its owner is through with its callbacks.  False at @deadline. */
static bool gather_ring(struct quiesce__retired *r, bool all, uint64_t deadline)
{
	if (!all && (!quiesce__retired_waiting(r) || r->busy || !quiesce__trylock(&r->lock)))
		return true;
	if (all && !lock_until(&r->lock, deadline))
		return false;
	quiesce__gate_enter(&quiesce__sweep.running);
	quiesce__sweep.kept = quiesce__retired_drain(r, quiesce__sweep.kept);
	quiesce__gate_leave(&quiesce__sweep.running);
	r->taken_swept = r->taken;
	quiesce__unlock(&r->lock);
	return true;
}

/* Return to the system the queues of threads that have gone, if they are empty. */
static void free_rings(void)
{
	struct quiesce__retired **at = &quiesce__sweep.rings, *r, *gone = NULL;

	quiesce__lock(&quiesce__sweep.lock);
	while ((r = *at)) {
		if (quiesce_load_relaxed(&r->owner_gone) && !quiesce__retired_waiting(r)) { /* Relaxed: under the lock. */
			*at = r->next;
			r->next = gone;
			gone = r;
			quiesce__sweep.gone_queued += r->queued - r->again;
			quiesce__sweep.gone_run += r->run;
		} else {
			at = &r->next;
		}
	}
	quiesce__unlock(&quiesce__sweep.lock);
	while ((r = gone)) {
		gone = r->next;
		if (r->table)
			platform_pages_put(r->table, r->table_size * sizeof *r->table);
		platform_pages_put(r, sizeof *r);
	}
}

bool quiesce__sweep_begin(uint64_t deadline)
{
	if (!lock_until(&quiesce__sweep.sweeping, deadline))
		return false;
	quiesce__sweep.sweeper = quiesce__self();
	return true;
}

static bool sweep_try_begin(void)
{
	if (!quiesce__trylock(&quiesce__sweep.sweeping))
		return false;
	quiesce__sweep.sweeper = quiesce__self();
	return true;
}

void quiesce__sweep_end(void)
{
	quiesce_store_relaxed(&quiesce__sweep.keeps, quiesce__sweep.kept != NULL); /* Relaxed: the worker looks again. */
	quiesce__sweep.sweeper = NULL;
	free_rings();
	quiesce__unlock(&quiesce__sweep.sweeping);
}

/* Into the list of what is not yet known to be unprotected. */
void quiesce__sweep_keep(struct hazptr_head *list)
{
	struct hazptr_head *next;

	for (; list; list = next) {
		next = list->next;
		list->next = quiesce__sweep.kept;
		quiesce__sweep.kept = list;
	}
}

bool quiesce__sweep_gather(bool all, uint64_t deadline)
{
	bool gathered = true;
	struct quiesce__retired *first;

	quiesce__lock(&quiesce__sweep.lock);
	first = quiesce__sweep.rings;
	quiesce__unlock(&quiesce__sweep.lock);
	for (struct quiesce__retired *r = first; r && gathered; r = r->next)
		gathered = gather_ring(r, all, deadline);
	quiesce__gate_enter(&quiesce__sweep.running);
	quiesce__sweep_keep(quiesce__hazptr_take(&quiesce__sweep.left));
	quiesce__gate_leave(&quiesce__sweep.running);
	return gathered;
}

bool quiesce__sweep_once(void)
{
	struct quiesce__reclaim parts;

	if (!quiesce__sweep.kept)
		return true;
	quiesce__gate_enter(&quiesce__sweep.running);
	quiesce__hazptr_part(quiesce__sweep.kept, &parts);
	quiesce__sweep.kept = parts.kept; /* first: a fork that does not wait for the gate sees no object twice */
	quiesce__sweep.ready = parts.ready;
	quiesce__gate_leave(&quiesce__sweep.running);
	while (quiesce__sweep.ready) {
		quiesce__gate_enter(&quiesce__sweep.running);
		quiesce__sweep.ran += quiesce__hazptr_run_list(&quiesce__sweep.ready, QUIESCE_SWEEP_CHUNK);
		quiesce__gate_leave(&quiesce__sweep.running);
	}
	return !quiesce__sweep.kept;
}

/* Callbacks may have retired more: a list of which each retires the next is not to take a sweep each.  But one that
 * retires itself again is not to keep the worker.  True if the last round still ran something. */
static bool sweep_some_rounds(void)
{
	bool helped = true;

	find_the_busy();
	for (uint32_t i = 0; i < ROUNDS && helped; i++) {
		uint64_t ran = quiesce__sweep.ran;

		quiesce__sweep_gather(false, 0);
		quiesce__sweep_once();
		helped = quiesce__sweep.ran != ran;
	}
	return helped;
}

/* By the worker.  How long until the next: whatever is protected for long is looked at less often. */
static uint64_t sweep(void)
{
	uint64_t ran;
	bool goes_on;

	if (!sweep_try_begin())
		return SWEEP_NS;
	ran = quiesce__sweep.ran;
	goes_on = sweep_some_rounds();
	ran = quiesce__sweep.ran - ran;
	quiesce__sweep_end();
	if (goes_on)
		return PAUSE_NS;
	if (ran || quiesce__sweep.any_busy)
		return SWEEP_NS;
	return quiesce__sweep.sweep_ns < SWEEP_MAX_NS && quiesce__sweep.sweep_ns >= SWEEP_NS ? 2 * quiesce__sweep.sweep_ns : SWEEP_NS;
}

void quiesce__hazptr_sweep_yourself(void)
{
	if ((quiesce__self()->state & QUIESCE_TLS_CALLBACKS) || !sweep_try_begin())
		return;
	sweep_some_rounds();
	quiesce__sweep_end();
}

uint64_t quiesce__hazptr_sweep(uint64_t now)
{
	if (!quiesce__hazptr_left()) {
		quiesce__sweep.sweep_at = 0;
		return PLATFORM_FOREVER;
	}
	if (!quiesce__sweep.sweep_at) {
		quiesce__sweep.sweep_ns = SWEEP_NS;
		quiesce__sweep.sweep_at = now + SWEEP_NS;
	}
	if (now < quiesce__sweep.sweep_at)
		return quiesce__sweep.sweep_at - now;
	quiesce__sweep.sweep_ns = sweep();
	quiesce__sweep.sweep_at = now + quiesce__sweep.sweep_ns;
	return quiesce__hazptr_left() ? quiesce__sweep.sweep_ns : PLATFORM_FOREVER;
}

/* ---- statistics; relaxed throughout ---- */

void quiesce__hazptr_stats(struct quiesce_stats *stats)
{
	uint64_t run = quiesce_load_relaxed(&quiesce__sweep.run);   /* Relaxed: as above. */
	uint64_t in = quiesce_load_relaxed(&quiesce__sweep.pushed); /* Relaxed: as above. */

	quiesce__lock(&quiesce__sweep.lock);
	run += quiesce__sweep.gone_run;
	in += quiesce__sweep.gone_queued;
	for (struct quiesce__retired *r = quiesce__sweep.rings; r; r = r->next) {
		run += quiesce_load_relaxed(&r->run); /* Relaxed: first, so that no object is missed in the difference. */
		in -= quiesce_load_relaxed(&r->again);  /* Relaxed: as above. */
		in += quiesce_load_relaxed(&r->queued); /* Relaxed: as above. */
	}
	quiesce__unlock(&quiesce__sweep.lock);
	stats->hazptr_retired = in;
	stats->hazptr_reclaimed = run;
}

/* ---- fork ---- */

bool quiesce__retired_paused(void)
{
	bool paused;

	quiesce__lock(&quiesce__sweep.lock);
	/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
	paused = !quiesce_load_acquire(FK1, &quiesce__sweep.running);
	for (struct quiesce__retired *r = quiesce__sweep.rings; r && paused; r = r->next)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		paused = !quiesce_load_acquire(FK1, &r->running);
	for (struct quiesce__barrier *b = quiesce__sweep.barriers; b && paused; b = b->next)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		paused = !quiesce_load_acquire(FK1, &b->running);
	quiesce__unlock(&quiesce__sweep.lock);
	return paused;
}

void quiesce__retired_fork_prepare(void)
{
	quiesce__lock(&quiesce__sweep.lock);
}

void quiesce__retired_fork_parent(void)
{
	quiesce__unlock(&quiesce__sweep.lock);
}

/* What others were about to run is left behind; what they were running counts as done. */
void quiesce__retired_fork_child(void)
{
	struct quiesce_tls_v1 *self = quiesce__self();

	quiesce__lock_reset(&quiesce__sweep.lock);
	if (quiesce__sweep.sweeper != self) {
		quiesce__lock_reset(&quiesce__sweep.sweeping);
		quiesce__sweep.sweeper = NULL;
		quiesce__sweep.run += quiesce__sweep.running; /* and was not paused: it is in a callback */
		quiesce__sweep.running = 0;
		quiesce__sweep_keep(quiesce__sweep.ready);
		quiesce__sweep.ready = NULL;
	}
	quiesce__barriers_fork_child();
	quiesce__sweep.keeps = quiesce__sweep.kept != NULL;
	for (struct quiesce__retired *r = quiesce__sweep.rings; r; r = r->next) {
		if (r == self->retired)
			continue;
		quiesce__lock_reset(&r->lock);
		r->running = r->consuming = 0;
		r->limit = 0; /* the worker is gone: the next object makes its owner look */
		r->run = r->taken - r->again - r->swept; /* with what was running */
		r->owner_gone = 1;
	}
	if (!self->retired)
		return;
	if (!self->retired->consuming)
		quiesce__lock_reset(&self->retired->lock); /* a sweeper held it */
	self->retired->limit = 0; /* as above */
}
