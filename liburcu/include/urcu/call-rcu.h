/* SPDX-License-Identifier: MIT */
/* urcu/call-rcu.h - callbacks after a grace period; the calls themselves are declared by each flavour's header.
 *
 * call_rcu(head, func)        calls func(head) after a grace period.  Any thread, also in a section and under locks that readers or
 *                             callbacks take: it waits for nothing.  In the flavour qsbr the thread is online.  @func returns; if it
 *                             ends its thread that is told, and another one goes on with what is queued.
 *                             It is called after a pause of 10 ms, by default: docs/from-liburcu.md.
 * rcu_barrier()               waits until all callbacks have been called that were queued before, without that pause.  In a section it
 *                             prints a line and returns; in a callback of the same flavour it aborts.
 * create_call_rcu_data(flags, cpu)  a thread of its own for callbacks, on @cpu unless that is -1.  NULL and errno: none can be had.
 *                             URCU_CALL_RCU_RT: it looks each 10 ms instead of being woken, so call_rcu() makes no system call.
 * set_thread_call_rcu_data(), set_cpu_call_rcu_data()  who queues for it; the CPU's is looked for where the thread has none.
 * get_call_rcu_thread()       its thread, to be pinned or given a priority; not to be joined: call_rcu_data_free() does.
 * call_rcu_data_free()        the end of it.  What is queued there is called first.  Nobody may queue any more.
 * call_rcu_before_fork(), call_rcu_after_fork_parent(), _child()  around fork(), if the child uses RCU.  There, only the
 *                             default exists, and has what was queued for others.
 *
 * The default is one queue for all threads, with a thread: what happened to be queued first is called first.  Where a line that all
 * callers of call_rcu() write is too much, create_all_cpu_call_rcu_data() makes a queue for each CPU.
 */
#ifndef URCU_CALL_RCU_H
#define URCU_CALL_RCU_H

#include <pthread.h>
#include <quiesce/detail/head.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

struct call_rcu_data;

#define URCU_CALL_RCU_RT (1U << 0)
/* Of liburcu's own threads; they may be given to create_call_rcu_data(), and mean nothing. */
#define URCU_CALL_RCU_RUNNING (1U << 1)
#define URCU_CALL_RCU_STOP (1U << 2)
#define URCU_CALL_RCU_STOPPED (1U << 3)
#define URCU_CALL_RCU_PAUSE (1U << 4)
#define URCU_CALL_RCU_PAUSED (1U << 5)

#endif
