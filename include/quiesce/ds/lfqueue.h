/* SPDX-License-Identifier: MIT */
/* quiesce/ds/lfqueue.h - a lock-free queue with any number of producers and consumers.
 *
 * Use if several threads dequeue at the same time.  Use wfcqueue.h if one does: it is cheaper, and
 * its nodes may be reused immediately.
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
 *		call_rcu(&j->rcu, job_free);            // other threads may still read its node
 *	}
 *
 * After a dequeue the object belongs to the caller at once, except its node: the node may be
 * freed, enqueued again or overwritten only after a grace period.
 *
 * This is Michael and Scott's queue without its dummy node: an empty queue has a number in place
 * of a node.  Threads help each other in every step: a thread that is preempted, stopped or killed
 * in a call delays no other, and a child of fork() may use the queue whatever other threads were
 * doing.  Calls never wait and need no memory, so neither fails.  (liburcu allocates a dummy
 * whenever the last element is dequeued, and aborts if memory is short.)
 *
 * Ordering.  If a node is dequeued, everything that precedes its enqueue is visible.  Enqueue,
 * dequeue and empty are linearizable.
 *
 * Signal handlers may enqueue and dequeue, whatever they interrupt.
 * Names and meaning are liburcu's without cds_ and _rcu, but lfq_init() takes no call_rcu
 * function.  Nodes need no initialisation.
 *
 * Proof: docs/design/queues.md; tests/litmus/LQ*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_LFQUEUE_H
#define QUIESCE_DS_LFQUEUE_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/lfqueue.h> // the structures, LFQ_INIT
#include <quiesce/rcu.h>

QUIESCE_BEGIN_DECLS

/** lfq_entry - return the @type whose @member is @node; @node is not NULL. */
#define lfq_entry(node, type, member) quiesce__object(node, type, member, struct lfq_node)

/** lfq_init - initialise an empty queue, as LFQ_INIT does.
 * Context: no other thread has it. */
QUIESCE_PLAIN void lfq_init(struct lfq_queue *q)
{
	quiesce__lfq_init(q);
}

/** lfq_node_init - for programs that expect it: lfq_enqueue() needs no initialised node. */
QUIESCE_PLAIN void lfq_node_init(struct lfq_node *node)
{
	quiesce_store_relaxed(&node->next, (uintptr_t)0); /* Relaxed: the caller owns it. */
}

/** lfq_empty - test whether the queue has no node.
 * Context: any.
 * Cost: reads one line.
 * Orders: nothing. */
QUIESCE_PLAIN bool lfq_empty(const struct lfq_queue *q)
{
	return quiesce__lfq_empty(q);
}

/** lfq_enqueue - append @node to the queue.
 *
 * Context: inside a section; any thread, signal handlers too.  Lock-free.
 * Cost: two locked compare-and-exchanges, of the last node's link and of the tail; for an empty
 *   queue one, of the head.
 * Orders: full, between what precedes and what follows. */
QUIESCE_PLAIN void lfq_enqueue(struct lfq_queue *q, struct lfq_node *node)
{
	quiesce__lfq_enqueue(q, node);
}

/** lfq_dequeue - dequeue the oldest node.
 *
 * Context: inside a section; any thread, signal handlers too.  Lock-free.  The node may be freed
 *   or enqueued again after a grace period.
 * Cost: a locked compare-and-exchange of the head; for the last node two more, of its link and of
 *   the tail.  Reads the tail's line only if one node is left.  A thread that loses a race pauses
 *   for a fraction of a microsecond before its next attempt.
 * Return: the node; NULL: the queue was empty.
 * Orders: acquire. */
QUIESCE_PLAIN struct lfq_node *lfq_dequeue(struct lfq_queue *q) { return quiesce_lfq_dequeue(q); }

/** lfq_destroy - end the use of a queue.  It has no memory to free: this only tests whether it is
 * empty.
 *
 * Context: no other thread has it.
 * Return: 0; -EPERM: it is not empty, and remains usable. */
QUIESCE_PLAIN int lfq_destroy(struct lfq_queue *q) { return quiesce_lfq_destroy(q); }

QUIESCE_END_DECLS

#endif
