/* SPDX-License-Identifier: MIT */
/* urcu/rculfqueue.h - liburcu's lock-free queue, used inside sections of RCU.
 *
 * This is quiesce/ds/lfqueue.h under liburcu's names; that header describes order, signals and fork().
 * Enqueue and dequeue are called inside sections of one flavour, and a node is freed or enqueued again after a grace
 * period of that flavour.
 *
 * Differences from liburcu: no call allocates memory, so none fails or aborts for want of it; and the call_rcu
 * function that cds_lfq_init_rcu() takes is stored and never called: liburcu frees with it the dummy nodes that it
 * allocates, here they are words of the queue.
 */
#ifndef URCU_RCULFQUEUE_H
#define URCU_RCULFQUEUE_H

#include <assert.h> /* programs rely on this header to include it */
#include <quiesce/detail/lfqueue.h>

QUIESCE_BEGIN_DECLS

struct rcu_head;

struct cds_lfq_node_rcu {
	struct lfq_node quiesce;
};

struct cds_lfq_queue_rcu {
	struct lfq_queue quiesce;
	void (*queue_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
};

static inline void cds_lfq_node_init_rcu(struct cds_lfq_node_rcu *node) { node->quiesce.next = 0; }

static inline void cds_lfq_init_rcu(struct cds_lfq_queue_rcu *q,
				    void queue_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head)))
{
	quiesce__lfq_init(&q->quiesce);
	q->queue_call_rcu = queue_call_rcu;
}

/* No other thread may use the queue.  Returns 0; -EPERM: it is not empty, and stays usable. */
static inline int cds_lfq_destroy_rcu(struct cds_lfq_queue_rcu *q) { return quiesce_lfq_destroy(&q->quiesce); }

/* Called inside a section.  A full fence. */
static inline void cds_lfq_enqueue_rcu(struct cds_lfq_queue_rcu *q, struct cds_lfq_node_rcu *node)
{
	quiesce__lfq_enqueue(&q->quiesce, &node->quiesce);
}

/* Called inside a section.  NULL: the queue was empty. */
static inline struct cds_lfq_node_rcu *cds_lfq_dequeue_rcu(struct cds_lfq_queue_rcu *q)
{
	return (struct cds_lfq_node_rcu *)quiesce_lfq_dequeue(&q->quiesce);
}

QUIESCE_END_DECLS

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfqueue.h>
#endif

#endif
