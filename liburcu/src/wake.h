/* SPDX-License-Identifier: MIT */
/* wake.h - a reader wakes who waits for it. */
#ifndef QUIESCE_URCU_SRC_WAKE_H
#define QUIESCE_URCU_SRC_WAKE_H

#include <stdint.h>

/* If somebody sleeps: wake him.  The reader has a fence between its word and this. */
void urcu_wake(uint32_t *futex);

#endif
