/* SPDX-License-Identifier: MIT */
/* wait_link.c - pauses of who waits for a link that another thread is about to store.
 *
 * The other thread has made its exchange and has one store to go.  Where it runs, that comes before anybody could be put to
 * sleep; where it was preempted, who waits must leave the CPU to it, whatever the priorities of the two are: so yielding will not
 * do.  Nobody wakes who sleeps here.  A word for that would cost each push a look at it, for what is rare.
 */
#include "ds/wait_link.h"

#include "platform/platform.h"

#if defined(QUIESCE_SIM)
#define SPINS 1u
#else
#define SPINS 200u /* some microseconds */
#endif
#define SLEEP_NS 20000u
#define DOUBLINGS 6u /* to 1.3 ms */

void quiesce__link_pause(uint32_t round)
{
	uint32_t never = 0;

	if (round < SPINS)
		quiesce_cpu_relax();
	else
		platform_futex_wait(&never, 0, (uint64_t)SLEEP_NS << (round - SPINS < DOUBLINGS ? round - SPINS : DOUBLINGS));
}
