/* SPDX-License-Identifier: MIT */
/* wfcqueue.c - who takes out of a queue waits for an enqueuer.
 *
 * Idea.  An enqueuer exchanges the tail, and then links: the node before, which the exchange gave it, to its own.
 *
 *	head -> a -> b    c -> d <- tail         who puts c in has its place, and not linked it yet
 *
 * I1. The nodes of a queue are those that were exchanged into the tail, in this order; the last one leads nowhere.
 * I2. Of each node, and of the head, one enqueuer writes the link: who found it in the tail.  Before that it was cleared (WF2).
 * I3. Who takes the last node makes the tail the head's: if that succeeds nobody has found the node there, so nobody will write to it.
 *     A node with a link has been written to for the last time.  So a node that was taken is the caller's.
 * I4. Only who takes writes the head's link, but for the enqueuer who found the head in the tail.
 *
 *   link written (release)               followed (acquire)             WF1
 *   a link cleared, tail exchanged       tail exchanged, link written   WF2
 */
#include "ds/wait_link.h"
#include "platform/platform.h"

#include <quiesce/ds/wfcqueue.h>

/* NULL: @node is the last. */
QUIESCE_COLD struct wfcq_node *quiesce_wfcq_wait(const struct wfcq_tail *tail, const struct wfcq_node *node)
{
	struct wfcq_node *next;

	for (uint32_t turn = 0; !(next = quiesce__wfcq_follow(node)); turn += turn < UINT32_MAX) {
		if (quiesce__wfcq_at_end(tail, node) && !QUIESCE_MUTANT(wfcq_waits_blind))
			break;
		quiesce__link_pause(turn);
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
