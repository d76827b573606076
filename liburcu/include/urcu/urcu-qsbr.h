/* SPDX-License-Identifier: MIT */
/* urcu/urcu-qsbr.h - liburcu's flavour qsbr: RCU whose threads announce when they read nothing.
 *
 * rcu_register_thread()       is needed, and makes the thread online.  Without memory for it the program aborts.
 * rcu_quiescent_state()       announces that the thread reads nothing at this moment; an online thread calls it now and then.
 * rcu_thread_offline()        announces that the thread reads nothing until rcu_thread_online(); a thread calls it before it blocks.
 * synchronize_rcu()           waits until every online thread has been quiescent.  The caller is offline meanwhile.
 * rcu_read_lock()             does nothing; with DEBUG_RCU it asserts that the thread is online.
 *
 * It is an RCU of its own: no other flavour waits for its readers, and it waits for no readers of other flavours.
 */
#ifndef URCU_URCU_QSBR_H
#define URCU_URCU_QSBR_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/config.h>
#include <urcu/defer.h>
#include <urcu/pointer.h>
#include <urcu/map/urcu-qsbr.h>
#include <quiesce-urcu/also.h>
#include <quiesce-urcu/flavor.h>
#include <quiesce-urcu/qsbr.h>

QUIESCE_URCU_BEGIN

QUIESCE_URCU_CALLS(qsbr)
QUIESCE_URCU_TABLE(qsbr)
QUIESCE_URCU_QSBR_READERS(qsbr)

#define urcu_qsbr_dereference(p) rcu_dereference(p)
#define urcu_qsbr_cmpxchg_pointer(p, old, _new) rcu_cmpxchg_pointer(p, old, _new)
#define urcu_qsbr_xchg_pointer(p, v) rcu_xchg_pointer(p, v)
#define urcu_qsbr_set_pointer(p, v) rcu_set_pointer(p, v)

QUIESCE_URCU_END

/* Their layout is not that of liburcu; an error message about a use contains the reason. */
#define urcu_qsbr_gp quiesce_has_no_urcu_gp_its_counters_are_private
#define urcu_qsbr_reader quiesce_has_no_urcu_reader_its_readers_are_private

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif
