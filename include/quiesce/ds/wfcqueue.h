/* SPDX-License-Identifier: MIT */
/* quiesce/ds/wfcqueue.h - a queue into which any thread puts without waiting, and out of which one thread at a time takes.
 *
 * Use for work that many threads hand to one: logs, deferred frees, mailboxes.  No RCU is needed, and a node that was
 * taken is the caller's at once; use lfqueue.h where several threads take at the same time.
 *
 *	struct mailbox {
 *		struct wfcq_head head __attribute__((aligned(QUIESCE_CACHELINE))); // of who takes
 *		struct wfcq_tail tail __attribute__((aligned(QUIESCE_CACHELINE))); // of who puts in
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
 * Nobody is missed: who found the queue empty sleeps, and the next one who puts something in finds it empty too.
 *
 * Who needs a lock of the caller's, or to be one thread, towards whom (x):
 *
 *                                      enqueue  dequeue  splice, source  first, next
 *      enqueue; splice, destination       -        -           -              -
 *      dequeue                            -        x           x              x
 *      splice, source                     -        x           -              x
 *      first, next                        -        x           x              -
 *
 * Names and meaning are liburcu's without cds_, but nothing here takes a lock: wfcq_dequeue_blocking() is what
 * __cds_wfcq_dequeue_blocking() is there.  Nodes need no initialisation.
 *
 * Ordering.  If a node is dequeued, spliced, or found by first and next, then everything that precedes its enqueue is
 * visible.  If an enqueue finds the queue empty, then everything that precedes the dequeue or splice that emptied it is
 * visible.  An enqueue takes effect in one exchange, a full fence: nodes are in the order of the exchanges, those of one
 * thread in the order in which it put them in.  Enqueue, dequeue, splice from and empty are linearizable.
 *
 * Blocking.  An enqueuer may lose the CPU between its exchange and its link, two instructions; what was put in from then on
 * is out of reach until it goes on.  Blocking calls spin for a few microseconds and then sleep, longer and longer, at most
 * 1.3 ms at once: so a thread of a real-time priority lets the enqueuer run.  The others return WFCQ_WOULDBLOCK or
 * WFCQ_RET_WOULDBLOCK.  Enqueuers wait for nobody.
 *
 * Signal handlers may enqueue, whatever they interrupt.  They may dequeue by nonblocking calls if they interrupt no one who dequeues.
 * A thread that ends between its two instructions (asynchronous cancellation, a fork() in another thread, for the child) leaves the
 * queue so for ever: no cancellation there; a child begins with a new queue, or takes nonblocking.
 *
 * Proof: docs/design/queues.md; tests/litmus/WF*.litmus; docs/ordering.md.
 */
#ifndef QUIESCE_DS_WFCQUEUE_H
#define QUIESCE_DS_WFCQUEUE_H

#include <quiesce/detail/entry.h>
#include <quiesce/detail/wfcqueue.h> // the structures, enum wfcq_ret, enum wfcq_state

QUIESCE_BEGIN_DECLS

/* struct wfcq_head and wfcq_tail are small, so that a structure may have many queues.  Where threads on two CPUs use one all the time, let
 * head and tail be in different lines, as above. */
#define WFCQ_HEAD_INIT { { NULL } }
#define WFCQ_TAIL_INIT(head) { &(head).node }

/** wfcq_entry - the @type whose @member is @node; @node is not NULL. */
#define wfcq_entry(node, type, member) quiesce__object(node, type, member, struct wfcq_node)

/** wfcq_init - make a queue empty.  Context: nobody else has it. */
static inline void wfcq_init(struct wfcq_head *head, struct wfcq_tail *tail)
{
	quiesce__wfcq_init(head, tail);
}

/** wfcq_node_init - for programs that are used to it: wfcq_enqueue() asks for nothing. */
static inline void wfcq_node_init(struct wfcq_node *node)
{
	quiesce_store_relaxed(&node->next, (struct wfcq_node *)NULL); /* Relaxed: it is the caller's. */
}

/** wfcq_empty - is nothing in the queue?
 *
 * Context: any, beside everything.  No order: who says that it sleeps, and then asks, has a full fence in between.
 * Cost: reads the head's line, and the tail's if that says empty. */
static inline bool wfcq_empty(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return quiesce__wfcq_empty(head, tail);
}

/** wfcq_enqueue - put @node in as the last.
 *
 * Context: any thread, also in signal handlers.  Waits for nobody.
 * Cost: a locked exchange; writes the line of the tail and that of the node before.
 * Return: was there something before?  false: it was empty.  Orders: full, between what precedes and what follows. */
static inline bool wfcq_enqueue(struct wfcq_head *head, struct wfcq_tail *tail, struct wfcq_node *node)
{
	return quiesce__wfcq_enqueue(head, tail, node);
}

/** wfcq_dequeue_with_state_nonblocking - take the first node, which is the caller's then, to be freed or used again at once.
 * @ret_state: becomes WFCQ_STATE_LAST if the queue was empty after that, else 0.
 *
 * Context: see the table above.  Never waits.
 * Cost: writes the head's line only; a locked compare-and-exchange of the tail if it is the last one, for all others none.
 * Return: the node; NULL: empty; WFCQ_WOULDBLOCK: what is to be first, or to follow it, is not linked yet, and nothing was taken.
 * Orders: acquire. */
static inline struct wfcq_node *wfcq_dequeue_with_state_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	return quiesce__wfcq_dequeue(head, tail, ret_state);
}

/** wfcq_dequeue_nonblocking - the same without the state. */
static inline struct wfcq_node *wfcq_dequeue_nonblocking(struct wfcq_head *head, struct wfcq_tail *tail)
{
	int state;

	return wfcq_dequeue_with_state_nonblocking(head, tail, &state);
}

/** wfcq_dequeue_with_state_blocking - the same that waits where the others would block, and so never returns WFCQ_WOULDBLOCK.
 *
 * Context: a thread; not signal handlers.  May sleep. */
static inline struct wfcq_node *wfcq_dequeue_with_state_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	return quiesce__wfcq_dequeue_blocking(head, tail, ret_state);
}

/** wfcq_dequeue_blocking - the same without the state. */
static inline struct wfcq_node *wfcq_dequeue_blocking(struct wfcq_head *head, struct wfcq_tail *tail)
{
	int state;

	return wfcq_dequeue_with_state_blocking(head, tail, &state);
}

/** wfcq_splice_nonblocking - move all nodes of one queue to the end of another, which is not the same.
 *
 * To a queue of one's own, to take one by one, without a locked instruction but for the last, what nobody else reaches any more.
 * Two may splice from one queue at the same time: one of them gets what there is.
 * Context: see the table above.  Never waits.  Cost: three locked exchanges, whatever the number of nodes.
 * Return: see enum wfcq_ret.  Orders: acquire; full towards both queues' enqueuers. */
static inline enum wfcq_ret wfcq_splice_nonblocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
						    struct wfcq_head *src_head, struct wfcq_tail *src_tail)
{
	return quiesce__wfcq_splice(dest_head, dest_tail, src_head, src_tail);
}

/** wfcq_splice_blocking - the same that waits instead, and so never returns WFCQ_RET_WOULDBLOCK.  A thread; may sleep. */
static inline enum wfcq_ret wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail, struct wfcq_head *src_head,
						 struct wfcq_tail *src_tail)
{
	return quiesce__wfcq_splice_blocking(dest_head, dest_tail, src_head, src_tail);
}

/** wfcq_next_nonblocking - the node that follows @node, of a queue out of which nobody takes meanwhile.
 *
 * Context: see the table above.  Return: the node; NULL: @node was the last; WFCQ_WOULDBLOCK.  Orders: acquire. */
static inline struct wfcq_node *wfcq_next_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail,
						      const struct wfcq_node *node)
{
	(void)head;
	return quiesce__wfcq_next(tail, node);
}

/** wfcq_first_nonblocking - the first node, which stays in. */
static inline struct wfcq_node *wfcq_first_nonblocking(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return wfcq_next_nonblocking(head, tail, &head->node);
}

/** wfcq_next_blocking - wfcq_next_nonblocking() that waits instead.  A thread; may sleep. */
static inline struct wfcq_node *wfcq_next_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	(void)head;
	return quiesce__wfcq_next_blocking(tail, node);
}

/** wfcq_first_blocking - wfcq_first_nonblocking() that waits instead.  A thread; may sleep. */
static inline struct wfcq_node *wfcq_first_blocking(const struct wfcq_head *head, const struct wfcq_tail *tail)
{
	return wfcq_next_blocking(head, tail, &head->node);
}

/** wfcq_for_each_blocking - visit all nodes, which stay in; others may be put in meanwhile.
 * @node: a struct wfcq_node *, NULL at the end. */
#define wfcq_for_each_blocking(head, tail, node) \
	for ((node) = wfcq_first_blocking((head), (tail)); (node); (node) = wfcq_next_blocking((head), (tail), (node)))

/** wfcq_for_each_blocking_safe - the same where the body may free @node, or use it elsewhere: of a queue that only the caller
 * has, spliced before, and will not use again but after wfcq_init().  @n: what follows @node already. */
#define wfcq_for_each_blocking_safe(head, tail, node, n)                                                     \
	for ((node) = wfcq_first_blocking((head), (tail));                                                   \
	     (node) && ((n) = wfcq_next_blocking((head), (tail), (node)), true); (node) = (n))

QUIESCE_END_DECLS

#endif
