/* SPDX-License-Identifier: MIT */
/* wfcqueue.c - the waits of a consumer for a producer.
 *
 * Idea.  A producer exchanges the tail, which gives it the node before, and then links that node to its own.
 *
 *	head -> a -> b    c -> d <- tail         the producer of c has its place, and has not linked it yet
 *
 * I1. The nodes of a queue are those that were exchanged into the tail, in this order; the last one has no successor.
 * I2. The link of each node, and of the head, is written by one producer, which found that node in the tail.  The link was
 *     cleared before (WF2).
 * I3. A consumer that takes the last node sets the tail back to the head: if that succeeds, no producer has found the node
 *     there, so none will write to it.  A node that has a link has been written to for the last time.  So a node that was
 *     dequeued belongs to the caller.
 * I4. Only consumers write the link of the head, except for the producer that found the head in the tail.
 *
 * WF1  node filled in, then linked         | link followed, then the node read
 * WF2  a link cleared, then tail exchanged | tail exchanged, then the link found there written
 */
#include "queue/wait_link.h"
#include "platform/platform.h"

#include <quiesce/ds/wfcqueue.h>

/* Wait for the successor of @node; NULL if @node is the last. */
QUIESCE_COLD struct wfcq_node *quiesce_wfcq_wait(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	struct wfcq_node *next;

	for (uint32_t tries = 0; !(next = quiesce__wfcq_follow(node)); tries += tries < UINT32_MAX) {
		if (quiesce__wfcq_at_end(tail, node) && !QUIESCE_MUTANT(wfcq_waits_blind))
			break;
		quiesce__link_pause(tries);
	}
	return next;
}

QUIESCE_COLD struct wfcq_node *quiesce_wfcq_dequeue_with_state_blocking(struct wfcq_head *head, struct wfcq_tail *tail, int *ret_state)
{
	struct wfcq_node *node, *first;

	while ((node = wfcq_dequeue_with_state_nonblocking(head, tail, ret_state)) == WFCQ_WOULDBLOCK) {
		first = quiesce__wfcq_follow(&head->node);
		quiesce_wfcq_wait(tail, first ? first : &head->node);
	}
	return node;
}

QUIESCE_COLD enum wfcq_ret quiesce_wfcq_splice_blocking(struct wfcq_head *dest_head, struct wfcq_tail *dest_tail,
							struct wfcq_head *src_head, struct wfcq_tail *src_tail)
{
	enum wfcq_ret ret;

	while ((ret = wfcq_splice_nonblocking(dest_head, dest_tail, src_head, src_tail)) == WFCQ_RET_WOULDBLOCK)
		quiesce_wfcq_wait(src_tail, &src_head->node);
	return ret;
}
