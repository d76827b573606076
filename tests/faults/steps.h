/* SPDX-License-Identifier: MIT */
/* steps.h - a trap of the CPU after every instruction of a thread, except where signals are blocked. */
#ifndef STEPS_H
#define STEPS_H

#include "../unit/testing.h"

#if !defined(__x86_64__)
#error "knows the trap flag of x86 only"
#endif

static inline void trap_on(void)
{
	/* raw: the flags register cannot be written otherwise */
	__asm__ __volatile__("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static inline void trap_off(void)
{
	/* raw: the flags register cannot be written otherwise */
	__asm__ __volatile__("pushfq; andl $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

/* The handler must not run where the library blocks signals: a blocked trap kills the process. */
static __thread int blocked;
static __thread int wants_traps; /* from the next time on that signals are allowed */

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t most = *set;
	int was = blocked, err;

	blocked = 1; /* the handler is not to be interrupted either */
	sigdelset(&most, SIGTRAP);
	err = sigprocmask(how, &most, old);
	if (old && was)
		sigaddset(old, SIGTRAP);
	blocked = sigismember(set, SIGTRAP) == 1;
	if (!blocked && wants_traps)
		trap_on();
	return err;
}

#endif
