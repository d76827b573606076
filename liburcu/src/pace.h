/* SPDX-License-Identifier: MIT */
/* pace.h - how long callbacks wait before they are called, and the clock for that. */
#ifndef QUIESCE_URCU_SRC_PACE_H
#define QUIESCE_URCU_SRC_PACE_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

extern uint64_t urcu_pace_ns; /* liburcu's, or what QUIESCE_URCU_PACE_MS says */

/* Nobody sets that clock, where the C library can wait by one. */
uint64_t urcu_now_ns(void);
/* Until that time at most.  True: it was posted. */
bool urcu_await_until(sem_t *sem, uint64_t ns);

#endif
