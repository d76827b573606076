/* SPDX-License-Identifier: MIT */
/* hazptr_queue.c - queues of retired objects: their owners, and how the sweeper finds the queues that are not
 * empty.
 *
 * I1. A queue is in one list at a time: that of its shard, or that of the sweeper.  That changes under the
 *     queue's lock.
 * I2. The queue of a thread that has exited is an orphan, with its objects, until another thread that retires
 *     adopts it, or the sweeper finds it empty and not listed, and frees it.
 *
 * HP3  queue listed | list taken
 */
#include "hazptr_retired.h"

static struct quiesce__retired_queue *adopt(void)
{
	struct quiesce__retired_queue *r;

	if (!quiesce_load_relaxed(&quiesce__sweep.orphans)) /* Relaxed: a hint. */
		return NULL;
	quiesce__lock(&quiesce__sweep.lists_lock);
	r = quiesce__sweep.orphans;
	if (r) {
		quiesce_store_relaxed(&quiesce__sweep.orphans, r->next_orphan); /* Relaxed: under the lock. */
		quiesce_store_relaxed(&r->owner_gone, 0); /* Relaxed: under the lock. */
	}
	quiesce__unlock(&quiesce__sweep.lists_lock);
	return r;
}

static void add_queue(struct quiesce__retired_queue *r)
{
	quiesce__gate_expect_owner();
	quiesce__lock(&quiesce__sweep.lists_lock);
	r->shard = quiesce__sweep.nr_made++ % QUIESCE_NR_SWEEP_SHARDS;
	r->next = quiesce__sweep.queues;
	if (r->next)
		r->next->at = &r->next;
	r->at = &quiesce__sweep.queues;
	quiesce__sweep.queues = r;
	quiesce__unlock(&quiesce__sweep.lists_lock);
}

QUIESCE_COLD struct quiesce__retired_queue *quiesce__retired_new(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired_queue *r;

	if (!quiesce__may_have_queue(self))
		return NULL;
	r = adopt();
	if (!r) {
		r = platform_pages_get(sizeof *r);
		if (!r)
			return NULL;
		r->max_queued = QUIESCE_RETIRED_ENTRIES;
		add_queue(r);
	}
	r->own_min = r->own_max = 0;
	quiesce_store_relaxed(&r->batch, quiesce__batch_min(r)); /* Relaxed: sweepers read it as a hint. */
	self->retired = r;
	return r;
}

void quiesce__retired_list(struct quiesce__retired_queue *r)
{
	struct quiesce__sweep_shard *shard = &quiesce__sweep.shard[r->shard];
	struct quiesce__retired_queue *old = quiesce_load_relaxed(&shard->listed); /* Relaxed: the exchange decides. */

	r->listed = true;
	do
		r->next_listed = old;
	/* HP3: full, pairs with HP3 in take_listed() */
	while (!quiesce_cmpxchg(HP3, &shard->listed, &old, r));
}

struct hazptr_head *quiesce__retired_drain_one(struct quiesce__retired_queue *r)
{
	uintptr_t item = quiesce__retired_take(r, r->taken + quiesce__retired_nr_waiting(r));

	if (item)
		r->swept++;
	else
		r->ready = r->taken, r->kept = 0;
	return (struct hazptr_head *)(item & ~QUIESCE_RETIRED_BITS);
}

static QUIESCE_COLD void grow_table(struct quiesce__retired_queue *r)
{
	uint32_t size = r->table ? r->table_size : 2 * QUIESCE_HAZARDS_SMALL;

	if (r->table)
		platform_pages_put(r->table, r->table_size * sizeof *r->table);
	size *= 4;
	r->table = platform_pages_get(size * sizeof *r->table);
	r->table_size = r->table_used = r->table ? size : 0;
}

/* A large table takes long to clear: use only as much of it as the next scan needs if it finds as many
 * addresses as this one. */
void quiesce__retired_fit_table(struct quiesce__retired_queue *r, const struct quiesce__hazptr_scan *set, bool many)
{
	uint32_t wanted = 4 * set->nr;

	if (many && r->table_used == r->table_size) {
		grow_table(r);
		return;
	}
	if (many)
		wanted = r->table_size;
	for (r->table_used = r->table_size; r->table_used / 2 >= wanted && r->table_used > 2 * QUIESCE_HAZARDS_SMALL;)
		r->table_used /= 2;
}

/* A free() in a step has ended the thread, or a function that had to do no more: leave the gate, and end the step; the object counts as
 * run.  With the limit 0 the next owner visits the queue at its first object, and not only when it is full: objects that the free()
 * retired have raised the limit. */
static void end_step(struct quiesce_tls_v1 *self, struct quiesce__retired_queue *r)
{
	if (quiesce_likely(!r->stepping) || QUIESCE_MUTANT(hazptr_ended_stepping))
		return;
	self->state &= ~(QUIESCE_TLS_IN_HAZPTR | QUIESCE_TLS_IN_HEAP);
	quiesce_store_relaxed(&r->nr_run, r->nr_run + r->consuming); /* Relaxed: a statistic. */
	r->consuming = 0;
	if (r->in_gate)
		quiesce__gate_leave(&r->in_gate);
	quiesce_store_relaxed(&r->limit, 0); /* Relaxed: no sweeper drains the queue during a step. */
	quiesce__retired_step_end(r);
}

/* The thread exits and gives up its queue.  If the queue is not empty it is listed already, or the sweeper is
 * about to list it. */
void quiesce__hazptr_thread_exit(struct quiesce_tls_v1 *self)
{
	struct quiesce__retired_queue *r = self->retired;

	if (!r)
		return;
	self->retired = NULL;
	end_step(self, r);
	quiesce_fetch_add_relaxed(&quiesce__sweep.bytes, r->bytes); /* Relaxed: a statistic. */
	r->bytes = 0;
	quiesce__proxies_leave(&r->proxies);
	quiesce__lock(&quiesce__sweep.lists_lock);
	quiesce_store_relaxed(&r->owner_gone, 1); /* Relaxed: under the lock. */
	r->next_orphan = quiesce__sweep.orphans;
	quiesce_store_relaxed(&quiesce__sweep.orphans, r); /* Relaxed: under the lock. */
	quiesce__unlock(&quiesce__sweep.lists_lock);
}

/* The caller holds the lock of the list of queues. */
static void remove_queue(struct quiesce__retired_queue *r)
{
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	quiesce__sweep.gone_queued += r->queued;
	quiesce__sweep.gone_run += r->nr_run;
}

void quiesce__retired_free_orphans(void)
{
	struct quiesce__retired_queue **at = &quiesce__sweep.orphans, *r, *gone = NULL;

	if (!quiesce_load_relaxed(at)) /* Relaxed: a hint. */
		return;
	quiesce__lock(&quiesce__sweep.lists_lock);
	while ((r = *at)) {
		if (r->listed || r->in_recheck || quiesce__retired_nr_waiting(r)) {
			at = &r->next_orphan;
			continue;
		}
		quiesce_store_relaxed(at, r->next_orphan); /* Relaxed: under the lock. */
		remove_queue(r);
		r->next_orphan = gone;
		gone = r;
	}
	quiesce__unlock(&quiesce__sweep.lists_lock);
	while ((r = gone)) {
		gone = r->next_orphan;
		if (r->table)
			platform_pages_put(r->table, r->table_size * sizeof *r->table);
		platform_pages_put(r, sizeof *r);
	}
}
