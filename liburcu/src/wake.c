/* SPDX-License-Identifier: MIT */
/* wake.c - the wake-up of a waiter for readers, for inlined code. */
#define _GNU_SOURCE
#include "wake.h"

#include <quiesce/atomic.h>

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The reader has a fence between the store to its word and this call. */
void urcu_wake(uint32_t *futex)
{
	int saved = errno;

	if (quiesce_likely(quiesce_load_relaxed(futex) != UINT32_MAX)) /* Relaxed: UW4. */
		return;
	quiesce_store_relaxed(futex, 0); /* Relaxed: the waiter checks again before it sleeps again. */
	syscall(SYS_futex, futex, FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = saved;
}
