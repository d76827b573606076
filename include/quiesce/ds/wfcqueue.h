/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfcqueue.h - a queue with wait-free producers, and one consumer at a time.
 *
 * Use for work that many threads hand to one: logs, deferred frees, mailboxes.  No RCU is needed,
 * and a dequeued node may be reused immediately.  Use lfqueue.h if several threads dequeue at the
 * same time.
 *
 *	struct mailbox {
 *		struct wfcq_head head __attribute__((aligned(QUIESCE_CACHELINE))); // of the consumer
 *		struct wfcq_tail tail __attribute__((aligned(QUIESCE_CACHELINE))); // of the producers
 *		sem_t something;
 *	};
 *
 *	if (!wfcq_enqueue(&box->head, &box->tail, &m->node))            // any thread, signal handlers too
 *		sem_post(&box->something);                              // it was empty
 *
 *	wait_for(&box->something);                                      // one thread
 *	while ((node = wfcq_dequeue_blocking(&box->head, &box->tail)))
 *		use(wfcq_entry(node, struct message, node));
 *
 * No wake-up is lost: a consumer that finds the queue empty sleeps, and the next producer finds it
 * empty, too.
 *
 * Calls that exclude each other (x), by a lock of the caller's or by being made by one thread:
 *
 *                                      enqueue  dequeue  splice, source  first, next
 *      enqueue; splice, destination       -        -           -              -
 *      dequeue                            -        x           x              x
 *      splice, source                     -        x           -              x
 *      first, next                        -        x           x              -
 *
 * Names and meaning are liburcu's without cds_, but no call takes a lock: wfcq_dequeue_blocking()
 * corresponds to __cds_wfcq_dequeue_blocking().  Nodes need no initialisation.
 *
 * Ordering.  If a node is dequeued, spliced, or found by first and next, everything that precedes
 * its enqueue is visible.  If an enqueue finds the queue empty, everything that precedes the
 * dequeue or splice that emptied it is visible.  An enqueue takes effect in one exchange, a full
 * fence: nodes are in the order of the exchanges, those of one thread in program order.  Enqueue,
 * dequeue, splice from and empty are linearizable.
 *
 * Blocking.  A producer may be preempted between its exchange and its link, two instructions;
 * nodes that are enqueued from then on cannot be reached until it runs again.  Blocking calls spin
 * for a few microseconds and then sleep, for growing times, at most 1.3 ms each: so a consumer of
 * real-time priority lets the producer run.  The other calls return WFCQ_WOULDBLOCK or
 * WFCQ_RET_WOULDBLOCK.  Producers never wait.
 *
 * Signal handlers may enqueue, whatever they interrupt.  They may dequeue by nonblocking calls if
 * they do not interrupt a consumer.  A thread that ends between its two instructions (by
 * asynchronous cancellation, or, for the child, by a fork() in another thread) leaves the queue in
 * that state for ever: so no asynchronous cancellation there; a child begins with a new queue, or
 * dequeues by nonblocking calls.
 *
 * Proof: docs/design/queues.md; tests/litmus/WF*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_WFCQUEUE_H
#define QUIESCE_DS_WFCQUEUE_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/wfcqueue.h> // the structures, enum wfcq_ret, enum wfcq_state

QUIESCE_BEGIN_DECLS

/** WFCQ_HEAD_INIT, WFCQ_TAIL_INIT - the initialisers of the two parts of an empty queue.
 * The structures are small, so that a structure may have many queues.  If threads on two CPUs use
 * one all the time, keep head and tail in different cache lines, as in the example. */
#define WFCQ_HEAD_INIT { { NULL } }
#define WFCQ_TAIL_INIT(head) { &(head).node }

/** wfcq_entry - return the @type whose @member is @node; @node is not NULL. */
#define wfcq_entry(node, type, member) quiesce__object(node, type, member, struct wfcq_node)

/** wfcq_init - initialise an empty queue.
 * Context: no other thread has it. */
QUIESCE_PLAIN void wfcq_init(struct wfcq_head *head, struct wfcq_tail *tail)
{
	quiesce__wfcq_init(head, tail);
}

/** wfcq_node_init - for programs that expect it: wfcq_enqueue() needs no initialised node. */
QUIESCE_PLAIN void wfcq_node_init(struct wfcq_node *node)
{
	/* Relaxed: the caller owns it. */
	quiesce_store_relaxed(&node->next, (struct wfcq_node *)NULL);
}

/** wfcq_empty - test whether the queue has no node.
 *
 * Context: any, beside any other call.
 * Cost: reads the head's line, and the tail's if the head has no first node.
 * Orders: nothing: a consumer that announces its sleep before this test needs a full fence in
 *   between. */
QUIESCE_PLAIN bool wfcq_empty(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return quiesce__wfcq_empty(head, tail);
}

/** wfcq_enqueue - append @node to the queue.
 *
 * Context: any thread, also in signal handlers.  Never waits.
 * Cost: a locked exchange; writes the line of the tail and that of the node before.
 * Return: true if the queue had a node before; false: it was empty.
 * Orders: full, between what precedes and what follows. */
QUIESCE_PLAIN bool wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node)
{
	return quiesce__wfcq_enqueue(head, tail, node);
}

/** wfcq_dequeue_with_state_nonblocking - dequeue the first node, which the caller may free or reuse
 * immediately.
 * @ret_state: set to WFCQ_STATE_LAST if the queue is empty after that, else to 0.
 *
 * Context: see the table above.  Never waits.
 * Cost: writes the head's line only; for the last node also a locked compare-and-exchange of the
 *   tail.
 * Return: the node; NULL: empty; WFCQ_WOULDBLOCK: the first node or its successor is not linked
 *   yet, and nothing was dequeued.
 * Orders: acquire. */
QUIESCE_PLAIN struct wfcq_node *wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	return quiesce__wfcq_dequeue(head, tail, ret_state);
}

/** wfcq_dequeue_nonblocking - wfcq_dequeue_with_state_nonblocking() without the state. */
QUIESCE_PLAIN struct wfcq_node *wfcq_dequeue_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail)
{
	int state;

	return wfcq_dequeue_with_state_nonblocking(head, tail, &state);
}

/** wfcq_dequeue_with_state_blocking - dequeue the first node; waits instead of returning
 * WFCQ_WOULDBLOCK.
 *
 * Context: a thread; not signal handlers.  May sleep. */
QUIESCE_PLAIN struct wfcq_node *wfcq_dequeue_with_state_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	return quiesce__wfcq_dequeue_blocking(head, tail, ret_state);
}

/** wfcq_dequeue_blocking - wfcq_dequeue_with_state_blocking() without the state. */
QUIESCE_PLAIN struct wfcq_node *wfcq_dequeue_blocking(struct wfcq_head *head, struct wfcq_tail *tail)
{
	int state;

	return wfcq_dequeue_with_state_blocking(head, tail, &state);
}

/** wfcq_splice_nonblocking - move all nodes of one queue to the end of another, different one.
 *
 * From a private queue the caller can then dequeue nodes one by one, without a locked instruction
 * except for the last.  Two threads may splice from one queue at the same time: one of them gets
 * the nodes.
 * Context: see the table above.  Never waits.
 * Cost: three locked exchanges, for any number of nodes.
 * Return: see enum wfcq_ret.
 * Orders: acquire; full towards the producers of both queues. */
QUIESCE_PLAIN enum wfcq_ret wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
						    struct wfcq_head *src_head, struct wfcq_tail *src_tail)
{
	return quiesce__wfcq_splice(dest_head, dest_tail, src_head, src_tail);
}

/** wfcq_splice_blocking - as wfcq_splice_nonblocking(), but waits instead of returning
 * WFCQ_RET_WOULDBLOCK.
 * Context: a thread; may sleep. */
QUIESCE_PLAIN enum wfcq_ret wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
						 struct wfcq_tail *src_tail)
{
	return quiesce__wfcq_splice_blocking(dest_head, dest_tail, src_head, src_tail);
}

/** wfcq_next_nonblocking - return the node after @node, in a queue from which no thread dequeues
 * meanwhile.
 *
 * Context: see the table above.
 * Return: the node; NULL: @node was the last; WFCQ_WOULDBLOCK.
 * Orders: acquire. */
QUIESCE_PLAIN struct wfcq_node *wfcq_next_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail,
						      const struct wfcq_node *node)
{
	(void)head;
	return quiesce__wfcq_next(tail, node);
}

/** wfcq_first_nonblocking - return the first node, which stays in the queue. */
QUIESCE_PLAIN struct wfcq_node *wfcq_first_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return wfcq_next_nonblocking(head, tail, &head->node);
}

/** wfcq_next_blocking - as wfcq_next_nonblocking(), but waits instead of returning WFCQ_WOULDBLOCK.
 * Context: a thread; may sleep. */
QUIESCE_PLAIN struct wfcq_node *wfcq_next_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	(void)head;
	return quiesce__wfcq_next_blocking(tail, node);
}

/** wfcq_first_blocking - as wfcq_first_nonblocking(), but waits instead of returning
 * WFCQ_WOULDBLOCK.
 * Context: a thread; may sleep. */
QUIESCE_PLAIN struct wfcq_node *wfcq_first_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return wfcq_next_blocking(head, tail, &head->node);
}

/** wfcq_for_each_blocking - visit all nodes, which stay in the queue; producers may add nodes
 * meanwhile.
 * @node: a struct wfcq_node *, NULL at the end. */
#define wfcq_for_each_blocking(head, tail, node) \
	for ((node) = wfcq_first_blocking((head), (tail)); (node); (node) = wfcq_next_blocking((head), (tail), (node)))

/** wfcq_for_each_blocking_safe - as wfcq_for_each_blocking(); the body may free @node, or reuse it
 * elsewhere.
 * For a queue that only the caller has, filled by a splice, and not used again before wfcq_init().
 * @n: in the loop the successor of @node already. */
#define wfcq_for_each_blocking_safe(head, tail, node, n)                                                     \
	for ((node) = wfcq_first_blocking((head), (tail));                                                   \
	     (node) && ((n) = wfcq_next_blocking((head), (tail), (node)), true); (node) = (n))

QUIESCE_END_DECLS

#endif
