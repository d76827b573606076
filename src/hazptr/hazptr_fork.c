/* SPDX-License-Identifier: MIT */
/* hazptr_fork.c - retired objects in the child of a fork; their number.
 *
 * I1. In the child only queues that are not empty are listed, nothing is scheduled, and each queue has the
 *     limit 0: so the next object that is retired causes a sweep of everything.
 *
 * FK1  see gate.c
 */
#include "hazptr_retired.h"

/* ---- statistics; relaxed throughout ---- */

void quiesce__hazptr_stats(struct quiesce_stats *stats)
{
	uint64_t run = quiesce_load_relaxed(&quiesce__sweep.reclaimed);   /* Relaxed: a statistic. */
	uint64_t in = quiesce_load_relaxed(&quiesce__sweep.pushed); /* Relaxed: a statistic. */

	quiesce__lock(&quiesce__sweep.lists_lock);
	run += quiesce__sweep.gone_run;
	in += quiesce__sweep.gone_queued;
	for (struct quiesce__retired_queue *r = quiesce__sweep.queues; r; r = r->next) {
		run += quiesce_load_relaxed(&r->nr_run); /* Relaxed: read first, so that the difference misses no object. */
		in += quiesce_load_relaxed(&r->queued); /* Relaxed: a statistic. */
	}
	quiesce__unlock(&quiesce__sweep.lists_lock);
	stats->hazptr_retired = in;
	stats->hazptr_reclaimed = run;
}

/* ---- fork ---- */

bool quiesce__retired_paused(void)
{
	bool paused;

	quiesce__lock(&quiesce__sweep.lists_lock);
	/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
	paused = !quiesce_load_acquire(FK1, &quiesce__sweep.in_gate);
	for (struct quiesce__retired_queue *r = quiesce__sweep.queues; r && paused; r = r->next)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		paused = !quiesce_load_acquire(FK1, &r->in_gate);
	for (struct quiesce__barrier *b = quiesce__sweep.barriers; b && paused; b = b->next)
		/* FK1: acquire, pairs with FK1 in quiesce__gate_leave() */
		paused = !quiesce_load_acquire(FK1, &b->in_gate);
	quiesce__unlock(&quiesce__sweep.lists_lock);
	return paused;
}

void quiesce__retired_fork_prepare(void)
{
	quiesce__lock(&quiesce__sweep.lists_lock);
}

void quiesce__retired_fork_parent(void)
{
	quiesce__unlock(&quiesce__sweep.lists_lock);
}

/* The number of entries whose objects have gone to a list. */
static uint64_t nr_holes(struct quiesce__retired_queue *r)
{
	uint64_t nr = 0;

	for (uint64_t i = r->taken; i != r->queued; i++)
		nr += !*quiesce__retired_entry(r, i);
	return nr;
}

/* Make @r, whose owner the child does not have, an orphan; the callback that its owner was running
 * counts as run. */
static void orphan(struct quiesce__retired_queue *r)
{
	quiesce__lock_reset(&r->lock, false);
	r->in_gate = r->consuming = r->stepping = 0;
	r->nr_run = r->taken + nr_holes(r) - r->swept; /* including the callback that was running */
	r->owner_gone = 1;
	/* The owner may have been taking a proxy: as that is unknown, the proxies are abandoned. */
	r->proxies = (struct quiesce__proxies){ 0 };
	r->next_orphan = quiesce__sweep.orphans;
	quiesce__sweep.orphans = r;
}

static void reinit_queue(struct quiesce__retired_queue *r, const struct quiesce_tls_v1 *survivor)
{
	if (!survivor || r != survivor->retired)
		orphan(r);
	else if (!r->consuming || r->stepping)
		quiesce__lock_reset(&r->lock, false); /* a sweeper of the parent held it */
	r->in_recheck = false;
	r->revoked = 0;
	r->limit = 0;
	if (r->ready - r->taken > QUIESCE_RETIRED_ENTRIES) /* a sweeper of the parent was draining it */
		r->ready = r->taken;
	r->listed = quiesce__retired_nr_waiting(r) != 0;
	if (!r->listed)
		return;
	r->next_listed = quiesce__sweep.to_visit;
	quiesce__sweep.to_visit = r;
}

/* Sweep again what other threads were about to run; callbacks that they were running count as run. */
void quiesce__retired_fork_child(void)
{
	const struct quiesce_tls_v1 *survivor = quiesce__fork_survivor;
	struct quiesce__sweep *s = &quiesce__sweep;
	bool sweeps = survivor && s->sweeper == survivor;

	quiesce__lock_reset(&s->lists_lock, false);
	quiesce__lock_reset(&s->sweeper_lock, sweeps);
	if (!sweeps) {
		s->sweeper = NULL;
		s->reclaimed += s->in_gate; /* still in the gate: its callback counts as run */
		s->in_gate = 0;
	}
	s->wanted = s->scheduled = 0;
	quiesce__proxies_fork_child();
	quiesce__barriers_fork_child();
	for (uint32_t i = 0; i < QUIESCE_NR_SWEEP_SHARDS; i++)
		s->shard[i].listed = NULL;
	s->to_visit = s->to_recheck = s->orphans = NULL;
	for (struct quiesce__retired_queue **at = &s->queues; *at; at = &(*at)->next) {
		(*at)->at = at; /* a fork without handlers may have interrupted a change of the link */
		reinit_queue(*at, survivor);
	}
	s->has_objects = s->fresh || s->ready || s->kept || s->retired_again || s->to_visit;
}

void quiesce__retired_fork_survivor(struct quiesce_tls_v1 *self)
{
	if (quiesce__fork_survivor != self) /* another thread entered first, and has made its queue an orphan */
		self->retired = NULL;
}
