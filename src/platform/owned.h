/* SPDX-License-Identifier: MIT */
/* owned.h - what the simulator is told of locks and of the gate; elsewhere nothing is done.  src/platform/sim/locks.c */
#ifndef QUIESCE_PLATFORM_OWNED_H
#define QUIESCE_PLATFORM_OWNED_H

#include <quiesce/base.h>

#include <stdbool.h>
#include <stdint.h>

/* Taken: before and after.  Given back: likewise. */
enum sim__lock_step { SIM_LOCK_WANTED, SIM_LOCK_TAKEN, SIM_LOCK_RETURNED, SIM_LOCK_LEFT };

#if defined(QUIESCE_SIM)
void sim__lock_step(const struct quiesce__lock *lock, enum sim__lock_step step);
/* In the child of a fork: held by a thread that does not exist there, or by the caller. */
void sim__lock_reset(const struct quiesce__lock *lock, bool mine);
void sim__gate(const uint32_t *running, bool inside);
/* One thread at a time may be inside. */
void sim__alone(const void *it, bool inside);
#else
static inline void sim__lock_step(const struct quiesce__lock *lock, enum sim__lock_step step)
{
	(void)lock;
	(void)step;
}

static inline void sim__lock_reset(const struct quiesce__lock *lock, bool mine)
{
	(void)lock;
	(void)mine;
}

static inline void sim__gate(const uint32_t *running, bool inside)
{
	(void)running;
	(void)inside;
}

static inline void sim__alone(const void *it, bool inside)
{
	(void)it;
	(void)inside;
}
#endif

#endif
