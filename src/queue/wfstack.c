/* SPDX-License-Identifier: MIT */
/* wfstack.c - the wait for a link; the operations are in the header.
 *
 * I1  A node is in the stack from the exchange of its push on; its link is QUIESCE_WFS_UNLINKED until the push stores it,
 *     and then unchanged until the node is pushed again.
 * I2  Each operation changes head by an exchange.  So a load or exchange of head is ordered behind all pushes whose nodes it
 *     can reach, not only behind the last one: they form one release sequence.
 * I3  A pop replaces the top node by that node's link.  That is the node below as long as the top node has not been pushed
 *     again: pops are serialised, or are in sections that precede the node's next push.
 *
 * WS1  object written, then pushed                  | found on top, or all taken, then the objects read
 * WS2  link stored, which is a push's last access   | link read, then the node returned to the caller
 */
#include "queue/wait_link.h"

#include <quiesce/ds/wfstack.h>

QUIESCE_COLD struct wfs_node *quiesce__wfs_wait_link(struct wfs_node *node)
{
	struct wfs_node *next;

	for (uint32_t round = 0;; round++) {
		/* WS2: acquire, pairs with WS2 in quiesce__wfs_push() */
		next = quiesce_load_acquire(WS2, &node->next);
		if (next != QUIESCE_WFS_UNLINKED)
			return next;
		quiesce__link_pause(round);
	}
}
