/* SPDX-License-Identifier: MIT */
/* queue_wfcqueue.c - wfcqueue of quiesce, dequeued under a mutex; head and tail on lines of their own. */
#include <quiesce/ds/wfcqueue.h>

#include <pthread.h>

#include "types/queue.h"
#include "types/registry.h"

static struct wfcq_head head QUEUE_ALONE;
static struct wfcq_tail tail QUEUE_ALONE;
static pthread_mutex_t gets QUEUE_ALONE = PTHREAD_MUTEX_INITIALIZER;

static int wfcq_create(struct queue_node *stub)
{
	(void)stub;
	wfcq_init(&head, &tail);
	return 0;
}

static inline void wfcq_put(struct queue_node *node)
{
	wfcq_enqueue(&head, &tail, (struct wfcq_node *)(void *)node);
}

static inline struct queue_node *wfcq_get(uint64_t *ret_value)
{
	struct queue_node *node;

	pthread_mutex_lock(&gets);
	node = (struct queue_node *)(void *)wfcq_dequeue_blocking(&head, &tail);
	pthread_mutex_unlock(&gets);
	if (node)
		*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(wfcq, wfcq_put, wfcq_get)

static const struct queue_op wfcq = { .create = wfcq_create, QUEUE_LOOPS_OF(wfcq), .peer = "liburcu_wfcq" };

TYPE(wfcqueue, .rank = 300,
	.what = "quiesce's wait-free enqueue, dequeued under a mutex", .queues = &wfcq);
