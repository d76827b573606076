/* SPDX-License-Identifier: MIT */
/* held.h - locks, domains and slots that each thread holds; recorded for programs built with QUIESCE_DEBUG. */
#ifndef QUIESCE_HELD_H
#define QUIESCE_HELD_H

#include "core.h"

enum quiesce__held_kind { QUIESCE_HELD_READ, QUIESCE_HELD_WRITE, QUIESCE_HELD_SRCU, QUIESCE_HELD_SLOT };

/* Record that the calling thread has taken @object, once more if it holds it already, in the code at @site. */
void quiesce__held_add(const void *object, enum quiesce__held_kind kind, const void *site);
/* Remove the record: of the calling thread if it holds @object, else of another holder. */
void quiesce__held_remove(const void *object, enum quiesce__held_kind kind);
/* The code where the calling thread last took @object; NULL if no record says that it holds it. */
const void *quiesce__held_since(const void *object, enum quiesce__held_kind kind);
/* True if a record says that the calling thread holds @object.  False also where the table was full. */
bool quiesce__held_by_me(const void *object, enum quiesce__held_kind kind);
/* The recorded holder that took @object first, and the number of recorded holders; nr 0: none is known. */
struct quiesce__holder { const void *site; uint64_t since; uint32_t tid, nr; };
struct quiesce__holder quiesce__held_longest(const void *object, enum quiesce__held_kind kind);
/* A slot of the calling thread for which @protects returns true with @address; NULL: there is none. */
const void *quiesce__held_slot_of_mine(bool (*protects)(const void *slot, uintptr_t address), uintptr_t address);
/* Take one object, a slot or of another kind, from the calling thread's records and return it in @ret; false:
 * there is none. */
struct quiesce__held { const void *object, *site; enum quiesce__held_kind kind; };
bool quiesce__held_disown(bool slots, struct quiesce__held *ret);
/* The calling thread ends, or calls exit(): report what it holds, slots aside.  It stays held. */
void quiesce__held_thread_exit(void);
void quiesce__held_process_exit(void);
void quiesce__held_fork_child(void);

#endif
