/* SPDX-License-Identifier: MIT */
/* held.h - which thread holds what; kept for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_HELD_H
#define QUIESCE_HELD_H

#include "core.h"

enum quiesce__held_kind { QUIESCE_HELD_READ, QUIESCE_HELD_WRITE, QUIESCE_HELD_SRCU, QUIESCE_HELD_SLOT };

/* The calling thread holds @object now, once more. */
void quiesce__held_add(const void *object, enum quiesce__held_kind kind);
/* It is released: by the calling thread, if it holds it, else for whoever does. */
void quiesce__held_remove(const void *object, enum quiesce__held_kind kind);
/* Does the calling thread hold it?  False too where too much is held to keep account of. */
bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind);
/* The calling thread ends: report what it holds, which stays held. */
void quiesce__held_thread_exit(void);
void quiesce__held_fork_child(void);

#endif
