/* SPDX-License-Identifier: MIT */
/* wake.h - a reader wakes the waiter for readers. */
#ifndef QUIESCE_URCU_SRC_WAKE_H
#define QUIESCE_URCU_SRC_WAKE_H

#include <stdint.h>

/* Wakes a sleeping waiter.  The reader has a fence between the store to its word and this call. */
void urcu_wake(uint32_t *futex);

#endif
