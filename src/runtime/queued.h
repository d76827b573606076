/* SPDX-License-Identifier: MIT */
/* queued.h - which objects are queued, to be called back for; kept for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_QUEUED_H
#define QUIESCE_QUEUED_H

#include "core.h"

/* What becomes of a call that queues. */
enum quiesce__queued {
	QUIESCE_QUEUED_NOTED,   /* queue it with a function that asks quiesce__queued_take() */
	QUIESCE_QUEUED_UNNOTED, /* there is no room for a note: queue it as it is */
	QUIESCE_QUEUED_TWICE,   /* it is queued already, which has been reported: do nothing */
};

/* @object, a head or what it stands for, is about to be queued by @call, made at @site, for @func. */
enum quiesce__queued quiesce__queued_note(const void *object, uintptr_t func, const char *call, const void *site);
/* It has come back: what it is to be called with; 0: it was not noted, which has been reported. */
uintptr_t quiesce__queued_take(const void *object);
void quiesce__queued_fork_prepare(void);
void quiesce__queued_fork_parent(void);
void quiesce__queued_fork_child(void);

#endif
