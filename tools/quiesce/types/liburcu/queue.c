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
#include "registry.h"

static pthread_mutex_t gets QUEUE_ALONE = PTHREAD_MUTEX_INITIALIZER;

/* ---- wfcqueue: head and tail on lines of their own ---- */

static struct __cds_wfcq_head wfcq_head QUEUE_ALONE;
static struct cds_wfcq_tail wfcq_tail QUEUE_ALONE;

QUEUE_OF(wfcq, __cds_wfcq_init(&wfcq_head, &wfcq_tail),
	 cds_wfcq_node_init(QUEUE_AS(cds_wfcq_node, node)); cds_wfcq_enqueue(&wfcq_head, &wfcq_tail, QUEUE_AS(cds_wfcq_node, node)),
	 pthread_mutex_lock(&gets), __cds_wfcq_dequeue_blocking(&wfcq_head, &wfcq_tail), pthread_mutex_unlock(&gets))
QUEUE_MESSAGES(wfcq, wfcq_put, wfcq_get, free)
TYPE(liburcu_wfcq, .rank = 1000,
	.what = "liburcu's wfcqueue, dequeued under a mutex",
	.queues = &(const struct queue_op){ QUEUE_CALLS(wfcq), QUEUE_MESSAGES_OF(wfcq) });

/* ---- wfstack ---- */

static struct __cds_wfs_stack wfs QUEUE_ALONE;

QUEUE_OF(wfs, __cds_wfs_init(&wfs), cds_wfs_node_init(QUEUE_AS(cds_wfs_node, node)); cds_wfs_push(&wfs, QUEUE_AS(cds_wfs_node, node)),
	 pthread_mutex_lock(&gets), __cds_wfs_pop_blocking(&wfs), pthread_mutex_unlock(&gets))
QUEUE_MESSAGES(wfs, wfs_put, wfs_get, free)
TYPE(liburcu_wfs, .rank = 1020,
	.what = "liburcu's wfstack, popped under a mutex",
	.queues = &(const struct queue_op){ QUEUE_CALLS(wfs), QUEUE_MESSAGES_OF(wfs) });

/* ---- gets in sections ---- */

OP_FUNCTION(thread_enter, urcu_memb_register_thread())
OP_FUNCTION(thread_exit, urcu_memb_unregister_thread())
OP_FUNCTION(wait_for_readers, urcu_memb_synchronize_rcu())
OP_FUNCTION(drain, urcu_memb_barrier())
#define LATER .wait = wait_for_readers, .drain = drain

/* A message in sections: its node in the queue is first. */
struct message {
	struct cds_lfq_node_rcu node;
	struct rcu_head rcu;
};
_Static_assert(sizeof(struct message) <= sizeof(void *[4]), "there is room for it");

static void message_free(struct rcu_head *head)
{
	free((char *)head - offsetof(struct message, rcu));
}

static inline void free_later(struct queue_node *node)
{
	urcu_memb_call_rcu(&QUEUE_AS(message, node)->rcu, message_free);
}

#define IN_SECTIONS .init = liburcu_memb_init, .thread_enter = thread_enter, .thread_exit = thread_exit

static struct cds_lfq_queue_rcu lfq QUEUE_ALONE;

QUEUE_OF(lfq, cds_lfq_init_rcu(&lfq, urcu_memb_call_rcu),
	 cds_lfq_node_init_rcu(QUEUE_AS(cds_lfq_node_rcu, node)); urcu_memb_read_lock();
	 cds_lfq_enqueue_rcu(&lfq, QUEUE_AS(cds_lfq_node_rcu, node)); urcu_memb_read_unlock(),
	 urcu_memb_read_lock(), cds_lfq_dequeue_rcu(&lfq), urcu_memb_read_unlock())
QUEUE_MESSAGES(lfq, lfq_put, lfq_get, free_later)
TYPE(liburcu_lfq, .rank = 1010,
	.what = "liburcu's rculfqueue, in sections",
	.queues = &(const struct queue_op){ QUEUE_CALLS(lfq), QUEUE_MESSAGES_OF(lfq), LATER }, IN_SECTIONS);

static struct __cds_lfs_stack lfs QUEUE_ALONE;

QUEUE_OF(lfs, __cds_lfs_init(&lfs), cds_lfs_push(&lfs, QUEUE_AS(cds_lfs_node, node)), urcu_memb_read_lock(), __cds_lfs_pop(&lfs),
	 urcu_memb_read_unlock())
QUEUE_MESSAGES(lfs, lfs_put, lfs_get, free_later)
TYPE(liburcu_lfs, .rank = 1030,
	.what = "liburcu's lfstack, pops in sections",
	.queues = &(const struct queue_op){ QUEUE_CALLS(lfs), QUEUE_MESSAGES_OF(lfs), LATER }, IN_SECTIONS);
