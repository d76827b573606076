/* SPDX-License-Identifier: MIT */
/* owned.h - the simulator's view of locks and of the gate (src/platform/sim/locks.c); elsewhere these calls
 * do nothing. */
#ifndef QUIESCE_PLATFORM_OWNED_H
#define QUIESCE_PLATFORM_OWNED_H

#include <quiesce/base.h>

#include <stdbool.h>
#include <stdint.h>

/* Before and after a lock is taken; before and after it is released. */
enum sim__lock_step { SIM_LOCK_WANTED, SIM_LOCK_TAKEN, SIM_LOCK_RETURNED, SIM_LOCK_LEFT };

#if defined(QUIESCE_SIM)
void sim__lock_step(const struct quiesce__lock *lock, enum sim__lock_step step);
/* In the child of a fork: the lock is released if its holder does not exist there; @mine: the caller holds
 * it. */
void sim__lock_reset(const struct quiesce__lock *lock, bool mine);
void sim__gate(const uint32_t *running, bool inside);
/* Assert that at most one thread is inside. */
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
