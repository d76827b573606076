/* SPDX-License-Identifier: MIT */
/* held.h - which thread holds what; kept for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_HELD_H
#define QUIESCE_HELD_H

#include "core.h"

enum quiesce__held_kind { QUIESCE_HELD_READ, QUIESCE_HELD_WRITE, QUIESCE_HELD_SRCU, QUIESCE_HELD_SLOT };

/* The calling thread holds @object now, once more, since it was called from @site. */
void quiesce__held_add(const void *object, enum quiesce__held_kind kind, const void *site);
/* It is released: by the calling thread, if it holds it, else for whoever does. */
void quiesce__held_remove(const void *object, enum quiesce__held_kind kind);
/* Does the calling thread hold it?  False too where too much is held to keep account of. */
bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind);
/* Who has held @object longest, and how many do, as far as is known; nr 0: nobody. */
struct quiesce__holder { const void *site; uint64_t since; uint32_t tid, nr; };
struct quiesce__holder quiesce__held_longest(const void *object, enum quiesce__held_kind kind);
/* The calling thread ends: report what it holds, which stays held. */
void quiesce__held_thread_exit(void);
void quiesce__held_fork_child(void);

#endif
