/* SPDX-License-Identifier: MIT */
/* debug_pending.h - objects that wait for their callbacks; recorded for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_DEBUG_PENDING_H
#define QUIESCE_DEBUG_PENDING_H

#include "core.h"

/* The result of quiesce__pending_add(): how the caller has to queue the object. */
enum quiesce__pending {
	QUIESCE_PENDING_RECORDED,   /* queue it with a function that calls quiesce__pending_take() */
	QUIESCE_PENDING_UNRECORDED, /* the table is full: queue it as in a release build */
	QUIESCE_PENDING_TWICE,   /* the object is queued already, which has been reported: do not queue it */
};

/* Record that @object, a head or the object around it, is about to be queued for @func by @call, made by the
 * code at @site. */
enum quiesce__pending quiesce__pending_add(const void *object, uintptr_t func, const char *call, const void *site);
/* Remove the record of an object whose callback is due, and return the program's function; 0: there was no
 * record, which has been reported. */
uintptr_t quiesce__pending_take(const void *object);
void quiesce__pending_fork_prepare(void);
void quiesce__pending_fork_parent(void);
void quiesce__pending_fork_child(void);

#endif
