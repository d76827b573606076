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
/* Where the calling thread took what it holds of @object last; NULL: it does not hold it, as below. */
const void *quiesce__held_since(const void *object, enum quiesce__held_kind kind);
/* Does the calling thread hold it?  False too where too much is held to keep account of. */
bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind);
/* Who has held @object longest, and how many do, as far as is known; nr 0: nobody. */
struct quiesce__holder { const void *site; uint64_t since; uint32_t tid, nr; };
struct quiesce__holder quiesce__held_longest(const void *object, enum quiesce__held_kind kind);
/* A slot of the calling thread for which @protects says yes to @address; NULL: there is none. */
const void *quiesce__held_slot_of_mine(bool (*protects)(const void *slot, uintptr_t address), uintptr_t address);
/* Something that the calling thread holds, a slot or another thing, is not its own any more; false: there is none. */
struct quiesce__held { const void *object, *site; enum quiesce__held_kind kind; };
bool quiesce__held_disown(bool slots, struct quiesce__held *ret);
/* The calling thread ends, or calls exit(): report what it holds, slots aside, which stays held. */
void quiesce__held_thread_exit(void);
void quiesce__held_process_exit(void);
void quiesce__held_fork_child(void);

#endif
