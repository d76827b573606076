/* SPDX-License-Identifier: MIT */
/* spill.c - spilled objects: those that are linked by their heads, because there was no memory for a segment, or no queue.
 *
 *   queue's or shard's list -> taken -> (grace period) -> ready -> run
 *          ^                    |                        |
 *          +--------------------+------------------------+   in the child of a fork, or when a callback has ended its thread
 *
 * I1. Objects that are taken or ready belong to the holder of pass.lock.  They move from one list to the next under queues.lock, which
 *     fork() takes, so that the child finds them in one list.
 * I2. An object is removed from its list before its callback runs, and counts as run when the callback has returned or ended its thread.
 * I3. A shard counts the bytes of all objects that were ever pushed to it, not those of each.  So the bytes of objects that a pass has
 *     taken are subtracted from the sum of garbage when all of these have run.
 *
 * CB5  object written, then pushed           | list taken, then objects read
 * CB4  callbacks have run, then done         | done read, then rcu_barrier() returns
 */
#include "spill.h"

#include "heads.h"
#include "queue.h"
#include "reclaim.h"
#include "runtime/object.h"

/* Only the holder of pass.lock changes these. */
static struct {
	struct rcu_head *taking, **from; /* first of the objects that are moving to @taken, and the list that these come from; NULL: none */
	struct rcu_head *taken;          /* objects of this pass, before its grace period */
	struct rcu_head *ready;          /* objects of this pass, after its grace period */
	uint64_t bytes_taken, bytes_out; /* bytes of threads without a queue, ever: taken by a pass, and reclaimed */
	uint64_t nr_run;                 /* number of objects ever reclaimed */
	bool running;                    /* an object is being reclaimed, which is in no list any more */
} spill;

uint64_t quiesce__spills_run(void)
{
	/* CB4: acquire, pairs with CB4 in count_run() */
	return quiesce_load_acquire(CB4, &spill.nr_run);
}

uint64_t quiesce__spills_bytes_out(void)
{
	return quiesce_load_relaxed(&spill.bytes_out); /* Relaxed: a statistic. */
}

/* ---- taking ---- */

void quiesce__spill_take(struct rcu_head **list)
{
	struct rcu_head *taken = quiesce_load_relaxed(list), **end; /* Relaxed: CB3 and CB7 order it. */

	if (!taken)
		return;
	if (!QUIESCE_MUTANT(cb_spill_unlocked))
		quiesce__lock(&quiesce__queues.lock);
	spill.from = list;
	do
		quiesce_store_relaxed(&spill.taking, taken); /* Relaxed: for the child of a fork, before the exchange. */
	/* CB5: full, pairs with CB5 in quiesce__spill_push() */
	while (!quiesce_cmpxchg(CB5, list, &taken, NULL));
	if (QUIESCE_MUTANT(cb_spill_lost))
		taken = taken->next;
	for (end = &taken; *end; end = &(*end)->next)
		;
	*end = spill.taken;
	quiesce_store_relaxed(&spill.taken, taken); /* Relaxed: for the child of a fork, in program order. */
	quiesce_store_relaxed(&spill.taking, NULL); /* Relaxed: for the child of a fork, in program order. */
	quiesce__unlock(&quiesce__queues.lock);
}

bool quiesce__spill_take_of_shards(void)
{
	spill.bytes_taken = 0;
	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++) {
		struct quiesce__shard *shard = &quiesce__queues.shard[i];

		quiesce__spill_take(&shard->spill);
		spill.bytes_taken += quiesce_load_relaxed(&shard->bytes); /* Relaxed: CB5 orders the bytes of what was taken. */
	}
	return spill.taken;
}

/* ---- running ---- */

static void run_head(struct rcu_head *head)
{
	uintptr_t func = (uintptr_t)head->func;

	if (func <= QUIESCE_KFREE_OFFSET_MAX)
		quiesce__object_free_in_heap((char *)head - (func - 1));
	else
		quiesce__pass_call(quiesce__pass_holder, head);
	quiesce_store_relaxed(&quiesce__pass_holder->func, 0); /* Relaxed: for reports. */
}

static void count_run(void)
{
	spill.running = false;
	/* CB4: release, pairs with CB4 in quiesce__spills_run() */
	quiesce_store_release(CB4, &spill.nr_run, spill.nr_run + 1);
}

static void run_ready(void)
{
	struct rcu_head *head;

	while ((head = spill.ready)) {
		quiesce__gate_enter(&quiesce__pass_holder->in_gate);
		spill.ready = head->next;
		spill.running = true;
		run_head(head);
		count_run();
		quiesce__gate_leave(&quiesce__pass_holder->in_gate);
	}
}

/* Subtract from the sum of garbage the bytes of what the pass has taken (I3). */
static void subtract_bytes(void)
{
	uint64_t bytes = spill.bytes_taken - spill.bytes_out;

	quiesce_store_relaxed(&spill.bytes_out, spill.bytes_taken); /* Relaxed: a sum. */
	quiesce__garbage_add(-(int64_t)bytes);
}

void quiesce__spill_run(void)
{
	run_ready(); /* in the child of a fork: objects that were ready in a pass of the parent */
	quiesce__lock(&quiesce__queues.lock);
	quiesce_store_relaxed(&spill.ready, spill.taken); /* Relaxed: for the child of a fork, in program order. */
	quiesce_store_relaxed(&spill.taken, NULL); /* Relaxed: for the child of a fork, in program order. */
	quiesce__unlock(&quiesce__queues.lock);
	run_ready();
	subtract_bytes();
}

/* ---- objects for another pass ---- */

/* Move all objects of @list to a shard, for another pass. */
static void push_again(struct rcu_head **list)
{
	struct rcu_head *head;

	quiesce__lock(&quiesce__queues.lock);
	while ((head = *list)) {
		*list = head->next;
		quiesce__spill_push(&quiesce__queues.shard[0].spill, head);
	}
	quiesce__unlock(&quiesce__queues.lock);
}

void quiesce__spill_ended(void)
{
	if (spill.running)
		count_run();
	if (!spill.ready && !spill.taken)
		subtract_bytes(); /* where objects are left, the next pass subtracts the bytes of all */
	if (!QUIESCE_MUTANT(cb_ended_spill_lost))
		push_again(&spill.ready);
	push_again(&spill.taken);
}

/* ---- fork ---- */

/* Finish a quiesce__spill_take() that a fork without the library's handlers has interrupted: the objects are still in their list, or in no
 * list, or in @taken already, in front of those that were taken before. */
static void take_again(void)
{
	struct rcu_head *chain = spill.taking, **end;

	spill.taking = NULL;
	if (!chain || chain == spill.taken || quiesce__heads_have(*spill.from, chain))
		return;
	for (end = &chain; *end && *end != spill.taken; end = &(*end)->next)
		;
	*end = spill.taken;
	spill.taken = chain;
}

/* An object that is in no list counts as run: it has run, or was running in a thread that the child does not have. */
void quiesce__spill_fork_child(bool in_callback)
{
	uint64_t spilled = quiesce__queues.gone_spilled, left = 0;

	quiesce__garbage_add(-(int64_t)spill.bytes_out); /* the child counts its garbage anew */
	if (spill.ready == spill.taken)
		spill.taken = NULL; /* a fork without the library's handlers has interrupted the move from @taken to @ready */
	take_again();
	push_again(&spill.taken); /* the parent's grace period does not count for the child */
	for (uint32_t i = 0; i < QUIESCE_NR_SHARDS; i++) {
		struct quiesce__shard *shard = &quiesce__queues.shard[i];

		quiesce__garbage_add((int64_t)shard->bytes);
		spilled += shard->spilled;
		left += quiesce__heads_count(shard->spill);
	}
	for (const struct quiesce__queue *queue = quiesce__queues.all; queue; queue = queue->next) {
		spilled += queue->spilled;
		left += quiesce__heads_count(queue->spill);
	}
	spill.running = spill.running && in_callback;
	spill.nr_run = spilled - left - quiesce__heads_count(spill.ready) - spill.running;
}
