/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfqueue.h - a queue into which any thread puts and out of which any thread takes, without a lock.
 *
 * Use where several threads take at the same time; use wfcqueue.h where one does: it is cheaper, and its nodes are free at once.
 *
 *	static struct lfq_queue jobs = LFQ_INIT;
 *
 *	rcu_read_lock();                                // any thread
 *	lfq_enqueue(&jobs, &j->node);
 *	rcu_read_unlock();
 *
 *	rcu_read_lock();                                // any thread
 *	node = lfq_dequeue(&jobs);
 *	rcu_read_unlock();
 *	if (node) {
 *		j = lfq_entry(node, struct job, node);
 *		work_on(j);
 *		call_rcu(&j->rcu, job_free);            // others may still look at its node
 *	}
 *
 * Of a node that was taken everything but the node itself is the caller's at once.  The node may be freed, put into a queue again
 * or overwritten only after a grace period.
 *
 * This is Michael and Scott's queue without the dummy node that theirs keeps: an empty queue has a number in place of a node.  Threads
 * help each other over every step: one that is preempted, stopped or killed in the midst of a call keeps nobody from going on, and a
 * child of fork() may use the queue whatever other threads were doing.  Calls wait for nothing and need no memory, so neither fails.
 * (liburcu allocates a dummy whenever the last element is taken, and aborts where there is no memory.)
 *
 * Ordering.  If a node is dequeued, then everything that precedes its enqueue is visible.  Enqueue, dequeue and empty are linearizable.
 *
 * Signal handlers may enqueue and dequeue, whatever they interrupt.
 * Names and meaning are liburcu's without cds_ and _rcu, but lfq_init() takes no call_rcu function.  Nodes need no initialisation.
 *
 * Proof: docs/design/queues.md; tests/litmus/LQ*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_LFQUEUE_H
#define QUIESCE_DS_LFQUEUE_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/lfqueue.h> // the structures, LFQ_INIT
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/** lfq_entry - the @type whose @member is @node; @node is not NULL. */
#define lfq_entry(node, type, member) quiesce__object(node, type, member, struct lfq_node)

/** lfq_init - make a queue empty, as LFQ_INIT does.  Context: nobody else has it. */
static inline void lfq_init(struct lfq_queue *q)
{
	quiesce__lfq_init(q);
}

/** lfq_node_init - for programs that are used to it: lfq_enqueue() asks for nothing. */
static inline void lfq_node_init(struct lfq_node *node)
{
	quiesce_store_relaxed(&node->next, (uintptr_t)0); /* Relaxed: it is the caller's. */
}

/** lfq_empty - is nothing in the queue?  Any context; no order.  Cost: reads one line. */
static inline bool lfq_empty(const struct lfq_queue *q)
{
	return quiesce__lfq_empty(q);
}

/** lfq_enqueue - put @node in as the last.
 *
 * Context: inside a section; any thread, signal handlers too.  Lock-free.
 * Cost: two locked compare-and-exchanges, of the last node's link and of the tail; if the queue is empty one, of the head.
 * Orders: full, between what precedes and what follows. */
static inline void lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	quiesce__lfq_enqueue(q, node);
}

/** lfq_dequeue - take the oldest node.
 *
 * Context: inside a section; any thread, signal handlers too.  Lock-free.  The node is freed or put in again after a grace period.
 * Cost: a locked compare-and-exchange of the head; of the last node two more, of its link and of the tail.  Reads the tail's line only if
 *   one node is left.  Who is too late for one pauses for a fraction of a microsecond before another attempt.
 * Return: the node; NULL: the queue was empty.  Orders: acquire. */
static inline struct lfq_node *lfq_dequeue(struct lfq_queue *q) { return quiesce_lfq_dequeue(q); }

/** lfq_destroy - the end of a queue.  Nothing has to be given back: this only asks whether it is empty.
 *
 * Context: nobody else has it.  Return: 0; -EPERM: it is not empty, and may be used on. */
static inline int lfq_destroy(struct lfq_queue *q) { return quiesce_lfq_destroy(q); }

QUIESCE_END_DECLS

#endif
