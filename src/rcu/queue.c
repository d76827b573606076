/* SPDX-License-Identifier: MIT */
/* queue.c - queues of retired objects: allocation, lists, freeing of ready objects, the sum of garbage, statistics.
 *
 * I1. The process-wide sum of garbage is the total of the shares of all queues (@share), and of the bytes that threads without a queue
 *     have spilled.  When a queue is freed its share is subtracted, so nothing of it stays in the sum, whatever was not reported.
 * I2. A thread that reclaims reports afterwards; an owner that queues reports at most one quantum (report_bytes) later.  A report
 *     exchanges the share for the bytes that wait in the queue, and is repeated if fewer bytes wait by then (GB1).  So a share exceeds
 *     the bytes that wait by at most one quantum, which its owner has freed and not reported yet; and an owner that frees its last object
 *     reports in any case, so the share of an empty queue is 0.  The size of a single object is not stored: the freed ones of those up to
 *     the goal count with the average, the last one as the rest.  A snapshot of a pass may have the bytes of later objects, too; then
 *     that of an owner that polled meanwhile has more objects but fewer bytes, and the goal has the bytes that are counted already.
 * I3. An object of kfree_rcu() counts in @taken before it is freed, so that the child of a fork does not free it again, and in @freed
 *     after free() has returned.  A queue whose two counts differ stays unfreed, so rcu_barrier() makes a pass, which waits until the
 *     owner is out of free().
 * I4. One thread has the right to free what is ready: the owner, or the holder of a pass that has revoked it.  The owner sets @busy,
 *     executes a light fence, and frees only if it does not see @revoked.  The pass sets @revoked, executes a heavy fence, one for all
 *     its queues, and waits until the owner is not busy.  The owner executes no locked operation, and a pass revokes only where it has
 *     something to free: for a caller that waits, or because the owner has stopped retiring.
 * I5. An owner frees one object for each that it retires, more where a backlog is ready, and never more than PACE_MAX: an allocator keeps
 *     few objects of a size at hand, and takes its slow way for the others.
 *
 * GB1  bytes queued or reclaimed, then the share | the share, then the bytes that wait read again
 * OF1  busy set, then revoked read               | revoked set, then busy read
 * OF2  freed by the owner, then not busy         | busy read, then freed by a pass
 * OF3  freed by a pass, then not revoked         | revoked read, then freed by the owner
 * CB2, CB3, CB4, CB6  see pass.c
 * CB5  see spill.c
 */
#include "queue.h"

#include "reclaim.h"
#include "runtime/object.h"

#define REPORT_MIN 1024u
#define REPORT_MAX 65536u
#define PACE_MAX 4u /* objects freed in one call at most: allocators keep about twice as many of a size at hand */

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
	queue->pace = 1;
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

/* Number of objects that the owner of @queue is to free for each one that it retires, where @nr are ready.  At one for each the number
 * of those that wait stays as it is.  So where more are ready than two grace periods bring, or than two well filled batches, it is two, and
 * four where twice as many are. */
static uint32_t pace(const struct quiesce__queue *queue, uint64_t nr)
{
	uint64_t ceiling = quiesce_load_relaxed(&quiesce__settings.ceiling); /* Relaxed: a setting. */
	uint64_t brought = QUIESCE_MUTANT(cb_backlog_kept) ? QUIESCE_WELL_FILLED : queue->brought;
	uint64_t usual = 2 * (brought < QUIESCE_WELL_FILLED ? brought : QUIESCE_WELL_FILLED);

	if (nr > 2 * usual || quiesce__garbage_above(ceiling / 2))
		return PACE_MAX;
	return nr > usual ? 2 : 1;
}

/* Begin the next row of ready objects: of those that the @owner knows, or that passes have found; false: there is none. */
static bool next_row(struct quiesce__queue *queue, bool owner)
{
	struct quiesce__consume *from = &queue->freeing;
	uint32_t nr;

	if (from->taken == queue->goal.nr) {
		struct quiesce__snapshot ready = owner ? queue->known : quiesce__queue_ready(queue);

		if ((int64_t)(ready.nr - from->taken) <= 0)
			return false;
		queue->goal = ready;
		if ((int64_t)(ready.bytes - from->bytes_out) < 0 && !QUIESCE_MUTANT(cb_goal_torn))
			queue->goal.bytes = from->bytes_out;
	}
	if (owner)
		/* A pass may have taken more than the owner knows of. */
		queue->pace = (int64_t)(queue->known.nr - from->taken) > 0 ? pace(queue, queue->known.nr - from->taken) : 1;
	queue->row = quiesce__consume_at(from, &queue->frees, queue->goal.nr, &nr);
	queue->row_nr = nr;
	queue->row_end = queue->row + nr;
	queue->row_single = queue->pace == 1 ? queue->row_end - 1 : queue->row;
	return true;
}

/* Count the bytes of the row that has been freed, as so many of the average of those up to the goal, and report if that is due. */
static void end_row(struct quiesce__queue *queue)
{
	struct quiesce__consume *from = &queue->freeing;
	uint64_t left = queue->goal.nr - from->taken, bytes = queue->goal.bytes - from->bytes_out;

	if (left)
		bytes = bytes / (left + queue->row_nr) * queue->row_nr;
	quiesce_store_relaxed(&from->bytes_out, from->bytes_out + bytes); /* Relaxed: a sum. */
	if (report_is_due(queue))
		quiesce__queue_report_freed(queue);
}

/* Free the next object of the row. */
static inline void free_one(struct quiesce__queue *queue)
{
	uintptr_t *slot = queue->row++;

	__builtin_prefetch((void *)quiesce_load_relaxed(&slot[QUIESCE_PREFETCH]), 1); /* Relaxed: a hint, and no address at the end. */
	/* Relaxed: written with the right to free.  Before free(): I3. */
	quiesce_store_relaxed(&queue->freeing.taken, queue->freeing.taken + 1);
	quiesce__object_free((void *)quiesce_load_relaxed(slot)); /* Relaxed: CB1 orders it. */
}

static QUIESCE_COLD void free_ready(struct quiesce_tls_v1 *self, struct quiesce__queue *queue, uint32_t nr, bool owner)
{
	if (QUIESCE_MUTANT(cb_free_unfinished))
		quiesce_store_relaxed(&queue->freed, quiesce_load_relaxed(&queue->ready)); /* Relaxed: a planted bug. */
	quiesce__heap_begin(self);
	for (; nr && (queue->row != queue->row_end || next_row(queue, owner)); nr--) {
		free_one(queue);
		if (queue->row == queue->row_end)
			end_row(queue);
	}
	quiesce__heap_end(self);
	/* CB4: release, pairs with CB4 in has_ready() and add_queue() */
	quiesce_store_release(CB4, &queue->freed, queue->freeing.taken);
}

void quiesce__free_ready(struct quiesce__queue *queue, uint32_t nr)
{
	free_ready(quiesce__self(), queue, nr, false);
}

/* Free as many objects as the pace is: as a rule one, which is not the last of its row. */
static inline void free_one_or_more(struct quiesce_tls_v1 *self, struct quiesce__queue *queue)
{
	if (quiesce_unlikely(queue->row >= queue->row_single)) {
		free_ready(self, queue, queue->pace, true);
		return;
	}
	quiesce__heap_begin(self);
	free_one(queue);
	quiesce__heap_end(self);
	/* CB4: release, pairs with CB4 in has_ready() and add_queue() */
	quiesce_store_release(CB4, &queue->freed, queue->freeing.taken);
}

void quiesce__free_paced(struct quiesce_tls_v1 *self, struct quiesce__queue *queue)
{
	if (self->state & QUIESCE_TLS_IN_HEAP) /* the allocator makes this call, and may hold its locks */
		return;
	quiesce_store_relaxed(&queue->busy, 1); /* Relaxed: the fence follows. */
	/* OF1: pairs with OF1 in visit_unfreed() */
	quiesce_fence_mode(OF1);
	/* OF3: acquire, pairs with OF3 in free_for_owner() */
	if (quiesce_likely(!quiesce_load_acquire(OF3, &queue->revoked)))
		free_one_or_more(self, queue);
	/* OF2: release, pairs with OF2 in owner_is_busy() */
	quiesce_store_release(OF2, &queue->busy, 0);
}

/* ---- the end of an owner ---- */

void quiesce__end_free(struct quiesce__queue *queue)
{
	if (quiesce_likely(!queue->busy) || QUIESCE_MUTANT(cb_ended_busy))
		return;
	/* CB4: release, pairs with CB4 in has_ready() and add_queue() */
	quiesce_store_release(CB4, &queue->freed, queue->freeing.taken);
	/* OF2: release, pairs with OF2 in owner_is_busy() */
	quiesce_store_release(OF2, &queue->busy, 0);
}

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

	/* CB4: acquire, pairs with CB4 in free_ready() and free_one_or_more() and quiesce__end_free() */
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
