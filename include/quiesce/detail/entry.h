/* SPDX-License-Identifier: MIT */
/* quiesce/detail/entry.h - private: from a node to the object that contains it. */
#ifndef QUIESCE_DETAIL_ENTRY_H
#define QUIESCE_DETAIL_ENTRY_H

#include <quiesce/base.h>

/* Return the entry whose node is at @node. */
QUIESCE_FAST void *quiesce__entry_at(const void *node, size_t offset)
{
	return QUIESCE_AS_POINTER(void *, QUIESCE_AS_POINTER(uintptr_t, node) - offset);
}

/* Return the offset of @member in @type, and refuse a member that is not a @kind.  In C++ that
 * includes classes that derive from it, in which the @kind may be at another address: pointers to
 * two types are not subtracted. */
#define quiesce__offset(type, member, kind) \
	(offsetof(type, member) + 0 * sizeof(&QUIESCE_NULL(type)->member - QUIESCE_NULL(const kind)))

/* @node as a pointer to a @kind, from any class that derives from it in C++; void * is accepted,
 * anything else refused.  The branch that is never taken is not null, because -Wduplicated-branches
 * would report a @node that is. */
#define quiesce__node(kind, node) (1 ? (node) : QUIESCE_AS_POINTER(const kind *, sizeof(kind)))

/* The @type whose @member, a @kind, is @node. */
#define quiesce__object(node, type, member, kind) \
	QUIESCE_CAST(type *, quiesce__entry_at(quiesce__node(kind, node), quiesce__offset(type, member, kind)))

#endif
