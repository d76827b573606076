/* SPDX-License-Identifier: MIT */
/* queue.c - queues of retired objects: allocation, lists, freeing of ready objects, the sum of garbage, statistics.
 *
 * I1. The process-wide sum of garbage is the total of the shares of all queues (@share), and of the bytes that threads without a queue
 *     have spilled.  When a queue is freed its share is subtracted, so nothing of it stays in the sum, whatever was not reported.
 * I2. A thread that reclaims reports afterwards; an owner that queues reports at most one quantum (report_bytes) later.  A report
 *     exchanges the share for the bytes that wait in the queue, and is repeated if fewer bytes wait by then (GB1).  So a share exceeds
 *     the bytes that wait by at most one quantum, which its owner has freed and not reported yet; and an owner that frees its last object
 *     reports in any case, so the share of an empty queue is 0.
 * I3. An object of kfree_rcu() counts in @taken before it is freed, so that the child of a fork does not free it again, and in @freed
 *     after free() has returned.  A queue whose two counts differ stays unfreed, so rcu_barrier() makes a pass, which waits for the lock
 *     of the queue, and so for an owner that is in free().
 *
 * GB1  bytes queued or reclaimed, then the share | the share, then the bytes that wait read again
 * CB2, CB3, CB4, CB6  see pass.c
 * CB5  see spill.c
 */
#include "queue.h"

#include "reclaim.h"
#include "runtime/object.h"

#define REPORT_MIN 1024u
#define REPORT_MAX 65536u
#define PREFETCH 8u

struct quiesce__queues quiesce__queues = { .report_bytes = REPORT_MAX };

/* Choose the quantum of reports, so that all threads together leave a small part of the ceiling unreported.  The caller holds
 * queues.lock. */
static void choose_report_bytes(void)
{
	struct quiesce__queues *q = &quiesce__queues;
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */
	uint64_t bytes = ceiling && q->nr ? ceiling / 4 / q->nr : REPORT_MAX;

	bytes = bytes < REPORT_MIN ? REPORT_MIN : bytes > REPORT_MAX ? REPORT_MAX : bytes;
	quiesce_store_relaxed(&q->report_bytes, (uint32_t)bytes); /* Relaxed: a policy. */
}

void quiesce__report_bytes_changed(void)
{
	quiesce__lock(&quiesce__queues.lock);
	choose_report_bytes();
	quiesce__unlock(&quiesce__queues.lock);
}

/* Add @queue to the list of all queues; the caller holds queues.lock. */
static void add_to_all(struct quiesce__queue *queue)
{
	struct quiesce__queues *q = &quiesce__queues;

	queue->shard = q->nr_ever++ % QUIESCE_NR_SHARDS;
	queue->next = q->all;
	if (q->all)
		q->all->prev = queue;
	q->all = queue;
	quiesce_store_relaxed(&q->nr, q->nr + 1); /* Relaxed: others read a statistic. */
	choose_report_bytes();
}

QUIESCE_COLD struct quiesce__queue *quiesce__queue_new(struct quiesce_tls_v1 *self)
{
	struct quiesce__queue *queue;

	if (!quiesce__may_have_queue(self))
		return NULL;
	quiesce__heap_begin(self);
	queue = platform_lines_get(sizeof *queue);
	quiesce__heap_end(self);
	if (!queue)
		return NULL;
	quiesce__lock(&quiesce__queues.lock);
	add_to_all(queue);
	quiesce__unlock(&quiesce__queues.lock);
	self->queue = queue;
	return queue;
}

void quiesce__queue_free(struct quiesce__queue *queue)
{
	struct quiesce__queues *q = &quiesce__queues;

	if (!QUIESCE_MUTANT(cb_share_left))
		/* GB1: full, pairs with GB1 in quiesce__queue_report() */
		quiesce__garbage_add(-(int64_t)quiesce_xchg(GB1, &queue->share, 0));
	quiesce__lock(&q->lock);
	if (queue->prev)
		queue->prev->next = queue->next;
	else
		q->all = queue->next;
	if (queue->next)
		queue->next->prev = queue->prev;
	quiesce_store_relaxed(&q->nr, q->nr - 1); /* Relaxed: others read a statistic. */
	choose_report_bytes();
	q->gone_run += queue->nr_run + queue->freed;
	q->gone_spilled += queue->spilled;
	q->gone_queued += queue->callbacks.queued + queue->frees.queued + queue->spilled;
	quiesce__unlock(&q->lock);
	quiesce__heap_begin(quiesce__self()); /* free() may retire, and must not give a new queue to an owner that exits */
	quiesce__segments_end(&queue->running, &queue->callbacks);
	quiesce__segments_end(&queue->freeing, &queue->frees);
	platform_lines_put(queue, sizeof *queue);
	quiesce__heap_end(quiesce__self());
}

/* ---- lists ---- */

static void push_listed(struct quiesce__queue *queue)
{
	struct quiesce__shard *shard = &quiesce__queues.shard[queue->shard];
	struct quiesce__queue *old = quiesce_load_relaxed(&shard->listed); /* Relaxed: the exchange decides. */

	do
		quiesce_store_relaxed(&queue->next_listed, old); /* Relaxed: the exchange publishes it. */
	/* CB6: full, pairs with CB6 in take_listed() */
	while (!quiesce_cmpxchg(CB6, &shard->listed, &old, queue));
}

bool quiesce__queue_list(struct quiesce__queue *queue, bool callback)
{
	uint32_t before = QUIESCE_UNLISTED;
	uint32_t listed = callback ? QUIESCE_LISTED : QUIESCE_LISTED_FREES;

	/* CB3: full, pairs with CB3 in take_queue() */
	while (before < listed)
		if (quiesce_cmpxchg(CB3, &queue->listed, &before, listed)) {
			if (before == QUIESCE_UNLISTED)
				push_listed(queue);
			return before == QUIESCE_UNLISTED;
		}
	return false;
}

void quiesce__queue_leave(struct quiesce__queue *queue)
{
	/* CB3: full, pairs with CB3 in take_queue() */
	if (quiesce_xchg(CB3, &queue->listed, QUIESCE_LISTED_LAST) == QUIESCE_UNLISTED)
		push_listed(queue);
}

bool quiesce__queues_listed(void)
{
	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++) {
		const struct quiesce__shard *shard = &quiesce__queues.shard[i];

		/* Relaxed: the caller orders the two loads. */
		if (quiesce_load_relaxed(&shard->listed) || quiesce_load_relaxed(&shard->spill))
			return true;
	}
	return false;
}

void quiesce__spill_push(struct rcu_head **list, struct rcu_head *head)
{
	struct rcu_head *old = quiesce_load_relaxed(list); /* Relaxed: the exchange decides. */

	do
		head->next = old;
	/* CB5: full, pairs with CB5 in quiesce__spill_take() */
	while (!quiesce_cmpxchg(CB5, list, &old, head));
}

/* ---- the sum of garbage ---- */

/* Return the bytes that wait in @queue.  The reclaimed bytes are loaded first, so that they are among the queued bytes.
 * Relaxed throughout: a sum, which a report loads again after GB1. */
static uint64_t bytes_waiting(const struct quiesce__queue *queue)
{
	uint64_t out = quiesce_load_relaxed(&queue->running.bytes_out) + quiesce_load_relaxed(&queue->freeing.bytes_out);

	return quiesce_load_relaxed(&queue->callbacks.bytes) + quiesce_load_relaxed(&queue->frees.bytes) - out;
}

/* If two threads report at the same time, the one whose exchange is later sees what the other had changed before its own exchange. */
void quiesce__queue_report(struct quiesce__queue *queue)
{
	uint64_t waiting;

	do {
		uint64_t share;

		waiting = bytes_waiting(queue);
		/* GB1: full, pairs with GB1 in quiesce__queue_report() and quiesce__queue_free() */
		share = quiesce_xchg(GB1, &queue->share, waiting);
		if (share != waiting)
			quiesce__garbage_add((int64_t)(waiting - share));
	} while (bytes_waiting(queue) < waiting && !QUIESCE_MUTANT(cb_reported_once));
}

/* ---- freeing ---- */

/* Free the objects whose addresses are in @nr consecutive slots. */
static void free_row(struct quiesce__consume *from, const uintptr_t *slot, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uintptr_t item = quiesce_load_relaxed(&slot[i]); /* Relaxed: CB1 orders it. */

		if (i + PREFETCH < nr)
			__builtin_prefetch((void *)quiesce_load_relaxed(&slot[i + PREFETCH]), 1); /* Relaxed: a hint. */
		quiesce_store_relaxed(&from->taken, from->taken + 1); /* Relaxed: under the lock.  Before free(): I3. */
		quiesce__object_free((void *)item);
	}
}

void quiesce__queue_report_freed(struct quiesce__queue *queue)
{
	if (queue->reported_freed == queue->freeing.bytes_out)
		return;
	queue->reported_freed = queue->freeing.bytes_out;
	quiesce__queue_report(queue);
}

/* True if a quantum has been freed since the last report, or no object for free() is left (I2).
 * Relaxed: a policy; the owner reports what it queues later. */
static bool report_is_due(const struct quiesce__queue *queue)
{
	return queue->freeing.bytes_out - queue->reported_freed >= quiesce_load_relaxed(&quiesce__queues.report_bytes) ||
	       (queue->freeing.taken == quiesce_load_relaxed(&queue->frees.queued) && !QUIESCE_MUTANT(cb_emptied_unreported));
}

void quiesce__free_ready(struct quiesce__queue *queue, uint32_t nr)
{
	struct quiesce__consume *from = &queue->freeing;
	/* CB2: acquire, pairs with CB2 in publish_ready() */
	uint64_t ready = quiesce_load_acquire(CB2, &queue->ready);

	if (QUIESCE_MUTANT(cb_free_unfinished))
		quiesce_store_relaxed(&queue->freed, ready); /* Relaxed: a planted bug. */
	quiesce__heap_begin(quiesce__self());
	while (nr && from->taken != ready) {
		uint32_t row;
		uintptr_t *slot = quiesce__consume_at(from, &queue->frees, ready, &row);

		row = row < nr ? row : nr;
		free_row(from, slot, row);
		nr -= row;
	}
	quiesce__heap_end(quiesce__self());
	/* CB4: release, pairs with CB4 in has_ready() and add_queue() */
	quiesce_store_release(CB4, &queue->freed, from->taken);
	if (from->taken != ready)
		return;
	/* Relaxed: the bytes belong to this @ready or to a later one, and those beyond this one are not counted again. */
	quiesce_store_relaxed(&from->bytes_out, quiesce_load_relaxed(&queue->ready_bytes));
	if (report_is_due(queue))
		quiesce__queue_report_freed(queue);
}

/* ---- the end of an owner ---- */

/* True if all that was queued has been taken; the caller is the owner. */
static bool is_empty(const struct quiesce__queue *queue)
{
	/* Relaxed throughout: an object that has been taken meanwhile is in the pass that took it. */
	return quiesce_load_relaxed(&queue->running.taken) == queue->callbacks.queued &&
	       quiesce_load_relaxed(&queue->freeing.taken) == queue->frees.queued && !quiesce_load_relaxed(&queue->spill);
}

/* Free an empty queue, whose owner exits, if no pass is in progress; true if it was freed.  Where no worker runs, pass.lock is left alone:
 * a caller that needs a pass and finds the lock taken relies on its holder to make one. */
static bool try_free(struct quiesce__queue *queue)
{
	bool idle;

	if (!quiesce__worker_runs() || !quiesce__trylock(&quiesce__pass.lock))
		return false;
	/* Relaxed: the caller is the owner, and no pass is in progress. */
	idle = !queue->unfreed && !queue->carried && quiesce_load_relaxed(&queue->listed) == QUIESCE_UNLISTED && is_empty(queue);
	if (idle)
		quiesce__queue_free(queue);
	quiesce__unlock(&quiesce__pass.lock);
	return idle;
}

/* The worker need not have been woken for a queue that is not empty: a pass that has just unlisted it left it to the owner to list. */
bool quiesce__queue_end(struct quiesce__queue *queue)
{
	bool empty = is_empty(queue);

	if (empty && try_free(queue))
		return false;
	quiesce__queue_leave(queue);
	return !empty;
}

/* ---- statistics ---- */

/* Counts of objects that have run are loaded before counts of objects that were queued, so the difference is never too small. */

/* Add the bytes that wait.  Some CPUs reorder relaxed loads, so @waiting may seem to be below zero, and then counts as 0. */
static void add_bytes(struct quiesce_stats *stats, uint64_t waiting)
{
	if ((int64_t)waiting > 0)
		stats->garbage_bytes += waiting;
}

static void add_queue(struct quiesce_stats *stats, const struct quiesce__queue *queue)
{
	/* CB4: acquire, pairs with CB4 in run_row() */
	uint64_t run = quiesce_load_acquire(CB4, &queue->nr_run);

	/* CB4: acquire, pairs with CB4 in quiesce__free_ready() */
	run += quiesce_load_acquire(CB4, &queue->freed);
	stats->callbacks_run += run;
	/* Relaxed: a statistic. */
	stats->callbacks_queued += quiesce_load_relaxed(&queue->callbacks.queued) + quiesce_load_relaxed(&queue->frees.queued) +
				   quiesce_load_relaxed(&queue->spilled);
	add_bytes(stats, bytes_waiting(queue));
}

/* Add the objects of threads without a queue. */
static void add_spills(struct quiesce_stats *stats)
{
	uint64_t waiting = -quiesce__spills_bytes_out();

	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++) {
		const struct quiesce__shard *shard = &quiesce__queues.shard[i];

		stats->callbacks_queued += quiesce_load_relaxed(&shard->spilled); /* Relaxed: a statistic. */
		waiting += quiesce_load_relaxed(&shard->bytes); /* Relaxed: a statistic. */
	}
	add_bytes(stats, waiting);
}

void quiesce__reclaim_stats(struct quiesce_stats *stats)
{
	struct quiesce__queues *q = &quiesce__queues;

	quiesce__lock(&q->lock);
	stats->queues = q->nr;
	stats->queues_visited = quiesce__queues_visited();
	stats->callbacks_run = q->gone_run + quiesce__spills_run();
	stats->callbacks_queued = q->gone_queued;
	for (const struct quiesce__queue *queue = q->all; queue; queue = queue->next)
		add_queue(stats, queue);
	add_spills(stats);
	quiesce__unlock(&q->lock);
	stats->garbage_objects = stats->callbacks_queued - stats->callbacks_run;
	stats->worker_running = quiesce__reclaim_has_worker();
}
