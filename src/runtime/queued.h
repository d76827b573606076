/* SPDX-License-Identifier: MIT */
/* queued.h - objects that wait for their callbacks; recorded for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_QUEUED_H
#define QUIESCE_QUEUED_H

#include "core.h"

/* The result of quiesce__queued_note(): how the caller has to queue the object. */
enum quiesce__queued {
	QUIESCE_QUEUED_NOTED,   /* queue it with a function that calls quiesce__queued_take() */
	QUIESCE_QUEUED_UNNOTED, /* the table is full: queue it as in a release build */
	QUIESCE_QUEUED_TWICE,   /* the object is queued already, which has been reported: do not queue it */
};

/* Record that @object, a head or the object around it, is about to be queued for @func by @call, made by the
 * code at @site. */
enum quiesce__queued quiesce__queued_note(const void *object, uintptr_t func, const char *call, const void *site);
/* Remove the record of an object whose callback is due, and return the program's function; 0: there was no
 * record, which has been reported. */
uintptr_t quiesce__queued_take(const void *object);
void quiesce__queued_fork_prepare(void);
void quiesce__queued_fork_parent(void);
void quiesce__queued_fork_child(void);

#endif
