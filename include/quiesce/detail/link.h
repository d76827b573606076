/* SPDX-License-Identifier: MIT */
/* quiesce/detail/link.h - private: links that readers follow, and entries around them, for the
 * three kinds of lists.
 *
 * A link is a pointer to the next node, in a head or in a node.  Updaters exclude each other;
 * readers follow links inside a section.  Each store to a link that a reader may load is a
 * release, that of a removal, too: see quiesce__link_pass() and docs/design/rculist.md.
 *
 * LI1  entry initialised, then linked      | link loaded, then the entry read
 *      the entry behind a removed one linked, then the link past that one | link loaded, then that entry read
 */
#ifndef QUIESCE_DETAIL_LINK_H
#define QUIESCE_DETAIL_LINK_H

#include <quiesce/detail/entry.h>
#include <quiesce/rcu.h>

/* Back pointer of a removed node: an address in the first page, which is not mapped, so that a
 * second removal faults. */
#define QUIESCE_LIST_POISON ((uintptr_t)0x122)

/* Load a link, as a reader. */
#define quiesce__link_load(where) quiesce_load_consume(LI1, (where)) /* LI1: acquire, pairs with LI1 in quiesce__link_store() */

/* Load a link, as an updater, or if the node is not dereferenced. */
#define quiesce__link_peek(where) quiesce_load_relaxed(where) /* Relaxed: updaters exclude each other. */

/* Store a link in a node that no reader can access. */
#define quiesce__link_init(where, node) quiesce_store_relaxed((where), (node)) /* Relaxed: quiesce__link_store() follows. */

/* Publish @node to readers. */
#define quiesce__link_store(where, node)                                             \
	quiesce_store_release(LI1, (where), (node)) /* LI1: release, pairs with LI1 in quiesce__link_load() */

/* Link readers to @node past a removed node, or from another head.  Readers could reach @node
 * before, by another link.  That does not order this link; and if the updater of that link did not
 * wait in between, nothing else does (LI1-unlink.litmus). */
#define quiesce__link_pass(where, node) quiesce__link_store(where, node)

/* The entry whose node is at @node; NULL at @end.  No address is computed from @end. */
QUIESCE_FAST void *quiesce__entry(const void *node, const void *end, size_t offset)
{
	void *entry;

	if (node == end)
		return NULL;
	entry = quiesce__entry_at(node, offset);
	if (!entry)
		__builtin_unreachable(); /* a loop then needs one comparison per step, not two */
	return entry;
}

/* The @type whose @member, a @kind, is @node; NULL at @end. */
#define quiesce__object_before(node, end, type, member, kind)                                                 \
	QUIESCE_CAST(type *, quiesce__entry(quiesce__node(kind, node), quiesce__node(kind, end), quiesce__offset(type, member, kind)))

/* The object of the type of *@pos whose @member, a @kind, is @node; NULL at @end. */
#define quiesce__entry_of(pos, node, end, member, kind) quiesce__object_before(node, end, __typeof__(*(pos)), member, kind)

#endif
