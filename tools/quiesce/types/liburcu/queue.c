/* SPDX-License-Identifier: MIT */
/* queue.c - liburcu's queues and stacks, inlined: gets of the wait-free ones take a mutex, gets of the
 * lock-free ones are in sections of its membarrier flavour. */
#include "own.h"

#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/wfcqueue.h>
#include <urcu/wfstack.h>

#include <pthread.h>

#include "types/queue.h"
#include "types/registry.h"

#define AS(type, node) ((struct type *)(void *)(node))
#define NODE(pointer) ((struct queue_node *)(void *)(pointer))

static pthread_mutex_t gets QUEUE_ALONE = PTHREAD_MUTEX_INITIALIZER;

static inline struct queue_node *found(struct queue_node *node, uint64_t *ret_value)
{
	if (node)
		*ret_value = node->value;
	return node;
}

/* ---- wfcqueue: head and tail on lines of their own ---- */

static struct __cds_wfcq_head wfcq_head QUEUE_ALONE;
static struct cds_wfcq_tail wfcq_tail QUEUE_ALONE;

static int wfcq_create(struct queue_node *stub)
{
	(void)stub;
	__cds_wfcq_init(&wfcq_head, &wfcq_tail);
	return 0;
}

static inline void wfcq_put(struct queue_node *node)
{
	cds_wfcq_node_init(AS(cds_wfcq_node, node));
	cds_wfcq_enqueue(&wfcq_head, &wfcq_tail, AS(cds_wfcq_node, node));
}

static inline struct queue_node *wfcq_get(uint64_t *ret_value)
{
	struct queue_node *node;

	pthread_mutex_lock(&gets);
	node = NODE(__cds_wfcq_dequeue_blocking(&wfcq_head, &wfcq_tail));
	pthread_mutex_unlock(&gets);
	return found(node, ret_value);
}

QUEUE_LOOPS(wfcq, wfcq_put, wfcq_get)
static const struct queue_op wfcq = { .create = wfcq_create, QUEUE_LOOPS_OF(wfcq) };
TYPE(liburcu_wfcq, .rank = 1000,
	.what = "liburcu's wfcqueue, dequeued under a mutex", .queues = &wfcq);

/* ---- wfstack ---- */

static struct __cds_wfs_stack wfs QUEUE_ALONE;

static int wfs_create(struct queue_node *stub)
{
	(void)stub;
	__cds_wfs_init(&wfs);
	return 0;
}

static inline void wfs_put(struct queue_node *node)
{
	cds_wfs_node_init(AS(cds_wfs_node, node));
	cds_wfs_push(&wfs, AS(cds_wfs_node, node));
}

static inline struct queue_node *wfs_get(uint64_t *ret_value)
{
	struct queue_node *node;

	pthread_mutex_lock(&gets);
	node = NODE(__cds_wfs_pop_blocking(&wfs));
	pthread_mutex_unlock(&gets);
	return found(node, ret_value);
}

QUEUE_LOOPS(wfs, wfs_put, wfs_get)
static const struct queue_op wfs_queue = { .create = wfs_create, QUEUE_LOOPS_OF(wfs) };
TYPE(liburcu_wfs, .rank = 1020,
	.what = "liburcu's wfstack, popped under a mutex", .queues = &wfs_queue);

/* ---- gets in sections ---- */

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())
OP_FUNCTION(wait_for_readers, urcu_memb_synchronize_rcu())

static struct cds_lfq_queue_rcu lfq QUEUE_ALONE;

static int lfq_create(struct queue_node *stub)
{
	(void)stub;
	cds_lfq_init_rcu(&lfq, urcu_memb_call_rcu);
	return 0;
}

static inline void lfq_put(struct queue_node *node)
{
	cds_lfq_node_init_rcu(AS(cds_lfq_node_rcu, node));
	urcu_memb_read_lock();
	cds_lfq_enqueue_rcu(&lfq, AS(cds_lfq_node_rcu, node));
	urcu_memb_read_unlock();
}

static inline struct queue_node *lfq_get(uint64_t *ret_value)
{
	struct queue_node *node;

	urcu_memb_read_lock();
	node = NODE(cds_lfq_dequeue_rcu(&lfq));
	urcu_memb_read_unlock();
	return found(node, ret_value);
}

QUEUE_LOOPS(lfq, lfq_put, lfq_get)
static const struct queue_op lfq_queue = { .create = lfq_create, QUEUE_LOOPS_OF(lfq), .wait = wait_for_readers };
TYPE(liburcu_lfq, .rank = 1010,
	.what = "liburcu's rculfqueue, in sections", .queues = &lfq_queue,
	.init = liburcu_memb_init, .thread_enter = thread_enter, .thread_exit = thread_exit);

static struct __cds_lfs_stack lfs QUEUE_ALONE;

static int lfs_create(struct queue_node *stub)
{
	(void)stub;
	__cds_lfs_init(&lfs);
	return 0;
}

static inline void lfs_put(struct queue_node *node)
{
	cds_lfs_push(&lfs, AS(cds_lfs_node, node));
}

static inline struct queue_node *lfs_get(uint64_t *ret_value)
{
	struct queue_node *node;

	urcu_memb_read_lock();
	node = NODE(__cds_lfs_pop(&lfs));
	urcu_memb_read_unlock();
	return found(node, ret_value);
}

QUEUE_LOOPS(lfs, lfs_put, lfs_get)
static const struct queue_op lfs_queue = { .create = lfs_create, QUEUE_LOOPS_OF(lfs), .wait = wait_for_readers };
TYPE(liburcu_lfs, .rank = 1030,
	.what = "liburcu's lfstack, pops in sections", .queues = &lfs_queue,
	.init = liburcu_memb_init, .thread_enter = thread_enter, .thread_exit = thread_exit);
