/* SPDX-License-Identifier: MIT */
/* wfstack.c - the wait for a link; all else is in the header.
 *
 * I1  From its push's exchange on a node is in the stack; its link is QUIESCE_WFS_UNLINKED until the push stores it, and
 *     never again before the next push of the node.
 * I2  Each operation changes head by an exchange.  So who reads head, or takes it, is ordered behind all pushes whose
 *     nodes it can reach, not only the last one: they form one release sequence.
 * I3  A pop puts the link of the node on top in its place.  That is the node below as long as the node has not been pushed again:
 *     pops are serialised, or in sections that a node's next push waits for.
 *
 *   push                                    pop, pop_all
 *   object written, then head     (rmw)     head, then the object          WS1
 *   link stored, the last access            link read, then node given     WS2
 *   of the push                             away
 */
#include "ds/wait_link.h"

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
