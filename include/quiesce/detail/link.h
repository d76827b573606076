/* SPDX-License-Identifier: MIT */
/* quiesce/detail/link.h - private: what the three kinds of lists share, links that readers follow and entries around them.
 *
 * A link is a pointer to the next node, in a head or in a node.  Updaters exclude each other; readers follow
 * links inside a section.  Every store to a link that a reader may be at is a release, that of a removal
 * too: see quiesce__link_pass() and docs/design/rculist.md.
 */
#ifndef QUIESCE_DETAIL_LINK_H
#define QUIESCE_DETAIL_LINK_H

#include <quiesce/detail/entry.h>
#include <quiesce/rcu.h>

/* Where a removed node's back pointer leads: the first page, which is nobody's.  A second removal faults. */
#define QUIESCE_LIST_POISON ((uintptr_t)0x122)

/* A reader's step. */
#define quiesce__link_load(where) quiesce_load_consume(LI1, (where)) /* LI1: acquire, pairs with LI1 in quiesce__link_store() */

/* An updater's step, and every look that goes no further. */
#define quiesce__link_peek(where) quiesce_load_relaxed(where) /* Relaxed: updaters exclude each other. */

/* Of a node that no reader can be at. */
#define quiesce__link_init(where, node) quiesce_store_relaxed((where), (node)) /* Relaxed: quiesce__link_store() follows. */

/* Show @node to readers. */
#define quiesce__link_store(where, node)                                             \
	quiesce_store_release(LI1, (where), (node)) /* LI1: release, pairs with LI1 in quiesce__link_load() */

/* Lead readers past what was removed, or from another head, to @node.  They have been able to reach it before, by another way:
 * that does not order this way, and if its updater did not wait in between, then nothing else does (LI1-unlink.litmus). */
#define quiesce__link_pass(where, node) quiesce__link_store(where, node)

/* The entry whose node is at @node; NULL at @end.  Nothing is computed from @end. */
QUIESCE_FAST void *quiesce__entry(const void *node, const void *end, size_t offset)
{
	void *entry;

	if (node == end)
		return NULL;
	entry = quiesce__entry_at(node, offset);
	if (!entry)
		__builtin_unreachable(); /* so that a loop needs one comparison per step, not two */
	return entry;
}

/* The @type whose @member, a @kind, is @node; NULL at @end. */
#define quiesce__object_before(node, end, type, member, kind)                                                 \
	QUIESCE_CAST(type *, quiesce__entry(quiesce__node(kind, node), quiesce__node(kind, end), quiesce__offset(type, member, kind)))

/* The same where the type is that of what @pos points to. */
#define quiesce__entry_of(pos, node, end, member, kind) quiesce__object_before(node, end, __typeof__(*(pos)), member, kind)

#endif
