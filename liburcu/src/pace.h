/* SPDX-License-Identifier: MIT */
/* pace.h - the pause of callbacks before they are called, and its clock. */
#ifndef QUIESCE_URCU_SRC_PACE_H
#define QUIESCE_URCU_SRC_PACE_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

extern uint64_t urcu_pace_ns; /* liburcu's pause, or that of QUIESCE_URCU_PACE_MS */

/* The time of a clock that is never set. */
uint64_t urcu_now_ns(void);
/* Waits for a post until @ns at most.  Returns true if the semaphore was posted. */
bool urcu_await_until(sem_t *sem, uint64_t ns);

#endif
