/* SPDX-License-Identifier: MIT */
/* urcu/call-rcu.h - callbacks after a grace period; the calls themselves are declared by each flavour's header.
 *
 * call_rcu(head, func)        calls func(head) after a grace period.  Any thread, also in a section and under locks that readers or
 *                             callbacks take: the call does not wait.  In the flavour qsbr the thread is online.  @func has to
 *                             return; if it ends its thread that is reported, and another thread calls the remaining callbacks.
 *                             By default there is a pause of 10 ms before the call: docs/from-liburcu.md.
 * rcu_barrier()               waits until all callbacks that were queued before have been called, without that pause.  In a section
 *                             it prints a line and returns; in a callback of the same flavour it aborts.
 * create_call_rcu_data(flags, cpu)  makes a queue with a thread of its own, on @cpu unless that is -1.  NULL and errno on failure.
 *                             URCU_CALL_RCU_RT: the thread polls every 10 ms, so call_rcu() makes no system call.
 * set_thread_call_rcu_data(), set_cpu_call_rcu_data()  choose the queue of a thread or a CPU; a thread without one uses its CPU's.
 * get_call_rcu_thread()       returns the thread of a queue, to bind it or to set its priority.  The program then has to join it, after
 *                             call_rcu_data_free(), which joins the thread only if its id was never returned.
 * call_rcu_data_free()        calls the queued callbacks, then frees the queue, which no caller may use any more.
 * call_rcu_before_fork(), call_rcu_after_fork_parent(), _child()  go around fork(), if the child uses RCU.  The child has only the
 *                             default queue, with the callbacks of all others.
 *
 * The default is one queue for all threads, with a thread: callbacks are called in the order of their calls.  Where a cache line that
 * all callers of call_rcu() write is too slow, create_all_cpu_call_rcu_data() makes a queue for each CPU.
 */
#ifndef URCU_CALL_RCU_H
#define URCU_CALL_RCU_H

#include <pthread.h>
#include <quiesce/detail/head.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

struct call_rcu_data;

#define URCU_CALL_RCU_RT (1U << 0)
/* A flag of liburcu's own threads; create_call_rcu_data() accepts and ignores it. */
#define URCU_CALL_RCU_RUNNING (1U << 1)
#define URCU_CALL_RCU_STOP (1U << 2)
#define URCU_CALL_RCU_STOPPED (1U << 3)
#define URCU_CALL_RCU_PAUSE (1U << 4)
#define URCU_CALL_RCU_PAUSED (1U << 5)

#endif
