/* SPDX-License-Identifier: MIT */
/* gate.h - callbacks run in chunks, inside a gate that fork() closes. */
#ifndef QUIESCE_GATE_H
#define QUIESCE_GATE_H

#include "core.h"

/* Callbacks run between these two, in chunks, so that fork() can wait until none does; @running is the caller's. */
void quiesce__gate_enter(uint32_t *running);
void quiesce__gate_leave(uint32_t *running);
/* False: a fork is being prepared. */
bool quiesce__gate_try_enter(uint32_t *running);

/* Before fork(): close it, and wait for those inside, for a while.  After: open it. */
void quiesce__gate_close(void);
void quiesce__gate_open(void);
void quiesce__gate_fork_child(void);

#endif
