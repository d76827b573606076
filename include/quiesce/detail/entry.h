/* SPDX-License-Identifier: MIT */
/* quiesce/detail/entry.h - private: from a node to the object that it is in. */
#ifndef QUIESCE_DETAIL_ENTRY_H
#define QUIESCE_DETAIL_ENTRY_H

#include <quiesce/base.h>

/* The entry whose node is at @node. */
QUIESCE_FAST void *quiesce__entry_at(const void *node, size_t offset)
{
	return QUIESCE_AS_POINTER(void *, QUIESCE_AS_POINTER(uintptr_t, node) - offset);
}

/* Where in @type the @member is.  Refuses a member that is not a @kind. */
#ifdef __cplusplus
#define quiesce__offset(type, member, kind)                                                 \
	(offsetof(type, member) + 0 * sizeof(static_cast<const kind *>(&QUIESCE_NULL(type)->member)))
#else
#define quiesce__offset(type, member, kind)                                                 \
	(offsetof(type, member) +                                                           \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->member), kind) ? 1 : -1]))
#endif

#endif
