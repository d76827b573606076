/* SPDX-License-Identifier: MIT */
/* wait_link.c - pauses of a thread that waits for a link which another thread is about to store.
 *
 * The other thread has made its exchange and has one store to go.  If it runs, that store comes before any thread could be
 * put to sleep.  If it was preempted, the waiter must leave the CPU to it whatever the priorities of the two: so yielding
 * is not enough.  No thread wakes a sleeper here: that would cost each push a check of another word, for a rare case.
 */
#include "queue/wait_link.h"

#include "platform/platform.h"

#if defined(QUIESCE_SIM)
#define SPINS 1u
#else
#define SPINS 200u /* takes some microseconds */
#endif
#define SLEEP_NS 20000u
#define DOUBLINGS 6u /* up to 1.3 ms */

void quiesce__link_pause(uint32_t round)
{
	uint32_t never = 0;

	if (round < SPINS)
		quiesce_cpu_relax();
	else
		platform_futex_wait(&never, 0, (uint64_t)SLEEP_NS << (round - SPINS < DOUBLINGS ? round - SPINS : DOUBLINGS));
}
