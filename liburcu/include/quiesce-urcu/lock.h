/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/lock.h - the mutex that queues and stacks of liburcu carry for those who take; private.
 *
 * A default mutex fails only where it is no mutex: it was not initialised, was destroyed, or is used again while it is held.
 */
#ifndef QUIESCE_URCU_LOCK_H
#define QUIESCE_URCU_LOCK_H

#include <pthread.h>
#include <quiesce/base.h>

QUIESCE_BEGIN_DECLS

QUIESCE_FAST void quiesce_urcu__require(int error)
{
	if (quiesce_unlikely(error))
		__builtin_abort();
}

QUIESCE_FAST void quiesce_urcu__lock_init(pthread_mutex_t *lock) { quiesce_urcu__require(pthread_mutex_init(lock, NULL)); }

QUIESCE_FAST void quiesce_urcu__lock_destroy(pthread_mutex_t *lock) { quiesce_urcu__require(pthread_mutex_destroy(lock)); }

QUIESCE_FAST void quiesce_urcu__lock(pthread_mutex_t *lock) { quiesce_urcu__require(pthread_mutex_lock(lock)); }

QUIESCE_FAST void quiesce_urcu__unlock(pthread_mutex_t *lock) { quiesce_urcu__require(pthread_mutex_unlock(lock)); }

QUIESCE_END_DECLS

#endif
