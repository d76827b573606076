/* SPDX-License-Identifier: MIT */
/* gate.c - fork() waits until callbacks are between two chunks, and keeps them from starting the next one.
 *
 * I1. A thread sets its word @running before it tests @closed, and fork() raises @closed before it reads the words.  So a thread that
 *     finds the gate open, and begins a chunk, is seen by fork(), which waits for it.
 * I2. fork() waits for FORK_WAIT_MAX_NS at most, because a callback may wait for a lock of the thread that forks.  A chunk may therefore
 *     be in progress at the fork: its callback counts as run in the child.
 * I3. An owner of retired objects enters every few calls, so its fence is that of the mode, and fork() has the heavy one, once
 *     there has been an owner: programs that retire nothing fork without a membarrier.  Where a sandbox refuses that the fork
 *     goes on, and may miss a chunk of an owner, as in I2.
 * I4. @closed is a count, because several threads may fork at the same time.  A callback that forks does not count: it is inside the
 *     gate, and would wait for itself.  The child has one thread, so its gate is open.
 *
 * FK1  gate closed, then running read       | running set, then closed read
 */
#include "gate.h"

#include "platform/owned.h"
#include "subsystem.h"

#define FORK_WAIT_MAX_NS 100000000u
#define FORK_POLL_NS 50000u

static uint32_t closed; /* number of forks being prepared */
static uint32_t owners; /* threads may enter by quiesce__gate_try_enter() */

void quiesce__gate_enter(uint32_t *running)
{
	for (;;) {
		uint32_t now_closed;

		quiesce_store_relaxed(running, 1); /* Relaxed: the fence follows. */
		/* FK1: full, pairs with FK1 in quiesce__gate_close() */
		quiesce_fence_full(FK1);
		now_closed = quiesce_load_relaxed(&closed); /* Relaxed: FK1. */
		if (quiesce_likely(!now_closed))
			break;
		quiesce_store_relaxed(running, 0); /* Relaxed: nothing ran. */
		platform_futex_wait(&closed, now_closed, PLATFORM_FOREVER);
	}
	sim__gate(running, true);
}

void quiesce__gate_expect_owner(void)
{
	quiesce_store_relaxed(&owners, 1); /* Relaxed: the fence follows. */
	/* FK1: full, pairs with FK1 in quiesce__gate_close() */
	quiesce_fence_full(FK1);
}

bool quiesce__gate_try_enter(uint32_t *running)
{
	quiesce_store_relaxed(running, 1); /* Relaxed: the fence follows. */
	/* FK1: pairs with FK1 in quiesce__gate_close() */
	quiesce_fence_mode(FK1);
	if (quiesce_likely(!quiesce_load_relaxed(&closed))) { /* Relaxed: FK1. */
		sim__gate(running, true);
		return true;
	}
	quiesce_store_relaxed(running, 0); /* Relaxed: nothing ran. */
	return false;
}

void quiesce__gate_leave(uint32_t *running)
{
	sim__gate(running, false);
	/* FK1: release, pairs with FK1 in quiesce__reclaimers_paused() and quiesce__retired_paused() and quiesce__helper_paused() */
	quiesce_store_release(FK1, running, 0);
}

static bool all_paused(void)
{
	for (const struct quiesce__subsystem *const *each = quiesce__subsystems; *each; each++)
		if ((*each)->paused && !(*each)->paused())
			return false;
	return true;
}

void quiesce__gate_close(void)
{
	uint64_t end;

	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS)
		return;
	quiesce_fetch_add_relaxed(&closed, 1u); /* Relaxed: the fence follows. */
	/* FK1: full, pairs with FK1 in quiesce__gate_enter() and quiesce__gate_expect_owner() */
	quiesce_fence_full(FK1);
	if (quiesce_load_relaxed(&owners)) /* Relaxed: FK1. */
		/* FK1: pairs with FK1 in quiesce__gate_try_enter() */
		(void)quiesce_fence_heavy_try(FK1); /* I3 */
	end = platform_now_ns() + FORK_WAIT_MAX_NS;
	/* A callback may wait for a lock that this thread holds, so the wait has a limit.  A callback that is
	 * still running at the limit counts as run in the child. */
	while (!all_paused() && platform_now_ns() < end)
		/* Relaxed: a short sleep. */
		platform_futex_wait(&closed, quiesce_load_relaxed(&closed), FORK_POLL_NS);
}

void quiesce__gate_open(void)
{
	if (quiesce__self()->state & QUIESCE_TLS_CALLBACKS)
		return; /* a callback that forks has not closed the gate */
	quiesce_fetch_add_relaxed(&closed, (uint32_t)-1); /* Relaxed: the wake-up is a fence. */
	platform_futex_wake(&closed, INT32_MAX);
}

void quiesce__gate_fork_child(void)
{
	closed = 0;
}
