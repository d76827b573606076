/* SPDX-License-Identifier: MIT */
/* urcu/rculfqueue.h - liburcu's lock-free queue, used inside sections of RCU.
 *
 * This is quiesce/ds/lfqueue.h under liburcu's names; order, signals and fork() are described there.
 * Enqueue and dequeue are called inside a section, of one flavour, and a node is freed or put in again after a grace period of that.
 *
 * Other than liburcu's: nothing allocates memory, so nothing fails or aborts for want of it, and the call_rcu function that
 * cds_lfq_init_rcu() is given is kept and never called: liburcu frees by it the dummy nodes that it allocates, ours are words of the queue.
 */
#ifndef URCU_RCULFQUEUE_H
#define URCU_RCULFQUEUE_H

#include <assert.h> /* which programs take for granted */
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

/* Nobody else has it.  0; -EPERM: it is not empty, and may be used on. */
static inline int cds_lfq_destroy_rcu(struct cds_lfq_queue_rcu *q) { return quiesce_lfq_destroy(&q->quiesce); }

/* Inside a section.  A full fence. */
static inline void cds_lfq_enqueue_rcu(struct cds_lfq_queue_rcu *q, struct cds_lfq_node_rcu *node)
{
	quiesce__lfq_enqueue(&q->quiesce, &node->quiesce);
}

/* Inside a section.  NULL: it was empty. */
static inline struct cds_lfq_node_rcu *cds_lfq_dequeue_rcu(struct cds_lfq_queue_rcu *q)
{
	return (struct cds_lfq_node_rcu *)quiesce_lfq_dequeue(&q->quiesce);
}

QUIESCE_END_DECLS

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfqueue.h>
#endif

#endif
