/* SPDX-License-Identifier: MIT */
/* urcu/defer.h - functions to be called after a grace period, without a head in the object; declared by each flavour's header.
 *
 * defer_rcu(func, arg)            calls func(arg) after a grace period, in the order of the thread's calls.  The thread is registered
 *                                 by rcu_defer_register_thread(), and not in a section: with 4096 pending calls it waits for readers.
 * rcu_defer_register_thread()     returns 0, or -ENOMEM.
 * rcu_defer_unregister_thread()   makes the pending calls of the thread first.
 * rcu_defer_barrier()             makes the pending calls of all threads; rcu_defer_barrier_thread(): those of the caller.
 *
 * A thread of the library makes calls that have been pending for 0.1 s.  A function has to return; if it ends its thread, another
 * thread makes the remaining calls.
 */
#ifndef URCU_DEFER_H
#define URCU_DEFER_H

#include <pthread.h> /* programs rely on this header to include it */
#include <stdlib.h>

#endif
