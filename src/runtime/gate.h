/* SPDX-License-Identifier: MIT */
/* gate.h - callbacks run in chunks, inside a gate that fork() closes. */
#ifndef QUIESCE_GATE_H
#define QUIESCE_GATE_H

#include "core.h"

/* Callbacks run between these two, in chunks, so that fork() can wait until none runs.  @running is the word
 * of the calling thread. */
void quiesce__gate_enter(uint32_t *running);
void quiesce__gate_leave(uint32_t *running);
/* Enter without waiting; false if a fork is being prepared.  quiesce__gate_expect_owner() comes first, once in each thread that
 * may do so, or on its behalf. */
void quiesce__gate_expect_owner(void);
bool quiesce__gate_try_enter(uint32_t *running);

/* Before fork(): close the gate, and wait a limited time for callbacks inside it.  After fork(): open the
 * gate. */
void quiesce__gate_close(void);
void quiesce__gate_open(void);
void quiesce__gate_fork_child(void);

#endif
