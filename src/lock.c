/* SPDX-License-Identifier: MIT */
/* lock.c - the sleeping half of lock.h.
 *
 * The word is 2 whenever somebody may sleep on it; whoever takes the lock after
 * sleeping leaves it at 2, because it cannot know whether others sleep too.
 */
#include "lock.h"

void quiesce__lock_slow(struct quiesce__lock *lock)
{
	/* LK1: acquire, pairs with LK1 in quiesce__unlock() */
	while (quiesce_xchg(LK1, &lock->word, 2) != 0)
		platform_futex_wait(&lock->word, 2, PLATFORM_FOREVER);
}
