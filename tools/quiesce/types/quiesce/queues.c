/* SPDX-License-Identifier: MIT */
/* queues.c - queues and stacks of quiesce: gets of the wait-free ones take a mutex, gets of the lock-free ones are in
 * sections of RCU. */
#include <quiesce/ds/lfqueue.h>
#include <quiesce/ds/lfstack.h>
#include <quiesce/ds/wfcqueue.h>
#include <quiesce/ds/wfstack.h>
#include <quiesce/slab.h>

#include <errno.h>
#include <pthread.h>

#include "ours.h"
#include "types/queue.h"
#include "registry.h"

static pthread_mutex_t gets QUEUE_ALONE = PTHREAD_MUTEX_INITIALIZER;

/* ---- wfcqueue: head and tail on lines of their own ---- */

static struct wfcq_head head QUEUE_ALONE;
static struct wfcq_tail tail QUEUE_ALONE;

QUEUE_OF(wfcq, wfcq_init(&head, &tail), wfcq_enqueue(&head, &tail, QUEUE_AS(wfcq_node, node)), pthread_mutex_lock(&gets),
	 wfcq_dequeue_blocking(&head, &tail), pthread_mutex_unlock(&gets))
QUEUE_MESSAGES(wfcq, wfcq_put, wfcq_get, free)
TYPE(wfcqueue, .rank = 300,
	.what = "quiesce's wait-free enqueue, dequeued under a mutex",
	.queues = &(const struct queue_op){ QUEUE_CALLS(wfcq), QUEUE_MESSAGES_OF(wfcq), .peer = "liburcu_wfcq" });

/* ---- wfstack ---- */

static struct wfs_stack wfs QUEUE_ALONE;

QUEUE_OF(wfs, wfs_init(&wfs), wfs_push(&wfs, QUEUE_AS(wfs_node, node)), pthread_mutex_lock(&gets), wfs_pop_blocking(&wfs),
	 pthread_mutex_unlock(&gets))
QUEUE_MESSAGES(wfs, wfs_put, wfs_get, free)
TYPE(wfstack, .rank = 320,
	.what = "quiesce's wait-free push, pops under a mutex",
	.queues = &(const struct queue_op){ QUEUE_CALLS(wfs), QUEUE_MESSAGES_OF(wfs), .peer = "liburcu_wfs" });

/* ---- gets in sections ---- */

OP_FUNCTION(wait_for_readers, synchronize_rcu())
OP_FUNCTION(drain, rcu_barrier())

/* A message in sections has its node of the queue first. */
union message {
	struct queue_node node;
	struct {
		void *link;
		struct rcu_head rcu;
	} later;
};
_Static_assert(sizeof(((union message *)0)->later) <= sizeof(void *[4]), "there is room for it");

static inline void free_later(struct queue_node *node)
{
	kfree_rcu((union message *)node, later.rcu);
}
#define IN_SECTIONS .wait = wait_for_readers, .drain = drain

static struct lfq_queue lfq QUEUE_ALONE;

QUEUE_OF(lfq, lfq_init(&lfq), rcu_read_lock(); lfq_enqueue(&lfq, QUEUE_AS(lfq_node, node)); rcu_read_unlock(), rcu_read_lock(),
	 lfq_dequeue(&lfq), rcu_read_unlock())
QUEUE_MESSAGES(lfq, lfq_put, lfq_get, free_later)
TYPE(lfqueue, .rank = 310,
	.what = "quiesce's lock-free queue, in sections",
	OURS,
	.queues = &(const struct queue_op){ QUEUE_CALLS(lfq), QUEUE_MESSAGES_OF(lfq), IN_SECTIONS, .peer = "liburcu_lfq" },
	.thread_enter = rcu_first_section);

/* ---- lfqueue, of messages from an object cache, to which they return after a grace period ---- */

static struct kmem_cache *cache;

static int make_cache(enum op_fence fence)
{
	int err = op_rcu_init(fence);

	if (!err && !cache)
		cache = kmem_cache_create("messages", sizeof(struct queue_node), 0, SLAB_HWCACHE_ALIGN, NULL);
	return err ? err : cache ? 0 : -ENOMEM;
}

static inline struct queue_node *slab_message(struct queue_hand *hand)
{
	return queue_fill(hand, kmem_cache_alloc(cache));
}

QUEUE_MESSAGES_FROM(lfq_slab, slab_message, lfq_put, lfq_get, free_later)
TYPE(lfqueue_slab, .rank = 315,
	.what = "quiesce's lock-free queue, in sections: messages from an object cache",
	.fence_modes = true,
	.queues = &(const struct queue_op){ .create = lfq_create, QUEUE_MESSAGES_OF(lfq_slab), .drain = drain, .peer = "liburcu_lfq" },
	.init = make_cache, .thread_enter = rcu_first_section, .stats = op_rcu_stats);

static struct lfs_stack lfs QUEUE_ALONE;

QUEUE_OF(lfs, lfs_init(&lfs), lfs_push(&lfs, QUEUE_AS(lfs_node, node)), rcu_read_lock(), lfs_pop(&lfs), rcu_read_unlock())
QUEUE_MESSAGES(lfs, lfs_put, lfs_get, free_later)
TYPE(lfstack, .rank = 330,
	.what = "quiesce's lock-free stack, pops in sections",
	OURS,
	.queues = &(const struct queue_op){ QUEUE_CALLS(lfs), QUEUE_MESSAGES_OF(lfs), IN_SECTIONS, .peer = "liburcu_lfs" },
	.thread_enter = rcu_first_section);
