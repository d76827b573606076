/* SPDX-License-Identifier: MIT */
/* quiesce-urcu/lock.h - the mutex of liburcu's queues and stacks, for the threads that take nodes out; private.
 *
 * A lock of a default mutex fails only by misuse: it was not initialised, was destroyed, or the thread holds it
 * already.
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
