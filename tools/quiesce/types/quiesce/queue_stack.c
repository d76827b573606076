/* SPDX-License-Identifier: MIT */
/* queue_stack.c - wfstack and lfstack of quiesce: popped under a mutex, and in sections of RCU. */
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfstack.h>

#include <pthread.h>

#include "ours.h"
#include "types/queue.h"
#include "types/registry.h"

/* ---- wfstack ---- */

static struct wfs_stack wfs QUEUE_ALONE;
static pthread_mutex_t pops QUEUE_ALONE = PTHREAD_MUTEX_INITIALIZER;

static int wfs_create(struct queue_node *stub)
{
	(void)stub;
	wfs_init(&wfs);
	return 0;
}

static inline void wfs_put(struct queue_node *node)
{
	wfs_push(&wfs, (struct wfs_node *)(void *)node);
}

static inline struct queue_node *wfs_get(uint64_t *ret_value)
{
	struct queue_node *node;

	pthread_mutex_lock(&pops);
	node = (struct queue_node *)(void *)wfs_pop_blocking(&wfs);
	pthread_mutex_unlock(&pops);
	if (node)
		*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(wfs, wfs_put, wfs_get)

static const struct queue_op wfs_queue = { .create = wfs_create, QUEUE_LOOPS_OF(wfs), .peer = "liburcu_wfs" };

TYPE(wfstack, .rank = 320,
	.what = "quiesce's wait-free push, pops under a mutex", .queues = &wfs_queue);

/* ---- lfstack ---- */

static struct lfs_stack lfs QUEUE_ALONE;

static int lfs_create(struct queue_node *stub)
{
	(void)stub;
	lfs_init(&lfs);
	return 0;
}

static inline void lfs_put(struct queue_node *node)
{
	lfs_push(&lfs, (struct lfs_node *)(void *)node);
}

static inline struct queue_node *lfs_get(uint64_t *ret_value)
{
	struct queue_node *node;

	rcu_read_lock();
	node = (struct queue_node *)(void *)lfs_pop(&lfs);
	rcu_read_unlock();
	if (node)
		*ret_value = node->value;
	return node;
}

QUEUE_LOOPS(lfs, lfs_put, lfs_get)

OP_FUNCTION(lfs_wait, synchronize_rcu())
static const struct queue_op lfs_queue = { .create = lfs_create, QUEUE_LOOPS_OF(lfs), .wait = lfs_wait, .peer = "liburcu_lfs" };

TYPE(lfstack, .rank = 330,
	.what = "quiesce's lock-free stack, pops in sections",
	OURS,
	.queues = &lfs_queue,
	.thread_enter = rcu_first_section);
