/* SPDX-License-Identifier: MIT */
/* urcu/defer.h - functions to be called after a grace period, without a head in the object; declared by each flavour's header.
 *
 * defer_rcu(func, arg)            calls func(arg) after a grace period, in order of the thread's calls.  Its thread is registered
 *                                 by rcu_defer_register_thread(), and not in a section: where 4096 wait the call waits for readers.
 * rcu_defer_register_thread()     0, or -ENOMEM.
 * rcu_defer_unregister_thread()   calls what waits first.
 * rcu_defer_barrier()             calls what waits of all threads; rcu_defer_barrier_thread(): of the caller's.
 *
 * A thread of the library calls what has waited for 0.1 s.  Functions return; if one ends its thread another one goes on.
 */
#ifndef URCU_DEFER_H
#define URCU_DEFER_H

#include <pthread.h> /* which programs take for granted */
#include <stdlib.h>

#endif
