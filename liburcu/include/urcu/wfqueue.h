/* SPDX-License-Identifier: MIT */
/* urcu/wfqueue.h - the predecessor of urcu/wfcqueue.h; deprecated in liburcu, and so here.
 *
 * Any thread enqueues.  One thread at a time calls __cds_wfq_dequeue_blocking(); cds_wfq_dequeue_blocking() locks the
 * queue's mutex.  It is the queue of urcu/wfcqueue.h: the caller may reuse or free a dequeued node at once, and nodes
 * need no initialisation.
 * A program that defines CDS_WFQ_DEPRECATED, as nothing, before it includes this header gets no warnings.
 */
#ifndef URCU_WFQUEUE_H
#define URCU_WFQUEUE_H

#include <assert.h> /* programs rely on this header to include it */
#include <pthread.h>
#include <quiesce-urcu/lock.h>
#include <quiesce/detail/wfcqueue.h>
#include <urcu/compiler.h>

#ifndef CDS_WFQ_DEPRECATED
#define CDS_WFQ_DEPRECATED CDS_DEPRECATED("urcu/wfqueue.h is deprecated: use urcu/wfcqueue.h")
#endif

QUIESCE_BEGIN_DECLS

struct cds_wfq_node {
	__extension__ union {
		struct cds_wfq_node *next;
		struct wfcq_node quiesce;
	};
};

struct cds_wfq_queue {
	struct wfcq_head head;
	struct wfcq_tail tail;
	pthread_mutex_t lock;
};

static inline CDS_WFQ_DEPRECATED void cds_wfq_node_init(struct cds_wfq_node *node) { node->next = NULL; }

static inline CDS_WFQ_DEPRECATED void cds_wfq_init(struct cds_wfq_queue *q)
{
	quiesce__wfcq_init(&q->head, &q->tail);
	quiesce_urcu__lock_init(&q->lock);
}

static inline CDS_WFQ_DEPRECATED void cds_wfq_destroy(struct cds_wfq_queue *q) { quiesce_urcu__lock_destroy(&q->lock); }

/* A full fence. */
static inline CDS_WFQ_DEPRECATED void cds_wfq_enqueue(struct cds_wfq_queue *q, struct cds_wfq_node *node)
{
	(void)quiesce__wfcq_enqueue(&q->head, &q->tail, &node->quiesce);
}

static inline CDS_WFQ_DEPRECATED struct cds_wfq_node *__cds_wfq_dequeue_blocking(struct cds_wfq_queue *q)
{
	int ignored;

	return (struct cds_wfq_node *)quiesce__wfcq_dequeue_blocking(&q->head, &q->tail, &ignored);
}

static inline CDS_WFQ_DEPRECATED struct cds_wfq_node *cds_wfq_dequeue_blocking(struct cds_wfq_queue *q)
{
	int ignored;
	struct wfcq_node *node;

	quiesce_urcu__lock(&q->lock);
	node = quiesce__wfcq_dequeue_blocking(&q->head, &q->tail, &ignored);
	quiesce_urcu__unlock(&q->lock);
	return (struct cds_wfq_node *)node;
}

QUIESCE_END_DECLS

#ifdef _LGPL_SOURCE
#include <urcu/static/wfqueue.h>
#endif

#endif
